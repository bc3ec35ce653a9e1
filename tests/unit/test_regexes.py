"""The dialect of regular expressions: what it refuses, and what to write instead."""

from __future__ import annotations

import pytest

from handrail.core.automata import LineAutomaton
from handrail.core.regexes import RegexError, parse_literal, parse_regex
from handrail.core.searching import LineMatcher
from handrail.core.spelling import to_ripgrep


@pytest.mark.parametrize(
    ("pattern", "construct", "position"),
    [
        ("a(?=b)", "(?=", 2),
        ("a(?!b)", "(?!", 2),
        ("(?<=a)b", "(?<=", 1),
        ("(?<!a)b", "(?<!", 1),
        ("(?>a)", "(?>", 1),
        ("(a)\\1", "\\1", 4),
        ("\\k<n>", "\\k", 1),
        ("(?P=n)", "(?P=", 1),
        ("x(", "(", 2),
        ("x)", ")", 2),
        ("[a", "[", 1),
        ("[z-a]", "z-a", 2),
        ("[a-\\d]", "a-\\d", 2),
        ("[[:nope:]]", "[:nope:]", 2),
        ("[\\b]", "\\b", 2),
        ("*a", "*", 1),
        ("a|+", "+", 3),
        ("{1}", "{", 1),
        ("a{2", "{2", 2),
        ("a{,3}", "{,3}", 2),
        ("a{3,2}", "{3,2}", 2),
        ("a{1001}", "{1001}", 2),
        ("\\", "\\", 1),
        ("\\Z", "\\Z", 1),
        ("\\<a", "\\<", 1),
        ("\\q", "\\q", 1),
        ("\\p{Nope}", "\\p{Nope}", 1),
        ("\\x{110000}", "\\x{110000}", 1),
        ("(?-u:a)", "(?-u:", 1),
        ("(?y)a", "(?y)", 1),
        ("a\\nb", "\\n", 2),
        ("a\nb", "\\n", 2),
        ("((a{1000}){1000}){1000}", "((a{1000}){1000}){1000}", 1),
    ],
)
def test_what_is_not_in_the_dialect_is_named_with_its_position(pattern: str, construct: str, position: int) -> None:
    with pytest.raises(RegexError) as caught:
        parse_regex(pattern)
    assert (caught.value.construct, caught.value.position) == (construct, position)
    assert f"`{construct}` at position {position} " in str(caught.value)


def test_nesting_is_bounded() -> None:
    for pattern in ("(" * 200 + ")" * 200, "[" * 200 + "]" * 200):
        with pytest.raises(RegexError):
            parse_regex(pattern)


@pytest.mark.parametrize("use_re2", [True, False])
@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (r"\bécole\b", "l'école est", True),
        (r"\bcole\b", "l'école est", False),
        (r"\w+é\W", "caféé ", True),
        (r"^\d+$", "٣4", True),
        (r"\D", "123", False),
        ("[^\\W_]", "_", False),
        ("[a-z&&[^aeiou]]", "e", False),
        ("[a-z--[b-z]]", "b", False),
        ("[a-c~~b-d]", "b", False),
        ("[[:^alpha:]]", "a", False),
        (r"\p{Greek}", "Σ", True),
        (r"\p{^Lu}", "A", False),
        (r"\P{Lu}", "A", False),
        (r"\p{Uppercase_Letter}", "É", True),
        (r"\u00e9\x41\x{1F600}\U0001F600", "éA😀😀", True),
        ("(?i)straße", "STRAßE", True),
        ("(?i:a)b", "AB", False),
        ("(?i)k", "\u212a", True),
        ("(?x) a b # comment", "ab", True),
        ("(?P<name>a)(?<other>b)", "ab", True),
        ("a{2}", "aa", True),
        ("a{2,3}b", "ab", False),
        ("a**", "", True),
        ("(a|b)*?c", "abac", True),
        (r"\Aa\z", "a", True),
        (r"\Ba", "ba", True),
        ("()", "", True),
        (r"\-\/\"", '-/"', True),
        ("a\r", "a\r", True),
        (r"[\s\S]", "x", True),
        (r"\p{Cn}", "\u0378", True),
        (r"\p{Cc}", "\x07", True),
    ],
)
def test_a_pattern_matches_a_line(pattern: str, line: str, expected: bool, use_re2: bool) -> None:
    matcher = LineMatcher(parse_regex(pattern), use_re2)
    # A line ending of its own keeps a carriage return in the pattern apart from one before a newline.
    found = list(matcher.matching_lines(f"{line}\r\n".encode()))
    assert bool(found) is expected


def test_a_literal_has_no_operators() -> None:
    automaton = LineAutomaton(parse_literal("a.b(", ignore_case=True))
    assert automaton.matches("xA.B(")
    assert not automaton.matches("axb(")
    with pytest.raises(RegexError):
        parse_literal("a\nb")


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|a)*x$", r"(a|aa)+$", r"(.*)*x$", r"(\w*\s?)*!$", r"^(([a-z])+.)+[A-Z]$"]
)
@pytest.mark.parametrize("use_re2", [True, False])
def test_no_pattern_hangs_on_a_long_line(pattern: str, use_re2: bool) -> None:
    matcher = LineMatcher(parse_regex(pattern), use_re2)
    line = b"a" * 1_000_000 + b"!?"
    assert list(matcher.matching_lines(line)) == []


def test_ripgrep_is_asked_for_more_than_is_meant() -> None:
    assert to_ripgrep(parse_regex("ab")) == "ab"
    assert "x80" in to_ripgrep(parse_regex("é"))
    assert r"\b" not in to_ripgrep(parse_regex(r"é\bx"))
