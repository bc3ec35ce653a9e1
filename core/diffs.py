"""Line diffs from known changes: a numbered one for people, a unified one for programs.

The changed places are known, so only the lines around them are compared; the time follows the size of the
change, not of the file. Lines are what ``\\n`` ends; a last line without it differs from one with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from attrs import frozen

from handrail.core.truncation import MAX_BYTES, MAX_LINES, truncate_head

__all__ = [
    "Change",
    "Hunk",
    "Line",
    "apply_changes",
    "bounded",
    "changes_between",
    "display_diff",
    "first_changed_line",
    "hunks",
    "unified_diff",
]

_CONTEXT: Final = 4
_MAX_EDIT_DISTANCE: Final = 300


@frozen
class Change:
    """The characters from ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


@frozen
class Line:
    """One line of a diff."""

    sign: Literal[" ", "-", "+"]
    text: str
    """With its line feed, where it has one."""


@frozen
class Hunk:
    """A changed region with its context; line numbers count from 1."""

    old_start: int
    new_start: int
    lines: Sequence[Line]

    def count(self, sign: Literal["-", "+"]) -> int:
        """Count the lines of the old (``-``) or new (``+``) side."""
        return sum(line.sign in (" ", sign) for line in self.lines)


def apply_changes(text: str, changes: Sequence[Change]) -> str:
    """Return the text with all changes made; they are sorted and do not overlap."""
    pieces: list[str] = []
    position = 0
    for change in changes:
        pieces += (text[position : change.start], change.new)
        position = change.end
    pieces.append(text[position:])
    return "".join(pieces)


def hunks(text: str, changes: Sequence[Change]) -> list[Hunk]:
    """Return the changed regions of a text.

    Args:
        text: The old text.
        changes: What changes, sorted by position, not overlapping.
    """
    found: list[Hunk] = []
    position = 0  # in the old text
    line = 1  # its number there
    shift = 0  # lines the new text is ahead by
    for window in _windows(text, changes):
        line += text.count("\n", position, window.start)
        position = window.start
        old_lines = _lines(text[window.start : window.end])
        inner = [Change(c.start - window.start, c.end - window.start, c.new) for c in window.changes]
        new_lines = _lines(apply_changes(text[window.start : window.end], inner))
        script = _script(old_lines, new_lines)
        found += _cut_into_hunks(script, line, line + shift)
        shift += len(new_lines) - len(old_lines)
    return found


def changes_between(old: str, new: str) -> list[Change]:
    """Return one change that turns a text into another: all but their common start and end."""
    limit = min(len(old), len(new))
    start = _common_prefix(old, new, limit)
    tail = _common_prefix(old[::-1], new[::-1], limit - start)
    return [] if old == new else [Change(start, len(old) - tail, new[start : len(new) - tail])]


def first_changed_line(regions: Sequence[Hunk]) -> int | None:
    """Return the number of the first changed line in the new text; ``None`` without a change."""
    if not regions:
        return None
    return regions[0].new_start + next(n for n, line in enumerate(regions[0].lines) if line.sign != " ")


def display_diff(text: str, regions: Sequence[Hunk], old_line_count: int, new_line_count: int) -> str:
    """Return the diff that people read: signed, numbered lines with gaps shown as ``...``.

    Removed and unchanged lines carry their old number, added ones their new number.

    Args:
        text: The old text.
        regions: Its hunks.
        old_line_count: How many pieces it has when split at line feeds.
        new_line_count: How many the new text has.
    """
    width = len(str(max(old_line_count, new_line_count)))
    gap = f" {'':>{width}} ..."
    shown: list[str] = []
    next_old = 1
    for hunk in regions:
        if hunk.old_start > next_old:
            shown.append(gap)
        old, new = hunk.old_start, hunk.new_start
        for line in hunk.lines:
            shown.append(f"{line.sign}{new if line.sign == '+' else old:>{width}} {line.text.removesuffix(chr(10))}")
            old += line.sign != "+"
            new += line.sign != "-"
        next_old = old
    if regions and next_old <= old_line_count - text.endswith("\n"):
        shown.append(gap)
    return "\n".join(shown)


