"""Replacing the content of a local file: atomic, through links, keeping what belongs to the file.

The new content goes to a sibling that takes over the old file's mode, owner and attributes and is then renamed
over it, all while other writers of the same file wait (see ``_locking``). A file with several names is written
in place, because a rename would part them, and so is one whose directory permits no new entry; the old content is
put back when that fails.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat as stat_bits
import sys
from contextlib import suppress
from typing import Final

from handrail.adapters.local._locking import HeldFile, held_file
from handrail.adapters.local._reading import OPEN_FLAGS, read_up_to
from handrail.adapters.local._stats import canonical_of, file_stat, refuse_irregular
from handrail.adapters.local._versions import is_version
from handrail.ports.errors import PortError
from handrail.ports.files import ABSENT, FileContent, Version, WriteReceipt

__all__ = ["write_file"]

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ATTEMPTS: Final = 8


def write_file(
    path: str, data: bytes, expect: Version | None, mode: int | None, previous_limit: int, *, fsync: bool
) -> WriteReceipt:
    """Write a whole file as ``FilePort.write`` promises. Blocking.

    Raises:
        OSError: What the operating system refuses.
        PortError: ``conflict``; ``is_a_directory``; ``not_a_regular_file``.
    """
    for _ in range(_ATTEMPTS):
        # Where a link, or a ".." behind what is no directory, leads to: there it is, or is to be created, all the same.
        target = path if os.path.isfile(path) else os.path.realpath(path)
        try:
            if target is path or _exists(target, path):
                if expect == ABSENT:
                    raise PortError("conflict", path, "the file exists")
                with held_file(target) as old:
                    return _replace(path, old, data, expect, mode, previous_limit, fsync)
            if expect is not None and expect != ABSENT:
                raise PortError("conflict", path, "the file is gone")
            return _create(target, data, mode, fsync)
        except FileExistsError:
            continue  # somebody created it just now
        except FileNotFoundError:
            if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
                raise
            # Somebody removed it just now.
        except TimeoutError as error:
            raise PortError("conflict", path, str(error)) from error
    raise PortError("conflict", path, "others create and remove the file all the time")


def _exists(target: str, path: str) -> bool:
    """Whether there is a regular file; False where nothing can be, and for a link to nothing."""
    try:
        found = os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return False
    refuse_irregular(found.st_mode, path)
    return True


def _replace(
    path: str, old: HeldFile, data: bytes, expect: Version | None, mode: int | None, previous_limit: int, fsync: bool
) -> WriteReceipt:
    refuse_irregular(old.found.st_mode, path)
    target = canonical_of(old.handle, path)
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        code = errno.EROFS if _is_mounted_read_only(target) else errno.EACCES
        raise OSError(code, os.strerror(code))
    if expect is not None and not is_version(expect, old.found, lambda: _content(old, target)):
        raise PortError("conflict", path, "the file changed since it was read")
    previous = None
    if previous_limit:
        head = _content(old, target, min(previous_limit, old.found.st_size + 1))
        complete = head if len(head) >= old.found.st_size else None
        previous = FileContent(head, file_stat(old.found, complete), target)
    written = _put(target, data, old, mode, fsync)
    return WriteReceipt(file_stat(written), created=False, canonical_path=target, previous=previous)


def _is_mounted_read_only(path: str) -> bool:
    return sys.platform != "win32" and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _put(target: str, data: bytes, old: HeldFile, mode: int | None, fsync: bool) -> os.stat_result:
    if old.found.st_nlink == 1:
        try:
            return _swap(target, data, old, mode, fsync)
        except OSError as error:
            # The file may be written, but its directory may be closed, or sticky and of another owner; or the
            # file itself is a mount point, as containers make them.
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY):
                raise
    return _overwrite(target, data, old, mode, fsync)


def _create(target: str, data: bytes, mode: int | None, fsync: bool) -> WriteReceipt:
    """Make a new file; never replaces one that appears meanwhile (FileExistsError)."""
    written = _create_at_once(target, data, mode, fsync) or _create_from_sibling(target, data, mode, fsync)
    _sync_directory(target, fsync)
    return WriteReceipt(file_stat(written), created=True, canonical_path=target)


def _create_at_once(target: str, data: bytes, mode: int | None, fsync: bool) -> os.stat_result | None:
    """Fill a file without a name, which vanishes with a process that is killed, and name it; ``None`` if impossible."""
    if sys.platform != "linux":
        return None
    try:
        handle = os.open(os.path.dirname(target), os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        _fill(handle, data, fsync)
        if mode is not None:
            os.fchmod(handle, mode)
        # Any directory descriptor makes Python use linkat(2), which can follow the link in /proc (open(2), O_TMPFILE).
        os.link(f"/proc/self/fd/{handle}", target, src_dir_fd=handle, follow_symlinks=True)
        return os.fstat(handle)
    except FileExistsError:
        raise
    except OSError:
        return None
    finally:
        os.close(handle)


def _create_from_sibling(target: str, data: bytes, mode: int | None, fsync: bool) -> os.stat_result:
    sibling, handle = _open_sibling(target, 0o666)
    try:
        _fill(handle, data, fsync)
        if mode is not None:
            os.chmod(sibling, mode)
        os.close(handle)
        handle = -1
        _put_in_place(sibling, target)
        with suppress(FileNotFoundError):
            os.unlink(sibling)
        return os.stat(target)  # after the unlink, which changes the time stamp that versions look at
    finally:
        if handle >= 0:
            os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(sibling)


def _put_in_place(sibling: str, target: str) -> None:
    try:
        os.link(sibling, target)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a file system without hard links
        os.close(os.open(target, _CREATE, 0o600))
        os.replace(sibling, target)


def _swap(target: str, data: bytes, old: HeldFile, mode: int | None, fsync: bool) -> os.stat_result:
    """Rename a complete sibling over the file."""
    sibling, handle = _open_sibling(target, 0o600)
    try:
        _fill(handle, data, fsync)
        _take_over(handle, sibling, target, old.found, mode)
        if sys.platform == "win32":
            os.close(handle)
            handle = -1
        os.replace(sibling, target)
        written = os.stat(target) if handle < 0 else os.fstat(handle)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(sibling)
        raise
    finally:
        if handle >= 0:
            os.close(handle)
    _sync_directory(target, fsync)
    return written


def _overwrite(target: str, data: bytes, old: HeldFile, mode: int | None, fsync: bool) -> os.stat_result:
    """Write into the file itself; what was in it comes back when that fails."""
    before = _content(old, target)
    handle = os.open(target, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        try:
            _refill(handle, data, fsync)
        except BaseException:
            _refill(handle, before, fsync)
            raise
        if mode is not None:
            os.chmod(target, mode)
        return os.fstat(handle)
    finally:
        os.close(handle)


def _open_sibling(target: str, mode: int) -> tuple[str, int]:
    directory = os.path.dirname(target)
    while True:
        sibling = os.path.join(directory, f".handrail-{secrets.token_hex(8)}.tmp")
        with suppress(FileExistsError):
            return sibling, os.open(sibling, _CREATE, mode)


def _fill(handle: int, data: bytes, fsync: bool) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    if fsync:
        os.fsync(handle)


def _refill(handle: int, data: bytes, fsync: bool) -> None:
    """Replace what is in an open file."""
    os.lseek(handle, 0, os.SEEK_SET)
    _fill(handle, data, fsync=False)
    os.ftruncate(handle, len(data))
    if fsync:
        os.fsync(handle)


def _take_over(handle: int, sibling: str, target: str, old: os.stat_result, mode: int | None) -> None:
    """Give the sibling the owner, attributes and mode of the file it replaces."""
    wanted = stat_bits.S_IMODE(old.st_mode) if mode is None else mode
    if sys.platform == "win32":
        os.chmod(sibling, wanted)
        return
    mine = os.fstat(handle)
    if (mine.st_uid, mine.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except PermissionError:
            with suppress(PermissionError):
                os.fchown(handle, -1, old.st_gid)
            wanted &= ~(stat_bits.S_ISUID | stat_bits.S_ISGID)  # rights meant for another owner
    if sys.platform == "linux":
        _copy_attributes(target, handle)
    os.fchmod(handle, wanted)


if sys.platform == "linux":

    def _copy_attributes(target: str, handle: int) -> None:
        """Copy extended attributes, among them access control lists, as far as the host permits."""
        try:
            names = os.listxattr(target)
        except OSError:
            return
        for name in names:
            with suppress(OSError):
                os.setxattr(handle, name, os.getxattr(target, name))


def _content(old: HeldFile, target: str, size: int | None = None) -> bytes:
    """Return the first bytes of a file, or all of them."""
    handle = old.handle if old.readable else os.open(target, OPEN_FLAGS)
    try:
        os.lseek(handle, 0, os.SEEK_SET)  # it may have been read before
        return read_up_to(handle, old.found.st_size if size is None else size, whole=size is None)
    finally:
        if handle != old.handle:
            os.close(handle)


def _sync_directory(target: str, fsync: bool) -> None:
    if fsync and sys.platform != "win32":
        handle = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
