"""Git is the judge of our ignore rules: on generated trees both leave the same files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ignored_trees import RULE_FILES, TREES, IgnoredTree, judged_by_git, lay, left_by_walk, make_repository

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

TREES_PER_REPOSITORY = 20
"""Git is asked once for this many trees, each in its own directory."""


@pytest.fixture(scope="module")
def git_home() -> Iterator[Path]:
    """A home without user configuration, so that only the repository's rules hold."""
    with tempfile.TemporaryDirectory() as home:
        yield Path(home)


@settings(max_examples=max(5, settings().max_examples // 4))
@given(
    st.lists(TREES, min_size=TREES_PER_REPOSITORY, max_size=TREES_PER_REPOSITORY),
    st.one_of(*[st.just("")] * 3, RULE_FILES),
)
def test_both_leave_the_same_files(git_home: Path, trees: list[IgnoredTree], exclude: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        make_repository(root, exclude)
        for number, tree in enumerate(trees):
            lay(root / f"t{number}", tree)
        found = left_by_walk(root)
        assert set(found) == judged_by_git(root, git_home, "--exclude-standard")
        assert found == sorted(found, key=lambda path: path.split("/"))
