"""The stream of events: complete for a quick reader, bounded for a slow one."""

from __future__ import annotations

import anyio
import pytest

from handrail.core.events import CallEnded, CallStarted, CallUpdated, Event, EventStream
from handrail.core.results import text_result

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


def update(number: int, call_id: str = "c") -> CallUpdated:
    return CallUpdated(call_id, "bash", text_result(str(number)))


async def test_events_come_in_order_and_the_stream_ends_when_closed() -> None:
    stream = EventStream()
    ended = CallEnded("c", "bash", text_result("3"), 1.0)
    events: list[Event] = [CallStarted("c", "bash", {}), update(1), update(2), ended]
    for event in events:
        stream.push(event)
    stream.close()
    assert [event async for event in stream] == events
    assert [event async for event in stream] == []


async def test_a_waiting_reader_wakes_for_each_event() -> None:
    stream = EventStream()
    seen: list[str] = []

    async def read() -> None:
        async for event in stream:
            assert isinstance(event, CallUpdated)
            seen.append(event.result.text)
            arrived.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        for number in range(3):
            arrived = anyio.Event()
            stream.push(update(number))
            await arrived.wait()
            assert seen[-1] == str(number)
        stream.close()
    assert seen == ["0", "1", "2"]


async def test_a_slow_reader_loses_old_updates_and_nothing_else() -> None:
    stream = EventStream()
    for call in range(1000):
        stream.push(CallStarted(str(call), "bash", {}))
        stream.push(update(call, str(call)))
        stream.push(CallEnded(str(call), "bash", text_result("over"), None))
    stream.close()
    events = [event async for event in stream]
    assert [event.call_id for event in events if isinstance(event, CallStarted)] == [str(n) for n in range(1000)]
    assert [event.call_id for event in events if isinstance(event, CallEnded)] == [str(n) for n in range(1000)]
    updates = [int(event.result.text) for event in events if isinstance(event, CallUpdated)]
    assert updates == list(range(1000 - len(updates), 1000))
    assert 1 <= len(updates) < 1000


async def test_the_last_update_of_a_chatty_call_survives() -> None:
    stream = EventStream()
    stream.push(CallStarted("c", "bash", {}))
    for number in range(10_000):
        stream.push(update(number))
    stream.push(CallEnded("c", "bash", text_result("over"), None))
    stream.close()
    events = [event async for event in stream]
    assert events[-2] == update(9999)
    assert len(events) < 1000


async def test_a_closed_stream_takes_no_more_events() -> None:
    stream = EventStream()
    stream.close()
    stream.push(update(1))
    assert [event async for event in stream] == []


async def test_a_cancelled_reader_loses_no_event() -> None:
    stream = EventStream()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await stream.__anext__()
    assert scope.cancelled_caught
    stream.push(update(1))
    stream.close()
    assert [event async for event in stream] == [update(1)]
