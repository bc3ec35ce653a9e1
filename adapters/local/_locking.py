"""Cross-process locks on open files; the operating systems differ here and nowhere else in this adapter.

Unix: ``flock`` on the file's own inode, advisory, shared by all writers that use this adapter.
Windows: an open file cannot be replaced, so nothing is held open; writers of one process take turns by a lock
in memory, and between processes the comparison and the replacement are a few microseconds apart.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

__all__ = ["HeldFile", "held_file"]

_PATIENCE_SECONDS: Final = 5.0
_in_process: Final = threading.Lock()


@frozen
class HeldFile:
    """An existing file while nobody else may replace it.

    Attributes:
        handle: The open file; -1 where it cannot be held open.
        found: Its stat.
        readable: Whether ``handle`` can be read from.
    """

    handle: int
    found: os.stat_result
    readable: bool


if sys.platform == "win32":

    @contextmanager
    def held_file(path: str) -> Generator[HeldFile, None, None]:
        """Hold the right to replace a file."""
        with _in_process:
            yield HeldFile(-1, os.stat(path), readable=False)

else:
    import fcntl

    @contextmanager
    def held_file(path: str) -> Generator[HeldFile, None, None]:
        """Hold the right to replace an existing file; waits a bounded time for other writers.

        Raises:
            FileNotFoundError: There is no file (any more).
            TimeoutError: Another program keeps the file locked.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            handle, readable = _open(path)
            try:
                _lock(handle, deadline)
                found = os.fstat(handle)
                if os.path.samestat(found, os.stat(path)):
                    yield HeldFile(handle, found, readable)
                    return
                # Another writer has replaced it meanwhile.
            finally:
                os.close(handle)

    _NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)

    def _open(path: str) -> tuple[int, bool]:
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        try:
            return os.open(path, os.O_RDONLY | flags), True
        except PermissionError:
            return os.open(path, os.O_WRONLY | flags), False

    def _lock(handle: int, deadline: float) -> None:
        pause = 0.0002
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError("the file is locked by another program") from None
                time.sleep(pause)
                pause = min(pause * 2, 0.01)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
                return  # a file system without locks: the comparison and the replacement are close, but not one step
