"""Diffs from known changes: hunks, numbers, limits, and headers that programs read."""

from __future__ import annotations

import pytest

import handrail.core.diffs as diffs_module
from handrail.core.diffs import (
    Change,
    apply_changes,
    bounded,
    changes_between,
    display_diff,
    first_changed_line,
    hunks,
    unified_diff,
)
from patching import apply_display, apply_unified, plain_lines


def display(old: str, new: str) -> str:
    return display_diff(old, hunks(old, changes_between(old, new)), old.count("\n") + 1, new.count("\n") + 1)


def unified(old: str, new: str, name: str = "f.txt") -> str:
    return unified_diff(name, hunks(old, changes_between(old, new)))


NUMBERED = "".join(f"line {n}\n" for n in range(1, 31))

PAIRS = [
    ("a\n", "b\n"),
    ("a", "a\n"),
    ("a\n", "a"),
    ("a", "b"),
    ("", "a\n"),
    ("", "a"),
    ("a\n", ""),
    ("a\nb\nc\n", "a\nc\n"),
    ("a\nc\n", "a\nb\nc\n"),
    ("a\nb\nc", "a\nb\nc\nd"),
    ("a\n\n\nb\n", "a\n\nb\n"),
    ("\n", "\n\n"),
    ("x\ny\nz\n", "z\ny\nx\n"),
    (NUMBERED, NUMBERED.replace("line 3\n", "").replace("line 25\n", "line 25\nnew\n")),
    (NUMBERED, NUMBERED.replace("line 10\n", "ten\n").replace("line 19\n", "nineteen\n")),
    (NUMBERED, NUMBERED.replace("line 10\n", "ten\n").replace("line 20\n", "twenty\n")),
    (NUMBERED, ""),
    ("a\rb\rc", "a\rB\rc"),
    ("a\r\nb\r\n", "a\r\nb\n"),
]


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_diffs_lead_from_the_old_text_to_the_new(old: str, new: str) -> None:
    assert apply_unified(old, unified(old, new)) == new
    assert apply_changes(old, changes_between(old, new)) == new


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_the_display_diff_tells_the_same(old: str, new: str) -> None:
    assert apply_display(old, display(old, new)) == plain_lines(new)


def test_an_unchanged_text_has_no_diff() -> None:
    assert changes_between("a\nb", "a\nb") == []
    assert unified("a\nb", "a\nb") == ""
    assert display("a\nb", "a\nb") == ""
    assert first_changed_line([]) is None


def test_the_display_numbers_lines_and_marks_gaps() -> None:
    old = NUMBERED
    new = old.replace("line 12\n", "twelve\nand a half\n")
    assert display(old, new).split("\n") == [
        "    ...",
        "  8 line 8",
        "  9 line 9",
        " 10 line 10",
        " 11 line 11",
        "-12 line 12",
        "+12 twelve",
        "+13 and a half",
        " 13 line 13",
        " 14 line 14",
        " 15 line 15",
        " 16 line 16",
        "    ...",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", 2),
        ("a\nb\nc\n", "a\nc\n", 2),
        ("a\nb\n", "x\na\nb\n", 1),
        (NUMBERED, NUMBERED + "end\n", 31),
        (NUMBERED, NUMBERED.replace("line 9\n", "nine\n").replace("line 29\n", ""), 9),
    ],
)
def test_the_first_changed_line_counts_in_the_new_text(old: str, new: str, line: int) -> None:
    assert first_changed_line(hunks(old, changes_between(old, new))) == line


def test_changes_that_lie_apart_make_hunks_of_their_own() -> None:
    nine_between = [Change(NUMBERED.index("line 10\n"), NUMBERED.index("line 10\n") + 4, "L")]
    start = NUMBERED.index("line 20\n")
    regions = hunks(NUMBERED, [*nine_between, Change(start, start + 4, "L")])
    assert [(hunk.old_start, hunk.count("-")) for hunk in regions] == [(6, 9), (16, 9)]
    start = NUMBERED.index("line 19\n")
    assert [hunk.old_start for hunk in hunks(NUMBERED, [*nine_between, Change(start, start + 4, "L")])] == [6]


def test_a_change_that_changes_nothing_has_no_hunk() -> None:
    start = NUMBERED.index("line 20")
    regions = hunks(NUMBERED, [Change(5, 6, NUMBERED[5:6]), Change(start, start + 4, "L")])
    assert [hunk.old_start for hunk in regions] == [16]


def test_only_the_lines_around_a_change_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    script = vars(diffs_module)["_script"]

    def counting(old: list[str], new: list[str]) -> object:
        nonlocal compared
        compared += len(old) + len(new)
        return script(old, new)

    monkeypatch.setattr(diffs_module, "_script", counting)
    text = "some line\n" * 500_000
    hunks(text, [Change(10, 14, "x"), Change(2_500_003, 2_500_007, "y")])
    assert compared <= 2 * 20


def test_texts_with_little_in_common_are_not_aligned_for_long() -> None:
    old = "".join(f"{n}\n" for n in range(2000))
    new = "".join(f"{n}\n" for n in range(5000, 7000))
    patch = unified(old, new)
    assert apply_unified(old, patch) == new
    assert patch.split("\n")[3].startswith("-")


def test_a_long_diff_is_cut_with_a_marker() -> None:
    diff = "\n".join(f"+{n} line" for n in range(1, 3001))
    cut = bounded(diff)
    assert cut.endswith("\n[Diff cut: 2000 of 3000 lines shown]")
    assert cut.count("\n") == 2000
    assert bounded("short") == "short"
    assert len(bounded("x" * 60_000).encode()) < 52_000


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("src/a.py", "src/a.py"),
        ("a b.txt", "a b.txt\t"),
        ("caf\u00e9.txt", "caf\u00e9.txt"),
        (" lead", '" lead"'),
        ("a\tb", '"a\\tb"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("line\nbreak\r\x7f\x01", '"line\\nbreak\\r\\177\\001"'),
        ("bad-\udcff\udc80", '"bad-\\377\\200"'),
    ],
)
def test_names_in_headers_are_quoted_where_programs_need_it(name: str, header: str) -> None:
    assert unified("a\n", "b\n", name).startswith(f"--- {header}\n+++ {header}\n@@ ")
