"""What a call costs, counted in port calls: a guard of speed that does not depend on the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve

from handrail import CommandPort, FilePort, Toolbox, all_tools, local_environment

pytestmark = pytest.mark.anyio


class Counted:
    """Stands before a port and counts the calls of each method."""

    def __init__(self, port: object, counts: Counter[str]) -> None:
        self._port = port
        self._counts = counts

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._port, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self._counts[name] += 1
            return method(*arguments, **options)

        return counted


async def counts_of(directory: Path, *calls: tuple[str, dict[str, Any]]) -> Counter[str]:
    """The port calls of the last of some tool calls."""
    counts: Counter[str] = Counter()
    async with local_environment(directory) as env:
        files, commands = Counted(env.files, counts), Counted(env.commands, counts)
        counted = evolve(env, files=cast(FilePort, files), commands=cast(CommandPort, commands))
        async with Toolbox(counted, all_tools()) as toolbox:
            for tool, arguments in calls:
                counts.clear()
                result = await toolbox.call(tool, arguments)
                assert not result.is_error, result.text
    return counts


async def test_a_small_file_is_read_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert await counts_of(tmp_path, ("read", {"path": "a.txt"})) == {"read": 1}


async def test_a_file_is_written_in_one_step(tmp_path: Path) -> None:
    counts = await counts_of(tmp_path, ("write", {"path": "a.txt", "content": "x"}))
    assert counts == {"canonical_path": 1, "write": 1}


async def test_an_edit_reads_once_and_writes_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    counts = await counts_of(tmp_path, ("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}))
    assert (counts["read"], counts["write"], counts["read_chunks"], counts["scan"]) == (1, 1, 0, 0)


async def test_a_directory_is_listed_without_a_stat_per_entry(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"file{number}").touch()
    counts = await counts_of(tmp_path, ("ls", {}))
    assert counts["list_dir"] + counts["list_dirs"] == 1
    assert counts["stat"] <= 1


async def test_a_large_file_is_counted_once(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"some words in a line\n" * 200_000)
    deep = ("read", {"path": "large.txt", "offset": 150_000})
    first, again = await counts_of(tmp_path, deep), await counts_of(tmp_path, deep, deep)
    assert first["scan"] == 1
    assert again["scan"] == 0


@pytest.mark.parametrize("tool", ["grep", "find"])
async def test_a_search_of_a_small_tree_starts_at_most_one_process(tmp_path: Path, tool: str) -> None:
    for number in range(60):
        (tmp_path / f"d{number % 5}").mkdir(exist_ok=True)
        (tmp_path / f"d{number % 5}" / f"f{number}.py").write_text("text\n")
    counts = await counts_of(tmp_path, (tool, {"pattern": "text" if tool == "grep" else "*.py"}))
    assert counts["run"] <= 1  # the version of ripgrep, asked once
    assert sum(counts.values()) <= 12


async def test_a_search_of_a_large_tree_starts_few_processes(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"f{number}.py").write_text("text\n")
    counts = await counts_of(tmp_path, ("grep", {"pattern": "never to be found"}))
    assert counts["run"] <= 2
