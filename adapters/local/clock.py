"""LocalClock: the ClockPort on real time."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

import anyio

from handrail.ports.clock import ClockPort, Deadline, ScopeDeadline

__all__ = ["LocalClock"]


class LocalClock(ClockPort):
    """Time as this machine tells it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, 0))

    def move_on_after(self, seconds: float | None) -> AbstractContextManager[Deadline]:
        return _deadline(seconds)


@contextmanager
def _deadline(seconds: float | None) -> Generator[Deadline, None, None]:
    with anyio.move_on_after(seconds) as scope:
        yield ScopeDeadline(scope)
