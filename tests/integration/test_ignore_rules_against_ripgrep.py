"""ripgrep is a second judge of our ignore rules; where it is of another opinion than we are, git decides.

Of ``.ignore`` and ``.rgignore`` git knows only the form: it reads them in the place of ``.gitignore``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from ignored_trees import (
    DIRECTORIES,
    PATHS,
    TREES,
    IgnoredTree,
    by_tree,
    judged_by_git,
    lay,
    left_by_walk,
    make_repository,
)

pytestmark = [
    pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed"),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

TREES_PER_RUN: Final = 20
PLAIN_RULES: Final = st.lists(
    st.sampled_from(["a", "!a", "foo", "!foo", "/b", "!/b", "*.log", "!*.log", "build/", "!build/", "ab", "*", "!*"]),
    min_size=1,
    max_size=3,
).map("\n".join)
"""Rules of which all have the same idea; what is asked is which file goes before which."""

OPTIONS: Final = ("--no-config", "--no-ignore-global", "--hidden", "--null")


def left_by_ripgrep(root: Path, *options: str) -> set[str]:
    """The files that ripgrep would search, without those of ``.git``."""
    done = subprocess.run(
        ["rg", "--files", *OPTIONS, *options], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    paths = [os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0") if path]
    return {path for path in paths if ".git" not in path.split("/")}


@pytest.mark.parametrize("ignore_file", [".gitignore", ".ignore", ".rgignore"])
def test_both_leave_the_same_files_where_git_agrees(ignore_file: str) -> None:
    judged = Counter[str]()

    @settings(max_examples=max(3, settings().max_examples // 36))
    @given(st.lists(TREES, min_size=TREES_PER_RUN, max_size=TREES_PER_RUN))
    def compare(trees: list[IgnoredTree]) -> None:
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as home:
            root = Path(directory)
            make_repository(root, "")
            for number, tree in enumerate(trees):
                lay(
                    root / f"t{number}",
                    tree if ignore_file == ".gitignore" else evolve(tree, repositories={}),
                    ignore_file,
                )
            ours, theirs = by_tree(left_by_walk(root)), by_tree(left_by_ripgrep(root))
            disputed = [name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
            judged.update(trees=len(trees), disputed=len(disputed))
            if disputed:
                by_git = by_tree(judged_by_git(root, Path(home), *rules_of(ignore_file)))
                assert {name: ours.get(name) for name in disputed} == {name: by_git.get(name) for name in disputed}

    compare()
    assert judged["disputed"] <= judged["trees"] // 10


def rules_of(ignore_file: str) -> list[str]:
    """How git is told which ignore files count."""
    return ["--exclude-standard"] if ignore_file == ".gitignore" else [f"--exclude-per-directory={ignore_file}"]


@settings(max_examples=max(5, settings().max_examples // 8))
@given(
    st.sets(PATHS, min_size=1, max_size=10),
    st.dictionaries(
        st.tuples(DIRECTORIES, st.sampled_from([".gitignore", ".ignore", ".rgignore"])),
        PLAIN_RULES,
        min_size=2,
        max_size=5,
    ),
)
def test_the_kinds_of_ignore_files_have_the_same_order(paths: set[str], rules: dict[tuple[str, str], str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "tree")
        lay(root, IgnoredTree(paths, {}, {"": "", "a": "", "foo": "*.log"}))
        for (place, name), text in rules.items():
            if (root / place).is_dir():
                (root / place / name).write_text(text)
        assert set(left_by_walk(root)) == left_by_ripgrep(root)
