"""A log as a file of JSON lines: append-only, one entry a line; a torn last line is recognised and taken away."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import aiofiles
import anyio.to_thread

from handrail.adapters.recording.chain import Line, parse_line
from handrail.adapters.recording.contents import ContentStore, DirectoryStore
from handrail.adapters.recording.errors import LogError
from handrail.adapters.recording.format import check_header
from handrail.adapters.recording.keeping import MAX_INLINE_BYTES
from handrail.adapters.recording.sinks._locking import try_lock
from handrail.adapters.recording.sinks.base import Opened

__all__ = ["JsonLinesSink"]

_BLOCK: Final = 64 * 1024


class JsonLinesSink:
    """Appends to a file, private to the user when it is new. Contents go to ``PATH.contents``.

    Args:
        path: The file; continued where it exists. Its directory must exist.
        fsync: Flush each write to the device before it counts as written.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.path = os.path.abspath(path)
        self._fsync = fsync
        self._handle: int | None = None
        self._file: Any = None
        self._size = 0

    def open(self) -> Opened:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(self.path, flags, 0o600)
        try:
            if not try_lock(handle):
                raise LogError(f"{self.path} is being written by another recorder. Give each recorder its own log.")
            opened = _find_end(handle, self.path)
            if opened.torn:
                os.ftruncate(handle, os.fstat(handle).st_size - len(opened.torn))
            self._size = os.fstat(handle).st_size
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return opened

    async def write(self, lines: Sequence[Line]) -> None:
        assert self._handle is not None
        data = b"".join(line.raw for line in lines)
        try:
            if self._fsync or len(data) > MAX_INLINE_BYTES:
                await self._write_aside(data)
            else:
                _write(self._handle, data)
        except OSError:
            os.ftruncate(self._handle, self._size)  # no half line for the next ones to follow
            raise
        self._size += len(data)

    async def _write_aside(self, data: bytes) -> None:
        """Write in a thread what would hold up the event loop."""
        assert self._handle is not None
        if self._file is None:
            self._file = await aiofiles.open(self._handle, "ab", buffering=0, closefd=False)
        view = memoryview(data)
        while view:
            view = view[await self._file.write(view) :]
        if self._fsync:
            await anyio.to_thread.run_sync(os.fsync, self._handle)

    async def aclose(self) -> None:
        handle, self._handle = self._handle, None
        if self._file is not None:
            await self._file.close()
            self._file = None
        if handle is not None:
            os.close(handle)

    def default_store(self) -> ContentStore | None:
        return DirectoryStore(f"{self.path}.contents")


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _find_end(handle: int, path: str) -> Opened:
    """Return the head of a log and what follows it without a newline.

    Raises:
        LogError: The file is no log, or its last entry cannot be continued.
    """
    size = os.fstat(handle).st_size
    if size == 0:
        return Opened()
    os.lseek(handle, 0, os.SEEK_SET)
    first = os.read(handle, _BLOCK)
    if b"\n" in first:
        check_header(first[: first.index(b"\n") + 1], path)
    elif not b'{"'.startswith(first[:2]):
        raise LogError(f"{path} is not a log. Name a new file, or a log to continue.")
    end = b""
    position = size
    while position > 0 and end.count(b"\n") < 2:
        start = max(position - _BLOCK, 0)
        os.lseek(handle, start, os.SEEK_SET)
        end = os.read(handle, position - start) + end
        position = start
    last = end.rfind(b"\n") + 1
    torn = end[last:]
    if last == 0:
        return Opened(None, torn)
    line = end[end.rfind(b"\n", 0, last - 1) + 1 : last]
    try:
        return Opened(parse_line(line).head, torn)
    except ValueError as error:
        raise LogError(
            f"The last entry of {path} is damaged ({error}). Verify the log, then begin a new one."
        ) from None
