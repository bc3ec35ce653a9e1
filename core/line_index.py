"""Where the lines of a large file are: a few numbers per quarter megabyte, kept while the file stays the same."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from contextlib import aclosing
from typing import Final

from attrs import field, frozen

from handrail.ports.files import FilePort, Version

__all__ = ["LineIndex", "LineIndexes"]

_KEPT_INDEXES: Final = 16
_WIDE: Final = {"utf-16-le": b"\n\0", "utf-16-be": b"\0\n", "utf-32-le": b"\n\0\0\0", "utf-32-be": b"\0\0\0\n"}


@frozen
class LineIndex:
    """The line feeds of one version of a file.

    Attributes:
        size: Bytes of the file.
        total_lines: Lines; a final line feed ends the last one and adds none.
    """

    codec: str
    size: int
    total_lines: int
    version: Version
    _ends: list[int] = field(repr=False)
    """Offset after each piece that was scanned."""
    _counts: list[int] = field(repr=False)
    """Line feeds up to there."""

    @classmethod
    async def build(cls, files: FilePort, path: str, codec: str) -> LineIndex:
        """Scan a file once.

        Args:
            files: Where it is.
            path: Its path.
            codec: Its encoding; in all but the wide ones a line feed is the byte 0A and nothing else is.
        """
        ends, counts = [0], [0]
        feed = _WIDE.get(codec, b"\n")
        rest = b""  # of a unit that a piece has cut in two
        ends_in_feed = True

        def consume(piece: bytes | bytearray) -> bool:
            nonlocal rest, ends_in_feed
            if rest:
                piece = rest + piece
            whole = len(piece) - len(piece) % len(feed)
            rest = bytes(piece[whole:])
            if whole:
                ends.append(ends[-1] + whole)
                counts.append(counts[-1] + _count_feeds(piece[:whole] if rest else piece, codec))
                ends_in_feed = piece.endswith(feed, 0, whole)
            return True

        found = await files.scan(path, consume)
        size = ends[-1] + len(rest)
        return cls(codec, size, counts[-1] + (not ends_in_feed or bool(rest)), found.version, ends, counts)

    def ends_with_feed(self, line: int) -> int:
        """Return how many bytes of a line, counted from 0, are its line feed."""
        is_ended = line < self._counts[-1]
        return len(_WIDE.get(self.codec, b"\n")) if is_ended else 0

    async def offset(self, files: FilePort, path: str, line: int) -> int:
        """Return the byte offset at which a line starts; lines count from 0, the last may be the end."""
        if line <= 0:
            return 0
        if line >= self.total_lines:
            return self.size
        # The piece in which the feed before the line is: fewer feeds than `line` before it, enough at its end.
        piece = bisect_right(self._counts, line - 1) - 1
        missing = line - self._counts[piece]
        feed = _WIDE.get(self.codec, b"\n")
        position = self._ends[piece]
        async with aclosing(files.read_chunks(path, start=position, end=self._ends[piece + 1])) as chunks:
            data = b"".join([chunk async for chunk in chunks])
        at = -len(feed)
        while missing and at < len(data):
            at = _find_feed(data, feed, at + len(feed))
            missing -= 1
        return position + at + len(feed)


def _find_feed(data: bytes, feed: bytes, start: int) -> int:
    """Where the next line feed is, on a unit's boundary; the end of the data where there is none."""
    at = data.find(feed, start)
    while at % len(feed) and at >= 0:
        at = data.find(feed, at + 1)
    return at if at >= 0 else len(data)


def _count_feeds(piece: bytes | bytearray, codec: str) -> int:
    return piece.decode(codec, "replace").count("\n") if codec in _WIDE else piece.count(b"\n")


class LineIndexes:
    """The indexes of the files that were read last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, LineIndex] = OrderedDict()

    async def get(self, files: FilePort, path: str, codec: str, version: Version) -> LineIndex:
        """Return the index of a file in this version, from memory where it is known."""
        kept = self._kept.get(path)
        if kept is None or kept.version != version or kept.codec != codec:
            kept = await LineIndex.build(files, path, codec)
        self._kept[path] = kept
        self._kept.move_to_end(path)
        while len(self._kept) > _KEPT_INDEXES:
            self._kept.popitem(last=False)
        return kept