def unified_diff(name: str, regions: Sequence[Hunk]) -> str:
    """Return the diff that ``patch`` and ``git apply`` read; empty without a change."""
    if not regions:
        return ""
    header = _header_name(name)
    shown = [f"--- {header}\n+++ {header}\n"]
    for hunk in regions:
        old_count, new_count = hunk.count("-"), hunk.count("+")
        # A side without lines is numbered by the line before it (unified format of POSIX diff).
        old_start, new_start = hunk.old_start - (not old_count), hunk.new_start - (not new_count)
        shown.append(f"@@ -{old_start},{old_count} +{new_start},{new_count} @@\n")
        for line in hunk.lines:
            shown.append(f"{line.sign}{line.text}")
            if not line.text.endswith("\n"):
                shown.append("\n\\ No newline at end of file\n")
    return "".join(shown)


def bounded(diff: str) -> str:
    """Return a diff within the output limits, with a marker where it was cut."""
    kept = truncate_head(diff, max_lines=MAX_LINES, max_bytes=MAX_BYTES)
    if not kept.truncated:
        return diff
    return f"{kept.content}\n[Diff cut: {kept.output_lines} of {kept.total_lines} lines shown]"


# ------------------------------------------------------------------ windows


@frozen
class _Window:
    """Whole lines around changes that lie close together."""

    start: int
    end: int
    changes: list[Change]


def _windows(text: str, changes: Iterable[Change]) -> Iterator[_Window]:
    current: _Window | None = None
    for change in changes:
        start, end = _line_start(text, change.start, _CONTEXT), _line_end(text, change.end, _CONTEXT)
        if current is not None and start <= current.end:
            current = _Window(current.start, max(end, current.end), [*current.changes, change])
            continue
        if current is not None:
            yield current
        current = _Window(start, end, [change])
    if current is not None:
        yield current


def _line_start(text: str, position: int, more: int) -> int:
    """The start of the line at a position, and of so many lines before it."""
    for _ in range(more + 1):
        position = text.rfind("\n", 0, position)
        if position < 0:
            return 0
    return position + 1


def _line_end(text: str, position: int, more: int) -> int:
    for _ in range(more + 1):
        found = text.find("\n", position)
        if found < 0:
            return len(text)
        position = found + 1
    return position


def _lines(text: str) -> list[str]:
    pieces = text.split("\n")
    last = pieces.pop()
    lines = [piece + "\n" for piece in pieces]
    return [*lines, last] if last else lines


def _cut_into_hunks(script: Sequence[Line], old: int, new: int) -> Iterator[Hunk]:
    """Group a window's lines: changes with at most 4 lines of context, apart where more lies between."""
    changed = [i for i, line in enumerate(script) if line.sign != " "]
    i = 0
    while changed:
        start = max(changed[0] - _CONTEXT, i)
        last = 0
        while last + 1 < len(changed) and changed[last + 1] - changed[last] <= 2 * _CONTEXT + 1:
            last += 1
        end = min(changed[last] + _CONTEXT + 1, len(script))
        for line in script[i:start]:
            old, new = old + (line.sign != "+"), new + (line.sign != "-")
        yield Hunk(old, new, script[start:end])
        for line in script[start:end]:
            old, new = old + (line.sign != "+"), new + (line.sign != "-")
        i, changed = end, changed[last + 1 :]


# ------------------------------------------------------------------ comparing lines


def _script(old: Sequence[str], new: Sequence[str]) -> list[Line]:
    """The shortest edit script (Myers 1986), deletions before insertions in a change."""
    moves = (_one_line(old, new) or _shortest_path(old, new)) if old and new else None
    if moves is None:  # nothing to align, or so much that aligning would not help a reader
        return [*(Line("-", text) for text in old), *(Line("+", text) for text in new)]
    script: list[Line] = []
    i = j = 0
    for sign, count in moves:
        source, at = (new, j) if sign == "+" else (old, i)
        script += [Line(sign, text) for text in source[at : at + count]]
        i += 0 if sign == "+" else count
        j += 0 if sign == "-" else count
    return _deletions_first(script)


_Sign = Literal[" ", "-", "+"]
_Path = tuple["_Path | None", _Sign, int]


