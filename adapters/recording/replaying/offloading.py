"""Replay of ``Environment.offload``: computations run at once, and end when they ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from handrail.adapters.recording.replaying.player import Player

__all__ = ["ReplayedOffload"]

T = TypeVar("T")


class ReplayedOffload:
    """Runs computations.

    Args:
        player: The log.
    """

    def __init__(self, player: Player) -> None:
        self._player = player

    async def __call__(self, function: Callable[[], T], /) -> T:
        answer = self._player.ask_loosely("offload", "run")
        outcome = function()
        if answer is not None:
            try:
                await answer.ended()
            finally:
                answer.leave()
        return outcome
