"""Contents of files and streams, kept beside a log under their SHA-256, each only once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import ClassVar, Final, Protocol

from attrs import define, field

from handrail.adapters.recording.errors import ContentError

__all__ = ["ContentDraft", "ContentStore", "DirectoryStore", "MemoryStore"]

_PIECE_BYTES: Final = 1024 * 1024


class ContentDraft(Protocol):
    """A content that is being written; it gets its name when it is complete. Methods block shortly."""

    def write(self, data: bytes) -> None:
        """Add bytes."""
        ...

    def keep(self, digest: str) -> None:
        """Store the whole under its SHA-256, in hex."""
        ...

    def discard(self) -> None:
        """Forget it."""
        ...


class ContentStore(Protocol):
    """Where contents are. Methods block shortly; those that write much are called in a thread.

    Attributes:
        in_memory: Nothing here ever blocks, so no thread is needed.
    """

    in_memory: ClassVar[bool]

    def has(self, digest: str) -> bool:
        """Whether a content is there."""
        ...

    def draft(self) -> ContentDraft:
        """Begin a new content."""
        ...

    def pieces(self, digest: str) -> Iterator[bytes]:
        """Yield a content in pieces of bounded size.

        Raises:
            ContentError: It is not there, or is not what its hash says (told at the end).
        """
        ...


@define(eq=False)
class MemoryStore:
    """Contents in memory."""

    in_memory: ClassVar[bool] = True
    contents: dict[str, bytes] = field(factory=dict[str, bytes], repr=False)

    def has(self, digest: str) -> bool:
        return digest in self.contents

    def draft(self) -> ContentDraft:
        return _MemoryDraft(self.contents)

    def pieces(self, digest: str) -> Iterator[bytes]:
        try:
            data = self.contents[digest]
        except KeyError:
            raise _missing(digest) from None
        for start in range(0, len(data), _PIECE_BYTES):
            yield data[start : start + _PIECE_BYTES]


@define(eq=False)
class _MemoryDraft:
    contents: dict[str, bytes]
    data: bytearray = field(factory=bytearray)

    def write(self, data: bytes) -> None:
        self.data += data

    def keep(self, digest: str) -> None:
        self.contents.setdefault(digest, bytes(self.data))

    def discard(self) -> None:
        self.data.clear()


class DirectoryStore:
    """Contents in a directory: ``ab/cdef…`` holds what has the SHA-256 ``abcdef…``.

    A file appears under its name only when it is complete. Files are private to the user, as a log may hold
    what only the user may read.

    Args:
        path: The directory; made when the first content is stored.
    """

    in_memory: ClassVar[bool] = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)

    def has(self, digest: str) -> bool:
        return os.path.exists(self._place(digest))

    def draft(self) -> ContentDraft:
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        handle, path = tempfile.mkstemp(prefix="draft-", dir=self.path)
        return _FileDraft(self, handle, path)

    def pieces(self, digest: str) -> Iterator[bytes]:
        actual = hashlib.sha256()
        try:
            with open(self._place(digest), "rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    actual.update(piece)
                    yield piece
        except FileNotFoundError:
            raise _missing(digest, self.path) from None
        except OSError as error:
            raise ContentError(f"The content {digest} cannot be read: {error}") from error
        if actual.hexdigest() != digest:
            raise ContentError(f"The content {digest} was altered in {self.path}.")

    def put_in_place(self, path: str, digest: str) -> None:
        """Give a complete draft its name."""
        place = self._place(digest)
        if os.path.exists(place):
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        os.replace(path, place)

    def _place(self, digest: str) -> str:
        return os.path.join(self.path, digest[:2], digest[2:])


@define(eq=False)
class _FileDraft:
    store: DirectoryStore
    handle: int
    path: str

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.handle, view) :]

    def keep(self, digest: str) -> None:
        os.close(self.handle)
        self.store.put_in_place(self.path, digest)

    def discard(self) -> None:
        os.close(self.handle)
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def _missing(digest: str, where: str = "memory") -> ContentError:
    return ContentError(f"The content {digest} is not in the store ({where}); it was removed, or never kept.")
