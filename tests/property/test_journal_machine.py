"""Undo after any sequence of edits, writes and commands gives back the exact tree, in memory and on disk."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from handrail.adapters.journal import JournaledEnvironment, UndoConflict, journal
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import Directory, Symlink, memory_environment
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import coding_tools
from handrail.ports.environment import Environment

NAMES = ["a.txt", "b.txt", "dir/a.txt", "dir/deep/c.txt", "other/d.txt"]
DIRECTORIES = ["dir", "dir/deep", "other"]

LINKS = ["link", "dir/link", "other/a.txt", "a.txt"]
TARGETS = ["a.txt", "dir", "../dir", "missing/x", "link", "."]
MODES = ["000", "200", "400", "500", "600", "644", "755"]

Tree = dict[str, tuple[int, bytes | str | None]]
"""By path: the mode, and the content of a file, the target of a link."""

names = st.sampled_from(NAMES)
directories = st.sampled_from(DIRECTORIES)
bodies = st.text("abc\n", max_size=12)
commands = st.one_of(
    st.builds("mkdir -p $(dirname {0}); printf '%s' '{1}' > {0}".format, names, st.text("xyz", max_size=4)),
    st.builds("printf '%s' '{1}' >> {0}".format, names, st.text("xyz", min_size=1, max_size=4)),
    st.builds("rm -f {0}".format, names),
    st.builds("mkdir -p {0}".format, directories),
    st.builds("rm -rf {0}".format, directories),
    st.builds("mv {0} {1}".format, names, names),
    st.builds("cp {0} {1}".format, names, names),
    st.builds("cp -r {0} {1}".format, directories, directories),
    st.builds("mkdir -p $(dirname {0}); ln -s {1} {0}".format, st.sampled_from(LINKS), st.sampled_from(TARGETS)),
    st.builds("ln -sfn {1} {0}".format, st.sampled_from(LINKS), st.sampled_from(TARGETS)),
    st.builds("rm -rf {0}; ln -s {1} {0}".format, directories, st.sampled_from(TARGETS)),
    st.builds("rm -f {0}".format, st.sampled_from(LINKS)),
    st.builds("mv {0} {1}".format, directories, st.sampled_from([*DIRECTORIES, "new", "link"])),
    st.builds("mv {0} {1}".format, st.sampled_from(LINKS), st.sampled_from([*LINKS, *DIRECTORIES])),
    st.builds("chmod {1} {0}".format, names, st.sampled_from(MODES)),
    st.builds("chmod {1} {0}".format, directories, st.sampled_from(MODES)),
)


class JournalMachine(RuleBasedStateMachine):
    """Makes changes, undoes and redoes them, and compares the tree with what it was."""

    portal: BlockingPortal
    env: JournaledEnvironment
    root: str

    def __init__(self) -> None:
        super().__init__()
        self._starting = start_blocking_portal()
        self.portal = self._starting.__enter__()
        self.env = self.portal.call(self._begin)
        self.toolbox = Toolbox(self.env, coding_tools())
        self.calls = 0
        self.points: list[tuple[int, Tree]] = []

    async def _begin(self) -> JournaledEnvironment:
        env, self.root = self.make()
        return journal(env)

    def make(self) -> tuple[Environment, str]:
        raise NotImplementedError

    def teardown(self) -> None:
        self.portal.call(self.env.aclose)
        self._starting.__exit__(None, None, None)

    @initialize(name=names, body=bodies)
    def begin(self, name: str, body: str) -> None:
        self.call("write", {"path": name, "content": body})
        self.mark()

    @rule(name=names, body=bodies)
    def write(self, name: str, body: str) -> None:
        self.undoable("write", {"path": name, "content": body})

    @rule(name=names, old=st.sampled_from("abcxyz"), new=bodies)
    def edit(self, name: str, old: str, new: str) -> None:
        self.undoable("edit", {"path": name, "edits": [{"oldText": old, "newText": new}]})

    @rule(command=commands)
    def run(self, command: str) -> None:
        self.undoable("bash", {"command": command})

    @rule(first=commands, second=commands)
    def run_two(self, first: str, second: str) -> None:
        self.undoable("bash", {"command": f"{first}; {second}"})

    @rule()
    def mark(self) -> None:
        self.points.append((self.env.history.point(), self.tree()))

    @rule(data=st.data())
    def undo_since(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.points) - 1))
        point, tree = self.points[index]
        del self.points[index + 1 :]
        before = self.tree()
        undone = self.portal.call(self.env.history.undo_since, point)
        assert undone.not_restored == {}
        assert self.tree() == tree
        if undone.paths:
            self.portal.call(self.env.history.redo)
            assert self.tree() == before
            self.portal.call(self.env.history.undo_since, point)
            assert self.tree() == tree

    @rule(name=names, body=st.text("somebody", min_size=1, max_size=8))
    def somebody_else_interferes(self, name: str, body: str) -> None:
        """A change from outside is refused, with nothing done, and taken back here."""
        call_id = self.call("write", {"path": name, "content": "mine"})
        if not self.env.history.changes(call_id):
            return
        path = self.env.history.changes(call_id)[-1].path  # through a link, perhaps
        expected = self.tree()
        self.portal.call(self.outside_write, path, f"not mine: {body}".encode())
        with pytest.raises(UndoConflict) as caught:
            self.portal.call(self.env.history.undo, call_id)
        assert path in caught.value.paths
        assert "+not mine" in caught.value.diff
        self.portal.call(self.outside_write, path, b"mine")
        assert self.tree() == expected

    # ------------------------------------------------------------ helpers

    def undoable(self, tool: str, arguments: dict[str, object]) -> None:
        """Make a call; half of the time see that undoing it alone gives back the tree before."""
        before = self.tree()
        call_id = self.call(tool, arguments)
        if self.calls % 2 and self.env.history.changes(call_id):
            undone = self.portal.call(self.env.history.undo, call_id)
            assert undone.not_restored == {}
            assert self.tree() == before
            self.portal.call(self.env.history.redo)

    def call(self, tool: str, arguments: dict[str, object]) -> str:
        self.calls += 1
        call_id = f"c{self.calls}"

        async def work() -> None:
            await self.toolbox.call(tool, arguments, call_id=call_id)

        self.portal.call(work)
        return call_id

    def tree(self) -> Tree:
        return self.portal.call(self._tree)

    async def _tree(self) -> Tree:
        """Look at everything below the root, whatever modes forbid."""
        raise NotImplementedError

    async def outside_write(self, path: str, data: bytes) -> None:
        raise NotImplementedError


class MemoryJournalMachine(JournalMachine):
    def make(self) -> tuple[Environment, str]:
        self.inner = memory_environment()
        return self.inner, "/project"

    async def _tree(self) -> Tree:
        files = self.inner.files
        found: Tree = {}
        for path, entry in files.tree(self.root).items():
            for parent in PurePosixPath(path).parents:
                if parent.is_relative_to(self.root) and str(parent) != self.root:
                    found[str(parent)] = (files.mode(str(parent)), None)
            match entry:
                case Symlink():
                    found[path] = (0, entry.target)
                case Directory():
                    found[path] = (files.mode(path), None)
                case _:
                    found[path] = (files.mode(path), files.read_bytes(path))
        return found

    async def outside_write(self, path: str, data: bytes) -> None:
        await self.inner.files.write(path, data)


class LocalJournalMachine(JournalMachine):
    def make(self) -> tuple[Environment, str]:
        self.directory = tempfile.mkdtemp()
        return local_environment(self.directory), os.path.realpath(self.directory)

    async def _tree(self) -> Tree:
        return await anyio.to_thread.run_sync(lambda: dict(_entries(self.root)))

    async def outside_write(self, path: str, data: bytes) -> None:
        await anyio.to_thread.run_sync(Path(path).write_bytes, data)

    def teardown(self) -> None:
        super().teardown()
        subprocess.run(["chmod", "-R", "u+rwX", self.directory], check=True)
        shutil.rmtree(self.directory)


def _entries(directory: str) -> Iterator[tuple[str, tuple[int, bytes | str | None]]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
            if entry.is_symlink():
                yield entry.path, (0, os.readlink(entry.path))
                continue
            if mode & 0o500 != 0o500:
                os.chmod(entry.path, mode | 0o500)
            if entry.is_dir():
                yield entry.path, (mode, None)
                yield from _entries(entry.path)
            else:
                yield entry.path, (mode, Path(entry.path).read_bytes())
            if mode & 0o500 != 0o500:
                os.chmod(entry.path, mode)


few = settings(max_examples=10, stateful_step_count=15, deadline=None)

TestJournalInMemory = MemoryJournalMachine.TestCase
TestJournalInMemory.settings = few

TestJournalOnDisk = LocalJournalMachine.TestCase
TestJournalOnDisk.settings = few
