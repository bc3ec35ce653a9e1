"""Tolerant matching: what may differ between the text a model remembers and the text in the file.

Compatibility forms (NFKC), typographic quotes, dashes and spaces, and blanks at line ends are the same. A match
in normalised text is mapped back, so that only what it covers is replaced. Contract section 7.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from attrs import field, frozen

__all__ = ["NormalizedText", "normalize", "normalize_line", "tolerated_between"]

_LOOK_ALIKES: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
# What ends a line invisibly: white space by ECMAScript's TrimString, which the reference uses.
_BLANKS: Final = (
    " \t\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def normalize(text: str) -> str:
    """Return a text with everything that is tolerated made the same. Lines are what ``\\n`` ends."""
    return "\n".join([normalize_line(line) for line in text.split("\n")])


def normalize_line(line: str) -> str:
    """Normalise one line without its ending."""
    if line.isascii():
        return line.rstrip(_BLANKS)
    return unicodedata.normalize("NFKC", line).rstrip(_BLANKS).translate(_LOOK_ALIKES)


@frozen
class NormalizedText:
    """A text in normalised form that knows where each part of it came from."""

    original: str
    text: str
    _starts: list[int]
    """Offset of each line in ``text``."""
    _original_starts: list[int]
    """Offset of each line in ``original``."""
    _columns: dict[int, _Columns] = field(factory=dict[int, "_Columns"], init=False)
    """Of lines that were asked for; making them takes time."""

    @classmethod
    def of(cls, original: str) -> NormalizedText:
        """Normalise a text, line by line, once."""
        lines = original.split("\n")
        normalized = [normalize_line(line) for line in lines]
        return cls(
            original,
            "\n".join(normalized),
            [0, *accumulate(len(line) + 1 for line in normalized)],
            [0, *accumulate(len(line) + 1 for line in lines)],
        )

    def original_range(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range of the original that a range of the normalised text covers.

        ``None`` where the range begins or ends inside what was a single character.
        """
        first = self._original_offset(start, at_end=False)
        last = self._original_offset(end, at_end=True)
        return None if first is None or last is None else (first, last)

    def _original_offset(self, offset: int, *, at_end: bool) -> int | None:
        line = bisect_left(self._starts, offset + 1) - 1
        column = offset - self._starts[line]
        base, end = self._original_starts[line], self._original_starts[line + 1] - 1
        if column == self._starts[line + 1] - self._starts[line] - 1 and not at_end:
            return end  # at the line break: the blanks before it stay
        if line not in self._columns:
            self._columns[line] = _Columns.of(self.original[base:end])
        found = self._columns[line].source_column(column)
        return None if found is None else base + found


@frozen
class _Columns:
    """Where the columns of a normalised line came from."""

    line: str
    normalized: list[int]
    """Where each piece of the line starts when it is normalised."""
    source: list[int]
    """Where it starts in the line itself."""

    @classmethod
    def of(cls, line: str) -> _Columns:
        pieces = list(_pieces(line))
        lengths = [len(unicodedata.normalize("NFKC", piece)) for piece in pieces]
        return cls(line, [0, *accumulate(lengths)], [0, *accumulate(map(len, pieces))])

    def source_column(self, column: int) -> int | None:
        """Return the column in the line of a normalised column; ``None`` inside what was a single character."""
        piece = bisect_right(self.normalized, column) - 1
        start, inside = self.source[piece], column - self.normalized[piece]
        if inside and not self.line[start : self.source[piece + 1]].isascii():
            return None
        return start + inside


def _pieces(line: str) -> Iterator[str]:
    """Cut a line where normalising the parts gives the same as normalising the whole."""
    piece = ""
    for part in _PARTS.findall(line):
        if piece and not _separable(piece, part):
            piece += part
            continue
        if piece:
            yield piece
        piece = part
    if piece:
        yield piece


# A run of ASCII without its last character, which may compose with what follows it; or one character.
_PARTS: Final = re.compile(r"[\x00-\x7f]+(?![^\x00-\x7f])|.", re.DOTALL)


def _separable(left: str, right: str) -> bool:
    if right.isascii():
        return True
    if unicodedata.combining(unicodedata.normalize("NFKD", right)[0]):
        return False
    together = unicodedata.normalize("NFKC", left + right)
    return together == unicodedata.normalize("NFKC", left) + unicodedata.normalize("NFKC", right)


def tolerated_between(wanted: str, found: str) -> list[str]:
    """Name what had to be tolerated to match two texts."""
    lines = [
        (a, b, a.rstrip(_BLANKS), b.rstrip(_BLANKS)) for a, b in zip(wanted.split("\n"), found.split("\n"), strict=True)
    ]
    named = ["trailing blanks"] if any(a[len(a_kept) :] != b[len(b_kept) :] for a, b, a_kept, b_kept in lines) else []
    pairs = [(a, b) for _, _, a, b in lines]
    for name, signs in _FAMILIES:
        if any(signs.findall(a) != signs.findall(b) for a, b in pairs):
            named.append(name)
    if any(a.translate(_LOOK_ALIKES) != b.translate(_LOOK_ALIKES) for a, b in pairs):
        named.append("compatibility characters")
    return named


_FAMILIES: Final = (
    ("quotes", re.compile("[\"'\u2018-\u201f]")),
    ("dashes", re.compile("[-\u2010-\u2015\u2212]")),
    ("spaces", re.compile("[ \u00a0\u2002-\u200a\u202f\u205f\u3000]")),
)
