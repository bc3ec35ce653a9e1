"""Locating edits and splicing them in: exact before tolerant, unique, apart, and byte for byte."""

from __future__ import annotations

import pytest

from handrail.core.errors import ToolError
from handrail.core.replacement import LfText, Replacement, Splice, locate, splice_bytes
from handrail.core.text import TextDocument, decode


def edited(data: bytes, *edits: tuple[str, str], hint: str | None = None) -> bytes:
    document = decode(data, hint=hint)
    assert isinstance(document, TextDocument)
    splices = locate(LfText(document.text), [Replacement(*edit) for edit in edits], "f.txt")
    return splice_bytes(data, document, splices, "f.txt")


def refused(data: bytes, *edits: tuple[str, str], hint: str | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        edited(data, *edits, hint=hint)
    return caught.value


# ------------------------------------------------------------------ line endings


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\nc\r\n", "b", "x\ny", b"a\r\nx\ny\nc\r\n"),  # the line of the range decides
        (b"a\r\nb\nc\r\n", "c", "x\ny", b"a\r\nb\nx\r\ny\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),  # the last line takes the ending before it
        (b"a\rb\rc", "a\nb", "x\ny\nz", b"x\ry\rz\rc"),
        (b"a\rb\rc", "a\rb", "x\ry", b"x\ry\rc"),
        (b"a\rb\nc\n", "a\rb", "x", b"x\nc\n"),  # beside LF, a lone CR is a character
        (b"a\rb\nc\n", "\r", "", b"ab\nc\n"),
        (b"a\n\rb\n", "b", "c", b"a\n\rc\n"),
        (b"a\r\n\r\nb", "\n\n", "\n", b"a\r\nb"),
        (b"a\r\nb\r\n", "\n", "\n", None),  # two places
        (b"only", "only", "a\nb", b"a\nb"),
    ],
)
def test_new_text_takes_the_line_ending_of_its_place(before: bytes, old: str, new: str, after: bytes | None) -> None:
    if after is None:
        assert refused(before, (old, new)).code == "not_unique"
    else:
        assert edited(before, (old, new)) == after


def test_a_break_after_a_lone_carriage_return_stays_a_break_of_its_own() -> None:
    assert edited(b"a\rX\nb\n", ("X", "\nY")) == b"a\r\r\nY\nb\n"


@pytest.mark.parametrize(
    ("before", "edits"),
    [
        (b"a\rX\nb\n", [("X", "")]),
        (b"aX\nb\n", [("X", "\r")]),
        (b"a\rX\nY\nb\n", [("X", ""), ("Y", "z")]),
        (b"aXY\nb\n", [("X", "\r"), ("Y", "")]),
    ],
)
def test_a_seam_never_makes_one_break_of_two_characters(before: bytes, edits: list[tuple[str, str]]) -> None:
    error = refused(before, *edits)
    assert error.code == "unencodable"
    assert "Include the neighbouring line break" in error.message


def test_offsets_lead_from_the_lf_view_to_the_original_and_back() -> None:
    lf = LfText("a\r\nb\nc\r\n\r\nd")
    assert lf.text == "a\nb\nc\n\nd"
    assert [lf.raw_offset(n) for n in range(len(lf.text) + 1)] == [0, 1, 3, 4, 5, 6, 8, 10, 11]
    assert [lf.lf_offset(lf.raw_offset(n)) for n in range(len(lf.text) + 1)] == list(range(len(lf.text) + 1))


# ------------------------------------------------------------------ bytes


def test_edits_are_matched_against_the_original_in_any_order() -> None:
    edits = [("one", "two"), ("two", "three"), ("three", "one")]
    for order in (edits, edits[::-1], [edits[1], edits[2], edits[0]]):
        assert edited(b"one two three", *order) == b"two three one"


def test_a_stray_byte_survives_beside_and_inside_the_document() -> None:
    data = "\u65e5\u672c\u8a9e\u30c6\u30b9\u30c8 ".encode() + b"\xff\xfe word \xe9\n"
    assert edited(data, ("word", "\u2192")) == data.replace(b"word", "\u2192".encode())


def test_a_character_made_of_two_code_points_is_not_cut() -> None:
    # In Big5-HKSCS one pair of bytes stands for a letter and its accent.
    data = "\u6e2c\u8a66 \u00ca\u0304x \u5167\u5bb9".encode("big5hkscs")
    for old in ("\u00ca", "\u0304", "\u0304x", "\u8a66 \u00ca"):
        error = refused(data, (old, "-"), hint="big5hkscs")
        assert error.code == "undecodable"
        assert "inside a character" in error.message
    assert edited(data, ("\u00ca\u0304", "-"), hint="big5hkscs") == "\u6e2c\u8a66 -x \u5167\u5bb9".encode("big5hkscs")


def test_a_backslash_that_is_half_a_character_is_not_found() -> None:
    data = "\u8868\u793a\u3057\u307e\u3059\u3001\u30c6\u30b9\u30c8\u3067\u3059\u3002".encode("cp932")
    assert b"\\" in data
    assert refused(data, ("\\", "/"), hint="shift_jis").code == "not_found"


