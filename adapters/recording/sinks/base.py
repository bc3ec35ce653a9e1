"""What a recorder needs of the place a log is written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from handrail.adapters.recording.chain import Head, Line
from handrail.adapters.recording.contents import ContentStore

__all__ = ["Opened", "Sink"]


@frozen
class Opened:
    """What a sink found.

    Attributes:
        head: The last entry of a log that is continued; ``None`` for a new one.
        torn: An incomplete last line that was taken away, as a crash leaves it; empty where there was none.
    """

    head: Head | None = None
    torn: bytes = b""


class Sink(Protocol):
    """Takes the lines of one log, in order. One recorder at a time uses it."""

    def open(self) -> Opened:
        """Begin; called once, before anything else. Blocks shortly.

        Raises:
            LogError: This is no log, is of an unknown version, or is being written by another recorder.
            OSError: It cannot be opened.
        """
        ...

    async def write(self, lines: Sequence[Line]) -> None:
        """Add lines, all or none.

        Raises:
            Exception: None was added.
        """
        ...

    async def aclose(self) -> None:
        """Release what is held. Closing twice is harmless."""
        ...

    def default_store(self) -> ContentStore | None:
        """Where contents go when the user names no store; ``None``: nowhere."""
        ...
