"""LocalClock: the ClockPort on real time."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

import anyio

from handrail.ports.clock import ClockPort, Deadline

__all__ = ["LocalClock"]


class _ScopeDeadline:
    """A Deadline that reads its cancel scope."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    @property
    def expired(self) -> bool:
        return self._scope.cancelled_caught


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
        yield _ScopeDeadline(scope)
