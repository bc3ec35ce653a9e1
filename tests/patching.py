"""A small applier of unified diffs, so that the diffs under test are checked by code that did not make them."""

from __future__ import annotations

import re

__all__ = ["apply_display", "apply_unified", "plain_lines"]

_HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
_SHOWN = re.compile(r"([ +-])( *\d+) (.*)", re.DOTALL)


def apply_unified(text: str, patch: str) -> str:
    """Return the text after a patch; every kept and removed line, every number and count is checked."""
    old = _lines(text)
    new: list[str] = []
    taken = 0
    entries = _entries(patch)
    position = 0
    while position < len(entries):
        match = _HUNK.fullmatch(entries[position].rstrip("\n"))
        assert match is not None, entries[position]
        old_start, old_count, new_start, new_count = map(int, match.groups())
        start = old_start - (old_count > 0)
        assert start >= taken, "hunks overlap"
        new += old[taken:start]
        taken = start
        assert len(new) == new_start - (new_count > 0)
        removed = added = 0
        position += 1
        while position < len(entries) and not entries[position].startswith("@@"):
            sign, line = entries[position][0], entries[position][1:]
            if sign in " -":
                assert old[taken] == line
                taken += 1
                removed += 1
            if sign in " +":
                new.append(line)
                added += 1
            position += 1
        assert (removed, added) == (old_count, new_count)
    return "".join(new + old[taken:])


def apply_display(text: str, diff: str) -> list[str]:
    """Return the lines, without their breaks, after a display diff; the numbers and the old lines are checked.

    A display diff does not tell whether the last line has a line feed.
    """
    old = plain_lines(text)
    new: list[str] = []
    taken = 0
    for entry in diff.split("\n") if diff else []:
        if entry.strip() == "...":
            continue
        match = _SHOWN.fullmatch(entry)
        assert match is not None, entry
        sign, number, line = match[1], int(match[2]), match[3]
        if sign == "+":
            unchanged = number - 1 - len(new)
            assert unchanged >= 0
            new += old[taken : taken + unchanged]
            taken += unchanged
            new.append(line)
            continue
        new += old[taken : number - 1]
        taken = number
        assert old[number - 1] == line
        if sign == " ":
            new.append(line)
    return new + old[taken:]


def plain_lines(text: str) -> list[str]:
    """Return the lines of a text without their line feeds."""
    return [line.removesuffix("\n") for line in _lines(text)]


def _lines(text: str) -> list[str]:
    pieces = text.split("\n")
    last = pieces.pop()
    return [piece + "\n" for piece in pieces] + ([last] if last else [])


def _entries(patch: str) -> list[str]:
    """The lines of a patch after its header; a line that is marked to have no line feed loses it."""
    header, names, entries = patch.split("\n", 2)
    assert header.startswith("--- ")
    assert names.startswith("+++ ")
    marked: list[str] = []
    for entry in entries.split("\n")[:-1]:
        if entry.startswith("\\"):
            marked[-1] = marked[-1].removesuffix("\n")
        else:
            marked.append(entry + "\n")
    return marked
