"""Diffs of the reference against ours: both must turn the old text into the new one, ours with no more lines."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pytest

from conformance.reference import MISSING, Vector, vectorlib, vectors
from handrail.core.diffs import changes_between, display_diff, first_changed_line, hunks, unified_diff

pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

_HUNK: Final = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def _id(vector: Vector) -> str:
    identifier: str = vector["id"]
    return identifier


def _of(tool: str) -> list[Vector]:
    return [vector for vector in vectors("diff") if vector["tool"] == tool]


def _texts(vector: Vector) -> tuple[str, str]:
    arguments = vectorlib().expand(vector["args"])
    return arguments["oldContent"], arguments["newContent"]


def applied(patch: str, old: str) -> str:
    """Apply a unified diff strictly: every line that it shows must be where it says."""
    source = re.findall(r"[^\n]*\n|[^\n]+$", old)
    made: list[str] = []
    position = 0
    body = re.findall(r"[^\n]*\n", patch)[2:]
    while body:
        header = _HUNK.fullmatch(body.pop(0).rstrip("\n"))
        assert header is not None
        start, old_count, new_start, new_count = map(int, header.groups())
        first = start - 1 if old_count else start
        made += source[position:first]
        position = first
        assert len(made) == (new_start - 1 if new_count else new_start)
        counted: Counter[str] = Counter()
        while body and not body[0].startswith("@@"):
            line = body.pop(0)
            if body and body[0].startswith("\\"):
                body.pop(0)
                line = line.removesuffix("\n")
            counted[line[0]] += 1
            if line[0] in " -":
                assert source[position] == line[1:]
                position += 1
            if line[0] in " +":
                made.append(line[1:])
        assert (counted[" "] + counted["-"], counted[" "] + counted["+"]) == (old_count, new_count)
    return "".join(made + source[position:])


def changed_lines(diff: str) -> Counter[str]:
    """How many lines a diff removes and adds."""
    return Counter(line[0] for line in diff.split("\n") if line[:1] in ("-", "+") and line[:3] not in ("---", "+++"))


@pytest.mark.parametrize("vector", _of("generateUnifiedPatch"), ids=_id)
def test_a_patch_makes_the_new_text_of_the_old(vector: Vector) -> None:
    old, new = _texts(vector)
    ours = unified_diff("f.txt", hunks(old, changes_between(old, new)))
    if old == new:
        assert ours == ""
        return
    assert applied(ours, old) == new
    theirs = vector["expect"]["value"]
    if isinstance(theirs, str):
        assert changed_lines(ours).total() <= changed_lines(theirs).total()


@pytest.mark.parametrize("vector", _of("generateDiffString"), ids=_id)
def test_a_display_diff_numbers_its_lines(vector: Vector) -> None:
    old, new = _texts(vector)
    regions = hunks(old, changes_between(old, new))
    shown = display_diff(old, regions, old.count("\n") + 1, new.count("\n") + 1)
    old_lines, new_lines = old.split("\n"), new.split("\n")
    for line in shown.split("\n") if shown else []:
        found = re.fullmatch(r"([ +-]) *(\d+) (.*)", line, re.DOTALL)
        if found is None:
            assert re.fullmatch(r" +\.\.\.", line)
            continue
        source = new_lines if found[1] == "+" else old_lines
        assert source[int(found[2]) - 1] == found[3]
    theirs = vector["expect"]["value"]["diff"]
    if isinstance(theirs, str):
        assert changed_lines(shown).total() <= changed_lines(theirs).total()


# The width of the context is no option of ours.
_SAME_CONTEXT: Final = [vector for vector in vectors("diff") if vector["args"].get("contextLines", 4) == 4]


@pytest.mark.parametrize("vector", _SAME_CONTEXT, ids=_id)
def test_a_diff_of_short_texts_is_the_very_same(vector: Vector) -> None:
    old, new = _texts(vector)
    regions = hunks(old, changes_between(old, new))
    patch = unified_diff("f.txt", regions)
    if vector["tool"] == "generateUnifiedPatch":
        assert vectorlib().differences(vector["expect"]["value"], patch) == []
    else:
        expected = vector["expect"]["value"]
        assert (
            vectorlib().differences(
                expected["diff"], display_diff(old, regions, old.count("\n") + 1, new.count("\n") + 1)
            )
            == []
        )
        assert first_changed_line(regions) == expected.get("firstChangedLine")
