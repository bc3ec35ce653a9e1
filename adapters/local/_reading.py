"""Reading regular files: whole or in part, in a thread, or at once where nothing can wait. Blocking."""

from __future__ import annotations

import os
import re
import stat as stat_bits
import sys
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final

from handrail.adapters.local._stats import canonical_of, file_stat, refuse_irregular
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent, FileStart

__all__ = [
    "OPEN_FLAGS",
    "is_local",
    "is_small_directory",
    "open_regular",
    "read_cached",
    "read_file",
    "read_range",
    "read_start",
    "read_up_to",
]

_CHUNK: Final = 1024 * 1024
_SMALL: Final = 64 * 1024
OPEN_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_MEMORY_TYPES: Final = frozenset({"ramfs", "tmpfs"})
_SMALL_DIRECTORY_BYTES: Final = 16 * 1024
_DISK_TYPES: Final = _MEMORY_TYPES | {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "xfs", "zfs"}


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, and describe it; anything else is refused without opening it."""
    refuse_irregular(os.stat(path).st_mode, path)
    handle = os.open(path, OPEN_FLAGS)
    found = os.fstat(handle)
    try:
        refuse_irregular(found.st_mode, path)
    except PortError:
        os.close(handle)
        raise
    return handle, found


def read_file(path: str, max_bytes: int | None) -> FileContent:
    """Return the first bytes of a file, or all of it, with its stat."""
    handle, found = open_regular(path)
    try:
        if max_bytes is None:
            data = read_up_to(handle, found.st_size, whole=True)
            found = os.fstat(handle)
        else:
            data = read_up_to(handle, _most(found.st_size, max_bytes), whole=False)
        return _content(handle, path, data, found)
    finally:
        os.close(handle)


def read_range(path: str, start: int, end: int) -> bytes:
    """Return the bytes of a file from one offset to another, as far as there are any."""
    handle, _ = open_regular(path)
    try:
        os.lseek(handle, start, os.SEEK_SET)
        return read_up_to(handle, end - start, whole=False)
    finally:
        os.close(handle)


def read_start(path: str, max_bytes: int) -> FileStart:
    """Return the first bytes of a regular file and its size; a fifth of the cost of ``read_file``."""
    handle, found = open_regular(path)
    try:
        # A file of size 0 may have content all the same (proc(5)).
        most = min(max_bytes, found.st_size) if found.st_size else max_bytes
        return FileStart(read_up_to(handle, most, whole=False), found.st_size)
    finally:
        os.close(handle)


def _most(size: int, max_bytes: int) -> int:
    """How much to ask for. A file of size 0 may have content all the same (proc(5))."""
    return min(max_bytes, size + 1) if size else max_bytes


def read_up_to(handle: int, size: int, *, whole: bool) -> bytes:
    """Read ``size`` bytes of an open file, or with ``whole`` to the end, which may lie further on by now."""
    pieces: list[bytes] = []
    left = size + 1 if whole else size
    while left > 0:
        piece = os.read(handle, left)
        if not piece:
            break
        pieces.append(piece)
        left = max(left - len(piece), _CHUNK) if whole else left - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _content(handle: int, path: str, data: bytes, found: os.stat_result) -> FileContent:
    complete = data if len(data) >= found.st_size else None
    return FileContent(data, file_stat(found, complete), canonical_of(handle, path))


# ------------------------------------------------------------------ without waiting


def is_small_directory(path: str) -> bool:
    """Whether a path is a directory on a disk of this machine with some hundred entries at most."""
    try:
        found = os.stat(path) if is_local(path) else None
    except (OSError, ValueError):
        return False
    return found is not None and stat_bits.S_ISDIR(found.st_mode) and found.st_size <= _SMALL_DIRECTORY_BYTES


if sys.platform == "linux":
    _OCTAL: Final = re.compile(r"\\([0-7]{3})")

    def read_cached(path: str, max_bytes: int | None) -> FileContent | None:
        """Return a small file that the page cache holds; ``None`` where reading it could wait for the disk."""
        handle, found = open_regular(path)
        try:
            if found.st_size > _SMALL or (max_bytes is not None and max_bytes < found.st_size):
                return None
            buffer = bytearray(found.st_size + 1)
            in_memory = _type_under(path) in _MEMORY_TYPES  # which do not know the flag
            try:
                count = os.preadv(handle, [buffer], 0, 0 if in_memory else os.RWF_NOWAIT)
            except OSError:  # not cached, or a file system that cannot tell
                return None
            return _content(handle, path, bytes(buffer[:count]), found) if count == found.st_size else None
        finally:
            os.close(handle)

    def is_local(path: str) -> bool:
        """Whether a path lies on a disk of this machine, told by the mount it is under."""
        return _type_under(path) in _DISK_TYPES

    def _type_under(path: str) -> str | None:
        """The type of the file system that a path lies on, as far as its spelling tells."""
        return _mounts().get(path) or _type_of_directory(path[: path.rfind("/")] or "/")

    @lru_cache(maxsize=1024)
    def _type_of_directory(path: str) -> str | None:
        mounts = _mounts()
        while path not in mounts and len(path) > 1:
            path = path[: path.rfind("/")] or "/"
        return mounts.get(path)

    @cache
    def _mounts() -> dict[str, str]:
        """File system types by mount point, as they were when first asked for (proc(5), mountinfo)."""
        mounts: dict[str, str] = {}
        with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                fields, _, more = line.partition(" - ")
                point = _OCTAL.sub(lambda escape: chr(int(escape[1], 8)), fields.split(" ")[4])
                mounts[point] = more.split(" ", 1)[0]
        return mounts

else:

    def read_cached(path: str, max_bytes: int | None) -> FileContent | None:
        """Only Linux can read without waiting (``RWF_NOWAIT``)."""
        return None

    def is_local(path: str) -> bool:
        """Not told here; everything is done in a thread."""
        return False
