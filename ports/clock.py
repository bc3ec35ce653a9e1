"""ClockPort: time in one environment."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

import anyio

__all__ = ["ClockPort", "Deadline", "ScopeDeadline"]


class Deadline(Protocol):
    """A running time limit."""

    @property
    def expired(self) -> bool:
        """Whether the limit cancelled the block. Stays true afterwards."""
        ...


class ScopeDeadline:
    """The Deadline of an adapter that cancels the block through a cancel scope of its own.

    Args:
        scope: It is cancelled by nothing but the limit.
    """

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    @property
    def expired(self) -> bool:
        """Whether the scope was cancelled and ended the block."""
        return self._scope.cancelled_caught


class ClockPort(Protocol):
    """Time in one environment: real, or moved by a test."""

    def now(self) -> datetime:
        """Return the wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds from a fixed, unknown start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait this many seconds of this clock; 0 or less only lets other tasks run."""
        ...

    def move_on_after(self, seconds: float | None) -> AbstractContextManager[Deadline]:
        """Cancel the block when it takes longer than this; ``None`` never does.

        The block ends quietly at its deadline; ``expired`` of the yielded Deadline then is true. Zero or
        less cancels at the first await.
        """
        ...
