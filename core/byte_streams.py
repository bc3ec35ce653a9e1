"""Bytes as the file objects that libraries ask for; nothing here reaches a disk.

The standard library's ``io`` opens real files too, so it stays outside the core. These two classes are the
part of it that decoders and encoders need.
"""

from __future__ import annotations

from typing import IO, cast

__all__ = ["ByteReader", "ByteWriter", "as_file"]


class ByteReader:
    """Reads bytes from memory; ``read``, ``seek`` and ``tell`` answer as ``io.BytesIO`` does."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end; all that is left for ``None`` or a negative size."""
        end = len(self._data) if size is None or size < 0 else self._position + size
        piece = self._data[self._position : end]
        self._position += len(piece)
        return piece

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to an offset from the start (0), the position (1) or the end (2); return the new position.

        Raises:
            ValueError: The offset from the start is negative.
        """
        if whence == 0 and offset < 0:
            raise ValueError(f"negative seek value {offset}")
        base = (0, self._position, len(self._data))[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        """Return the position, counted from 0."""
        return self._position


class ByteWriter:
    """Collects what is written to it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes | bytearray | memoryview, /) -> int:
        """Append bytes; return how many."""
        self._pieces.append(bytes(piece))
        return len(piece)

    def value(self) -> bytes:
        """Return all that was written."""
        return b"".join(self._pieces)


def as_file(stream: ByteReader | ByteWriter) -> IO[bytes]:
    """Return the same object, typed as the full interface that libraries declare but do not use."""
    return cast("IO[bytes]", stream)
