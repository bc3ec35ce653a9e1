"""What tolerant matching takes for the same, and the way back to the original."""

from __future__ import annotations

import pytest

from handrail.core.tolerance import NormalizedText, normalize, tolerated_between


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("plain", "plain"),
        ("trailing \t\nblanks\u3000\n", "trailing\nblanks\n"),
        ("\u2018it\u2019s\u201b \u201cq\u201f", "'it's' \"q\""),
        ("a\u2010b\u2011c\u2012d\u2013e\u2014f\u2015g\u2212h", "a-b-c-d-e-f-g-h"),
        ("a\u00a0b\u2003c\u202fd\u3000e", "a b c d e"),
        ("\uff21\ufb01\u00b2\u00bd", "Afi21\u20442"),
        ("e\u0301", "\u00e9"),
        ("  leading stays", "  leading stays"),
        (" \n\t\n", "\n\n"),
        ("a\x0c\nb\x0b", "a\nb"),
        ("\u2028", ""),
    ],
)
def test_what_is_tolerated_becomes_the_same(text: str, normalized: str) -> None:
    assert normalize(text) == normalized


def original(text: str, wanted: str) -> str | None:
    """What the first tolerant match of a text covers."""
    normalized = NormalizedText.of(text)
    start = normalized.text.index(normalize(wanted))
    found = normalized.original_range(start, start + len(normalize(wanted)))
    return None if found is None else text[found[0] : found[1]]


@pytest.mark.parametrize(
    ("text", "wanted", "covered"),
    [
        ("say \u201chi\u201d now", '"hi"', "\u201chi\u201d"),
        ("area 10\u00b2 m", "m", "m"),
        ("area 10\u00b2 m", "2 m", "\u00b2 m"),
        ("one  \ntwo\t\nthree", "one\ntwo", "one  \ntwo"),  # blanks after the last line stay
        ("one  \ntwo\t\nthree", "\ntwo", "\ntwo"),  # blanks before the first break stay
        ("one  \ntwo\t\nthree", "one\ntwo\n", "one  \ntwo\t\n"),
        ("x\ufb01y", "fiy", "\ufb01y"),
        ("x\ufb01y", "xf", None),  # ends inside one character
        ("x\ufb01y", "iy", None),  # begins inside one
        ("cafe\u0301 au lait", "\u00e9 au", "e\u0301 au"),
        ("\u1112\u1161\u11ab\u2019s", "\ud55c", "\u1112\u1161\u11ab"),
        ("abc \uff76\uff9e def", "\u30ac def", "\uff76\uff9e def"),
    ],
)
def test_a_match_covers_whole_original_characters(text: str, wanted: str, covered: str | None) -> None:
    assert original(text, wanted) == covered


@pytest.mark.parametrize(
    ("wanted", "found", "named"),
    [
        ("it's", "it\u2019s", ["quotes"]),
        ("'it\u2019", "\u2018it'", ["quotes"]),  # the same signs in another order
        ("a - b", "a \u2014 b", ["dashes"]),
        ("a b", "a\u00a0b", ["spaces"]),
        ("a\nb", "a \nb", ["trailing blanks"]),
        ("a \nb's", "a \nb\u2019s", ["quotes"]),  # blanks that are the same are no difference
        ("10\u00b2 \u2013", "102 -", ["dashes", "compatibility characters"]),
        ("\u00e9\u201c", 'e\u0301"', ["quotes", "compatibility characters"]),
        ("\ufb01 '", "\ufb01 \u2019", ["quotes"]),  # on both sides
    ],
)
def test_only_what_differs_is_named(wanted: str, found: str, named: list[str]) -> None:
    assert normalize(wanted) == normalize(found)
    assert tolerated_between(wanted, found) == named
