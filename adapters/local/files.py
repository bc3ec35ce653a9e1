"""LocalFiles: the FilePort on the real disk.

Each method is one hop to a worker thread: the system calls take microseconds, the hop some hundred. Only
``canonical_path`` runs on the event loop, a few ``lstat`` calls being an order of magnitude cheaper than a hop.
"""

from __future__ import annotations

import os
import stat as stat_bits
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, TypeVar

import aiofiles
import anyio
import anyio.to_thread

from handrail.adapters.local._errors import translated
from handrail.adapters.local._stats import canonical, file_stat, kind_of, refuse_irregular
from handrail.adapters.local._writing import write_file
from handrail.ports.errors import PortError
from handrail.ports.files import (
    DirEntry,
    DirListing,
    FileContent,
    FileKind,
    FilePort,
    FileStat,
    Version,
    WriteReceipt,
)

__all__ = ["LocalFiles"]

T = TypeVar("T")

_CHUNK: Final = 1024 * 1024
_SCAN_BUFFER: Final = 256 * 1024
_OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


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

    async def aclose(self) -> None:
        """Refuse further operations."""
        self._closed = True

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        return await self._hop(path, lambda: file_stat(os.stat(path, follow_symlinks=follow_symlinks)))

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return await self._hop(path, lambda: _entries(path))

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        return await self._hop("", lambda: [_listing(path) for path in paths])

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        return await self._hop(path, lambda: _read(path, max_bytes))

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        return await self._hop("", lambda: [_read_or_error(path, max_bytes) for path in paths])

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        self._check(path)
        handle = await self._hop(path, lambda: _open_regular(path))
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
        return await self._hop(path, lambda: write_file(path, data, expect, mode, previous_limit, fsync=self._fsync))

    async def append(self, path: str, data: bytes) -> None:
        await self._hop(path, lambda: _append(path, data))

    async def make_dirs(self, path: str) -> Sequence[str]:
        return await self._hop(path, lambda: _make_dirs(path))

    async def remove(self, path: str) -> None:
        await self._hop(path, lambda: _remove(path))

    async def rename(self, source: str, target: str) -> None:
        await self._hop(source, lambda: os.replace(source, target))

    async def canonical_path(self, path: str) -> str:
        self._check(path)
        with translated(path):
            return canonical(path)

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        return await self._hop(prefix, lambda: _temp_file(prefix, suffix, self._temp_directory))

    # ---------------------------------------------------------------- one hop

    def _check(self, path: str) -> None:
        if self._closed:
            raise PortError("closed", path)
        if not path:
            raise PortError("invalid_path", path, "the path is empty")

    async def _hop(self, path: str, work: Callable[[], T], *, abandon: bool = False) -> T:
        """Run blocking work in a thread; a cancellation waits until it has settled, unless abandoned."""
        if self._closed:
            raise PortError("closed", path)

        def translating() -> T:
            with translated(path):
                return work()

        return await anyio.to_thread.run_sync(translating, abandon_on_cancel=abandon)


# ------------------------------------------------------------------ blocking work


def _entries(path: str) -> list[DirEntry]:
    with os.scandir(path) as entries:
        return [DirEntry(entry.name, _entry_kind(entry)) for entry in entries]


def _entry_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_symlink():
        return "symlink"
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    try:
        return kind_of(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return "other"


def _listing(path: str) -> DirListing:
    try:
        with translated(path):
            return DirListing(path, _entries(path))
    except PortError as error:
        return DirListing(path, error=error)


def _open_regular(path: str) -> int:
    """Open a regular file for reading; anything else is refused without opening it."""
    refuse_irregular(os.stat(path).st_mode, path)
    handle = os.open(path, _OPEN_FLAGS)
    try:
        refuse_irregular(os.fstat(handle).st_mode, path)
    except PortError:
        os.close(handle)
        raise
    return handle


def _read(path: str, max_bytes: int | None) -> FileContent:
    handle = _open_regular(path)
    try:
        found = os.fstat(handle)
        data = _read_up_to(handle, found.st_size if max_bytes is None else max_bytes, whole=max_bytes is None)
        if max_bytes is None:
            found = os.fstat(handle)
    finally:
        os.close(handle)
    complete = data if len(data) >= found.st_size else None
    return FileContent(data, file_stat(found, complete), canonical(path))


def _read_up_to(handle: int, size: int, *, whole: bool) -> bytes:
    """Read ``size`` bytes, or with ``whole`` to the end, which may lie further on by now."""
    pieces: list[bytes] = []
    left = size + 1 if whole else size
    while left > 0:
        piece = os.read(handle, left)
        if not piece:
            break
        pieces.append(piece)
        left = max(left - len(piece), _CHUNK) if whole else left - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _read_or_error(path: str, max_bytes: int) -> FileContent | PortError:
    try:
        with translated(path):
            return _read(path, max_bytes)
    except PortError as error:
        return error


def _scan(path: str, consume: Callable[[bytes | bytearray], bool], start: int) -> FileStat:
    handle = _open_regular(path)
    try:
        found = file_stat(os.fstat(handle))
        os.lseek(handle, start, os.SEEK_SET)
        with open(handle, "rb", buffering=0, closefd=False) as stream:
            buffer = bytearray(_SCAN_BUFFER)
            while count := stream.readinto(buffer):
                if not consume(buffer if count == len(buffer) else buffer[:count]):
                    break
    finally:
        os.close(handle)
    return found


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
            except FileExistsError:
                if not os.path.isdir(directory):
                    raise
    except OSError:
        for directory in reversed(created):
            os.rmdir(directory)
        raise
    return created


def _remove(path: str) -> None:
    if stat_bits.S_ISDIR(os.lstat(path).st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


def _temp_file(prefix: str, suffix: str, directory: str | None) -> str:
    handle, path = tempfile.mkstemp(prefix=prefix, suffix=suffix, dir=directory)
    os.close(handle)
    return path
