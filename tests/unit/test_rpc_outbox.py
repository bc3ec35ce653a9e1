"""Answers on their way out: in order, and bounded however slow the reader is."""

from __future__ import annotations

import anyio
import pytest

from handrail.adapters.rpc.outbox import Outbox
from handrail.adapters.rpc.protocol import RequestError
from handrail.core.events import CallEnded, CallStarted, CallUpdated, Event
from handrail.core.results import text_result

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


def update(call_id: str, text: str) -> CallUpdated:
    return CallUpdated(call_id, "bash", text_result(text))


def ended(call_id: str) -> CallEnded:
    return CallEnded(call_id, "bash", text_result("done"), 1.0)


async def drained(outbox: Outbox) -> list[Event | RequestError]:
    outbox.close()
    messages: list[Event | RequestError] = []
    while (message := await outbox.next()) is not None:
        messages.append(message)
    return messages


async def test_answers_come_in_order() -> None:
    outbox = Outbox()
    messages: list[Event | RequestError] = [
        CallStarted("1", "bash", {}),
        update("1", "a"),
        RequestError("unknown_id", "…"),
        ended("1"),
    ]
    for message in messages:
        outbox.put(message)
    assert await drained(outbox) == messages


async def test_a_newer_update_takes_the_place_of_one_that_waits() -> None:
    outbox = Outbox()
    for number in range(1000):
        outbox.put(update("1", f"one {number}"))
        outbox.put(update("2", f"two {number}"))
    outbox.put(ended("1"))
    assert await drained(outbox) == [update("1", "one 999"), update("2", "two 999"), ended("1")]


async def test_a_fast_reader_gets_every_update() -> None:
    outbox = Outbox()
    for number in range(3):
        outbox.put(update("1", str(number)))
        assert await outbox.next() == update("1", str(number))


async def test_a_reader_waits_for_the_next_answer() -> None:
    outbox = Outbox()
    received: list[Event | RequestError | None] = []

    async def receive() -> None:
        received.append(await outbox.next())
        received.append(await outbox.next())

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        outbox.put(ended("1"))
        await anyio.wait_all_tasks_blocked()
        outbox.close()
    assert received == [ended("1"), None]
