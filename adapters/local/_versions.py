"""Version tokens of local files: equal tokens mean equal content.

A token is the identity and the time stamps of the file. Time stamps have a granularity, so a file that changed
just before it was read could change again within the same tick; its token carries a digest of the content as
well (the way git treats a "racily clean" index entry). File systems that store fractions of a millisecond take
them from a clock that ticks every 16 ms at most; others store seconds, or two of them (FAT).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Final

from handrail.ports.files import Version

__all__ = ["is_version", "version_of"]

_SETTLED_NS: Final = 50_000_000
_SETTLED_COARSELY_NS: Final = 2_500_000_000


def version_of(found: os.stat_result, data: bytes | None = None) -> Version:
    """Return the token of a file.

    Args:
        found: Its stat, taken from the open file.
        data: Its whole content, where it was read together with the stat.
    """
    token = f"{found.st_dev:x}-{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}"
    return Version(f"{token}-{_digest(data)}" if data is not None and not _is_settled(found) else token)


def is_version(expected: Version, found: os.stat_result, read: Callable[[], bytes]) -> bool:
    """Whether a file still has the content it had when the token was made."""
    plain = version_of(found)
    if not expected.startswith(plain):
        return False
    digest = expected[len(plain) :].removeprefix("-")
    try:
        return not digest or digest == _digest(read())
    except PermissionError:
        return False  # nobody can tell any more


def _is_settled(found: os.stat_result) -> bool:
    """Whether any change from now on shows in the time stamps."""
    stamps = found.st_ctime_ns, found.st_mtime_ns
    fine = all(stamp % 1_000_000 for stamp in stamps)
    return time.time_ns() - max(stamps) > (_SETTLED_NS if fine else _SETTLED_COARSELY_NS)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
