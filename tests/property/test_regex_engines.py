"""RE2 and our own automaton are one engine: the same lines match, and matches start at the same place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.core.automata import LineAutomaton
from handrail.core.regexes import RegexError, parse_literal, parse_regex
from handrail.core.searching import FileScan, LineMatcher

pytest.importorskip("re2")

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "k",
        "s",
        "é",
        "ß",
        "Σ",
        ".",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        "[ab]",
        "[^a]",
        r"[^\W_]",
        "[a-z&&[^b]]",
        r"\b",
        r"\B",
        "^",
        "$",
        "^",
        r"\A",
        r"\z",
        r"\p{L}",
        r"\PL",
        r"\p{Lu}",
        "[[:alpha:]]",
        r"[é-ü]",
        r"\x41",
        r"[\s\d]",
        "",
        r"\r",
    ]
)
REPEATS = st.sampled_from(["", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "{2,}"])


def _group(opening: str, body: str, repeat: str) -> str:
    return f"{opening}{body}){repeat}"


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.lists(inner, min_size=1, max_size=3).map("".join)
    either = st.lists(joined, min_size=2, max_size=3).map("|".join)
    return joined | st.builds(_group, st.sampled_from(["(", "(?:", "(?i:"]), either, REPEATS)


def _repeated(atom: str, repeat: str) -> str:
    return atom + repeat if atom else ""


PATTERNS: st.SearchStrategy[str] = st.recursive(st.builds(_repeated, ATOMS, REPEATS), _compound, max_leaves=8)
TEXTS = st.lists(st.text(st.sampled_from("aAbBkKsSéÉßΣσς 1_-ſ\u212a٣\u0301\r"), max_size=8), max_size=6).map("\n".join)


@settings(max_examples=settings().max_examples * 5)
@given(PATTERNS, TEXTS, st.booleans())
def test_both_find_the_same_lines(pattern: str, text: str, ignore_case: bool) -> None:
    try:
        node = parse_regex(pattern, ignore_case=ignore_case)
    except RegexError:
        return  # e.g. a repetition of nothing
    data = text.encode()
    ours = list(LineMatcher(node, use_re2=False).matching_lines(data))
    assert list(LineMatcher(node).matching_lines(data)) == ours
    for start, end in ours:
        line = data[start:end].decode().removesuffix("\r")
        assert LineMatcher(node).first_start(line) == LineAutomaton(node).first_start(line)


@settings(max_examples=settings().max_examples * 2)
@given(st.text(st.sampled_from("aA.*[(\\é\u212ak"), min_size=1, max_size=4), TEXTS, st.booleans())
def test_a_literal_is_found_where_the_text_has_it(literal: str, text: str, ignore_case: bool) -> None:
    node = parse_literal(literal, ignore_case=ignore_case)
    for use_re2 in (False, True):
        found = [text.encode()[a:b].decode() for a, b in LineMatcher(node, use_re2).matching_lines(text.encode())]
        if not ignore_case:
            lines = text.split("\n")
            assert found == [line for line in lines if literal in line.removesuffix("\r")]
        else:
            assert all(literal.casefold() in line.casefold() for line in found)


@settings(max_examples=settings().max_examples * 2)
@given(
    st.lists(st.sampled_from(["hit", "miss", "", "hit hit", "x\r"]), max_size=30),
    st.integers(1, 6),
    st.integers(0, 4),
    st.integers(1, 40),
)
def test_blocks_do_not_change_what_is_shown(lines: list[str], wanted: int, context: int, block: int) -> None:
    """Fed whole or in blocks of lines, a scan shows the windows around the first matches."""
    matcher = LineMatcher(parse_regex("hit"))
    whole, parts = FileScan(matcher, wanted, context), FileScan(matcher, wanted, context)
    data = [f"{line}\n".encode() for line in lines]
    whole.feed(b"".join(data))
    for start in range(0, len(data), block):
        if not parts.is_complete:
            parts.feed(b"".join(data[start : start + block]))
    hits = [n for n, line in enumerate(lines, 1) if "hit" in line]
    shown = {n for hit in hits[:wanted] for n in range(hit - context, hit + context + 1) if 1 <= n <= len(lines)}
    assert [line.number for line in whole.lines] == sorted(shown)
    assert {line.number for line in whole.lines if line.is_match} == set(hits[:wanted])
    assert [line.text for line in whole.lines] == [lines[n - 1].removesuffix("\r") for n in sorted(shown)]
    assert parts.lines == whole.lines
    assert (whole.matches > wanted) == (len(hits) > wanted)
    assert (parts.matches > wanted) == (len(hits) > wanted)
