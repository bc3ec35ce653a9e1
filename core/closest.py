"""When a text to replace is not found: where the file comes closest, and how it differs there.

Bounded work, whatever the sizes: lines are looked up by a normalised key, and only a few places are compared.
"""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Callable, Sequence
from typing import Final

from handrail.core.text import visible
from handrail.core.tolerance import normalize

__all__ = ["describe_closest"]

_WANTED_LINES: Final = 200
_PLACES_OF_A_LINE: Final = 1000
_COMPARED_LINES: Final = 200
_COMPARED_CHARACTERS: Final = 200
_COMPARED_WORDS: Final = 20
_SHOWN_CHARACTERS: Final = 200
_MINIMUM_SIMILARITY: Final = 0.5


def describe_closest(text: str, wanted: str) -> str:
    """Return where a text comes closest to what was wanted, and the next step.

    Args:
        text: The file, with ``\\n`` line endings.
        wanted: The text that does not occur in it.
    """
    if not text:
        return "The file is empty. Use write to give it content."
    lines = text.split("\n")
    asked = wanted.strip("\n").split("\n")
    place = _place(lines, asked, wanted)
    if place is None:
        return "Nothing in the file is similar. Read the file and copy the text to replace from it."
    start, count = place
    found = lines[start : start + count]
    kinds = ", ".join(_differences("\n".join(asked), "\n".join(found)))
    if not kinds:
        return f"Line {start + 1} has this text, but not the line breaks before or after it. Leave them out of oldText."
    first = next((i for i, (a, b) in enumerate(zip(asked, found, strict=False)) if a != b), min(len(asked), len(found)))
    return (
        f"The closest place is line {start + 1} (similarity {_similarity(asked, found):.0%}); {kinds}.\n"
        f"  oldText line {first + 1}: {_shown(asked, first)}\n"
        f"  file line {start + first + 1}: {_shown(lines, start + first)}\n"
        "Read that part again and copy the text exactly."
    )


# ------------------------------------------------------------------ the place


def _place(lines: Sequence[str], asked: Sequence[str], wanted: str) -> tuple[int, int] | None:
    """Where the wanted text may be meant to stand: the first line, from 0, and how many."""
    readings = [asked]
    if "\\n" in wanted:  # line breaks that were escaped once too often
        readings.append(_unescaped(wanted).strip("\n").split("\n"))
    for reading in readings:
        start = _best_start(lines, reading[:_WANTED_LINES])
        if start is not None:
            return start, len(reading)
    start = _most_similar(lines, asked[:_WANTED_LINES])
    return None if start is None else (start, len(asked))