def test_a_range_outside_the_content_is_refused() -> None:
    with pytest.raises(ToolError, match=r"^Replacement range is outside the base content\.$"):
        splice_bytes(b"abc", TextDocument("abc"), [Splice(0, 2, 9, "x", "exact")], "f.txt")
    with pytest.raises(ToolError, match=r"^Replacement range is outside the base content\.$"):
        splice_bytes(b"abc", TextDocument("abc"), [Splice(0, 1, 3, "", "exact"), Splice(1, 0, 1, "", "exact")], "f.txt")


# ------------------------------------------------------------------ exact, tolerant, unique


def located(text: str, *edits: tuple[str, str]) -> list[Splice]:
    return locate(LfText(text), [Replacement(*edit) for edit in edits], "f.txt")


def test_an_exact_place_wins_over_tolerant_ones() -> None:
    text = "it\u2019s here\nit's there\n"
    assert [(s.start, s.match) for s in located(text, ("it's", "x"))] == [(10, "exact")]


def test_tolerance_is_decided_for_each_edit() -> None:
    exact, tolerant = located("a b\nc\u00a0d\n", ("a b", "x"), ("c d", "y"))
    assert (exact.match, exact.tolerated) == ("exact", ())
    assert (tolerant.match, tolerant.tolerated) == ("tolerant", ["spaces"])


def test_a_tolerant_match_replaces_only_what_it_covers() -> None:
    assert edited("10\u00b2 m \u2013 \u201cx\u201d  \n".encode(), ('"x"', "y")) == "10\u00b2 m \u2013 y  \n".encode()


@pytest.mark.parametrize("old", ["\u3000", " \t", "\u00a0\n", "\u2028"])
def test_text_that_normalises_to_nothing_matches_only_exactly(old: str) -> None:
    assert refused(b"a  b\n\n", (old, "x")).code == "not_found"


def test_a_match_inside_one_character_does_not_count() -> None:
    assert refused("\ufb01ne\n".encode(), ("f", "x")).code == "not_found"
    # The other place is whole, so it is the only one.
    assert edited("\ufb01ne \uff49ne\n".encode(), ("ine", "x")) == "\ufb01ne x\n".encode()


@pytest.mark.parametrize(
    ("text", "old", "count", "lines"),
    [
        ("aaa", "aa", 2, "1, 1"),
        ("x\ny\nx\n", "x", 2, "1, 3"),
        ("x\r\ny\r\nx\r\n", "x", 2, "1, 3"),
        ("\u2018a\u2019\n\u2019a\u2018\n", "'a'", 2, "1, 2"),
    ],
)
def test_all_places_of_an_ambiguous_text_are_told(text: str, old: str, count: int, lines: str) -> None:
    error = refused(text.encode(), (old, "z"))
    assert error.code == "not_unique"
    assert error.message.startswith(f"Found {count} occurrences of the text in f.txt. They start on lines {lines}. ")


def test_the_list_of_places_is_bounded() -> None:
    error = refused(b"x\n" * 30, ("x", "z"))
    assert "Found 30 occurrences" in error.message
    assert error.message.count(",") < 25
    assert "20, \u2026." in error.message
    assert "Found at least 10000 occurrences" in refused(b"x\n" * 20_000, ("x", "z")).message


def test_many_tolerant_places_in_one_long_line_cost_one_look_at_the_line() -> None:
    # A second per place would be hours: the columns of the line are worked out once.
    text = "\u00e9 \u2018a\u2019 " * 100_000
    assert "Found at least 10000 occurrences" in refused(text.encode(), ("'a'", "z")).message


# ------------------------------------------------------------------ refusals


def test_refusals_name_the_edit_when_there_are_several() -> None:
    data = b"one\ntwo\ntwo\n"
    assert refused(data).code == "no_edits"
    assert "edits[1].oldText is empty" in refused(data, ("one", "1"), ("", "x")).message
    assert refused(data, ("", "x")).message.startswith("oldText is empty")
    missing = refused(data, ("one", "1"), ("three", "3"))
    assert missing.message.startswith("Could not find the exact text in f.txt for edits[1].\n")
    assert refused(data, ("three", "3")).message.startswith("Could not find the exact text in f.txt.\n")
    assert "Found 2 occurrences of the text in f.txt (edits[1])" in refused(data, ("one", "1"), ("two", "2")).message


@pytest.mark.parametrize(
    ("first", "second"),
    [("one two", "two three"), ("two", "one two three"), ("two", "two"), ("one two three", "two")],
)
def test_overlapping_edits_are_refused_with_both_indices(first: str, second: str) -> None:
    error = refused(b"zero one two three four", ("zero", "0"), (first, "a"), (second, "b"))
    assert error.code == "overlap"
    assert "edits[1] and edits[2] overlap" in error.message


def test_neighbouring_edits_do_not_overlap() -> None:
    assert edited(b"abc", ("a", "1"), ("b", "2"), ("c", "3")) == b"123"
