"""What an entry says of a content (size, hash, whether it is in the store), and how a content gets there.

Everything passes the redactor first: what is hashed and stored is what may be known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Literal

from attrs import define, field

from handrail.adapters.recording.contents import ContentDraft, ContentStore
from handrail.adapters.recording.redaction import Redactor, StreamRedactor

__all__ = ["HIDDEN", "MAX_INLINE_BYTES", "ContentKeeper", "ContentStream", "ContentsMode"]

ContentsMode = Literal["off", "hashes", "full"]

HIDDEN: Final = "[redacted:path]"
"""Stands for what a path rule hides."""

MAX_INLINE_BYTES: Final = 128 * 1024
"""So much goes to the page cache in less time than a hop to a thread takes."""

_DRAIN_BYTES: Final = 1024 * 1024
_MAX_WAITING_BYTES: Final = 4 * 1024 * 1024


@define(eq=False)
class ContentKeeper:
    """Describes contents for entries and keeps them.

    Attributes:
        mode: ``off``: sizes only; ``hashes``: also the SHA-256; ``full``: also the content, in the store.
        store: Where contents go in mode ``full``.
        max_bytes: A larger content is hashed and not kept.
        redactor: What may not be known.
    """

    mode: ContentsMode
    store: ContentStore | None
    max_bytes: int
    redactor: Redactor | None
    _waiting: list[tuple[str, bytes]] = field(factory=list[tuple[str, bytes]])
    _waiting_names: set[str] = field(factory=set[str])
    _waiting_bytes: int = 0

    def describe(self, data: bytes, *, hidden: bool = False) -> dict[str, Any]:
        """Return the entry's word on a content; it reaches the store with the next ``drain``."""
        if hidden:
            return {"size": len(data), "redacted": ["path"]}
        kinds: Sequence[str] = ()
        if self.redactor is not None:
            data, found = self.redactor.data(data)
            kinds = sorted(found)
        described: dict[str, Any] = {"size": len(data)}
        if kinds:
            described["redacted"] = kinds
        if self.mode != "off":
            digest = described["sha256"] = hashlib.sha256(data).hexdigest()
            if self.mode == "full":
                if len(data) <= self.max_bytes:
                    self._keep(digest, data)
                else:
                    described["kept"] = False
        return described

    def stream(self, *, hidden: bool = False) -> ContentStream:
        """Begin a content that comes in pieces."""
        draft = self.store.draft() if self.store is not None and self.mode == "full" and not hidden else None
        redactor = self.redactor.stream() if self.redactor is not None and not hidden else None
        return ContentStream(draft, redactor, hidden, self.mode != "off", self.max_bytes)

    def text(self, text: str) -> str:
        """Return a text as it may be known."""
        return self.redactor.text(text) if self.redactor is not None else text

    def version(self, version: str) -> str:
        """Return a version token as it may be known."""
        return self.redactor.alias(version) if self.redactor is not None and version != "absent" else version

    @property
    def has_path_rules(self) -> bool:
        """Whether contents of some paths are hidden."""
        return self.redactor is not None and self.redactor.has_path_rules

    def hides(self, path: str) -> bool:
        """Whether contents of this path are hidden."""
        return self.redactor is not None and self.redactor.hides(path)

    def needs_thread(self, size: int) -> bool:
        """Whether storing this many bytes would hold up the event loop for longer than going to a thread does."""
        return self.store is not None and not self.store.in_memory and size > MAX_INLINE_BYTES

    @property
    def waiting_bytes(self) -> int:
        """How much waits to be stored."""
        return self._waiting_bytes

    @property
    def is_full(self) -> bool:
        """Whether so much waits that it should be stored now."""
        return self._waiting_bytes > _MAX_WAITING_BYTES

    @property
    def waits(self) -> bool:
        """Whether anything waits to be stored."""
        return bool(self._waiting)

    def drain(self) -> None:
        """Store what waits. Blocks.

        Raises:
            OSError: The store fails; what waited is forgotten.
        """
        assert self.store is not None
        waiting, self._waiting = self._waiting, []
        self._waiting_names.clear()
        self._waiting_bytes = 0
        for digest, data in waiting:
            if not self.store.has(digest):
                draft = self.store.draft()
                try:
                    draft.write(data)
                except OSError:
                    draft.discard()
                    raise
                draft.keep(digest)

    def _keep(self, digest: str, data: bytes) -> None:
        if digest not in self._waiting_names:
            self._waiting_names.add(digest)
            self._waiting.append((digest, data))
            self._waiting_bytes += len(data)


@define(eq=False)
class ContentStream:
    """A content in pieces. Memory stays bounded when ``drain`` is called whenever ``wants_drain`` is true."""

    _draft: ContentDraft | None
    _redactor: StreamRedactor | None
    _hidden: bool
    _hashed: bool
    _max_bytes: int
    size: int = 0
    _hash: Any = field(factory=hashlib.sha256)
    _waiting: list[bytes] = field(factory=list[bytes])
    _waiting_bytes: int = 0
    _dropped: bool = False

    def feed(self, data: bytes) -> dict[str, Any] | None:
        """Take the next piece.

        Returns:
            What an entry says of it: its size and the hash of all up to its end; ``None`` when all of it is held
            back for now.
        """
        return self._take(data if self._redactor is None else self._redactor.feed(bytes(data)))

    def rest(self) -> dict[str, Any] | None:
        """End the pieces; returns what is said of a last one that had been held back."""
        return self._take(self._redactor.finish()) if self._redactor is not None else None

    @property
    def waiting_bytes(self) -> int:
        """How much waits to be written."""
        return self._waiting_bytes

    @property
    def wants_drain(self) -> bool:
        """Whether so much waits that it should be stored now."""
        return self._waiting_bytes >= _DRAIN_BYTES

    def drain(self) -> None:
        """Write what waits. Blocks.

        Raises:
            OSError: The store fails.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if self._draft is not None:
            try:
                self._draft.write(b"".join(waiting))
            except OSError:
                self._drop()
                raise

    def finish(self) -> dict[str, Any]:
        """Store the whole and return what an entry says of it. Blocks.

        Raises:
            OSError: The store fails.
        """
        if self._hidden:
            return {"size": self.size, "redacted": ["path"]}
        described: dict[str, Any] = {"size": self.size}
        if self._redactor is not None and self._redactor.found:
            described["redacted"] = sorted(self._redactor.found)
        if self._hashed:
            digest = described["sha256"] = self._hash.hexdigest()
            if self._draft is not None:
                self.drain()
                self._draft.keep(digest)
                self._draft = None
            elif self._dropped:
                described["kept"] = False
        return described

    def abandon(self) -> None:
        """Forget what has not been stored."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = None

    def _drop(self) -> None:
        """Keep no content from now on, only its hash."""
        self._dropped = True
        self._waiting, self._waiting_bytes = [], 0
        self.abandon()

    def _take(self, data: bytes) -> dict[str, Any] | None:
        if not data:
            return None
        self.size += len(data)
        said: dict[str, Any] = {"size": len(data)}
        if self._hashed and not self._hidden:
            self._hash.update(data)
            said["sha256"] = self._hash.copy().hexdigest()
        if self._draft is not None:
            if self.size > self._max_bytes:
                self._drop()
            else:
                self._waiting.append(bytes(data))
                self._waiting_bytes += len(data)
        return said
