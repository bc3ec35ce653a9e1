"""Tolerant matching: what may differ between the text a model remembers and the text in the file.

Compatibility forms (NFKC), typographic quotes, dashes and spaces, and blanks at line ends are the same. A match
in normalised text is mapped back, so that only what it covers is replaced. Contract section 7.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from itertools import accumulate
from typing import Final

from attrs import frozen

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
        base = self._original_starts[line]
        source = self.original[base : self._original_starts[line + 1] - 1]
        if column == self._starts[line + 1] - self._starts[line] - 1 and not at_end:
            return base + len(source)  # at the line break: the blanks before it stay
        if source.isascii():
            return base + column
        return _source_column(source, column, base)


def _source_column(source: str, column: int, base: int) -> int | None:
    """Find the column of a line that a column of its normalised form came from."""
    reached = 0
    position = 0
    for piece in _pieces(source):
        if reached >= column:
            break
        reached += len(unicodedata.normalize("NFKC", piece).translate(_LOOK_ALIKES))
        position += len(piece)
    return base + position if reached == column else None


def _pieces(line: str) -> list[str]:
    """Cut a line where normalising the parts gives the same as normalising the whole."""
    pieces: list[str] = []
    for cluster in _CLUSTERS.findall(line):
        if pieces and not _separable(pieces[-1], cluster):
            pieces[-1] += cluster
        else:
            pieces.append(cluster)
    return pieces


# Neighbouring ASCII never composes, but its last character may compose with what follows.
_CLUSTERS: Final = re.compile(r"[\x00-\x7f](?![^\x00-\x7f])|.", re.DOTALL)


def _separable(left: str, right: str) -> bool:
    if right.isascii():
        return True
    if unicodedata.combining(unicodedata.normalize("NFKD", right)[0]):
        return False
    together = unicodedata.normalize("NFKC", left + right)
    return together == unicodedata.normalize("NFKC", left) + unicodedata.normalize("NFKC", right)


def tolerated_between(wanted: str, found: str) -> list[str]:
    """Name what had to be tolerated to match two texts."""
    named: list[str] = []
    if any(len(line) != len(line.rstrip(_BLANKS)) for line in (*wanted.split("\n"), *found.split("\n"))):
        named.append("trailing blanks")
    signs = set(wanted) ^ set(found)
    for name, characters in _FAMILIES:
        if signs & characters:
            named.append(name)
    if unicodedata.normalize("NFKC", wanted) != wanted or unicodedata.normalize("NFKC", found) != found:
        named.append("compatibility characters")
    return named


_FAMILIES: Final = (
    ("quotes", frozenset("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f")),
    ("dashes", frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212")),
    ("spaces", frozenset("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000")),
)