def _one_line(old: Sequence[str], new: Sequence[str]) -> list[tuple[_Sign, int]] | None:
    """The runs of the commonest change, of one line, found in a quarter of the time; ``None`` for any other."""
    if len(old) != len(new):
        return None
    at = next((i for i, line in enumerate(old) if line != new[i]), len(old))
    if old[at + 1 :] != new[at + 1 :] or at == len(old):
        return None
    beside = (*old[max(at - 1, 0) : at], *old[at + 1 : at + 2])
    if old[at] in beside or new[at] in beside:
        return None  # there are several shortest scripts
    return [(" ", at), ("-", 1), ("+", 1), (" ", len(old) - at - 1)]


def _shortest_path(old: Sequence[str], new: Sequence[str]) -> list[tuple[_Sign, int]] | None:
    """Runs of kept, removed and added lines; ``None`` when the texts have too little in common.

    Greedy, diagonal by diagonal; of two equally long scripts the one that has deleted more wins.
    """
    shared = (Counter(old) & Counter(new)).total()
    if not shared or len(old) + len(new) - 2 * shared > _MAX_EDIT_DISTANCE:
        return None  # no script is shorter than this
    best: dict[int, tuple[int, _Path | None]] = {}  # diagonal -> how far in old, and how it got there
    distance = 0
    reach, path = _follow(old, new, 0, 0, None)
    best[0] = (reach, path)
    if reach >= len(old) and reach >= len(new):
        return _runs(path)
    while distance < min(len(old) + len(new), _MAX_EDIT_DISTANCE):
        distance += 1
        for diagonal in range(-distance, distance + 1, 2):
            removed, added = best.get(diagonal - 1), best.get(diagonal + 1)
            can_remove = removed is not None and removed[0] < len(old)
            can_add = added is not None and 0 <= added[0] - (diagonal + 1) < len(new)
            if removed is not None and can_remove and not (added is not None and can_add and removed[0] < added[0]):
                i, step = removed[0] + 1, _step(removed[1], "-")
            elif added is not None and can_add:
                i, step = added[0], _step(added[1], "+")
            else:
                best.pop(diagonal, None)
                continue
            i, path = _follow(old, new, i, i - diagonal, step)
            if i >= len(old) and i - diagonal >= len(new):
                return _runs(path)
            best[diagonal] = (i, path)
    return None


def _step(path: _Path | None, sign: _Sign) -> _Path:
    return path, sign, 1


def _follow(old: Sequence[str], new: Sequence[str], i: int, j: int, path: _Path | None) -> tuple[int, _Path | None]:
    start = i
    while i < len(old) and j < len(new) and old[i] == new[j]:
        i, j = i + 1, j + 1
    return i, (path, " ", i - start) if i > start else path


def _runs(path: _Path | None) -> list[tuple[_Sign, int]]:
    runs: list[tuple[_Sign, int]] = []
    while path is not None:
        path, sign, count = path
        runs.append((sign, count))
    return runs[::-1]


def _deletions_first(script: Sequence[Line]) -> list[Line]:
    ordered: list[Line] = []
    block: list[Line] = []
    for line in [*script, Line(" ", "")]:
        if line.sign != " ":
            block.append(line)
            continue
        ordered += sorted(block, key=lambda entry: entry.sign == "+")
        block = []
        ordered.append(line)
    return ordered[:-1]


# ------------------------------------------------------------------ small parts


def _common_prefix(one: str, other: str, limit: int) -> int:
    if one[:limit] == other[:limit]:
        return limit
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _header_name(name: str) -> str:
    """A file name in a diff header: quoted the way git does it where it needs that."""
    if _TO_QUOTE.search(name) or name.startswith(" "):
        return f'"{_TO_QUOTE.sub(_quoted, name)}"'
    return f"{name}\t" if " " in name else name


def _quoted(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _ESCAPES.get(match[0]) or f"\\{code if code < 0x80 else code - 0xDC00:03o}"  # a byte of PEP 383


_TO_QUOTE: Final = re.compile('[\x00-\x1f"\\\\\x7f\udc80-\udcff]')
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
