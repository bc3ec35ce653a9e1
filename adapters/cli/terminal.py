"""Standard output and error: made safe once, written by one function, and the live part of a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import TextIO

from handrail.adapters.cli.rendering import printable

__all__ = ["LiveRegion", "discard_output", "is_live", "prepare", "say", "show"]


def prepare() -> None:
    """Let every character be written, whatever the encoding of the terminal.

    A standard stream that the parent closed leads nowhere from now on: its number must not fall to a file or
    socket that this program opens, which would then get what is printed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, *, error: bool = False) -> None:
    """Print a line for a person at once; what could drive the terminal is escaped."""
    show(text + "\n", error=error)


def show(text: str, *, error: bool = False) -> None:
    """Like ``say``, for a text that may bring its own final newline; an empty one prints nothing."""
    if text:
        end = "" if text.endswith("\n") else "\n"
        print(printable(text), end=end, file=sys.stderr if error else sys.stdout, flush=True)


def discard_output() -> None:
    """Send standard output nowhere from now on, after its reader has gone.

    Without this the interpreter would complain at exit about what it cannot flush.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def is_live(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal that can repaint lines."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class LiveRegion:
    """The last lines of a terminal, repainted in place. The cursor rests behind them.

    Args:
        stream: The terminal.
        size: Tells its columns and rows; asked at every repaint.
    """

    def __init__(self, stream: TextIO, size: Callable[[], os.terminal_size] = shutil.get_terminal_size) -> None:
        self._stream = stream
        self._size = size
        self._rows = 0

    @property
    def columns(self) -> int:
        """How wide the terminal is."""
        return self._size().columns

    @property
    def rows(self) -> int:
        """How many lines can be painted without scrolling."""
        return max(1, self._size().lines - 1)

    def paint(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those shown before."""
        # Without automatic wrapping a line takes one row however wide its characters are. It is off within
        # one write only, so that nothing can leave the terminal in that state.
        self._write(self._erasure() + "\x1b[?7l" + "\n".join(lines) + "\x1b[?7h")
        self._rows = len(lines)

    def clear(self) -> None:
        """Take the lines away; the cursor is where they began."""
        if self._rows:
            self._write(self._erasure())
            self._rows = 0

    def _erasure(self) -> str:
        if not self._rows:
            return ""
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\r{up}\x1b[J"

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
