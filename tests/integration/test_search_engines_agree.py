"""One answer, whatever finds it: ripgrep in front or not, on a real disk or in memory."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import Symlink, memory_environment
from handrail.core.grepping import Engine
from handrail.core.toolbox import Toolbox
from handrail.core.tools.find import find_tool
from handrail.core.tools.grep import GrepOptions, grep_tool
from handrail.ports.environment import Environment

pytestmark = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

LINES = [
    "hit",
    "a hit here",
    "HIT",
    "miss",
    "",
    "é hit",
    "café",
    "x\r",
    "hit\r",
    "foo bar",
    "\tfoo",
    "K\u212a",
    "1 ٣",
    "hit " * 150,
]
TEXTS = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)
CONTENTS = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: f"{text}\n".encode()),
    TEXTS.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    TEXTS.map(lambda text: text.encode("utf-16")),
    TEXTS.map(lambda text: text.encode("utf-16-be")),
    TEXTS.map(lambda text: text.encode("latin-1", "replace")),
    TEXTS.map(lambda text: text.encode("cp1251", "replace")),
    TEXTS.map(lambda text: text.encode("utf-32")),
    TEXTS.map(lambda text: text.encode() + b"\0\n" + text.encode()),
)
NAMES = st.sampled_from(
    ["a", "b.txt", "c.log", "sub", "deep", ".hidden", "x y", "é", "new\nline", "-dash", "a.b", "node_modules"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
RULES = st.sampled_from(["*.log\n", "node_modules/\n", "sub/*\n!sub/a\n", "/a\n", "**/deep\n", "b.*\n!b.txt\n"])
TREES = st.tuples(st.dictionaries(PATHS, CONTENTS, max_size=8), st.dictionaries(st.sampled_from(["", "sub"]), RULES))
PATTERNS = st.sampled_from(
    [
        "hit",
        "^hit$",
        "HIT",
        r"\bhit\b",
        "caf.",
        "é",
        "[^a-z]hit",
        r"\w+ bar",
        "",
        "x*",
        "x",
        r"hit\s*$",
        "^$",
        "(?i)hit",
        "k",
        r"\d",
        r"^\s+foo",
        "nothing",
        r"\bé",
        r"\Bit",
        "h.t",
        r"\p{Lu}",
        r"caf\W*$",
        ".",
    ]
)
ARGUMENTS = st.fixed_dictionaries(
    {"pattern": PATTERNS},
    optional={
        "glob": st.sampled_from(["*.txt", "!*.txt", "sub/**", "!sub", "**/a", "*.{log,txt}", "x*", "/a"]),
        "ignoreCase": st.booleans(),
        "literal": st.booleans(),
        "context": st.integers(0, 3),
        "limit": st.integers(1, 8),
    },
)


def laid(tree: tuple[dict[str, bytes], dict[str, str]]) -> dict[str, bytes]:
    """The files of a tree without those whose directory is a file."""
    contents, rules = tree
    files: dict[str, bytes] = {}
    for path in sorted(contents):
        parents = {"/".join(path.split("/")[:depth]) for depth in range(1, path.count("/") + 1)}
        if not parents & files.keys() and not any(other.startswith(f"{path}/") for other in files):
            files[path] = contents[path]
    for directory, text in rules.items():
        if not directory or any(path.startswith(f"{directory}/") for path in files):
            files[f"{directory}/.gitignore".lstrip("/")] = text.encode()
    return files


QUERIES_PER_TREE = 8


def grepping(env: Environment, engine: Engine) -> Toolbox:
    return Toolbox(env, [grep_tool(GrepOptions(engine=engine))])


@settings(max_examples=max(5, settings().max_examples * 5 // QUERIES_PER_TREE))
@given(TREES, st.lists(ARGUMENTS, min_size=QUERIES_PER_TREE, max_size=QUERIES_PER_TREE))
def test_grep_answers_alike(tree: tuple[dict[str, bytes], dict[str, str]], queries: list[dict[str, Any]]) -> None:
    files = laid(tree)

    async def compare(root: Path) -> None:
        async with local_environment(root) as local, memory_environment(dict(files)) as memory:
            with_ripgrep, scanning = grepping(local, "ripgrep"), grepping(local, "scan")
            in_memory = grepping(memory, "auto")
            for arguments in queries:
                expected = (await scanning.call("grep", arguments)).to_dict()
                assert (await with_ripgrep.call("grep", arguments)).to_dict() == expected, arguments
                assert (await in_memory.call("grep", arguments)).to_dict() == expected, arguments

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        anyio.run(compare, root)


@given(
    TREES,
    st.sampled_from(["*", "a", "*.txt", "sub/**", "**/a", "**/", "[ab]*", "sub/*", "*e*", "{a,sub}", ".*"]),
    st.integers(1, 12),
)
def test_find_answers_alike(tree: tuple[dict[str, bytes], dict[str, str]], pattern: str, limit: int) -> None:
    files = laid(tree)

    async def answers(root: Path) -> list[dict[str, Any]]:
        async with local_environment(root) as local, memory_environment({**files, "loop": Symlink(".")}) as memory:
            arguments = {"pattern": pattern, "limit": limit}
            return [(await Toolbox(env, [find_tool()]).call("find", arguments)).to_dict() for env in (local, memory)]

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for path, data in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        (root / "loop").symlink_to(".")
        on_disk, in_memory = anyio.run(answers, root)
    assert on_disk == in_memory
