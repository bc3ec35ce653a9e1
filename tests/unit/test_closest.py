"""The hint for a text that is not found: the place, the kinds of difference, and bounded work."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pytest

from handrail.core.closest import describe_closest

SOURCE = """\
def main():
    name = "it's"
\tif x:
        return path("a\\\\b")
    print('done')
    total = one + two
    say(\u201chello\u201d)
"""


@pytest.mark.parametrize(
    ("wanted", "line", "kinds"),
    [
        ('def main():\n  name = "it\'s"', 1, "the indentation differs"),
        ("    if x:\n        return", 3, "the indentation differs"),
        ('def main():  \n    Name = "it\'s"', 1, "upper and lower case differ, trailing blanks differ"),
        ("    Total = one + two", 6, "upper and lower case differ"),
        ("total = one+two", 6, "the blanks or line breaks differ"),
        ('print("done")', 5, "the quotes differ"),
        ('return path("a\\b")', 4, "backslashes (escaped characters) differ"),
        ('def main():\\n    name = \\"it\'s\\"', 1, "backslashes (escaped characters) differ"),
        ("    Total = one + two\n  say('hello')", 6, "upper and lower case differ, the indentation differs"),
        ("    total = one + three", 6, "the text differs"),
    ],
)
def test_each_kind_of_difference_is_named(wanted: str, line: int, kinds: str) -> None:
    said = describe_closest(SOURCE, wanted)
    assert said.startswith(f"The closest place is line {line} (similarity ")
    named = said.partition("; ")[2].partition(".\n")[0]
    assert set(kinds.split(", ")) <= set(named.split(", "))


def test_the_first_line_that_differs_is_shown_on_both_sides() -> None:
    said = describe_closest(SOURCE, "    print('done')\n    total = one - two")
    assert "  oldText line 2: '    total = one - two'\n  file line 6: '    total = one + two'\n" in said


def test_lines_beyond_the_end_of_the_file_are_shown_as_missing() -> None:
    assert "oldText line 3: 'three'\n  file line 3: (none)" in describe_closest("one\ntwo", "one\ntwo\nthree")


@pytest.mark.parametrize("wanted", ["last\n", "\nfirst", "first\nlast\n", "\n\nlast"])
def test_line_breaks_that_the_file_has_not_are_the_difference(wanted: str) -> None:
    assert "has this text, but not the line breaks before or after it" in describe_closest("first\nlast", wanted)


def test_a_difference_far_into_a_long_text_is_found() -> None:
    lines = [f"line number {n}" for n in range(600)]
    wanted = "\n".join([*lines[:500], "other"])
    assert "oldText line 501: 'other'\n  file line 501: 'line number 500'" in describe_closest("\n".join(lines), wanted)


def test_common_lines_do_not_hide_the_place() -> None:
    text = "    }\n" * 3000 + "    special = 1\n    }\n" + "    }\n" * 3000
    assert describe_closest(text, "special = 1\n}\nother").startswith("The closest place is line 3001 ")


def test_part_of_a_line_is_found_in_it() -> None:
    text = "\n".join(["filler of another sort"] * 50 + ["    result = compute(first, second) or fallback(third)"])
    said = describe_closest(text, "compute(first,second)")
    assert said.startswith("The closest place is line 51 ")
    assert "the blanks or line breaks differ" in said


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("", "x", "The file is empty."),
        ("alpha\nbeta", "zzz qqq", "Nothing in the file is similar."),
        ("alpha\nbeta", "   ", "Nothing in the file is similar."),
        ("alpha\nbeta", "\n", "Nothing in the file is similar."),
    ],
)
def test_where_nothing_is_close_that_is_said(text: str, wanted: str, said: str) -> None:
    assert describe_closest(text, wanted).startswith(said)


def test_long_lines_and_undecodable_bytes_are_shown_safely() -> None:
    said = describe_closest("x" * 400 + "\udcff", "X" * 400 + "y")
    assert len(said) < 1000
    said.encode()
    describe_closest("value \udcff = 1", "value = 1").encode()


class CountingMatcher(difflib.SequenceMatcher[str]):
    """Counts the expensive comparisons and how long their texts are."""

    compared = 0
    longest = 0

    def set_seqs(self, a: Sequence[str], b: Sequence[str]) -> None:
        super().set_seqs(a, b)
        CountingMatcher.longest = max(CountingMatcher.longest, len(a), len(b))

    def ratio(self) -> float:
        CountingMatcher.compared += 1
        return super().ratio()


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> type[CountingMatcher]:
    CountingMatcher.compared = CountingMatcher.longest = 0
    monkeypatch.setattr(difflib, "SequenceMatcher", CountingMatcher)
    return CountingMatcher


@pytest.mark.parametrize(
    ("line", "wanted", "megabytes"),
    [
        ("value = compute({}) + other", "valuy = compute(x) - othir\nand more", 10),
        ("}}", "}}\n" * 199 + "nope", 2),
        ("abcabcab {} cbacba", "bcabca 12 abcab ccba", 2),
    ],
    ids=["similar words", "the same line everywhere", "few letters"],
)
def test_work_is_bounded_in_large_files(
    counting: type[CountingMatcher], line: str, wanted: str, megabytes: int
) -> None:
    count = megabytes * 1_000_000 // (len(line) + 5)
    describe_closest("\n".join([line.format(n) for n in range(count)]), wanted)
    assert counting.compared <= 201
    assert counting.longest <= 2000
