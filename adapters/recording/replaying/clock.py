"""ReplayedClock: the recorded times, without the time it took."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

import anyio
import anyio.lowlevel

from handrail.adapters.recording.replaying.player import Player
from handrail.ports.clock import ClockPort, Deadline, ScopeDeadline

__all__ = ["ReplayedClock"]


class ReplayedClock(ClockPort):
    """Gives each tool call the readings it had. Where none was recorded, time stands still.

    Args:
        player: The log.
    """

    def __init__(self, player: Player) -> None:
        self._player = player
        self._now = datetime.fromisoformat(player.script.header["time"])
        self._monotonic = 0.0

    def now(self) -> datetime:
        reading = self._player.reading("now")
        if isinstance(reading, str):
            self._now = datetime.fromisoformat(reading)
        return self._now

    def monotonic(self) -> float:
        reading = self._player.reading("monotonic")
        if isinstance(reading, int | float):
            self._monotonic = float(reading)
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        answer = self._player.ask_loosely("clock", "sleep")
        if answer is None:
            await anyio.lowlevel.checkpoint()
            return
        try:
            await answer.outcome()
        finally:
            answer.leave()

    def move_on_after(self, seconds: float | None) -> AbstractContextManager[Deadline]:
        return self._limit(seconds)

    @contextmanager
    def _limit(self, seconds: float | None) -> Generator[Deadline, None, None]:
        answer = self._player.ask_loosely("clock", "move_on_after")
        with anyio.CancelScope() as scope:
            if seconds is not None and seconds <= 0:
                scope.cancel()
            if answer is not None:
                self._player.open_deadline(answer, scope)
            try:
                yield ScopeDeadline(scope)
            finally:
                self._player.close_deadline(scope)
                if answer is not None:
                    answer.leave()
