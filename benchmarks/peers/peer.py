"""What every peer offers to the benchmarks."""

from __future__ import annotations

from typing import Any

__all__ = ["NotOffered", "Peer", "ToolFailed", "at_any_depth"]


class NotOffered(Exception):
    """A peer has nothing for this workload; the text says what it lacks."""


class ToolFailed(Exception):
    """A peer's tool answered with an error; the text is the tool's own."""


class Peer:
    """A system whose tools are called with the arguments of ours."""

    async def open(self, cwd: str) -> None:
        """Make ready for calls in a working directory, outside the clock; opening it again does nothing."""

    async def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> str:
        """Do the work of one tool call and return the text of its answer.

        Raises:
            ToolFailed: The peer's tool answered with an error.
            NotOffered: The peer's tools cannot do this.
        """
        raise NotOffered(f"no {tool}")

    async def aclose(self) -> None:
        """End what was opened."""


def at_any_depth(pattern: str) -> str:
    """Return a pattern for a peer that takes one without a slash for the top directory only."""
    return pattern if "/" in pattern else f"**/{pattern}"
