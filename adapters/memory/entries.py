"""How a tree is written down and looked at: plain values that go in and come out again."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

__all__ = ["Directory", "Entry", "File", "Special", "Symlink"]


@frozen
class Directory:
    """A directory; in a picture of a tree only one without entries."""

    mode: int | None = None
    """Permission bits; by default what the umask leaves. Absent in a picture."""


@frozen
class Symlink:
    """A symbolic link."""

    target: str


@frozen
class Special:
    """A named pipe, socket or device: it has a place and a mode, and reading or writing it is refused."""

    kind: Literal["fifo", "socket", "device"] = "fifo"


@frozen
class File:
    """A regular file with a mode of its own; without one, its text or its bytes are enough."""

    content: str | bytes
    mode: int


Entry = str | bytes | File | Directory | Symlink | Special
"""``str`` is a file's text in UTF-8; ``bytes`` in a picture are content that is not UTF-8."""
