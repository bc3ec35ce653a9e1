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
    real = _resolved(path)
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return real
    if stat_bits.S_ISLNK(found.st_mode):  # realpath leaves a link unresolved only in a loop
        os.stat(real)
    return true_spelling(real)


def canonical_of(handle: int, path: str, found: os.stat_result) -> str:
    """Return where an open file is; a tenth of the cost of resolving its path again, where the kernel tells it.

    Args:
        handle: The open file.
        path: What it was opened by.
        found: Its stat.
    """
    if sys.platform == "linux":
        try:
            real = os.readlink(f"/proc/self/fd/{handle}")
            if os.path.samestat(os.lstat(real), found):
                return real
        except OSError:
            pass  # no /proc, or the file has moved or gone
    return canonical(path)


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
