"""Git is the judge of our ignore rules: on generated trees both leave the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.adapters.local.files import LocalFiles
from handrail.core.walking import TreeWalk

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TREES_PER_REPOSITORY = 20
"""Git is asked once for this many trees, each in its own directory."""

NAMES = st.sampled_from(
    ["a", "b", "ab", "a.b", "c.log", "foo", "bar.log", "build", "é", "x y", "A", "[a]", "a*", "-", " "]
)
ATOMS = st.sampled_from(
    [
        *[
            "a",
            "b",
            "ab",
            "foo",
            "bar",
            "build",
            "*",
            "**",
            "?",
            "*.log",
            "[ab]",
            "[!a]",
            "[^b]*",
            "[a-c]",
            ".",
            "é",
            "*o*",
            "a*b",
            "a**",
            "**b",
            "f?o",
            "*.*",
            "[A-z]",
            "[[:alpha:]]",
        ],
        *["[[:alpha:]]", "[]-a]", "[a\\]]", "[", "\\", "\\a", "\\*", "x y", "b\\ "],
    ]
)


def _line(negation: str, front: str, parts: list[str], back: str, tail: str) -> str:
    return negation + front + "/".join(parts) + back + tail


LINES = st.builds(
    _line,
    st.sampled_from(["", "", "", "!", "\\!", "#", "\\#"]),
    st.sampled_from(["", "", "", "/", "**/", "*/"]),
    st.lists(st.lists(ATOMS, min_size=1, max_size=2).map("".join), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "/", "/**", "/*"]),
    st.sampled_from(["", "", "", " ", "\\ ", "\r", "  "]),
)
RULE_FILES = st.lists(LINES, min_size=1, max_size=5).map("\n".join)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
TREES = st.tuples(
    st.sets(PATHS, min_size=1, max_size=14),
    st.dictionaries(st.sampled_from(["", "a", "foo", "a/b", "build", "ab"]), RULE_FILES, min_size=1, max_size=3),
)


@pytest.fixture(scope="module")
def git_home() -> Iterator[Path]:
    """A home without user configuration, so that only the repository's rules hold."""
    with tempfile.TemporaryDirectory() as home:
        yield Path(home)


def lay(root: Path, paths: set[str], rules: dict[str, str]) -> None:
    for path in sorted(paths):
        target = root / path
        if any(parent.is_file() for parent in target.parents) or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")
    for directory, text in rules.items():
        target = root / directory
        if target.is_dir():
            (target / ".gitignore").write_bytes(text.encode())


def git(root: Path, home: Path, *arguments: str) -> bytes:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=root, env=env, check=True, capture_output=True).stdout


def left_by_git(root: Path, home: Path) -> set[str]:
    listed = git(root, home, "ls-files", "-co", "--exclude-standard", "-z").split(b"\0")
    return {os.fsdecode(path) for path in listed if path and not path.endswith(b"/")}


def left_by_walk(root: Path) -> list[str]:
    async def collect() -> list[str]:
        walk = TreeWalk(LocalFiles(), str(root))
        return [walk.relative(entry.path) async for step in walk.rounds() for entry in step.entries]

    return anyio.run(collect)


@settings(max_examples=max(5, settings().max_examples // 4))
@given(st.lists(TREES, min_size=TREES_PER_REPOSITORY, max_size=TREES_PER_REPOSITORY))
def test_both_leave_the_same_files(git_home: Path, trees: list[tuple[set[str], dict[str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        git(root, git_home, "init", "-q")
        for number, (paths, rules) in enumerate(trees):
            (root / f"t{number}").mkdir()
            lay(root / f"t{number}", paths, rules)
        found = left_by_walk(root)
        assert set(found) == left_by_git(root, git_home)
        assert found == sorted(found, key=lambda path: path.split("/"))
