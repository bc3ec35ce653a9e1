"""When a text to replace is not found: where the file comes closest, and how it differs there.

Bounded work, whatever the sizes: lines are looked up by a normalised key, and only a few places are compared.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from handrail.core.text import visible
from handrail.core.tolerance import normalize

__all__ = ["describe_closest"]

_WANTED_LINES: Final = 200
_COMPARED_LINES: Final = 2000
_COMPARED_CHARACTERS: Final = 400
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
    asked = wanted.strip("\n").split("\n")[:_WANTED_LINES]
    start = _best_start(lines, asked)
    if start is None:
        return "Nothing in the file is similar. Read the file and copy the text to replace from it."
    found = lines[start : start + len(asked)]
    similarity = _similarity(asked, found)
    first = next((i for i, (a, b) in enumerate(zip(asked, found, strict=False)) if a != b), 0)
    kinds = ", ".join(_differences(wanted.strip("\n"), "\n".join(found)))
    return (
        f"The closest place is line {start + 1} (similarity {similarity:.0%}); {kinds}.\n"
        f"  oldText line {first + 1}: {_shown(asked[first])}\n"
        f"  file line {start + first + 1}: {_shown(found[first] if first < len(found) else '')}\n"
        "Read that part again and copy the text exactly."
    )


# ------------------------------------------------------------------ the place


def _best_start(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """The line at which most lines of the wanted text stand, give or take their blanks and case."""
    keys: dict[str, list[int]] = {}
    for j, line in enumerate(asked):
        if key := _key(line):
            keys.setdefault(key, []).append(j)
    votes: Counter[int] = Counter()
    for i, line in enumerate(lines):
        for j in keys.get(_key(line), ()):
            votes[max(i - j, 0)] += 1
        if len(votes) > 100_000:
            break
    if votes:
        most = max(votes.values())
        return min(start for start, count in votes.items() if count == most)
    return _most_similar(lines, asked)


def _most_similar(lines: Sequence[str], asked: Sequence[str]) -> int | None:
    """The line most similar to the longest wanted line, among those that share its rarer words."""
    j = max(range(len(asked)), key=lambda index: len(asked[index].strip()))
    probe = asked[j].strip()[:_COMPARED_CHARACTERS]
    if not probe:
        return None
    words = set(_WORDS.findall(probe.casefold()))
    ranked: list[tuple[int, int]] = []
    for i, line in enumerate(lines):
        shared = sum(word in line.casefold() for word in words) if len(line) < 10_000 else 0
        if shared:
            ranked.append((-shared, i))
    candidates = [i for _, i in sorted(ranked)[:_COMPARED_LINES]] or range(min(len(lines), _COMPARED_LINES))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(probe)
    best, place = _MINIMUM_SIMILARITY, None
    for i in candidates:
        matcher.set_seq1(lines[i].strip()[:_COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, i
    return None if place is None else max(place - j, 0)


_WORDS: Final = re.compile(r"\w{3,}")


def _key(line: str) -> str:
    """What makes two lines the same but for blanks, case, typographic signs and escapes."""
    return "".join(normalize(line[:_COMPARED_CHARACTERS]).casefold().replace("\\", "").split())


# ------------------------------------------------------------------ the difference


def _similarity(asked: Sequence[str], found: Sequence[str]) -> float:
    one, other = "\n".join(asked)[:4000], "\n".join(found)[:4000]
    return min(
        difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
        if len(one) < 1000
        else _by_lines(asked, found),
        0.99,
    )


def _by_lines(asked: Sequence[str], found: Sequence[str]) -> float:
    return difflib.SequenceMatcher(None, asked, found, autojunk=False).ratio()


def _differences(wanted: str, found: str) -> list[str]:
    """Name the kinds of difference, the simplest explanation first."""
    if _outdented(wanted) == _outdented(found):
        return ["the indentation differs"]
    if wanted.casefold() == found.casefold():
        return ["upper and lower case differ"]
    if re.sub(r"\s+", " ", wanted).strip() == re.sub(r"\s+", " ", found).strip():
        return ["the blanks or line breaks differ"]
    if wanted.replace("\\", "") == found.replace("\\", ""):
        return ["backslashes (escaped characters) differ"]
    if _unquoted(wanted) == _unquoted(found):
        return ["the quotes differ"]
    if _outdented(wanted.casefold()) == _outdented(found.casefold()):
        return ["the indentation differs", "upper and lower case differ"]
    return ["the text differs"]


def _outdented(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


def _unquoted(text: str) -> str:
    return re.sub("[\"'`\u2018\u2019\u201c\u201d]", "'", text)


def _shown(line: str) -> str:
    """A line as a quoted literal, so that blanks and tabs can be seen; cut when long."""
    cut = visible(line[:_SHOWN_CHARACTERS])
    return repr(cut) + (" …" if len(line) > _SHOWN_CHARACTERS else "")
