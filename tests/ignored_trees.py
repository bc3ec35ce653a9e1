"""Trees with ignore files and nested repositories: how they are generated, laid on a disk, and judged by git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import anyio
from attrs import frozen
from hypothesis import strategies as st

from handrail.adapters.local.files import LocalFiles
from handrail.core.walking import TreeWalk

__all__ = [
    "DIRECTORIES",
    "PATHS",
    "RULE_FILES",
    "TREES",
    "IgnoredTree",
    "by_tree",
    "git",
    "judged_by_git",
    "lay",
    "left_by_walk",
    "make_repository",
]

NAMES = st.sampled_from(
    ["a", "b", "ab", "a.b", "c.log", "foo", "bar.log", "build", "é", "x y", "A", "[a]", "a*", "-", " "]
)
ATOMS = st.sampled_from(
    [
        *["a", "b", "ab", "foo", "bar", "build", "*", "**", "?", "*.log", "[ab]", "[!a]", "[^b]*", "[a-c]", ".", "é"],
        *["*o*", "a*b", "a**", "**b", "f?o", "*.*", "[A-z]", "[[:alpha:]]", "[]-a]", "[a\\]]", "[", "\\", "\\a", "\\*"],
        *["x y", "b\\ "],
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
DIRECTORIES = st.sampled_from(["", "a", "foo", "a/b", "build", "ab"])


@frozen
class IgnoredTree:
    """What a tree holds."""

    paths: set[str]
    """Files; those whose directory is a file are left out."""
    rules: dict[str, str]
    """Ignore files by directory; those without such a directory are left out."""
    repositories: dict[str, str]
    """Tops of repositories, with their ``info/exclude``."""


TREES = st.builds(
    IgnoredTree,
    st.sets(PATHS, min_size=1, max_size=14),
    st.dictionaries(DIRECTORIES, RULE_FILES, min_size=1, max_size=3),
    st.one_of(
        *[st.just(dict[str, str]())] * 2,
        st.dictionaries(DIRECTORIES, st.one_of(st.just(""), RULE_FILES), min_size=1, max_size=2),
    ),
)


def lay(root: Path, tree: IgnoredTree, ignore_file: str = ".gitignore") -> None:
    """Make the files of a tree."""
    root.mkdir()
    for path in sorted(tree.paths):
        target = root / path
        if any(parent.is_file() for parent in target.parents) or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")
    for directory, text in tree.rules.items():
        if (root / directory).is_dir():
            (root / directory / ignore_file).write_bytes(text.encode())
    for directory, exclude in tree.repositories.items():
        if (root / directory).is_dir():
            make_repository(root / directory, exclude)


def make_repository(top: Path, exclude: str) -> None:
    """What ``git init`` makes, as far as git needs it, without a process."""
    for name in ("objects", "refs", "info"):
        (top / ".git" / name).mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (top / ".git" / "info" / "exclude").write_bytes(exclude.encode())


def git(root: Path, home: Path, *arguments: str) -> bytes:
    """Run git without any configuration but that of the repository."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=root, env=env, check=True, capture_output=True).stdout


def judged_by_git(top: Path, home: Path, *rules: str) -> set[str]:
    """The files that git leaves in a repository and in the repositories inside that it does not ignore.

    Args:
        top: Top of the repository.
        home: An empty home directory.
        rules: Options of ``ls-files`` that say which ignore files count.
    """
    left: set[str] = set()
    for name in git(top, home, "ls-files", "-co", "-z", *rules).split(b"\0"):
        path = os.fsdecode(name)
        if path.endswith("/"):
            left |= {path + below for below in judged_by_git(top / path, home, *rules)}
        elif path:
            left.add(path)
    return left


def left_by_walk(root: Path) -> list[str]:
    """The files that our walk leaves, in its order."""

    async def collect() -> list[str]:
        walk = TreeWalk(LocalFiles(), str(root), files_only=True)
        return [path async for step in walk.rounds() for path in walk.relative(step.paths)]

    return anyio.run(collect)


def by_tree(paths: Iterable[str]) -> dict[str, set[str]]:
    """Sort paths by their first name."""
    trees: dict[str, set[str]] = {}
    for path in paths:
        trees.setdefault(path.partition("/")[0], set()).add(path)
    return trees
