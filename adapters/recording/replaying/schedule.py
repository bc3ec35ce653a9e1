"""The order of a replay: answers come in the recorded order, so that what raced then races the same way now.

An answer waits until all that was recorded before it, in the tool calls that are running, has happened here too.
That is enough to make parallel calls meet as they met. Where a program does something else than what was recorded,
the order could wait forever; so whenever every task of the event loop waits, the earliest answer is let through.
The same holds for what came from outside: a deadline that passed, a call that was cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Final

import anyio
import anyio.lowlevel
from attrs import define

from handrail.adapters.recording.replaying.script import Moment

__all__ = ["Schedule", "Track"]

_TURNS: Final = 8
_LOOK_SECONDS: Final = 0.001


@define(eq=False)
class Track:
    """The moments of one tool call (or of all that is in none), in order."""

    moments: list[Moment]
    _next: int = 0

    def first(self) -> Moment | None:
        """The first moment that has not happened."""
        while self._next < len(self.moments) and self.moments[self._next].done:
            self._next += 1
        return self.moments[self._next] if self._next < len(self.moments) else None

    def passed(self) -> Moment | None:
        """The last moment before the first that has not happened."""
        self.first()
        return self.moments[self._next - 1] if self._next else None


class Schedule:
    """Lets moments happen in turn.

    Args:
        ordered: Whether there is an order at all.
    """

    def __init__(self, *, ordered: bool) -> None:
        self._ordered = ordered
        self._running: list[Track] = []
        self._pushes: dict[Moment, Callable[[], None]] = {}
        self._changed = anyio.Event()
        self._is_watched = False

    def enter(self, track: Track) -> None:
        """A tool call begins: from now on others wait for its moments."""
        self._running.append(track)

    def leave(self, track: Track) -> None:
        """A tool call is over."""
        if track in self._running:
            self._running.remove(track)
        self._tell()

    def happened(self, *moments: Moment) -> None:
        """Note that moments have happened."""
        for moment in moments:
            moment.done = True
        self._tell()

    async def turn(self, moment: Moment, track: Track) -> None:
        """Wait until it is the turn of a moment; then it has happened. Also when cancelled.

        When it is its turn already, other tasks do not get to run in between: they did not then.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            while not self._is_due(moment, track):
                with self._pushed_when_idle(moment, moment.release):
                    await self._wait()
        finally:
            self.happened(moment)

    async def wait_for_cancellation(self, moment: Moment, cause: Callable[[], None]) -> None:
        """Wait to be cancelled, as the recorded call was at this moment; when nobody does it, bring it about.

        Args:
            moment: When it was cancelled.
            cause: Cancels what was cancelled then, from outside.
        """
        try:
            with self._pushed_when_idle(moment, cause):
                while True:
                    await self._wait()
        finally:
            self.happened(moment)

    def push_when_idle(self, moment: Moment, push: Callable[[], None]) -> None:
        """When nothing moves and this is the earliest such moment, call ``push`` once."""
        self._pushes[moment] = push

    def push_no_more(self, moment: Moment | None) -> None:
        """Take that back; harmless when it was not asked for."""
        if moment is not None:
            self._pushes.pop(moment, None)

    @contextmanager
    def _pushed_when_idle(self, moment: Moment, push: Callable[[], None]) -> Generator[None, None, None]:
        self.push_when_idle(moment, push)
        try:
            yield
        finally:
            self.push_no_more(moment)

    # -------------------------------------------------------------- parts

    def _is_due(self, moment: Moment, track: Track) -> bool:
        if moment.released or not self._ordered:
            return True
        return all(first is None or first.key >= moment.key for first in self._firsts(track))

    def _firsts(self, track: Track) -> Iterator[Moment | None]:
        yield track.first()
        for other in self._running:
            if other is not track:
                yield other.first()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _wait(self) -> None:
        """Wait for a change; one of those who wait looks out for a standstill."""
        changed = self._changed
        if self._is_watched:
            await changed.wait()
            return
        self._is_watched = True
        try:
            if await _becomes_idle(changed) and not self._push():
                await changed.wait()
        finally:
            self._is_watched = False
            self._tell()  # another one becomes the lookout

    def _push(self) -> bool:
        """Make the earliest moment that waits for a push happen."""
        if not self._pushes:
            return False
        moment = min(self._pushes, key=lambda each: each.key)
        self._pushes.pop(moment)()
        return True


async def _becomes_idle(changed: anyio.Event) -> bool:
    """Wait until every other task of the loop waits; False as soon as there is a change.

    A task that waits for a thread, a socket or a process counts as waiting.
    """
    for _ in range(_TURNS):
        await anyio.lowlevel.checkpoint()
        if changed.is_set():
            return False
    while not changed.is_set():
        # anyio itself looks again only after 0.1 s.
        with anyio.move_on_after(_LOOK_SECONDS) as look:
            await anyio.wait_all_tasks_blocked()
        if not look.cancelled_caught:
            return not changed.is_set()
    return False
