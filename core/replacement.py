"""Locating and applying replacements: exact first, else tolerant; unique; never overlapping. Contract section 7.

Everything is matched against the original. A replacement becomes a splice of the original text, so that what it
does not cover keeps its exact bytes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal

from attrs import define, frozen

from handrail.core.closest import describe_closest
from handrail.core.errors import ToolError
from handrail.core.text import TextDocument, line_ending_of
from handrail.core.tolerance import NormalizedText, normalize, tolerated_between

__all__ = ["LfText", "Replacement", "Splice", "locate", "splice_bytes"]

_SHOWN_LINES: Final = 20
_COUNTED: Final = 10_000


@frozen
class Replacement:
    """One edit as asked: this text becomes that one."""

    old_text: str
    new_text: str


@frozen
class Splice:
    """One edit as found. Offsets count characters of the document's text, as it is on disk."""

    index: int
    """Position in the list of edits, from 0."""
    start: int
    end: int
    new_text: str
    """With the line endings it gets in the file."""
    match: Literal["exact", "tolerant"]
    tolerated: Sequence[str] = ()
    """What differed in a tolerant match, e.g. ``quotes``."""


@define(slots=False)
class LfText:
    """A text with ``\\n`` for every line ending, and the way back to the original.

    CRLF and LF are the same. A lone CR is a line ending only in a text without any LF; elsewhere it is a
    character.
    """

    raw: str

    @cached_property
    def text(self) -> str:
        """The text with ``\\n`` endings."""
        return self.lf(self.raw)

    def lf(self, text: str) -> str:
        """Give another text the same treatment."""
        if "\r" not in text:
            return text
        text = text.replace("\r\n", "\n")
        return text.replace("\r", "\n") if self.ends_with_cr else text

    @cached_property
    def ends_with_cr(self) -> bool:
        """Whether lone CRs are the line endings."""
        return "\r" in self.raw and "\n" not in self.raw

    def raw_offset(self, offset: int) -> int:
        """Return the offset in the original of an offset in ``text``."""
        return offset + bisect_left(self._pairs, offset)

    def lf_offset(self, offset: int) -> int:
        """Return the offset in ``text`` of an offset in the original that is not inside a CRLF."""
        return offset - bisect_left(self._raw_pairs, offset)

    @cached_property
    def _raw_pairs(self) -> Sequence[int]:
        if len(self.raw) == len(self.text):
            return ()
        return [match.start() for match in re.finditer("\r\n", self.raw)]

    @cached_property
    def _pairs(self) -> Sequence[int]:
        """Where in ``text`` the breaks are that are CRLF in the original."""
        return [start - number for number, start in enumerate(self._raw_pairs)]

    @cached_property
    def normalized(self) -> NormalizedText:
        """The text in the form in which tolerant matching compares."""
        return NormalizedText.of(self.text)


def locate(lf: LfText, edits: Sequence[Replacement], path: str) -> list[Splice]:
    """Find the one place of each edit; sorted by position.

    Args:
        lf: The original text.
        edits: What to replace.
        path: The file's name for error texts.

    Raises:
        ToolError: ``no_edits``, ``empty_old_text``, ``not_found``, ``not_unique``, ``overlap``.
    """
    if not edits:
        raise ToolError("no_edits", f"No edits for {path}. Give at least one oldText and newText.")
    for index, edit in enumerate(edits):
        if not edit.old_text:
            where = _which(index, len(edits), "oldText")
            raise ToolError(
                "empty_old_text", f"{where} is empty for {path}. Give the text to replace; write makes files."
            )
    splices = [_locate_one(lf, edit, index, len(edits), path) for index, edit in enumerate(edits)]
    splices.sort(key=lambda splice: (splice.start, splice.end, splice.index))
    for before, after in pairwise(splices):
        if after.start < before.end:
            first, second = sorted((before.index, after.index))
            raise ToolError(
                "overlap",
                f"edits[{first}] and edits[{second}] overlap in {path}. Merge them into one edit or make them smaller.",
            )
    return splices


