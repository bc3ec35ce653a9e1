"""What a session has seen of files, so that it never overwrites what it does not know. Opt-in.

By content, never by time stamps: touching a file does not make it stale.
"""

from __future__ import annotations

import hashlib
from typing import Final

from handrail.core.errors import ToolError
from handrail.core.planning import change_between

__all__ = ["Freshness"]

_SMALL_FILE_BYTES: Final = 256 * 1024
_KEPT_BYTES: Final = 32 * 1024 * 1024


class Freshness:
    """Remembers the content of files that the session has read or written, by canonical path.

    Of all files a digest is kept; of the latest small ones, 32 MiB in all, the content too, to show what changed.
    """

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}
        self._contents: dict[str, bytes] = {}
        self._kept_bytes = 0

    def note(self, canonical_path: str, content: bytes) -> None:
        """Remember that the session knows this content of a file."""
        self.note_digest(canonical_path, _digest(content))
        if len(content) <= _SMALL_FILE_BYTES:
            self._contents[canonical_path] = content
            self._kept_bytes += len(content)
        while self._kept_bytes > _KEPT_BYTES:
            self._forget_content(next(iter(self._contents)))

    def note_digest(self, canonical_path: str, digest: bytes) -> None:
        """Remember the content of a large file by its SHA-256 only."""
        self._digests[canonical_path] = digest
        self._forget_content(canonical_path)

    def check(self, canonical_path: str, content: bytes, path: str) -> None:
        """Refuse a change of a file whose content is not what the session knows.

        Raises:
            ToolError: ``stale``.
        """
        digest = self._digests.get(canonical_path)
        if digest is None:
            raise ToolError("stale", f"{path} has not been read in this session. Read it first, then change it.")
        if digest == _digest(content):
            return
        seen = self._contents.get(canonical_path)
        change = "" if seen is None else f" What changed:\n{change_between(seen, content)}"
        raise ToolError("stale", f"{path} changed since it was read; read it again.{change}")

    def _forget_content(self, canonical_path: str) -> None:
        self._kept_bytes -= len(self._contents.pop(canonical_path, b""))


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
