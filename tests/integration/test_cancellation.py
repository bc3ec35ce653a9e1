"""Cancelling a call before it starts, while it runs and after it is over: contract sections 12 and 13."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from attrs import frozen

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory.environment import memory_environment
from handrail.adapters.memory.process import Process
from handrail.core.events import CallEnded
from handrail.core.results import ToolResult
from handrail.core.toolbox import ABORTED, Call, Toolbox
from handrail.core.toolsets import all_tools
from handrail.ports.environment import Environment
from integration.pausing import EVERYTHING, Pause, paused
from integration.processes import new_marker, processes_with

pytestmark = pytest.mark.anyio

Way = Callable[[Toolbox, anyio.CancelScope], Coroutine[Any, Any, None]]
"""How a call comes to be cancelled."""

Act = Callable[[anyio.CancelScope], Awaitable[None]]

FILES: Final = {"a.txt": "one\ntwo\nthree\n", "d/b.txt": "two\n"}

ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "read": {"path": "a.txt"},
    "write": {"path": "new/n.txt", "content": "new\n"},
    "edit": {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]},
    "grep": {"pattern": "two"},
    "find": {"pattern": "*.txt"},
    "ls": {"path": "d"},
    "bash": {"command": "echo done > made.txt"},
}

# The operations after which a call of the tool has not changed anything yet.
STOPS: Final = [
    ("read", "read"),
    ("write", "write"),
    ("edit", "read"),
    ("edit", "write"),
    ("grep", None),
    ("find", None),
    ("ls", "list_dirs"),
    ("bash", "run"),
]


@frozen
class World:
    """An environment with a few files, and a look at what is in it."""

    env: Environment
    cwd: str

    async def tree(self, directory: str = "") -> dict[str, str]:
        """The text of every file, by its path below the working directory."""
        found: dict[str, str] = {}
        for entry in await self.env.files.list_dir(f"{self.cwd}/{directory}".rstrip("/")):
            path = f"{directory}{entry.name}"
            if entry.kind == "directory":
                found |= {f"{path}/": "", **await self.tree(f"{path}/")}
            else:
                found[path] = (await self.env.files.read(f"{self.cwd}/{path}")).data.decode()
        return found

    def toolbox(self, pause: Pause | None = None) -> Toolbox:
        return Toolbox(paused(self.env, pause) if pause else self.env, all_tools())


@pytest.fixture(params=["memory", "local"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[World, None]:
    """The same small tree in memory and on disk."""
    if request.param == "memory":

        async def hold(process: Process) -> int:
            await process.write("started\n")
            await process.hang()

        env: Environment = memory_environment(files=FILES, cwd="/project", commands={"hold": hold})
        cwd = "/project"
    else:
        for name, text in FILES.items():
            (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "work" / name).write_text(text)
        cwd = str(tmp_path / "work")
        env = local_environment(cwd, temp_directory=tmp_path)
    async with env:
        yield World(env, cwd)


async def finished(toolbox: Toolbox, work: Callable[[], Awaitable[object]]) -> ToolResult:
    """The result that the end event of one call carries, whatever became of the caller."""
    stream = toolbox.events()
    await work()
    stream.close()
    (end,) = [event for event in [event async for event in stream] if isinstance(event, CallEnded)]
    return end.result


def assert_aborted(result: ToolResult) -> None:
    assert (result.is_error, result.error_code) == (True, "aborted")
    assert result.text.endswith(ABORTED)


# ------------------------------------------------------------------ before


@pytest.mark.parametrize("tool", ARGUMENTS)
async def test_a_call_that_is_cancelled_before_it_starts_never_executes(world: World, tool: str) -> None:
    before = await world.tree()
    toolbox = world.toolbox(Pause(EVERYTHING))

    async def call() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await toolbox.call(tool, ARGUMENTS[tool])

    result = await finished(toolbox, call)
    assert_aborted(result)
    assert result.text == ABORTED
    assert await world.tree() == before


# ------------------------------------------------------------------ during


async def cancel_by_name(toolbox: Toolbox, scope: anyio.CancelScope) -> None:
    assert toolbox.cancel("it")


async def cancel_the_scope(toolbox: Toolbox, scope: anyio.CancelScope) -> None:
    scope.cancel()


async def close_the_toolbox(toolbox: Toolbox, scope: anyio.CancelScope) -> None:
    await toolbox.aclose()


WAYS: Final[list[Way]] = [cancel_by_name, cancel_the_scope, close_the_toolbox]


async def stopped_at(
    toolbox: Toolbox,
    tool: str,
    arguments: Any,
    reached: anyio.Event,
    act: Act,
) -> ToolResult:
    """Run a call, act when it has reached a place, and return the result of its end event."""

    async def work() -> None:
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def call() -> None:
                with scope:
                    await toolbox.call(tool, arguments, call_id="it")

            group.start_soon(call)
            with anyio.fail_after(20):
                await reached.wait()
            await act(scope)

    return await finished(toolbox, work)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tool, operation", STOPS)
async def test_a_waiting_call_stops_at_once_and_leaves_no_trace(
    world: World, tool: str, operation: str | None, way: Way
) -> None:
    before = await world.tree()
    pause = Pause(frozenset({operation}) if operation else EVERYTHING)
    toolbox = world.toolbox(pause)
    result = await stopped_at(toolbox, tool, ARGUMENTS[tool], pause.reached, lambda scope: way(toolbox, scope))
    assert_aborted(result)
    assert await world.tree() == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tool", ["write", "edit"])
async def test_a_change_under_way_is_completed_and_said_to_be(world: World, tool: str, way: Way) -> None:
    before = await world.tree()
    pause = Pause(frozenset({"write"}), uninterruptible=True)
    toolbox = world.toolbox(pause)
    arguments = {**ARGUMENTS[tool], "path": "a.txt"}
    result = await stopped_at(toolbox, tool, arguments, pause.reached, release_after(way, toolbox, pause))
    assert (result.is_error, result.error_code) == (True, "aborted")
    assert "before the cancel" in result.text
    assert result.details is not None
    changed = {"write": "new\n", "edit": "one\n2\nthree\n"}[tool]
    assert await world.tree() == {**before, "a.txt": changed}


@pytest.mark.parametrize("way", WAYS)
async def test_directories_made_for_a_cancelled_write_are_removed_again(world: World, way: Way) -> None:
    before = await world.tree()
    pause = Pause(frozenset({"make_dirs"}), uninterruptible=True)
    toolbox = world.toolbox(pause)
    arguments = {"path": "x/y/z/n.txt", "content": "new\n"}
    result = await stopped_at(toolbox, "write", arguments, pause.reached, release_after(way, toolbox, pause))
    assert_aborted(result)
    assert await world.tree() == before


def release_after(way: Way, toolbox: Toolbox, pause: Pause) -> Act:
    """Cancel in some way and only then let the operation go on."""

    async def act(scope: anyio.CancelScope) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(way, toolbox, scope)
            await anyio.wait_all_tasks_blocked()
            pause.released.set()

    return act


async def test_the_next_writer_waits_until_a_cancelled_one_has_settled(world: World) -> None:
    pause = Pause(frozenset({"write"}), uninterruptible=True)
    toolbox = world.toolbox(pause)
    results: list[ToolResult] = []

    async def call(number: int, old: str, new: str) -> None:
        arguments = {"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}
        results.append(await toolbox.call("edit", arguments, call_id=str(number)))

    async with anyio.create_task_group() as group:
        group.start_soon(call, 1, "one", "1")
        await pause.reached.wait()
        group.start_soon(call, 2, "two", "2")
        await anyio.wait_all_tasks_blocked()
        assert toolbox.cancel("1")
        await anyio.wait_all_tasks_blocked()
        assert results == []
        pause.released.set()
    assert [result.error_code for result in results] == ["aborted", None]
    assert (await world.tree())["a.txt"] == "1\n2\nthree\n"


async def test_a_writer_that_is_cancelled_in_the_line_changes_nothing_and_holds_nobody_up(world: World) -> None:
    pause = Pause(frozenset({"write"}))
    toolbox = world.toolbox(pause)
    results: dict[str, ToolResult] = {}

    async def call(name: str, old: str, new: str) -> None:
        arguments = {"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}
        results[name] = await toolbox.call("edit", arguments, call_id=name)
        ended[name].set()

    ended = {name: anyio.Event() for name in ("first", "second", "third")}
    async with anyio.create_task_group() as group:
        for name, old, new in (("first", "one", "1"), ("second", "two", "2"), ("third", "three", "3")):
            group.start_soon(call, name, old, new)
            await anyio.wait_all_tasks_blocked()
        assert toolbox.cancel("second")
        with anyio.fail_after(20):
            await ended["second"].wait()
        assert list(results) == ["second"]
        pause.released.set()
    assert_aborted(results["second"])
    assert not results["first"].is_error
    assert not results["third"].is_error
    assert (await world.tree())["a.txt"] == "1\ntwo\n3\n"


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancelled_command_dies_and_its_output_is_kept(world: World, way: Way) -> None:
    marker = new_marker()
    on_disk = world.cwd != "/project"
    command = f"echo started; sleep {marker} & sleep {marker}; echo late > made.txt" if on_disk else "hold"
    toolbox = world.toolbox()
    printed = anyio.Event()
    stream = toolbox.events()
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        def listen(result: ToolResult) -> None:
            if "started" in result.text:
                printed.set()

        async def call() -> None:
            with scope:
                await toolbox.call("bash", {"command": command}, call_id="it", on_update=listen)

        group.start_soon(call)
        with anyio.fail_after(20):
            await printed.wait()
        if on_disk:
            assert processes_with(marker)
        await way(toolbox, scope)
    assert processes_with(marker) == []
    stream.close()
    end = [event async for event in stream][-1]
    assert isinstance(end, CallEnded)
    assert_aborted(end.result)
    assert end.result.text.startswith("started\n")
    assert "made.txt" not in await world.tree()


# ------------------------------------------------------------------ after


@pytest.mark.parametrize("tool", ARGUMENTS)
async def test_a_call_that_is_over_cannot_be_cancelled(world: World, tool: str) -> None:
    toolbox = world.toolbox()
    result = await toolbox.call(tool, ARGUMENTS[tool], call_id="it")
    assert not result.is_error, result.text
    after = await world.tree()
    assert not toolbox.cancel("it")
    await toolbox.aclose()
    assert await world.tree() == after


# ------------------------------------------------------------------ many at once


async def test_two_hundred_edits_of_one_file_lose_nothing(world: World) -> None:
    lines = [f"line {number:03}." for number in range(200)]
    await world.env.files.write(f"{world.cwd}/big.txt", "\n".join(lines).encode())
    edits = [
        ("edit", {"path": spelling, "edits": [{"oldText": line, "newText": line.upper()}]})
        for line, spelling in zip(
            lines, ["big.txt", "./big.txt", "d/../big.txt", f"{world.cwd}/big.txt"] * 50, strict=True
        )
    ]
    results = await world.toolbox().run(edits)
    assert [result.text for result in results if result.is_error] == []
    assert (await world.tree())["big.txt"] == "\n".join(lines).upper()


async def test_the_writes_and_edits_of_a_batch_happen_in_call_order(world: World) -> None:
    results = await world.toolbox().run(
        [
            ("write", {"path": "q.txt", "content": "zero\n"}),
            ("edit", {"path": "./q.txt", "edits": [{"oldText": "zero", "newText": "one"}]}),
            ("edit", {"path": f"{world.cwd}/q.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
            ("write", {"path": "d/../r.txt", "content": "r\n"}),
            ("edit", {"path": "q.txt", "edits": [{"oldText": "two", "newText": "three"}]}),
        ]
    )
    assert [result.text for result in results if result.is_error] == []
    assert (await world.tree())["q.txt"] == "three\n"


@pytest.mark.parametrize("way", [cancel_the_scope, close_the_toolbox])
async def test_a_batch_that_is_cut_half_way_gives_every_call_an_end(world: World, way: Way) -> None:
    names = [f"f{number}.txt" for number in range(12)]
    # The first six take no turn of a file that somebody holds; the others wait for it.
    targets = [name if number < 6 else "held.txt" for number, name in enumerate(names)]
    pause = Pause(frozenset({"stat"}))
    pause.reached.set()  # nothing stops: the turn below is what holds the calls up
    toolbox = world.toolbox(pause)
    stream = toolbox.events()
    returned: list[ToolResult] = []
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        calls = [
            Call("write", {"path": path, "content": name}, name) for name, path in zip(names, targets, strict=True)
        ]

        async def batch() -> None:
            with scope:
                returned.extend(await toolbox.run(calls))

        async with toolbox.file_queue.turn(f"{world.cwd}/held.txt"):
            group.start_soon(batch)
            done = 0
            while done < 6:
                done += isinstance(await stream.__anext__(), CallEnded)
            await way(toolbox, scope)
    tree = await world.tree()
    stream.close()
    ends = {event.call_id: event.result for event in [event async for event in stream] if isinstance(event, CallEnded)}
    assert set(ends) == set(names[6:])
    for result in ends.values():
        assert_aborted(result)
    assert "held.txt" not in tree
    assert {name: tree[name] for name in names[:6]} == {name: name for name in names[:6]}
    if way is close_the_toolbox:
        assert [result.error_code for result in returned] == [None] * 6 + ["aborted"] * 6
    else:
        assert returned == []
