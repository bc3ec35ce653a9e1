"""A process that is killed in the middle of its work: the next one can undo all that is on disk."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.adapters.journal import MemoryJournal, journal
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import memory_environment
from handrail.ports.context import CallContext, current_call
from handrail.ports.errors import PortError

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]

TESTS = Path(__file__).resolve().parents[1]


def tree(directory: Path) -> dict[str, object]:
    """All that is in a directory but what a write that was killed had not put in its place yet."""
    found: dict[str, object] = {}
    for path in sorted(directory.rglob("*")):
        if path.name.startswith(".handrail-"):
            continue
        if path.is_symlink():
            found[str(path)] = os.readlink(path)
        else:
            mode = stat.S_IMODE(path.stat().st_mode)
            found[str(path)] = (mode, path.read_bytes() if path.is_file() else None)
    return found


def kill_after(lines: int, work: Path, store: Path, seed: int) -> None:
    """Let a process change files, and kill it when it has printed some lines."""
    command = [sys.executable, "-m", "integration.journal_writer", str(work), str(store), str(seed)]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.stdout.read()  # what it still printed before the kill
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("seed", range(6))
async def test_everything_on_disk_can_be_undone_after_a_kill(seed: int, tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "journal"
    (work / "d").mkdir(parents=True)
    (work / "a").write_text("at first\n")
    (work / "d" / "b").write_bytes(b"b" * 200_000)
    before = tree(work)
    choose = random.Random(seed)
    for part in range(2):  # the second one goes on with a journal that was cut off
        kill_after(choose.randrange(1, 120), work, store, seed * 10 + part)
    killed = tree(work)
    async with journal(local_environment(work), store, roots=()) as env:
        undone = await env.history.undo_since(0)
        assert undone.not_restored == {}
        assert tree(work) == before
        if undone.paths:
            await env.history.redo()
            assert tree(work) == killed


async def test_what_was_announced_and_never_made_is_no_part_of_the_history() -> None:
    contents: dict[str, bytes] = {}
    store = MemoryJournal(contents=contents)
    async with journal(memory_environment({"/project/a": "original\n"}), store, roots=()) as env:
        await env.files.write("/project/a", b"one\n")
        await env.files.write("/project/a", b"two\n")
    announced = MemoryJournal(records=list(store.records())[:-1], contents=contents)
    async with journal(memory_environment({"/project/a": "one\n"}), announced, roots=()) as env:
        await env.history.undo_since(0)
        assert (await env.files.read("/project/a")).data == b"original\n"
        await env.history.redo()
        assert (await env.files.read("/project/a")).data == b"one\n"


async def test_the_same_change_that_was_made_before_stays() -> None:
    contents: dict[str, bytes] = {}
    store = MemoryJournal(contents=contents)
    reset = current_call.set(CallContext("call", "tool", lambda: None))
    try:
        async with journal(memory_environment({"/project/a": "one\n"}), store, roots=()) as env:
            for data in (b"two\n", b"one\n", b"two\n"):
                await env.files.write("/project/a", data)
    finally:
        current_call.reset(reset)
    announced = MemoryJournal(records=list(store.records())[:-1], contents=contents)
    async with journal(memory_environment({"/project/a": "one\n"}), announced, roots=()) as env:
        await env.history.undo_since(0)
        assert (await env.files.read("/project/a")).data == b"one\n"


async def test_a_link_that_could_not_be_made_is_not_announced() -> None:
    contents: dict[str, bytes] = {}
    store = MemoryJournal(contents=contents)
    async with journal(memory_environment({"/project/a": "original\n"}), store, roots=()) as env:
        with pytest.raises(PortError, match="already_exists"):
            await env.files.make_link("/project/a", "b")
    assert store.records() == ()
