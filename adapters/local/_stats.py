"""What the port calls a stat, a kind and a canonical path, from what the operating system tells. Blocking."""

from __future__ import annotations

import errno
import os
import stat as stat_bits
import sys
from collections.abc import Callable
from typing import Final

from handrail.adapters.local._spelling import true_spelling
from handrail.adapters.local._versions import version_of
from handrail.ports.errors import PortError
from handrail.ports.files import FileKind, FileStat

__all__ = ["canonical", "canonical_of", "file_stat", "kind_of", "refuse_irregular"]


def canonical(path: str) -> str:
    """Return the path with all links resolved; the tail may be missing."""
    if (real := _told_by_kernel(path)) is not None:
        return real
    real = _resolved(path)
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return real
    if stat_bits.S_ISLNK(found.st_mode):  # realpath leaves a link unresolved only in a loop
        os.stat(real)
    return true_spelling(real)


def canonical_of(handle: int, path: str) -> str:
    """Return where an open file is that was opened by a path."""
    return _place_of(handle) or canonical(path)


if sys.platform == "linux":

    def _told_by_kernel(path: str) -> str | None:
        """Resolve the path of something that exists in a fixed number of system calls, however deep it lies."""
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            return _place_of(handle)
        finally:
            os.close(handle)

    def _place_of(handle: int) -> str | None:
        """Ask the kernel where an open file is now; ``None`` where it cannot tell, or the file is gone."""
        try:
            place = os.readlink(f"/proc/self/fd/{handle}")
            return place if os.path.samestat(os.lstat(place), os.fstat(handle)) else None
        except OSError:
            return None

else:

    def _told_by_kernel(path: str) -> str | None:
        return None

    def _place_of(handle: int) -> str | None:
        return None


def _resolved(path: str) -> str:
    """Resolve links; once more where one was replaced by something else just then (EINVAL of readlink)."""
    for _ in range(_ATTEMPTS):
        try:
            return os.path.realpath(path)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
    return os.path.realpath(path)


_ATTEMPTS: Final = 5

_KINDS: Final[tuple[tuple[Callable[[int], bool], FileKind], ...]] = (
    (stat_bits.S_ISREG, "file"),
    (stat_bits.S_ISDIR, "directory"),
    (stat_bits.S_ISLNK, "symlink"),
    (stat_bits.S_ISFIFO, "fifo"),
    (stat_bits.S_ISSOCK, "socket"),
    (stat_bits.S_ISCHR, "device"),
    (stat_bits.S_ISBLK, "device"),
)


def kind_of(mode: int) -> FileKind:
    """Return the kind of file that a mode tells."""
    for test, kind in _KINDS:
        if test(mode):
            return kind
    return "other"


def file_stat(found: os.stat_result, data: bytes | None = None) -> FileStat:
    """Return the port's stat; ``data`` is the whole content where it was read with it."""
    kind = kind_of(found.st_mode)
    return FileStat(
        kind=kind,
        size=found.st_size if kind == "file" else 0,
        mode=stat_bits.S_IMODE(found.st_mode),
        mtime_ns=found.st_mtime_ns,
        version=version_of(found, data),
    )


def refuse_irregular(mode: int, path: str) -> None:
    """Raise PortError for anything but a regular file."""
    if stat_bits.S_ISDIR(mode):
        raise PortError("is_a_directory", path)
    if not stat_bits.S_ISREG(mode):
        raise PortError("not_a_regular_file", path)
