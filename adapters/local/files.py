"""LocalFiles: the FilePort on the real disk.

What may wait for a device is one hop to a worker thread. A hop costs some hundred microseconds, so what hardly
waits is done on the event loop: some ``stat`` calls on a local disk, one or two small directories there, a small
file that the page cache holds.
"""

from __future__ import annotations

import os
import stat as stat_bits
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import aiofiles
import anyio.lowlevel

from handrail.adapters.local._errors import answer_of, translated
from handrail.adapters.local._reading import (
    is_local,
    is_small_directory,
    open_regular,
    read_cached,
    read_file,
    read_range,
    read_start,
)
from handrail.adapters.local._stats import canonical, file_stat, kind_of, refuse_irregular
from handrail.adapters.local._threads import Threads
from handrail.adapters.local._writing import write_file
from handrail.ports.errors import PortError
from handrail.ports.files import (
    DirEntry,
    DirListing,
    FileContent,
    FileKind,
    FilePort,
    FileStart,
    FileStat,
    Version,
    WriteReceipt,
)

__all__ = ["LocalFiles"]

T = TypeVar("T")

_CHUNK: Final = 1024 * 1024
_BRIEF_BYTES: Final = 64 * 1024
_SCAN_BUFFER: Final = 256 * 1024
_FEW: Final = 2
_LOOKED_FOR: Final = 64
_MAX_PATH: Final = 32_767 if sys.platform == "win32" else 4095
"""Characters; no system takes more, and resolving a longer one would take time that grows with its square."""


class LocalFiles(FilePort):
    """Files of this machine.

    Args:
        fsync: Flush each written file and its directory to the device before a write returns. Slower; for
            hosts where a power failure matters.
        temp_directory: Where ``create_temp_file`` puts files; by default the system's place.
    """

    def __init__(self, *, fsync: bool = False, temp_directory: str | None = None) -> None:
        self._fsync = fsync
        self._temp_directory = temp_directory
        self._closed = False
        self._threads = Threads()

    async def aclose(self) -> None:
        """Refuse further operations."""
        self._closed = True
        self._threads.close()

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        return await self._at_once(path, lambda: file_stat(os.stat(path, follow_symlinks=follow_symlinks)))

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        def stat(path: str) -> FileStat:
            return file_stat(os.stat(path, follow_symlinks=follow_symlinks))

        return await self._hop(None, lambda: [answer_of(stat, path) for path in paths])

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        self._check(path)
        do = self._at_once if is_small_directory(path) else self._hop
        return await do(path, lambda: _names(path).entries)

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        if len(paths) > _FEW or self._closed or not all(map(is_small_directory, paths)):
            return await self._hop(None, lambda: [_listing(path) for path in paths])
        await anyio.lowlevel.checkpoint_if_cancelled()
        return [_listing(path) for path in paths]

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        self._check(path)
        if is_local(path):
            cached = await self._at_once(path, lambda: read_cached(path, max_bytes))
            if cached is not None:
                return cached
        return await self._hop(path, lambda: read_file(path, max_bytes))

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        read = partial(read_file, max_bytes=max_bytes)
        return await self._hop(None, lambda: [answer_of(read, path) for path in paths])

    async def read_starts(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileStart | PortError]:
        read = partial(read_start, max_bytes=max_bytes)
        missing = None if self._closed or len(paths) > _LOOKED_FOR else _missing_among(paths)
        if missing is None:
            return await self._hop(None, lambda: [answer_of(read, path) for path in paths])
        return [missing.get(path) or await self._start(path, max_bytes) for path in paths]

    async def _start(self, path: str, max_bytes: int) -> FileStart | PortError:
        """Read one file, which saves the hop where the page cache holds it."""
        try:
            content = await self.read(path, max_bytes=max_bytes)
        except PortError as error:
            return error
        return FileStart(content.data, content.stat.size)

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        self._check(path)
        if end is not None and end - start <= _CHUNK:  # one hop instead of one for each of open, seek, read and close
            piece = await self._hop(path, lambda: read_range(path, start, end))
            if piece:
                yield piece
            return
        handle, _ = await self._hop(path, lambda: open_regular(path))
        async with aiofiles.open(handle, "rb", buffering=0) as stream:
            await stream.seek(start)
            left = _CHUNK if end is None else end - start
            while left > 0:
                with translated(path):
                    chunk = await stream.read(min(_CHUNK, left))
                if not chunk:
                    return
                if end is not None:
                    left -= len(chunk)
                yield chunk

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        stopped = threading.Event()

        def step(piece: bytes | bytearray) -> bool:
            return not stopped.is_set() and consume(piece)

        try:
            return await self._hop(path, lambda: _scan(path, step, start), abandon=True)
        finally:
            stopped.set()

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        brief = len(data) <= _BRIEF_BYTES and not self._fsync and is_local(path)
        return await self._hop(
            path, lambda: write_file(path, data, expect, mode, previous_limit, fsync=self._fsync), brief=brief
        )

    async def append(self, path: str, data: bytes) -> None:
        await self._hop(path, lambda: _append(path, data))

    async def make_dirs(self, path: str) -> Sequence[str]:
        return await self._hop(path, lambda: _make_dirs(path))

    async def remove(self, path: str) -> None:
        await self._hop(path, lambda: _remove(path))

    async def rename(self, source: str, target: str) -> None:
        await self._hop(source, lambda: os.replace(source, target))

    async def read_link(self, path: str) -> str:
        return await self._at_once(path, lambda: os.readlink(path))

    async def make_link(self, path: str, target: str) -> None:
        await self._hop(path, lambda: _make_link(path, target))

    async def change_mode(self, path: str, mode: int) -> None:
        await self._hop(path, lambda: os.chmod(path, mode))

    async def canonical_path(self, path: str) -> str:
        return await self._at_once(path, lambda: canonical(path))

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        directory = self._temp_directory or tempfile.gettempdir()
        return await self._hop(directory, lambda: _temp_file(prefix, suffix, directory))

    # ---------------------------------------------------------------- one hop

    def _check(self, path: str) -> None:
        if self._closed:
            raise PortError("closed", path)
        if not path:
            raise PortError("invalid_path", path, "the path is empty")
        if len(path) > _MAX_PATH:
            raise PortError("name_too_long", path)

    async def _at_once(self, path: str, work: Callable[[], T]) -> T:
        """Do a few system calls on the event loop where they cannot wait for a network, else in a thread."""
        self._check(path)
        if not is_local(path):
            return await self._hop(path, work)
        await anyio.lowlevel.checkpoint_if_cancelled()
        with translated(path):
            return work()

    async def _hop(self, path: str | None, work: Callable[[], T], *, abandon: bool = False, brief: bool = False) -> T:
        """Run blocking work in a thread; a cancellation waits until it has settled, unless abandoned.

        Args:
            path: What errors name; ``None`` where the work translates them itself.
            work: What to do.
            abandon: Whether a cancellation leaves the work alone.
            brief: Whether it is a matter of some system calls that hardly wait (see ``Threads.run``).
        """
        if path is not None:
            self._check(path)
        elif self._closed:
            raise PortError("closed")

        def translating() -> T:
            if path is None:
                return work()
            with translated(path):
                return work()

        return await self._threads.run(translating, abandon=abandon, brief=brief)


