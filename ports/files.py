"""FilePort: the files of one environment, and the plain data that crosses it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal, NewType, Protocol, Self

from attrs import field, frozen

from handrail.ports.errors import PortError

__all__ = [
    "ABSENT",
    "DirEntry",
    "DirListing",
    "FileContent",
    "FileKind",
    "FilePort",
    "FileStart",
    "FileStat",
    "Version",
    "WriteReceipt",
]

FileKind = Literal["file", "directory", "symlink", "fifo", "socket", "device", "other"]

Version = NewType("Version", str)
"""An opaque token for the content of a file at one moment; equal tokens mean equal content."""

ABSENT = Version("absent")
"""The version of a file that does not exist: ``write(…, expect=ABSENT)`` creates and never overwrites."""


@frozen
class FileStat:
    """What a file system tells about one path."""

    kind: FileKind
    size: int
    """Bytes; 0 for anything but a regular file."""
    mode: int
    """Permission bits only, ``0o7777`` at most."""
    mtime_ns: int
    """Last change of the content, nanoseconds since the Unix epoch."""
    version: Version
    """Changes whenever the content may have changed."""


@frozen
class FileContent:
    """The first bytes of a regular file and the stat of that same moment."""

    data: bytes = field(repr=False)
    stat: FileStat
    canonical_path: str
    """Where the bytes really are: symbolic links resolved."""

    @property
    def complete(self) -> bool:
        """Whether ``data`` is the whole file."""
        return len(self.data) >= self.stat.size


@frozen
class FileStart:
    """The first bytes of a regular file and its size at that moment."""

    data: bytes = field(repr=False)
    size: int

    @property
    def complete(self) -> bool:
        """Whether ``data`` is the whole file."""
        return len(self.data) >= self.size


@frozen
class DirEntry:
    """One name in a directory. Symbolic links are not followed: their kind is ``symlink``."""

    name: str
    kind: FileKind


@frozen
class DirListing:
    """What is in one directory, unordered, or why it cannot be listed (then nothing is).

    A search lists many directories, and most of what they hold are regular files: those are bare names here.
    """

    path: str
    files: Sequence[str] = ()
    """Names of the regular files."""
    others: Sequence[DirEntry] = ()
    """All else."""
    error: PortError | None = None

    @classmethod
    def of(cls, path: str, entries: Sequence[DirEntry]) -> Self:
        """Return the listing of a directory with these entries."""
        files = [entry.name for entry in entries if entry.kind == "file"]
        return cls(path, files, [entry for entry in entries if entry.kind != "file"])

    @property
    def entries(self) -> list[DirEntry]:
        """Everything in it, as ``FilePort.list_dir`` returns it."""
        return [*(DirEntry(name, "file") for name in self.files), *self.others]


@frozen
class WriteReceipt:
    """What a write did."""

    stat: FileStat
    created: bool
    """Whether there was no file before."""
    canonical_path: str
    """The file that was really written: symbolic links resolved."""
    previous: FileContent | None = None
    """The content before, where the caller asked for it and there was one."""


class FilePort(Protocol):
    """Files of one environment.

    Paths are absolute strings in the host's own spelling, ``/`` or the host's separator between parts.
    Names that are not valid UTF-8 are spelled with lone surrogates (PEP 383) and accepted in that form.
    Links are followed unless a method says otherwise. Every method may be cancelled at any await; a
    cancelled ``write``, ``rename`` or ``remove`` has either happened whole or not at all when the
    cancellation propagates, and nothing of it goes on afterwards.

    Every method raises PortError and no other exception for what the world refuses:
    ``invalid_path`` for an empty path or one with a NUL; ``name_too_long``; ``symlink_loop``;
    ``permission_denied``; ``not_a_directory`` when a parent is a file; ``closed`` after the environment
    was closed; ``io_error`` for the rest. Below, only what comes on top is listed.

    A new adapter that inherits from this class need not write everything: ``list_dirs``, ``stat_many``,
    ``read_many``, ``read_starts`` and ``scan`` have working default bodies, to be overridden only for speed, and
    ``read_link``, ``make_link`` and ``change_mode`` are ``not_supported`` by default; no tool needs those, a journal
    does.
    """

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        """Describe one path.

        With ``follow_symlinks=False`` a symbolic link itself is described (kind ``symlink``).

        Raises:
            PortError: ``not_found``, also for a link whose target is missing.
        """
        ...

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        """Describe several paths in one step, in the order asked."""
        stats: list[FileStat | PortError] = []
        for path in paths:
            try:
                stats.append(await self.stat(path, follow_symlinks=follow_symlinks))
            except PortError as error:
                stats.append(error)
        return stats

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        """Return the entries of a directory, unordered, without ``.`` and ``..``.

        Costs no stat per entry where the host can avoid it.

        Raises:
            PortError: ``not_found``; ``not_a_directory``.
        """
        ...

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        """List several directories in one step, in the order asked; an error stands in its listing."""
        listings: list[DirListing] = []
        for path in paths:
            try:
                listings.append(DirListing.of(path, await self.list_dir(path)))
            except PortError as error:
                listings.append(DirListing(path, error=error))
        return listings

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        """Return the first ``max_bytes`` bytes (all, by default) of a regular file with its stat.

        Data and version belong together: a ``write`` that expects ``stat.version`` succeeds only while
        the file still has the content it had now. Never waits for a FIFO or a device.

        Raises:
            PortError: ``not_found``; ``is_a_directory``; ``not_a_regular_file``.
        """
        ...

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        """Read the first ``max_bytes`` bytes of several files in one step, in the order asked."""
        contents: list[FileContent | PortError] = []
        for path in paths:
            try:
                contents.append(await self.read(path, max_bytes=max_bytes))
            except PortError as error:
                contents.append(error)
        return contents

    async def read_starts(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileStart | PortError]:
        """Like ``read_many``, for those who need neither version nor canonical path: a search reads many files."""
        contents = await self.read_many(paths, max_bytes=max_bytes)
        return [
            FileStart(content.data, content.stat.size) if isinstance(content, FileContent) else content
            for content in contents
        ]

    def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a regular file in order, in chunks of the adapter's choice, none empty.

        All chunks come from one open file: replacing the file meanwhile does not mix contents.
        Memory does not grow with the file. Closing the iterator early (``aclose``) releases the file.

        Args:
            path: The file to read.
            start: Offset of the first byte, counted from 0. Beyond the end, nothing is yielded.
            end: Offset after the last byte; ``None`` reads to the end.

        Raises:
            PortError: ``not_found``; ``is_a_directory``; ``not_a_regular_file``; before the first chunk.
        """
        ...

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        """Hand all bytes of a regular file from ``start`` on to a function, piece by piece, in order.

        For work that needs every byte but keeps little (counting lines, hashing): the adapter may call
        ``consume`` in a thread and reuse the buffer, so it must be quick, pure, and copy what it keeps.
        The scan stops early when it returns False, and soon after a cancellation.

        Returns:
            The stat of the file at the time it was opened.

        Raises:
            PortError: As ``read``, before the first piece.
        """
        found = (await self.read(path, max_bytes=0)).stat
        async with aclosing(self.read_chunks(path, start=start)) as chunks:
            async for chunk in chunks:
                if not consume(chunk):
                    break
        return found

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        """Replace the content of a file, or create it; atomic: readers see the old or the new content.

        Writes through symbolic links, also to a target that does not exist yet; the link stays. Keeps
        mode, and owner, group and extended attributes where the host permits. A file with several hard
        links is written in place, so that all its names show the new content; so is a file in a directory
        that permits no new entry. A file that its mode makes read-only for the caller is refused even
        where a rename would succeed. No temporary file is left behind, whatever happens.

        Args:
            path: The file to write. Its directory must exist.
            data: The whole new content.
            expect: Write only if the file is still in this version (``ABSENT``: does not exist), else
                ``conflict``. The comparison and the replacement are one step for all writers that use
                this port on the same host, in other processes too.
            mode: Permission bits to set. By default an existing file keeps its mode and a new one gets
                what the host gives (``0o666`` less the umask).
            previous_limit: Return the content before, at most this many bytes of it, in the receipt.

        Raises:
            PortError: ``not_found`` when the directory is missing; ``is_a_directory``;
                ``not_a_regular_file``; ``conflict``; ``no_space``; ``read_only``. The old content is whole.
        """
        ...

    async def append(self, path: str, data: bytes) -> None:
        """Add bytes to the end of an existing regular file; meant for logs and saved output.

        Raises:
            PortError: ``not_found``; ``is_a_directory``; ``not_a_regular_file``; ``no_space``; ``read_only``.
        """
        ...

    async def make_dirs(self, path: str) -> Sequence[str]:
        """Create a directory and its missing parents; return those it created, outermost first.

        An existing directory (or a link to one) is no error: nothing is created.

        Raises:
            PortError: ``already_exists`` when the path itself is something else; ``not_a_directory`` when
                a parent is; ``read_only``; ``no_space``. What was created before the failure is removed.
        """
        ...

    async def remove(self, path: str) -> None:
        """Remove a file, a symbolic link itself, or an empty directory.

        Raises:
            PortError: ``not_found``; ``not_empty``; ``read_only``.
        """
        ...

    async def rename(self, source: str, target: str) -> None:
        """Move a file, link or directory; an existing target file is replaced in the same step.

        Raises:
            PortError: ``not_found``; ``is_a_directory`` when a file would replace a directory;
                ``not_a_directory`` when a directory would replace a file; ``not_empty``; ``read_only``.
        """
        ...

    async def read_link(self, path: str) -> str:
        """Return what a symbolic link says, as it was made: often relative to its directory, perhaps leading nowhere.

        Raises:
            PortError: ``not_found``; ``invalid_path`` for anything but a link; ``not_supported`` where there are
                no links.
        """
        raise PortError("not_supported", path)

    async def make_link(self, path: str, target: str) -> None:
        """Make a symbolic link. It replaces nothing, and its target need not exist.

        Args:
            path: The link. Its directory must exist.
            target: What it says: absolute, or relative to the directory of the link.

        Raises:
            PortError: ``already_exists`` when something has the name, if only a broken link; ``not_found`` when the
                directory is missing; ``invalid_path`` for an empty target or one with a NUL; ``read_only``;
                ``no_space``; ``not_supported`` where there are no links.
        """
        raise PortError("not_supported", path)

    async def change_mode(self, path: str, mode: int) -> None:
        """Change the permission bits of a file or directory.

        Args:
            path: What to change; a link is followed.
            mode: Permission bits, ``0o7777`` at most. Where the host keeps fewer of them it keeps those.

        Raises:
            PortError: ``not_found``, also for a link whose target is missing; ``permission_denied`` unless the
                caller owns it; ``read_only``; ``not_supported`` where there are no modes.
        """
        raise PortError("not_supported", path)

    async def canonical_path(self, path: str) -> str:
        """Resolve symbolic links, ``.`` and ``..``; also for a path whose tail does not exist.

        Two spellings of one existing file have one canonical path, also where the file system ignores
        case or Unicode normalisation. Creates and changes nothing.

        Raises:
            PortError: ``symlink_loop``; ``invalid_path``.
        """
        ...

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        """Create an empty private file (mode ``0o600``, exclusively) in the host's place for such files.

        The name is ``prefix``, some unpredictable characters, ``suffix``. The caller removes it.

        Raises:
            PortError: ``no_space``; ``read_only``; ``not_found`` when the place does not exist.
        """
        ...
