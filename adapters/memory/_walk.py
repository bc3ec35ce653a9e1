"""Following a path through a tree of nodes, by the rules of path_resolution(7)."""

from __future__ import annotations

import unicodedata
from typing import Literal

from attrs import define, frozen

from handrail.adapters.memory.nodes import DirectoryNode, Node, SymlinkNode
from handrail.ports.errors import PortError

__all__ = ["READ", "SEARCH", "WRITE", "NameRules", "Place", "Walker", "components", "last_name", "split_path"]

READ, WRITE, SEARCH = 4, 2, 1
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4095
_MAX_LINKS = 40
_NOWHERE = DirectoryNode(number=0, mode=0o777, mtime_ns=0, change=0)  # stands for what is missing


@frozen
class NameRules:
    """Which spellings of a name are one name, and how it is stored.

    Attributes:
        case_sensitive: Whether ``A`` and ``a`` are two names. Where not, the first spelling is kept.
        normalization: ``"NFD"``: composed and decomposed spellings are one name, stored decomposed, as HFS+
            does. ``None``: names are what they are.
    """

    case_sensitive: bool = True
    normalization: Literal["NFD"] | None = None

    def stored(self, name: str) -> str:
        """Return the form in which a new name is kept."""
        return unicodedata.normalize("NFD", name) if self.normalization else name

    def key(self, name: str) -> str:
        """Return what all spellings of one name have in common."""
        key = self.stored(name)
        return key if self.case_sensitive else self.stored(key.casefold())


@define
class Place:
    """Where a path leads: a name in a directory, whether or not something has that name."""

    parent: DirectoryNode
    name: str
    """As it is stored, or would be; empty for the root."""
    node: Node | None
    path: str
    """The canonical path."""


@define(eq=False)
class Walker:
    """Finds places in one tree."""

    root: DirectoryNode
    names: NameRules
    superuser: bool

    def locate(self, path: str, *, follow: bool = True) -> Place:
        """Return where a path leads. Only the last component may be missing.

        Args:
            path: Absolute.
            follow: Whether a symbolic link as the last component is followed.

        Raises:
            PortError: ``invalid_path``; ``not_found``; ``not_a_directory``; ``permission_denied``;
                ``symlink_loop``; ``name_too_long``.
        """
        return self._walk(path, follow=follow, lenient=False)

    def canonical(self, path: str) -> str:
        """Return a path with its links resolved; what is missing is joined as it is written.

        Raises:
            PortError: ``invalid_path``; ``permission_denied``; ``symlink_loop``; ``name_too_long``.
        """
        resolved = self._walk(path, follow=True, lenient=True).path
        try:
            self._walk(resolved, follow=False, lenient=False)
        except PortError as error:
            if error.code not in ("not_found", "not_a_directory"):
                raise PortError(error.code, path) from error
        return resolved

    def _walk(self, path: str, *, follow: bool, lenient: bool) -> Place:
        trail = [Place(self.root, "", self.root, "/")]
        pending = split_path(path)[::-1]
        links = 0
        while pending:
            component = pending.pop()
            directory = self._directory(trail[-1], path, lenient, SEARCH if component else 0)
            if component in ("", "."):
                continue
            if component == "..":
                del trail[max(len(trail) - 1, 1) :]
                continue
            place = self._entry(directory, trail[-1].path, component, path, lenient)
            if isinstance(place.node, SymlinkNode) and (follow or pending):
                links += 1
                if links > _MAX_LINKS:
                    raise PortError("symlink_loop", path)
                if place.node.target.startswith("/"):
                    del trail[1:]
                pending += components(place.node.target, path)[::-1]
            else:
                trail.append(place)
        return trail[-1]

    def may(self, node: Node, bits: int) -> bool:
        """Whether the user has these rights; the user owns every file."""
        return self.superuser or (node.mode >> 6) & bits == bits

    def require(self, node: Node, bits: int, path: str) -> None:
        """Raise ``permission_denied`` unless the user has these rights."""
        if not self.may(node, bits):
            raise PortError("permission_denied", path)

    def _directory(self, place: Place, path: str, lenient: bool, rights: int) -> DirectoryNode:
        """Return the directory at a place that a path goes on from."""
        if lenient and not (isinstance(place.node, DirectoryNode) and self.may(place.node, rights)):
            return _NOWHERE
        if isinstance(place.node, DirectoryNode):
            self.require(place.node, rights, path)
            return place.node
        raise PortError("not_found" if place.node is None else "not_a_directory", path)

    def _entry(self, directory: DirectoryNode, directory_path: str, component: str, path: str, lenient: bool) -> Place:
        if not lenient and len(component.encode("utf-8", "surrogateescape")) > _MAX_NAME_BYTES:
            raise PortError("name_too_long", path)
        name, node = directory.entries.get(self.names.key(component), (self.names.stored(component), None))
        return Place(directory, name, node, f"{directory_path.rstrip('/')}/{name}")


def split_path(path: str) -> list[str]:
    """Return the components of a valid absolute path, without empty ones; a final slash adds one.

    Raises:
        PortError: ``invalid_path``; ``name_too_long``.
    """
    if not path.startswith("/"):
        raise PortError("invalid_path", path, "a path is absolute" if path else "the path is empty")
    return components(path, path)


def last_name(path: str) -> str:
    """Return the last component as it is written, empty for the root."""
    return path.rstrip("/").rpartition("/")[2]


def components(text: str, path: str) -> list[str]:
    """Return the components of a path or of a link's target; a final slash adds an empty one.

    Raises:
        PortError: ``invalid_path``; ``name_too_long``. It names ``path``.
    """
    if "\0" in text:
        raise PortError("invalid_path", path, "the path has a NUL")
    try:
        size = len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise PortError("invalid_path", path, str(error)) from error
    if size > _MAX_PATH_BYTES:
        raise PortError("name_too_long", path)
    parts = [part for part in text.split("/") if part]
    return [*parts, ""] if text.endswith("/") and parts else parts