# ------------------------------------------------------------------ blocking work


def _missing_among(paths: Sequence[str]) -> dict[str, PortError] | None:
    """Say which files are missing, as of the ignore files that a search asks for; ``None``: more are there."""
    missing: dict[str, PortError] = {}
    for number, path in enumerate(paths):
        look = answer_of(os.stat, path) if is_local(path) else None
        if isinstance(look, PortError):
            missing[path] = look
        elif number - len(missing) >= _FEW:
            return None
    return missing


def _other_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    if entry.is_symlink():
        return "symlink"
    try:
        return kind_of(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return "other"


def _listing(path: str) -> DirListing:
    """Return a directory with its files as bare names; an error stands in it."""
    listing = answer_of(_names, path)
    return DirListing(path, error=listing) if isinstance(listing, PortError) else listing


def _names(path: str) -> DirListing:
    # A call for each entry is what a long listing costs; most are files.
    files: list[str] = []
    others: list[DirEntry] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            else:
                others.append(DirEntry(entry.name, _other_kind(entry)))
    return DirListing(path, files, others)


def _make_link(path: str, target: str) -> None:
    if not target:
        raise PortError("invalid_path", path, "the target is empty")
    os.symlink(target, path)


def _scan(path: str, consume: Callable[[bytes | bytearray], bool], start: int) -> FileStat:
    handle, found = open_regular(path)
    try:
        os.lseek(handle, start, os.SEEK_SET)
        with open(handle, "rb", buffering=0, closefd=False) as stream:
            buffer = bytearray(_SCAN_BUFFER)
            while count := stream.readinto(buffer):
                if not consume(buffer if count == len(buffer) else buffer[:count]):
                    break
    finally:
        os.close(handle)
    return file_stat(found)


def _append(path: str, data: bytes) -> None:
    refuse_irregular(os.stat(path).st_mode, path)
    with open(path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags & ~os.O_CREAT)) as stream:
        view = memoryview(data)
        while view:
            view = view[stream.write(view) :]


def _make_dirs(path: str) -> list[str]:
    missing: list[str] = []
    current = path
    while not os.path.isdir(current):
        if os.path.exists(current):
            raise PortError("already_exists" if current == path else "not_a_directory", path)
        missing.append(current)
        current = os.path.dirname(current)
    created: list[str] = []
    try:
        for directory in reversed(missing):
            try:
                os.mkdir(directory)
                created.append(directory)
            except FileExistsError as error:
                if not os.path.isdir(directory):
                    raise _obstacle(directory, path) from error
    except (OSError, PortError):
        for directory in reversed(created):
            os.rmdir(directory)
        raise
    return created


def _obstacle(directory: str, path: str) -> PortError:
    """Say what a link that leads to no directory, or a file that appeared meanwhile, is to ``make_dirs``."""
    if directory == path:
        return PortError("already_exists", path)
    with suppress(FileNotFoundError):
        os.stat(directory)  # tells a loop from a broken link
    return PortError("not_a_directory", path)


def _remove(path: str) -> None:
    if stat_bits.S_ISDIR(os.lstat(path).st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


def _temp_file(prefix: str, suffix: str, directory: str) -> str:
    handle, path = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=directory)
    os.close(handle)
    return path
