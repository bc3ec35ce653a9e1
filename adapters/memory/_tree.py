"""FileTree: the operations of a file system on nodes in memory, at once and without waiting.

The rules are those of Linux: rename(2), unlink(2), mkdir(2), open(2). A version changes with everything that
changes the ctime of a file there. Nothing here awaits, so every operation is one step for all tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal

from handrail.adapters.memory._walk import (
    READ,
    SEARCH,
    WRITE,
    NameRules,
    Place,
    Walker,
    components,
    last_name,
    split_path,
)
from handrail.adapters.memory.nodes import DirectoryNode, FileNode, Node, SpecialNode, SymlinkNode
from handrail.ports.errors import PortError
from handrail.ports.files import ABSENT, DirEntry, FileContent, FileStat, Version, WriteReceipt

__all__ = ["FileTree"]

_DOTS = (".", "..")


class FileTree:
    """A file system in memory.

    Args:
        now_ns: Gives the timestamps.
        names: Which spellings of a name are one name.
        umask: Taken from the mode of what is created.
        superuser: Whether permission bits do not bind the user. The user owns every file.

    Attributes:
        read_only: Canonical paths of directories that are mounted read-only.
        free_bytes: Space that is left; ``None`` is without end.
    """

    def __init__(self, now_ns: Callable[[], int], *, names: NameRules, umask: int, superuser: bool) -> None:
        self.read_only: set[str] = set()
        self.free_bytes: int | None = None
        self._now_ns = now_ns
        self._names = names
        self._umask = umask
        self._changes = 0
        root = DirectoryNode(self._next(), 0o755, now_ns(), self._next())
        self._walker = Walker(root, names, superuser)

    # ---------------------------------------------------------------- looking

    def stat(self, path: str, *, follow: bool = True) -> FileStat:
        """Describe a path."""
        return self._existing(path, follow=follow)[1].stat()

    def list_dir(self, path: str) -> list[DirEntry]:
        """Return the entries of a directory."""
        directory = self._existing(path)[1]
        if not isinstance(directory, DirectoryNode):
            raise PortError("not_a_directory", path)
        self._walker.require(directory, READ, path)
        return [DirEntry(name, node.kind) for name, node in directory.entries.values()]

    def read(self, path: str, max_bytes: int | None) -> FileContent:
        """Return the first bytes of a file."""
        place, node = self._regular(path, READ)
        return FileContent(bytes(node.data[:max_bytes]), node.stat(), place.path)

    def open(self, path: str) -> tuple[bytes | bytearray, FileStat]:
        """Return the content of a file, which does not change when the file is replaced, and its stat."""
        node = self._regular(path, READ)[1]
        return node.data, node.stat()

    def link_target(self, path: str) -> str:
        """Return what a symbolic link says."""
        node = self._existing(path, follow=False)[1]
        if not isinstance(node, SymlinkNode):
            raise PortError("invalid_path", path, "not a symbolic link")
        return node.target

    def canonical_path(self, path: str) -> str:
        """Return a path with its links resolved; the tail may be missing."""
        return self._walker.canonical(path)

    # ---------------------------------------------------------------- changing

    def write(
        self, path: str, data: bytes, expect: Version | None, mode: int | None, previous_limit: int
    ) -> WriteReceipt:
        """Replace the content of a file, or create it."""
        place = self._target(path, expect)
        node = place.node
        if node is None:
            if expect not in (None, ABSENT):
                raise PortError("conflict", path, "the file is gone")
            created = self._create_file(place, data, path, 0o666 & ~self._umask if mode is None else mode)
            return WriteReceipt(created.stat(), created=True, canonical_path=place.path)
        node = _as_regular(node, path)
        if expect == ABSENT:
            raise PortError("conflict", path, "the file exists")
        self._walker.require(node, WRITE, path)
        self._require_writable(place.path, path)
        if expect is not None and expect != node.stat().version:
            raise PortError("conflict", path, "the file changed since it was read")
        previous = None
        if previous_limit:
            self._walker.require(node, READ, path)
            previous = FileContent(bytes(node.data[:previous_limit]), node.stat(), place.path)
        self._use_space(len(data), path)
        self._use_space(-len(node.data), path)
        node.data = bytes(data)
        node.mode = node.mode if mode is None else mode
        self._touch(node)
        return WriteReceipt(node.stat(), created=False, canonical_path=place.path, previous=previous)

    def append(self, path: str, data: bytes) -> None:
        """Add bytes to the end of a file."""
        place, node = self._regular(path, WRITE)
        self._require_writable(place.path, path)
        self._use_space(len(data), path)
        if not isinstance(node.data, bytearray):
            node.data = bytearray(node.data)
        node.data += data
        self._touch(node)

    def make_dirs(self, path: str) -> list[str]:
        """Create a directory and its missing parents; all or none."""
        names = split_path(path)
        created: list[str] = []
        try:
            for end in range(1, len(names) + 1):
                head = "/" + "/".join(names[:end])
                if self._make_directory(head, is_parent=end < len(names)):
                    created.append(head)
        except PortError as error:
            for head in reversed(created):
                self.remove(head)
            raise PortError(error.code, path, error.detail) from error
        return created

    def remove(self, path: str) -> None:
        """Remove a file, a link itself, or an empty directory."""
        self._existing(path, follow=False)
        if last_name(path) in _DOTS:
            raise PortError("invalid_path" if last_name(path) == "." else "not_empty", path)
        place, node = self._entry(path)
        self._require_changeable(place, path)
        if isinstance(node, DirectoryNode) and node.entries:
            raise PortError("not_empty", path)
        self._detach(place)

    def rename(self, source: str, target: str) -> None:
        """Move an entry; an existing target is replaced."""
        for path in (source, target):
            self._require_directory_of(path)
        if last_name(source) in _DOTS or last_name(target) in _DOTS:
            raise PortError("io_error", source, "the last part of a path to rename is a name")
        old = self._entry_place(source)
        node = old.node
        if node is None:
            raise PortError("not_found", source)
        new = self._entry_place(target)
        for path in (source, target):
            _require_slash_fits(node, path)
        name = self._names.stored(last_name(target))
        same_entry = new.node is node and new.path == old.path
        if new.node is node and (not same_entry or name == old.name):
            return  # nothing to do, also for two hard links of one file
        if not same_entry:
            self._require_apart(old.path, new.path, source)
        self._require_changeable(old, source)
        self._require_changeable(new, target)
        if isinstance(node, DirectoryNode) and old.parent is not new.parent:
            self._walker.require(node, WRITE, source)  # its ".." changes
        if new.node is not None and not same_entry:
            self._require_replaceable(node, new.node, source)
            self._detach(new)
        self._detach(old, keep=True)
        self._attach(new.parent, name, node)
        node.change = self._next()

    def make_link(self, target: str, path: str) -> None:
        """Create a symbolic link."""
        if not components(target, path) and not target.startswith("/"):
            raise PortError("invalid_path", path, "the target is empty")
        self._create(path, lambda number, now, change: SymlinkNode(number, 0o777, now, change, target))

    def set_mode(self, path: str, mode: int) -> None:
        """Change permission bits."""
        place, node = self._existing(path)
        self._require_writable(place.path, path)
        node.mode = mode
        node.change = self._next()

    # ---------------------------------------------------------------- what the port does not offer

    def make_special(self, path: str, kind: Literal["fifo", "socket", "device"]) -> None:
        """Create a FIFO, socket or device."""
        mode = 0o666 & ~self._umask
        self._create(path, lambda number, now, change: SpecialNode(number, mode, now, change, kind))

    def make_hard_link(self, source: str, path: str) -> None:
        """Give a regular file one more name."""
        node = _as_regular(self._existing(source, follow=False)[1], source)
        place = self._vacant(path)
        node.links += 1
        node.change = self._next()
        self._attach(place.parent, place.name, node)

    def create_private_file(self, path: str) -> None:
        """Create an empty file that only the user may read."""
        self._create_file(self._vacant(path), b"", path, 0o600)

    def remove_all(self, path: str) -> None:
        """Remove an entry and everything below it."""
        place, node = self._entry(path)
        for entry in list(node.entries.values()) if isinstance(node, DirectoryNode) else []:
            self.remove_all(f"{place.path}/{entry[0]}")
        self.remove(path)

    def set_mtime(self, path: str, mtime_ns: int) -> None:
        """Change the timestamp."""
        self._existing(path)[1].mtime_ns = mtime_ns

    @contextmanager
    def unrestricted(self) -> Generator[None, None, None]:
        """Let a block (without awaits) work as the owner of the machine: no rights, mounts or disk limits."""
        kept = self._walker.superuser, self.read_only, self.free_bytes
        self._walker.superuser, self.read_only, self.free_bytes = True, set(), None
        try:
            yield
        finally:
            self._walker.superuser, self.read_only, self.free_bytes = kept

    # ---------------------------------------------------------------- finding

    def _existing(self, path: str, *, follow: bool = True) -> tuple[Place, Node]:
        place = self._walker.locate(path, follow=follow)
        if place.node is None:
            raise PortError("not_found", path)
        return place, place.node

    def _regular(self, path: str, rights: int) -> tuple[Place, FileNode]:
        place, node = self._existing(path)
        file = _as_regular(node, path)
        self._walker.require(file, rights, path)
        return place, file

    def _entry(self, path: str) -> tuple[Place, Node]:
        """Return an entry to remove or move; a final slash asks for a directory."""
        place = self._entry_place(path)
        if place.node is None:
            raise PortError("not_found", path)
        _require_slash_fits(place.node, path)
        return place, place.node

    def _entry_place(self, path: str) -> Place:
        """Return the place of an entry, with or without a final slash."""
        split_path(path)
        if not last_name(path):
            raise PortError("io_error", path, "the root stays where it is")
        return self._walker.locate(path.rstrip("/"), follow=False)

    def _require_directory_of(self, path: str) -> None:
        split_path(path)
        try:
            self._walker.locate(f"{path.rstrip('/').rpartition('/')[0]}/.")
        except PortError as error:
            raise PortError(error.code, path, error.detail) from error

    def _target(self, path: str, expect: Version | None) -> Place:
        """Return the place that a write means: links are followed, even to a missing file."""
        try:
            return self._walker.locate(self.canonical_path(path))
        except PortError as error:
            if error.code in ("not_found", "not_a_directory") and expect not in (None, ABSENT):
                raise PortError("conflict", path, "the file is gone") from error
            raise PortError(error.code, path, error.detail) from error

    def _vacant(self, path: str) -> Place:
        place = self._walker.locate(path, follow=False)
        if place.node is not None:
            raise PortError("already_exists", path)
        return place

    # ---------------------------------------------------------------- refusing

    def _require_writable(self, canonical: str, path: str) -> None:
        """Raise ``read_only`` below a read-only mount."""
        if any(f"{canonical}/".startswith(f"{mount.rstrip('/')}/") for mount in self.read_only):
            raise PortError("read_only", path)

    def _require_changeable(self, place: Place, path: str) -> None:
        """Refuse to add or remove an entry where rights or the mount forbid it."""
        self._require_writable(place.path, path)
        self._walker.require(place.parent, WRITE | SEARCH, path)

    def _require_apart(self, old: str, new: str, path: str) -> None:
        """Refuse to move a directory into itself, or something over a directory it is in."""
        if new.startswith(f"{old}/"):
            raise PortError("invalid_path", path, "a directory cannot be moved into itself")
        if old.startswith(f"{new}/"):
            raise PortError("not_empty", path)

    def _require_replaceable(self, node: Node, replaced: Node, path: str) -> None:
        if isinstance(replaced, DirectoryNode):
            if not isinstance(node, DirectoryNode):
                raise PortError("is_a_directory", path)
            if replaced.entries:
                raise PortError("not_empty", path)
        elif isinstance(node, DirectoryNode):
            raise PortError("not_a_directory", path)

    def _use_space(self, count: int, path: str) -> None:
        if self.free_bytes is not None:
            if count > self.free_bytes:
                raise PortError("no_space", path)
            self.free_bytes -= count

    # ---------------------------------------------------------------- nodes

    def _create(self, path: str, make: Callable[[int, int, int], Node]) -> None:
        place = self._vacant(path)
        self._require_changeable(place, path)
        self._attach(place.parent, place.name, make(self._next(), self._now_ns(), self._next()))

    def _create_file(self, place: Place, data: bytes, path: str, mode: int) -> FileNode:
        self._require_changeable(place, path)
        self._use_space(len(data), path)
        node = FileNode(self._next(), mode, self._now_ns(), self._next(), bytes(data))
        self._attach(place.parent, place.name, node)
        return node

    def _make_directory(self, path: str, *, is_parent: bool) -> bool:
        """Create one directory unless it is there; returns whether it did."""
        place = self._walker.locate(path, follow=False)
        if place.node is None:
            self._require_changeable(place, path)
            node = DirectoryNode(self._next(), 0o777 & ~self._umask, self._now_ns(), self._next())
            self._attach(place.parent, place.name, node)
            return True
        if isinstance(place.node, SymlinkNode):
            try:
                place = self._walker.locate(path)
            except PortError as error:
                if is_parent and error.code == "symlink_loop":
                    raise
        if not isinstance(place.node, DirectoryNode):
            raise PortError("not_a_directory" if is_parent else "already_exists", path)
        return False

    def _attach(self, parent: DirectoryNode, name: str, node: Node) -> None:
        parent.entries[self._names.key(name)] = (name, node)
        self._touch(parent)

    def _detach(self, place: Place, *, keep: bool = False) -> None:
        """Take an entry out of its directory; the space of a file returns with its last name."""
        _, node = place.parent.entries.pop(self._names.key(place.name))
        self._touch(place.parent)
        if isinstance(node, FileNode) and not keep:
            node.links -= 1
            node.change = self._next()
            if not node.links and self.free_bytes is not None:
                self.free_bytes += len(node.data)

    def _touch(self, node: Node) -> None:
        node.mtime_ns = self._now_ns()
        node.change = self._next()

    def _next(self) -> int:
        self._changes += 1
        return self._changes


def _as_regular(node: Node, path: str) -> FileNode:
    if isinstance(node, FileNode):
        return node
    raise PortError("is_a_directory" if isinstance(node, DirectoryNode) else "not_a_regular_file", path)


def _require_slash_fits(node: Node, path: str) -> None:
    """Raise ``not_a_directory`` where a path with a final slash names something else."""
    if path.endswith("/") and not isinstance(node, DirectoryNode):
        raise PortError("not_a_directory", path)
