"""The one spelling of an existing path where the file system ignores case or Unicode normalisation."""

from __future__ import annotations

import os
import sys

__all__ = ["true_spelling"]


if sys.platform == "darwin":
    import fcntl

    def true_spelling(path: str) -> str:
        """Ask the kernel for the name under which the file is stored."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return path
        try:
            found = fcntl.fcntl(handle, fcntl.F_GETPATH, bytes(1024))
        finally:
            os.close(handle)
        return os.fsdecode(found.rstrip(b"\0"))

else:

    def true_spelling(path: str) -> str:
        """Linux names are exact; ``os.path.realpath`` already spells Windows names as they are stored."""
        return path
