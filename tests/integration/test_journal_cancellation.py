"""A journaled change that is cancelled, at whatever point, is in the history if it happened."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest
from attrs import define, evolve

from handrail.adapters.journal import journal
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import memory_environment
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import coding_tools
from handrail.ports.environment import Environment
from handrail.ports.files import FilePort

pytestmark = pytest.mark.anyio

Moment = Literal["before", "after", "after, unnoticed"]
Tree = dict[str, tuple[str, int, bytes | str]]


@define
class Interruption:
    """Cancels a scope at the n-th operation of a port.

    Attributes:
        scope: What to cancel.
        number: The operation, counted from 1; 0 only counts.
        moment: Before it has its effect; when it has, instead of an answer; or when it has, with its answer, as an
            operation does that cannot be interrupted.
        seen: How many operations there were.
    """

    scope: anyio.CancelScope
    number: int
    moment: Moment
    seen: int = 0


class Interrupted:
    """A file port in front of another one."""

    def __init__(self, inner: FilePort) -> None:
        self._inner = inner
        self.interruption: Interruption | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def interrupted(*args: Any, **named: Any) -> Any:
            now = self.interruption
            if now is None:
                return await method(*args, **named)
            now.seen += 1
            if now.seen == now.number and now.moment == "before":
                now.scope.cancel()
            result = await method(*args, **named)
            if now.seen == now.number and now.moment != "before":
                now.scope.cancel()
                if now.moment == "after":
                    await anyio.lowlevel.checkpoint()
            return result

        return interrupted


async def tree(files: FilePort, directory: str) -> Tree:
    found: Tree = {}
    for entry in await files.list_dir(directory):
        path = f"{directory}/{entry.name}"
        if entry.kind == "symlink":
            found[path] = (entry.kind, 0, await files.read_link(path))
            continue
        mode = (await files.stat(path)).mode
        found[path] = (entry.kind, mode, (await files.read(path)).data if entry.kind == "file" else b"")
        if entry.kind == "directory":
            found |= await tree(files, path)
    return found


Change = Callable[[Environment, str], Awaitable[object]]


async def write_by_tool(env: Environment, root: str) -> object:
    return await Toolbox(env, coding_tools()).call("write", {"path": "new/deep/c.txt", "content": "c"})


async def edit_by_tool(env: Environment, root: str) -> object:
    edits = [{"oldText": "one", "newText": "two"}]
    return await Toolbox(env, coding_tools()).call("edit", {"path": "a.txt", "edits": edits})


CHANGES: Mapping[str, Change] = {
    "create": lambda env, root: env.files.write(f"{root}/c.txt", b"new"),
    "replace": lambda env, root: env.files.write(f"{root}/a.txt", b"new"),
    "append": lambda env, root: env.files.append(f"{root}/a.txt", b"more"),
    "make_dirs": lambda env, root: env.files.make_dirs(f"{root}/x/y/z"),
    "remove": lambda env, root: env.files.remove(f"{root}/a.txt"),
    "rename": lambda env, root: env.files.rename(f"{root}/d", f"{root}/e"),
    "make_link": lambda env, root: env.files.make_link(f"{root}/l", "a.txt"),
    "change_mode": lambda env, root: env.files.change_mode(f"{root}/d", 0o700),
    "write_by_tool": write_by_tool,
    "edit_by_tool": edit_by_tool,
}
MOMENTS: tuple[Moment, ...] = ("before", "after", "after, unnoticed")


async def prepared(place: Path | None) -> tuple[Environment, Interrupted, str]:
    inner: Environment = memory_environment() if place is None else local_environment(place)
    root = inner.cwd
    await inner.files.make_dirs(f"{root}/d/deep")
    await inner.files.write(f"{root}/a.txt", b"one\n")
    await inner.files.write(f"{root}/d/deep/b.txt", b"b")
    await inner.files.make_link(f"{root}/d/link", "deep")
    files: Any = Interrupted(inner.files)
    return evolve(inner, files=files), files, root


async def interrupt(place: Path | None, change: Change, number: int, moment: Moment) -> int:
    """Make a change, cancelled somewhere, and take it back; returns how many operations there were."""
    inner, port, root = await prepared(place)
    async with journal(inner) as env:
        before = await tree(inner.files, root)
        with anyio.CancelScope() as scope:
            interruption = port.interruption = Interruption(scope, number, moment)
            await change(env, root)
        port.interruption = None
        after = await tree(inner.files, root)
        undone = await env.history.undo_since(0)
        assert undone.not_restored == {}
        assert await tree(inner.files, root) == before
        assert bool(undone.paths) == (after != before)
        if undone.paths:
            await env.history.redo()
            assert await tree(inner.files, root) == after
    return interruption.seen


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", list(CHANGES.values()), ids=list(CHANGES))
@pytest.mark.parametrize("kind", ["memory", "local"])
async def test_a_change_is_undone_wherever_it_was_cancelled(
    kind: str, change: Change, moment: Moment, tmp_path: Path
) -> None:
    def place(number: int) -> Path | None:
        directory = tmp_path / str(number)
        directory.mkdir()
        return directory if kind == "local" else None

    operations = await interrupt(place(0), change, 0, moment)
    assert operations > 1
    for number in range(1, operations + 1):
        await interrupt(place(number), change, number, moment)
