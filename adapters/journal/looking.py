"""What is at a path now, through the FilePort: a state, and the content where it is to be kept.

The owner of a file may have taken the right to read it from himself, or the right to enter a directory; a command
can do so too. To look there all the same, the journal gives that right back for a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from attrs import define, evolve, field

from handrail.adapters.journal.ledger import digest_of
from handrail.adapters.journal.states import ABSENT, State
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent, FilePort

__all__ = ["Openings", "join", "look", "look_at_link", "read_anyway", "read_state", "split"]

_READ: Final = 0o400
_LOOK: Final = 0o500
_CHANGE: Final = 0o700


async def look(files: FilePort, path: str, max_bytes: int) -> tuple[State, bytes | None]:
    """Return the state of a path, the name itself, and the content of a file.

    What cannot be looked at counts as something that cannot be restored.
    """
    try:
        found = await files.stat(path, follow_symlinks=False)
        if found.kind == "directory":
            return State("directory", found.mode), None
        if found.kind == "symlink":
            return await look_at_link(files, path), None
        if found.kind != "file":
            return State("other"), None
        return read_state(await read_anyway(files, path, found.mode, max_bytes), max_bytes)
    except PortError as error:
        if error.code in ("not_found", "not_a_directory"):
            return ABSENT, None
        return State("other"), None


async def look_at_link(files: FilePort, path: str) -> State:
    """Return the state of a symbolic link.

    Raises:
        PortError: ``not_found``; ``invalid_path`` when it is no link any more.
    """
    try:
        return State("symlink", target=await files.read_link(path))
    except PortError as error:
        if error.code != "not_supported":
            raise
        return State("other")


async def read_anyway(files: FilePort, path: str, mode: int, max_bytes: int) -> FileContent:
    """Read a file, also one that its mode closes to its owner; what is too large is not read to the end.

    Raises:
        PortError: As ``FilePort.read``.
    """
    try:
        return await files.read(path, max_bytes=max_bytes + 1)
    except PortError as error:
        if error.code != "permission_denied" or mode & _READ:
            raise
    try:
        await files.change_mode(path, mode | _READ)
        content = await files.read(path, max_bytes=max_bytes + 1)
    finally:
        with anyio.CancelScope(shield=True):
            await files.change_mode(path, mode)
    return evolve(content, stat=evolve(content.stat, mode=mode))


def read_state(content: FileContent, max_bytes: int) -> tuple[State, bytes | None]:
    """Return the state of a file that was read, and its content unless it is too large."""
    stat = content.stat
    if content.complete and len(content.data) <= max_bytes:
        return State("file", stat.mode, len(content.data), digest_of(content.data)), content.data
    return State("file", stat.mode, stat.size), None


@define(eq=False)
class Openings:
    """Directories that were opened to their owner for a while, and the modes they had."""

    files: FilePort
    modes: dict[str, int] = field(factory=dict[str, int])

    async def open_to_look(self, path: str, mode: int) -> None:
        """Let a directory be listed and what is in it be read, where it forbids that to its owner."""
        if mode & _LOOK != _LOOK and await self._forbids_looking(path):
            await self._open(path, mode, _LOOK)

    async def open_to_change(self, path: str, mode: int) -> None:
        """Let entries be made and removed in a directory, where it forbids that to its owner."""
        if mode & _CHANGE != _CHANGE:
            await self._open(path, mode, _CHANGE)

    async def close(self, final: Mapping[str, int] | None = None) -> dict[str, str]:
        """Give directories the modes they are to have, the innermost first; not interrupted by a cancellation.

        Args:
            final: Other modes than they had.

        Returns:
            Where that was refused, and why.
        """
        failed: dict[str, str] = {}
        with anyio.CancelScope(shield=True):
            modes = {**self.modes, **(final or {})}
            for path in sorted(modes, key=len, reverse=True):
                try:
                    if (await self.files.stat(path)).mode != modes[path]:
                        await self.files.change_mode(path, modes[path])
                except PortError as error:
                    if error.code not in ("not_found", "not_a_directory"):
                        failed[path] = f"its mode {modes[path]:04o} cannot be set: {error}"
            self.modes.clear()
        return failed

    async def _open(self, path: str, mode: int, rights: int) -> None:
        self.modes[path] = mode  # first: a cancellation may come when it is done
        try:
            await self.files.change_mode(path, mode | rights)
        except PortError:
            del self.modes[path]  # somebody else's directory: the work itself will meet it

    async def _forbids_looking(self, path: str) -> bool:
        try:
            await self.files.list_dir(path)
            await self.files.stat(join(path, "."))
        except PortError as error:
            return error.code == "permission_denied"
        return False


def join(directory: str, name: str) -> str:
    """Return the path of a name in a directory."""
    separator = _separator(directory)
    return directory.rstrip(separator) + separator + name


def split(path: str) -> tuple[str, str]:
    """Return the directory of a canonical path, empty for a root, and the name in it."""
    separator = _separator(path)
    directory, _, name = path.rstrip(separator).rpartition(separator)
    return (directory or separator if name else ""), name


def _separator(path: str) -> str:
    return "\\" if "\\" in path and "/" not in path else "/"
