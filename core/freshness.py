"""What a session has seen of files, so that it never overwrites what it does not know. Opt-in.

By content, never by time stamps: touching a file does not make it stale.
"""

from __future__ import annotations

import hashlib
from typing import Final

from attrs import frozen

from handrail.core.errors import ToolError
from handrail.core.planning import change_between

__all__ = ["Freshness"]

_KEPT_BYTES: Final = 256 * 1024


@frozen
class _Seen:
    digest: bytes
    content: bytes | None
    """Kept for a diff, when small."""


class Freshness:
    """Remembers the content of files that the session has read or written, by canonical path."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def note(self, canonical_path: str, content: bytes) -> None:
        """Remember that the session knows this content of a file."""
        kept = content if len(content) <= _KEPT_BYTES else None
        self._seen[canonical_path] = _Seen(_digest(content), kept)

    def note_digest(self, canonical_path: str, digest: bytes) -> None:
        """Remember the content of a large file by its SHA-256 only."""
        self._seen[canonical_path] = _Seen(digest, None)

    def check(self, canonical_path: str, content: bytes, path: str) -> None:
        """Refuse a change of a file whose content is not what the session knows.

        Raises:
            ToolError: ``stale``.
        """
        seen = self._seen.get(canonical_path)
        if seen is None:
            raise ToolError("stale", f"{path} has not been read in this session. Read it first, then change it.")
        if seen.digest == _digest(content):
            return
        change = "" if seen.content is None else f" What changed:\n{change_between(seen.content, content)}"
        raise ToolError("stale", f"{path} changed since it was read; read it again.{change}")


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
