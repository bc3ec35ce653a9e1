"""One recorder a log: an advisory lock on the open file, released with it."""

from __future__ import annotations

import os
import sys
from typing import Final

__all__ = ["try_lock"]

_LOCKED_BYTE: Final = 1 << 62
"""Far behind the end: Windows forbids reading a locked range."""

if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> bool:
        """Take the lock of a file; returns whether it was free."""
        position = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, position, os.SEEK_SET)
        return True

else:
    import fcntl

    def try_lock(handle: int) -> bool:
        """Take the lock of a file; returns whether it was free."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
