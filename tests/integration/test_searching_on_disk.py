"""Searching a real disk: pipes, links, unreadable places, odd names, and processes that end with the search."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import anyio
import psutil
import pytest

from handrail.adapters.local.environment import local_environment
from handrail.core.grepping import Engine
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.find import find_tool
from handrail.core.tools.grep import GrepOptions, grep_tool
from handrail.core.tools.ls import ls_tool

pytestmark = pytest.mark.anyio

ENGINES = [
    "scan",
    pytest.param("ripgrep", marks=pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")),
]


@pytest.mark.parametrize("engine", ENGINES)
async def test_pipes_links_and_odd_names(tmp_path: Path, engine: Engine) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "-dash").write_text("hit")
    (tmp_path / "new\nline").write_text("hit")
    (tmp_path / os.fsdecode(b"bad\xff")).write_text("hit")
    async with local_environment(tmp_path) as env:
        box = Toolbox(env, [grep_tool(GrepOptions(engine=engine)), find_tool(), ls_tool()])
        found = await box.call("grep", {"pattern": "hit"})
        assert found.text == "-dash:1: hit\nbad\\xff:1: hit\nnew\\x0aline:1: hit"
        again = await box.call("grep", {"pattern": "hit", "path": "bad\\xff"})
        assert again.text == "bad\\xff:1: hit"
        listed = await box.call("ls", {})
        assert listed.text.split("\n") == [
            "-dash",
            "bad\\xff",
            "broken (broken link)",
            "loop/",
            "new\\x0aline",
            "pipe",
            "self (broken link)",
        ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("engine", ENGINES)
async def test_unreadable_places_are_counted(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a").write_text("hit")
    (tmp_path / "secret").write_text("hit")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "shut").mkdir(mode=0)
    try:
        async with local_environment(tmp_path) as env:
            box = Toolbox(env, [grep_tool(GrepOptions(engine=engine))])
            assert (await box.call("grep", {"pattern": "hit"})).text == "a:1: hit\n\n[2 paths could not be read]"
    finally:
        (tmp_path / "shut").chmod(stat.S_IRWXU)


async def test_a_cancelled_search_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program on PATH stands in for a ripgrep that is busy: it says who it is, then works for ever."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "rg"
    pid_file = tmp_path / "pid"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) echo "ripgrep 13.0.0"; exit;; esac\necho $$ > {pid_file}.new\n'
        f"mv {pid_file}.new {pid_file}\nsleep 1000\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("hit")
    async with local_environment(tree) as env:
        box = Toolbox(env, [grep_tool(GrepOptions(engine="ripgrep"))])
        results: list[ToolResult] = []

        async def search() -> None:
            results.append(await box.call("grep", {"pattern": "hit"}, call_id="it"))

        async with anyio.create_task_group() as group:
            group.start_soon(search)
            while not pid_file.exists():
                await anyio.lowlevel.checkpoint()
            box.cancel("it")
        assert results[0].error_code == "aborted"
        assert not psutil.pid_exists(int(pid_file.read_text()))
