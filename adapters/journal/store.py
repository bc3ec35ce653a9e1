"""Where a journal keeps contents (by SHA-256, each once) and its records; on disk or in memory."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import define, field

__all__ = ["DirectoryJournal", "JournalStore", "MemoryJournal"]


class JournalStore(Protocol):
    """Keeps what is needed to undo. Methods block shortly; they are called in a thread."""

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Return all records, oldest first."""
        ...

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records."""
        ...

    def put(self, digest: str, data: bytes) -> None:
        """Keep a content."""
        ...

    def get(self, digest: str) -> bytes | None:
        """Return a content, ``None`` when it is not there."""
        ...


@define(eq=False)
class MemoryJournal:
    """A journal that lives as long as the process."""

    _records: list[Mapping[str, Any]] = field(factory=list[Mapping[str, Any]])
    _contents: dict[str, bytes] = field(factory=dict[str, bytes], repr=False)

    def records(self) -> Sequence[Mapping[str, Any]]:
        return tuple(self._records)

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records += records

    def put(self, digest: str, data: bytes) -> None:
        self._contents.setdefault(digest, data)

    def get(self, digest: str) -> bytes | None:
        return self._contents.get(digest)


class DirectoryJournal:
    """A journal in a directory: ``changes.jsonl`` and the contents as ``ab/cdef…``. Private to the user.

    Args:
        path: The directory; made when it is needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)

    def records(self) -> Sequence[Mapping[str, Any]]:
        try:
            with open(self._log, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return ()
        if lines.pop():  # the writer was interrupted; the line must not grow together with the next one
            os.truncate(self._log, sum(len(line) + 1 for line in lines))
        return [json.loads(line) for line in lines]

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        data = b"".join(json.dumps(record, sort_keys=True).encode() + b"\n" for record in records)
        with open(self._log, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(data)

    def put(self, digest: str, data: bytes) -> None:
        place = self._place(digest)
        if os.path.exists(place):
            return
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix="draft-", dir=self.path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(draft, place)
        except BaseException:
            os.unlink(draft)
            raise

    def get(self, digest: str) -> bytes | None:
        try:
            with open(self._place(digest), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    @property
    def _log(self) -> str:
        return os.path.join(self.path, "changes.jsonl")

    def _place(self, digest: str) -> str:
        return os.path.join(self.path, digest[:2], digest[2:])
