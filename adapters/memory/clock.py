"""VirtualClock: time that moves only when a test moves it, or when nothing else can happen."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from math import isinf, isnan

import anyio
import anyio.lowlevel
from attrs import define, field

from handrail.adapters.memory._loop import spawn_detached, wait_until_idle
from handrail.ports.clock import ClockPort, Deadline, ScopeDeadline

__all__ = ["START", "Timer", "VirtualClock"]

START = datetime(2026, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@define(order=True)
class Timer:
    """Something that is to happen at a moment of a VirtualClock."""

    when_ns: int
    """Nanoseconds on the monotonic clock."""
    number: int
    """Timers of one moment fire in the order they were set."""
    callback: Callable[[], None] | None = field(order=False, repr=False)

    def cancel(self) -> None:
        """Make it not happen; harmless when it already has."""
        self.callback = None


class VirtualClock(ClockPort):
    """A clock without real time.

    With ``autojump`` it jumps to the next moment that somebody waits for, as soon as every task of the
    event loop waits: a test of a one-hour limit takes milliseconds. A task that waits for real work (a
    thread, a process) counts as waiting, so such a clock belongs in a world without any. Without
    ``autojump`` it moves only through ``advance``.

    A test that stages a race under ``autojump`` waits for events, not for "all tasks are blocked": while
    the test itself waits, the clock is free to jump.

    Args:
        start: The wall-clock time at the beginning, aware.
        autojump: Whether it moves by itself.
    """

    def __init__(self, start: datetime = START, *, autojump: bool = False) -> None:
        self._start = start.astimezone(UTC)
        self._autojump = autojump
        self._elapsed_ns = 0
        self._timers: list[Timer] = []
        self._timers_set = 0
        self._driven = False

    def now(self) -> datetime:
        """Return the start plus the time that has passed; finer than a microsecond is cut off."""
        return self._start + timedelta(microseconds=self._elapsed_ns // 1000)

    def now_ns(self) -> int:
        """Return the wall-clock time in nanoseconds since the Unix epoch, as file timestamps have it."""
        return (self._start - _EPOCH) // timedelta(microseconds=1) * 1000 + self._elapsed_ns

    def monotonic(self) -> float:
        """Return the seconds that have passed since the clock was made."""
        return self._elapsed_ns / _NANOSECONDS

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has moved by this much; infinity waits until cancelled."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def move_on_after(self, seconds: float | None) -> AbstractContextManager[Deadline]:
        """Cancel the block when the clock moves by more than this while it runs."""
        return self._limit(seconds)

    @contextmanager
    def _limit(self, seconds: float | None) -> Generator[Deadline, None, None]:
        with anyio.CancelScope() as scope:
            timer = None
            if seconds is not None and seconds > 0:
                timer = self.call_later(seconds, scope.cancel)
            elif seconds is not None:
                scope.cancel()
            try:
                yield ScopeDeadline(scope)
            finally:
                if timer is not None:
                    timer.cancel()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Have something happen in this world later, without a task that waits for it.

        Args:
            seconds: From now; 0 or less means the next time the clock looks. Infinity never comes.
            callback: Called once; must not raise.
        """
        if isnan(seconds):
            raise ValueError("seconds must be a number")
        self._timers_set += 1
        if isinf(seconds) and seconds > 0:
            return Timer(0, self._timers_set, callback)  # in no queue, so it never fires
        timer = Timer(self._elapsed_ns + _to_ns(seconds), self._timers_set, callback)
        heapq.heappush(self._timers, timer)
        if self._autojump and not self._driven:
            self._driven = True
            spawn_detached(self._drive)
        return timer

    async def advance(self, seconds: float) -> None:
        """Move the clock, moment by moment; at each one the woken tasks run until they wait again."""
        target = self._elapsed_ns + _to_ns(seconds)
        await wait_until_idle()
        while (when := self._next_moment()) is not None and when <= target:
            self._fire(when)
            await wait_until_idle()
        self._elapsed_ns = max(self._elapsed_ns, target)

    async def _drive(self) -> None:
        """Jump from moment to moment until nobody waits for one."""
        try:
            while self._next_moment() is not None:
                await wait_until_idle()
                when = self._next_moment()
                if when is not None:
                    self._fire(when)
        finally:
            self._driven = False

    def _next_moment(self) -> int | None:
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0].when_ns if self._timers else None

    def _fire(self, when_ns: int) -> None:
        """Move to a moment and let everything that was set for it happen."""
        self._elapsed_ns = max(self._elapsed_ns, when_ns)
        while self._timers and self._timers[0].when_ns <= when_ns:
            callback = heapq.heappop(self._timers).callback
            if callback is not None:
                callback()


def _to_ns(seconds: float) -> int:
    """Return nanoseconds; a positive duration is never rounded to nothing."""
    return max(round(seconds * _NANOSECONDS), 1 if seconds > 0 else 0)