def splice_bytes(data: bytes, document: TextDocument, splices: Sequence[Splice], path: str) -> bytes:
    """Return the file's new bytes: the original ones with the splices made.

    Raises:
        ToolError: ``undecodable`` when a splice would cut a character of the file's encoding in two;
            ``unencodable`` when new text does not fit the file's encoding, or when a lone carriage
            return would meet a line feed and become one line break with it.
    """
    if "\r" in document.text or any("\r" in splice.new_text for splice in splices):
        _refuse_fused_breaks(document.text, splices, path)
    body = memoryview(data)[len(document.bom) :]
    one_byte_each = document.text.isascii() and len(body) == len(document.text)
    pieces: list[bytes | memoryview] = [document.bom]
    position = offset = 0  # in characters, in bytes

    def end_of(first: int, last: int, offset: int) -> int:
        """Where the bytes of a piece of the text end, that begin at an offset of the body."""
        if one_byte_each:
            return offset + last - first
        encoded = document.text[first:last].encode(document.codec, document.errors)
        if bytes(body[offset : offset + len(encoded)]) != encoded:
            raise ToolError(
                "undecodable",
                f"An edit begins or ends inside a character of {path} as it is encoded ({document.codec}); nothing "
                "was written. Include the neighbouring characters in oldText and newText.",
            )
        return offset + len(encoded)

    for splice in splices:
        if not position <= splice.start <= splice.end <= len(document.text):
            raise ToolError("internal", "Replacement range is outside the base content.")
        start = end_of(position, splice.start, offset)
        pieces += (body[offset:start], document.encode(splice.new_text))
        offset = end_of(splice.start, splice.end, start)
        position = splice.end
    pieces.append(body[offset:])
    return b"".join(pieces)


# ------------------------------------------------------------------ one edit


def _locate_one(lf: LfText, edit: Replacement, index: int, count: int, path: str) -> Splice:
    old = lf.lf(edit.old_text)
    places = _occurrences(lf.text, old, 2)
    if places:
        if len(places) > 1:
            raise _not_unique([*_occurrences(lf.text, old, _COUNTED)], lf.text, index, count, path)
        start, end = places[0], places[0] + len(old)
        return _splice(lf, edit, index, start, end, "exact")
    ranges = _tolerant_ranges(lf, old)
    if not ranges:
        which = "" if count == 1 else f" for edits[{index}]"
        closest = describe_closest(lf.text, old)
        raise ToolError("not_found", f"Could not find the exact text in {path}{which}.\n{closest}")
    if len(ranges) > 1:
        raise _not_unique([start for start, _ in ranges], lf.text, index, count, path)
    start, end = ranges[0]
    return _splice(lf, edit, index, start, end, "tolerant", tolerated_between(old, lf.text[start:end]))


def _splice(
    lf: LfText,
    edit: Replacement,
    index: int,
    start: int,
    end: int,
    match: Literal["exact", "tolerant"],
    tolerated: Sequence[str] = (),
) -> Splice:
    raw_start, raw_end = lf.raw_offset(start), lf.raw_offset(end)
    new_text = lf.lf(edit.new_text)
    ending = line_ending_of(lf.raw, raw_start)
    if ending != "\n":
        new_text = new_text.replace("\n", ending)
    elif new_text.startswith("\n") and lf.raw[max(raw_start - 1, 0) : raw_start] == "\r":
        new_text = "\r" + new_text  # a CRLF of its own, so that the lone CR before it stays one
    return Splice(index, raw_start, raw_end, new_text, match, tolerated)


def _occurrences(text: str, wanted: str, most: int) -> list[int]:
    """Where a text occurs, overlapping places too; at most so many."""
    places: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < most:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places


def _tolerant_ranges(lf: LfText, old: str) -> list[tuple[int, int]]:
    wanted = normalize(old)
    if not wanted.strip():
        return []
    places = _occurrences(lf.normalized.text, wanted, _COUNTED)
    ranges = [lf.normalized.original_range(place, place + len(wanted)) for place in places]
    return [found for found in ranges if found is not None]


# ------------------------------------------------------------------ refusals


def _not_unique(places: Sequence[int], text: str, index: int, count: int, path: str) -> ToolError:
    lines: list[int] = []
    line = 1
    position = 0
    for place in places[:_SHOWN_LINES]:
        line += text.count("\n", position, place)
        position = place
        lines.append(line)
    number = f"{len(places)}" if len(places) < _COUNTED else f"at least {_COUNTED}"
    which = "" if count == 1 else f" (edits[{index}])"
    more = ", …" if len(places) > _SHOWN_LINES else ""
    listed = ", ".join(map(str, lines))
    return ToolError(
        "not_unique",
        f"Found {number} occurrences of the text in {path}{which}. They start on lines {listed}{more}. "
        "Add lines around it to oldText until only one place fits.",
    )


def _which(index: int, count: int, name: str) -> str:
    return name if count == 1 else f"edits[{index}].{name}"


def _refuse_fused_breaks(text: str, splices: Sequence[Splice], path: str) -> None:
    """Refuse splices that would make one line break of a lone CR and an LF where two parts meet.

    A range never starts or ends inside a CRLF, so every such meeting is new.
    """
    position = 0
    before = ""
    for splice in (*splices, None):
        untouched = text[position:] if splice is None else text[position : splice.start]
        for part in (untouched, splice.new_text if splice else ""):
            if before.endswith("\r") and part.startswith("\n"):
                raise ToolError(
                    "unencodable",
                    f"A lone carriage return and a line feed would meet in {path} and become one line break. "
                    "Include the neighbouring line break in oldText and newText.",
                )
            before = part or before
        position = splice.end if splice else position
