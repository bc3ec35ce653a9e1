"""Globs: what they match, what is refused, and that none of them takes long."""

from __future__ import annotations

import pytest

from handrail.core.globs import GlobError, parse_glob


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.ts", "a.ts", True),
        ("*.ts", "src/deep/a.ts", True),
        ("src/*.ts", "src/a.ts", True),
        ("src/*.ts", "src/deep/a.ts", False),
        ("src/*.ts", "pkg/src/a.ts", False),
        ("src/**/*.ts", "src/a.ts", True),
        ("src/**/*.ts", "src/b/c/a.ts", True),
        ("**/a/**", "x/a/y/z", True),
        ("**/a/**", "x/a", False),
        ("**", "a/b", True),
        ("***", "a/b", True),
        ("a**b", "axyb", True),
        ("a**b", "a/b", False),
        ("/a.ts", "a.ts", True),
        ("/a.ts", "src/a.ts", False),
        ("./a.ts", "src/a.ts", True),
        ("src//./a.ts", "src/a.ts", True),
        ("[!a]*", "b", True),
        ("[^a]*", "a", False),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("[z-a]", "m", False),
        ("[\\]]", "]", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("a\\\\b", "a\\b", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{src,lib}/*.{c,h}", "lib/x.h", True),
        ("{a,{b,c}d}", "cd", True),
        ("{,x}y", "y", True),
        ("{a/b,c}/d", "a/b/d", True),
        ("a}", "a}", True),
        ("a,b", "a,b", True),
        ("[{]", "{", True),
        ("?", "é", True),
        ("new?line", "new\nline", True),
        ("", "a", False),
        ("a/../b", "b", False),
    ],
)
def test_a_glob_matches(pattern: str, path: str, expected: bool) -> None:
    assert parse_glob(pattern).matches_path(path) is expected


def test_case_is_ignored_where_asked() -> None:
    assert parse_glob("*É.md", ignore_case=True).matches_path("caFé.MD")
    assert not parse_glob("*.md").matches_path("A.MD")


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a[bc", 1), ("*.{ts", 2), ("a\\", 1), ("{" + "a,b}{" * 10 + "c}", None), ("../x", 0), ("a{[}", 2)],
)
def test_what_is_no_glob_is_refused_with_its_position(pattern: str, position: int | None) -> None:
    with pytest.raises(GlobError) as caught:
        parse_glob(pattern)
    assert position is None or caught.value.position == position


def test_negation_is_a_choice_of_the_caller() -> None:
    assert parse_glob("!a", negatable=True).negated
    assert parse_glob("!a").matches_path("!a")
    assert not parse_glob("!", negatable=True).negated


def test_a_final_slash_asks_for_directories() -> None:
    assert parse_glob("src/").directory_only
    assert not parse_glob("src").directory_only


def test_the_state_tells_where_nothing_can_match_any_more() -> None:
    glob = parse_glob("src/**/*.ts")
    assert glob.enter(glob.start(), "docs") == ()
    assert glob.enter(glob.start(), "src") != ()


def test_many_stars_take_no_long_time() -> None:
    """With backtracking this would take longer than the universe has."""
    assert not parse_glob("*a" * 60 + "b").matches_path("a" * 250)
    assert not parse_glob("**/a/" * 30 + "b").matches_path("a/" * 400 + "c")