def _best_start(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """The line at which most lines of the wanted text stand, give or take their blanks, case, quotes and escapes.

    A line that is everywhere says little, so only its first places count.
    """
    wanted: dict[str, list[int]] = {}
    for j, line in enumerate(asked):
        if key := _key(line):
            wanted.setdefault(key, []).append(j)
    places: dict[str, list[int]] = {key: [] for key in wanted}
    keys: dict[str, str] = {}
    for i, line in enumerate(lines):
        if line not in keys:
            keys[line] = _key(line)
        key = keys[line]
        if key in places and len(places[key]) < _PLACES_OF_A_LINE:
            places[key].append(i)
    votes: dict[int, float] = {}
    for key, found in places.items():
        for start in (i - j for i in found for j in wanted[key]):
            votes[start] = votes.get(start, 0) + 1 + 1 / len(found)  # of equally many lines, the rarer ones win
    return max(min(votes, key=lambda start: (-votes[start], start)), 0) if votes else None


def _most_similar(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """The line most similar to the longest wanted line, or the one that has it as a part."""
    j = max(range(len(asked)), key=lambda index: len(asked[index].strip()))
    probe = asked[j].strip()[:_COMPARED_CHARACTERS]
    if not probe:
        return None
    key = _key(probe)
    words = sorted(set(_WORDS.findall(probe.casefold())), key=len, reverse=True)[:_COMPARED_WORDS]
    ranked: list[tuple[int, int]] = []
    for i, line in enumerate(lines):
        folded = line[:_LONGEST_LINE].casefold()
        shared = sum(word in folded for word in words)
        if shared == len(words) and key in _key(line[:_LONGEST_LINE]):
            return max(i - j, 0)
        if shared:
            ranked.append((-shared, i))
    candidates = [i for _, i in heapq.nsmallest(_COMPARED_LINES, ranked)] or range(min(len(lines), _COMPARED_LINES))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(probe)
    best, place = _MINIMUM_SIMILARITY, None
    for i in candidates:
        matcher.set_seq1(lines[i].strip()[:_COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, i
    return None if place is None else max(place - j, 0)


_WORDS: Final = re.compile(r"\w{3,}")
_LONGEST_LINE: Final = 10_000


def _key(line: str) -> str:
    """What makes two lines the same but for blanks, case, quotes and escapes."""
    text = line if line.isascii() else _unquoted(normalize(line))
    return "".join(text.casefold().replace("\\", "").replace('"', "'").replace("`", "'").split())


# ------------------------------------------------------------------ the difference


def _similarity(asked: Sequence[str], found: Sequence[str]) -> float:
    asked, found = asked[:_WANTED_LINES], found[:_WANTED_LINES]
    one, other = "\n".join(asked), "\n".join(found)
    sequences = (one, other) if len(one) + len(other) < 2000 else (asked, found)
    return min(difflib.SequenceMatcher(None, *sequences, autojunk=False).ratio(), 0.99)


def _differences(wanted: str, found: str) -> list[str]:
    """Name the kinds of difference: the fewest that explain everything, the narrowest of each sort."""
    needed = list(_KINDS)
    if not _same(wanted, found, needed):
        return ["the text differs"]
    for kind in _KINDS:
        fewer = [each for each in needed if each is not kind]
        if _same(wanted, found, fewer):
            needed = fewer
    return [name for name, _ in reversed(needed)]


def _same(wanted: str, found: str, kinds: Sequence[_Kind]) -> bool:
    """Whether the wanted text is in the found one when these kinds of difference do not count."""
    for _, forget in reversed(kinds):
        wanted, found = forget(wanted), forget(found)
    return wanted in found


def _unescaped(text: str) -> str:
    """The text with escaped line breaks and tabs as they are meant, and without any other backslash."""
    return re.sub(r"\\+t", "\t", re.sub(r"\\+n", "\n", text)).replace("\\", "")


def _unquoted(text: str) -> str:
    return text.translate(_QUOTES)


_QUOTES: Final = str.maketrans(dict.fromkeys('"`\u2018\u2019\u201c\u201d', "'"))


def _unindented(text: str) -> str:
    return "\n".join([line.lstrip() for line in text.split("\n")])


def _untrailed(text: str) -> str:
    return "\n".join([line.rstrip() for line in text.split("\n")])


def _without_blanks(text: str) -> str:
    return "".join(text.split())


_Kind = tuple[str, Callable[[str], str]]

# The broadest first: it is the first to be left out when a narrower one explains the difference. They are applied
# from the last on, so that an escaped line break is one for those that look at lines.
_KINDS: Final[tuple[_Kind, ...]] = (
    ("the blanks or line breaks differ", _without_blanks),
    ("typographic or compatibility characters differ", normalize),
    ("the quotes differ", _unquoted),
    ("upper and lower case differ", str.casefold),
    ("trailing blanks differ", _untrailed),
    ("the indentation differs", _unindented),
    ("backslashes (escaped characters) differ", _unescaped),
)


def _shown(lines: Sequence[str], index: int) -> str:
    """A line as a quoted literal, so that blanks and tabs can be seen; cut when long."""
    if index >= len(lines):
        return "(none)"
    cut = visible(lines[index][:_SHOWN_CHARACTERS])
    return repr(cut) + (" …" if len(lines[index]) > _SHOWN_CHARACTERS else "")
