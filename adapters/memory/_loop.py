"""The two things a virtual clock needs from the event loop and anyio does not offer directly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel

__all__ = ["spawn_detached", "wait_until_idle"]

# Tasks usually settle within a few turns of the loop; looking for idleness before that is wasted work.
_TURNS = 8
# anyio looks again only after 0.1 s of real time; a cut-off makes it look every millisecond.
_LOOK_SECONDS = 0.001

_detached: set[asyncio.Task[None]] = set()


def spawn_detached(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Start a task that belongs to the event loop and not to the caller.

    anyio starts tasks in task groups only, and a task group cannot be held by a plain ``with`` block.
    The loop cancels the task when it ends.
    """
    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            trio.lowlevel.spawn_system_task(function)
            return
    task = asyncio.get_running_loop().create_task(function())
    _detached.add(task)  # the loop itself keeps only a weak reference
    task.add_done_callback(_detached.discard)


async def wait_until_idle() -> None:
    """Wait until every other task of the loop waits for something that has not happened yet.

    A task that waits for a thread, a socket or a process counts as waiting.
    """
    while True:
        await _some_turns()
        if not await _is_idle():
            continue
        # The end of a task reaches those who wait for it only a turn later: idle is who is so twice.
        await _some_turns()
        if await _is_idle():
            return


async def _some_turns() -> None:
    for _ in range(_TURNS):
        await anyio.lowlevel.checkpoint()


async def _is_idle() -> bool:
    with anyio.move_on_after(_LOOK_SECONDS) as look:
        await anyio.wait_all_tasks_blocked()
    return not look.cancelled_caught
