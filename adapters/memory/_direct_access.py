"""DirectAccess: how a test looks at a file tree in memory and prepares it, without waiting, rights or faults."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from handrail.adapters.memory._tree import FileTree
from handrail.adapters.memory.entries import Directory, Entry, File, Special, Symlink
from handrail.ports.errors import PortError
from handrail.ports.files import FileKind

__all__ = ["DirectAccess"]


class DirectAccess:
    """Plain methods on a tree. They see what is there now, also after the environment closed.

    All raise PortError as the port does, e.g. ``not_found``.
    """

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree

    # ---------------------------------------------------------------- looking

    def tree(self, root: str = "/") -> dict[str, Entry]:
        """Return a picture of what is below a directory, sorted by path, to read and to compare.

        Files appear as their text, or as bytes where that is not UTF-8; of the directories only those
        without entries. The picture can be given to a new environment as its ``files``.
        """
        with self._tree.unrestricted():
            return dict(self._pictures(root))

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""
        with self._tree.unrestricted():
            return self._tree.read(path, None).data

    def read_text(self, path: str) -> str:
        """Return the content of a file as text in UTF-8.

        Raises:
            UnicodeDecodeError: It is something else.
        """
        return self.read_bytes(path).decode()

    def mode(self, path: str) -> int:
        """Return the permission bits."""
        with self._tree.unrestricted():
            return self._tree.stat(path).mode

    def __getitem__(self, path: str) -> Entry:
        """Return one entry as ``tree`` shows it; links are not followed."""
        with self._tree.unrestricted():
            return self._picture(path, self._tree.stat(path, follow=False).kind)

    def __contains__(self, path: str) -> bool:
        """Whether something has this name, if only a broken link."""
        try:
            with self._tree.unrestricted():
                self._tree.stat(path, follow=False)
        except PortError:
            return False
        return True

    # ---------------------------------------------------------------- preparing

    def __setitem__(self, path: str, entry: Entry) -> None:
        """Put an entry in place, as another program would; missing parents are created.

        Content goes through links. Anything else needs a free name.
        """
        with self._tree.unrestricted():
            self._tree.make_dirs(posixpath.dirname(path.rstrip("/")) or "/")
            match entry:
                case str():
                    self._tree.write(path, entry.encode("utf-8", "surrogateescape"), None, None, 0)
                case bytes():
                    self._tree.write(path, entry, None, None, 0)
                case File():
                    self[path] = entry.content
                    self._tree.set_mode(path, entry.mode)
                case Directory():
                    self._tree.make_dirs(path)
                    if entry.mode is not None:
                        self._tree.set_mode(path, entry.mode)
                case Symlink():
                    self._tree.make_link(entry.target, path)
                case Special():
                    self._tree.make_special(path, entry.kind)

    def make_hard_link(self, source: str, path: str) -> None:
        """Give a file one more name."""
        with self._tree.unrestricted():
            self._tree.make_hard_link(source, path)

    def set_mode(self, path: str, mode: int) -> None:
        """Change permission bits."""
        with self._tree.unrestricted():
            self._tree.set_mode(path, mode)

    def set_mtime(self, path: str, mtime_ns: int) -> None:
        """Change the timestamp, in nanoseconds since the Unix epoch."""
        with self._tree.unrestricted():
            self._tree.set_mtime(path, mtime_ns)

    def delete(self, path: str) -> None:
        """Remove an entry and everything below it; links are not followed."""
        with self._tree.unrestricted():
            self._tree.remove_all(path)

    def mount_read_only(self, path: str) -> None:
        """Let the file system of a directory be read-only from now on; the directory must exist."""
        with self._tree.unrestricted():
            canonical = self._tree.canonical_path(path)
        self._tree.read_only.add(canonical)

    def limit_space(self, free_bytes: int | None) -> None:
        """Leave this many bytes of space from now on; ``None`` is without end.

        Replacing a file needs room for the new content beside the old.
        """
        self._tree.free_bytes = free_bytes

    # ---------------------------------------------------------------- pictures

    def _pictures(self, root: str) -> Iterator[tuple[str, Entry]]:
        children = sorted(self._tree.list_dir(root), key=lambda child: child.name)
        for child in children:
            path = posixpath.join(root, child.name)
            if child.kind == "directory" and self._tree.list_dir(path):
                yield from self._pictures(path)
            else:
                yield path, self._picture(path, child.kind)

    def _picture(self, path: str, kind: FileKind) -> Entry:
        match kind:
            case "directory":
                return Directory()
            case "symlink":
                return Symlink(self._tree.link_target(path))
            case "file":
                data = self._tree.read(path, None).data
                try:
                    return data.decode()
                except UnicodeDecodeError:
                    return data
            case "fifo" | "socket" | "device":
                return Special(kind)
            case "other":
                raise AssertionError("a tree in memory has no other kinds")
