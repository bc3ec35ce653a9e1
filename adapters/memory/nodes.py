"""What a file tree in memory is made of. Names live in directories, so a node may have several."""

from __future__ import annotations

from typing import Literal

from attrs import define, field

from handrail.ports.files import FileKind, FileStat, Version

__all__ = ["DirectoryNode", "FileNode", "Node", "SpecialNode", "SymlinkNode"]


@define(eq=False)
class Node:
    """Something with a mode and a history.

    Attributes:
        number: Unique in its tree, as an inode number is.
        mode: Permission bits.
        mtime_ns: Last change, nanoseconds since the Unix epoch.
        change: Number of the last change of the tree that touched this node.
    """

    number: int
    mode: int
    mtime_ns: int
    change: int

    @property
    def kind(self) -> FileKind:
        """What a stat calls it."""
        raise NotImplementedError

    def stat(self) -> FileStat:
        """Describe the node as it is now."""
        return FileStat(self.kind, self.size, self.mode, self.mtime_ns, Version(f"{self.number}.{self.change}"))

    @property
    def size(self) -> int:
        """Bytes of a regular file, 0 for the rest."""
        return 0


@define(eq=False)
class FileNode(Node):
    """A regular file. Its data is replaced, never changed, except that appending extends it."""

    data: bytes | bytearray = field(default=b"", repr=False)
    links: int = 1

    @property
    def kind(self) -> FileKind:
        return "file"

    @property
    def size(self) -> int:
        return len(self.data)


@define(eq=False)
class DirectoryNode(Node):
    """A directory: folded name -> name as it is stored, and node."""

    entries: dict[str, tuple[str, Node]] = field(factory=lambda: dict[str, tuple[str, Node]](), repr=False)

    @property
    def kind(self) -> FileKind:
        return "directory"


@define(eq=False)
class SymlinkNode(Node):
    """A symbolic link."""

    target: str = ""

    @property
    def kind(self) -> FileKind:
        return "symlink"


@define(eq=False)
class SpecialNode(Node):
    """A FIFO, socket or device."""

    special: Literal["fifo", "socket", "device"] = "fifo"

    @property
    def kind(self) -> FileKind:
        return self.special
