"""What was recorded on any host is replayed byte for byte: the results and updates of every call."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import frozen

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import Entry, memory_environment
from handrail.adapters.recording import MemoryLog, ReplayEnvironment, ReplayError, record, replay, verify_log
from handrail.core.arguments import parameter
from handrail.core.results import ToolResult, text_result
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.toolbox import Call, Toolbox
from handrail.core.toolsets import all_tools
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

pytestmark = pytest.mark.anyio

FILES: dict[str, Entry] = {
    "app.py": "import util\nprint('needle')\n",
    "src/util.py": "NAME = 'needle'\n" * 40,
    "data.bin": bytes(range(256)) * 20,
    ".gitignore": "*.log\n",
    "debug.log": "needle\n",
    "long.txt": "".join(f"line {n}\n" for n in range(5000)),
}

World = Callable[[Path], AbstractAsyncContextManager[Environment]]


@asynccontextmanager
async def local_world(root: Path) -> AsyncGenerator[Environment]:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else str(content).encode())
    async with local_environment(root) as env:
        yield env


@asynccontextmanager
async def memory_world(root: Path) -> AsyncGenerator[Environment]:
    async with memory_environment(FILES) as env:
        yield env


worlds = pytest.mark.parametrize("world", [memory_world, local_world], ids=["memory", "local"])

Batches = Sequence[Sequence[Call]]


def call(tool: str, /, **arguments: Any) -> Call:
    return Call(tool, arguments)


async def drive(env: Environment, batches: Batches) -> list[Any]:
    """Everything a host gets to see of some batches of calls: results, and the events of each call."""
    seen: list[Any] = []
    events: dict[str, list[Any]] = {}
    async with env, Toolbox(env, all_tools()) as toolbox:
        stream = toolbox.events()
        for batch in batches:
            results = await toolbox.run(batch)
            seen.append([result.to_dict() for result in results])
        await toolbox.aclose()
        async for event in stream:
            events.setdefault(event.call_id, []).append(event.to_dict())
    return [*seen, events]


async def record_and_replay(world: World, root: Path, batches: Batches) -> tuple[list[Any], list[Any]]:
    work = root / "work"
    work.mkdir()
    log = root / "log.jsonl"
    async with world(work) as env:
        recorded = await drive(record(env, log), batches)
    shutil.rmtree(work)  # "any machine": nothing of the world is left
    assert verify_log(log, contents=True).intact
    env = replay(log)
    replayed = await drive(env, batches)
    env.check()
    return recorded, replayed


@worlds
async def test_a_run_of_all_tools_is_replayed_byte_for_byte(world: World, tmp_path: Path) -> None:
    edits = [{"oldText": "import util", "newText": "import tools"}]
    batches = [
        [call("read", path="app.py"), call("ls"), call("find", pattern="*.py"), call("grep", pattern="needle")],
        [call("edit", path="app.py", edits=edits), call("write", path="new/deep.txt", content="fresh\n" * 300)],
        [call("bash", command="cat new/deep.txt; echo done >&2; exit 3"), call("powershell", command="Get-Date")],
        [call("read", path="long.txt", offset=4000), call("read", path="data.bin"), call("read", path="missing")],
        [call("bash", command="cat long.txt long.txt long.txt long.txt"), call("grep", pattern="(", path="src")],
        [call("nothing"), call("read", path=3), call("ls", path="src", limit=1)],
    ]
    recorded, replayed = await record_and_replay(world, tmp_path, batches)
    assert recorded == replayed


@worlds
async def test_a_parallel_batch_is_replayed_as_it_met(world: World, tmp_path: Path) -> None:
    edits = [call("edit", path="src/util.py", edits=[{"oldText": f"x{n}", "newText": "y"}]) for n in range(4)]
    writes = [call("write", path="same.txt", content=f"{n}\n" * 50) for n in range(6)]
    searches = [call("grep", pattern="needle"), call("grep", pattern="line 4"), call("find", pattern="**/*")]
    shells = [call("bash", command=f"for i in 1 2 3; do echo {n}-$i; done; cat same.txt") for n in range(3)]
    batch = [each for group in zip(writes[:3], searches, shells, strict=True) for each in group] + edits + writes[3:]
    recorded, replayed = await record_and_replay(world, tmp_path, [batch, [call("read", path="same.txt")]])
    assert recorded == replayed


@worlds
async def test_a_timeout_is_replayed_without_waiting(world: World, tmp_path: Path) -> None:
    batches = [[call("bash", command="echo before; sleep 30; echo after", timeout=0.3), call("ls")]]
    recorded, replayed = await record_and_replay(world, tmp_path, batches)
    assert recorded[0][0]["errorCode"] == "timeout"
    assert "before" in recorded[0][0]["content"][0]["text"]
    assert recorded == replayed


@worlds
async def test_a_cancelled_call_is_replayed_without_being_cancelled_again(world: World, tmp_path: Path) -> None:
    log = MemoryLog()

    async def run(env: Environment, *, cancel: bool) -> dict[str, Any]:
        started = anyio.Event()
        async with env, Toolbox(env, all_tools()) as toolbox:

            def note(result: ToolResult) -> None:
                if "ready" in result.text:
                    started.set()

            results: list[ToolResult] = []
            async with anyio.create_task_group() as group:

                async def one() -> None:
                    results.append(
                        await toolbox.call("bash", {"command": "echo ready; sleep 30"}, call_id="it", on_update=note)
                    )

                group.start_soon(one)
                if cancel:
                    await started.wait()
                    toolbox.cancel("it")
            return results[0].to_dict()

    async with world(tmp_path) as env:
        recorded = await run(record(env, log), cancel=True)
    assert recorded["errorCode"] == "aborted"
    assert "ready" in recorded["content"][0]["text"]
    player = replay(log)
    assert await run(player, cancel=False) == recorded
    player.check()


@worlds
async def test_a_call_that_was_cancelled_in_the_queue_is_replayed(world: World, tmp_path: Path) -> None:
    log = MemoryLog()

    @frozen
    class Nothing:
        pass

    def holder(release: anyio.Event | None, held: anyio.Event) -> Tool[Nothing]:
        @define_tool("hold", parameters=Nothing, description="Holds a file's turn while another call is cancelled.")
        async def hold(arguments: Nothing, context: ToolContext) -> ToolResult:
            async with context.file_queue.turn(f"{context.env.cwd}/app.py"):
                held.set()
                if release is not None:
                    await release.wait()
                await context.env.files.stat(f"{context.env.cwd}/app.py")
            return text_result("held")

        return hold

    async def run(env: Environment, *, cancel: bool) -> list[Any]:
        release, held = anyio.Event(), anyio.Event()
        results: dict[str, Any] = {}
        tools: dict[str, Tool[Any]] = {**all_tools(), "hold": holder(release if cancel else None, held)}
        async with env, Toolbox(env, tools) as toolbox, anyio.create_task_group() as group:

            async def one(name: str, arguments: dict[str, Any], call_id: str) -> None:
                results[call_id] = (await toolbox.call(name, arguments, call_id=call_id)).to_dict()

            group.start_soon(one, "hold", dict[str, Any](), "holder")
            await held.wait()
            if cancel:
                group.start_soon(one, "write", {"path": "app.py", "content": "late"}, "waiter")
                await anyio.wait_all_tasks_blocked()
                toolbox.cancel("waiter")
                await anyio.wait_all_tasks_blocked()
                release.set()
            else:
                group.start_soon(one, "write", {"path": "app.py", "content": "late"}, "waiter")
        return [results["holder"], results["waiter"]]

    async with world(tmp_path) as env:
        recorded = await run(record(env, log), cancel=True)
    assert recorded[1]["errorCode"] == "aborted"
    assert await run(replay(log), cancel=False) == recorded


async def test_results_of_calls_that_print_a_lot_are_replayed_to_the_byte(tmp_path: Path) -> None:
    commands = ["seq 1 500000", "seq 1 300000; sleep 0.1; seq 1 200000", "yes abcdefgh | head -c 4000000", "echo done"]
    batch = [call("bash", command=command) for command in commands]
    recorded, replayed = await record_and_replay(local_environment, tmp_path, [batch])
    assert recorded[0] == replayed[0]


@worlds
async def test_links_and_modes_are_replayed(world: World, tmp_path: Path) -> None:
    async def use(env: Environment) -> list[object]:
        files, seen = env.files, list[object]()
        await files.make_link(f"{env.cwd}/link", "app.py")
        seen.append(await files.read_link(f"{env.cwd}/link"))
        await files.change_mode(f"{env.cwd}/app.py", 0o600)
        for follow in (True, False):
            stats = await files.stat_many([f"{env.cwd}/{name}" for name in ("link", "missing")], follow_symlinks=follow)
            seen += [str(stat) if isinstance(stat, PortError) else stat for stat in stats]
        for refused in (files.make_link(f"{env.cwd}/link", "other"), files.read_link(f"{env.cwd}/app.py")):
            with pytest.raises(PortError) as caught:
                await refused
            seen.append(str(caught.value))
        return seen

    log = MemoryLog()
    async with world(tmp_path) as env, record(env, log) as recording:
        recorded = await use(recording)
    player = replay(log)
    assert await use(player) == recorded
    player.check()
    with pytest.raises(ReplayError):
        await replay(log).files.make_link(f"{player.cwd}/link", "elsewhere")


@worlds
async def test_what_is_asked_differently_shows_the_first_difference(world: World, tmp_path: Path) -> None:
    log = MemoryLog()
    async with world(tmp_path) as env:
        await drive(record(env, log), [[call("read", path="app.py")]])
    player = replay(log)
    async with Toolbox(player, all_tools()) as toolbox:
        result = await toolbox.call("read", {"path": "long.txt"})
    assert result.error_code == "internal"
    assert "long.txt" in player.differences[0]
    assert "app.py" in player.differences[0]
    with pytest.raises(ReplayError, match=r"long\.txt"):
        player.check()


async def test_a_tool_that_asks_something_else_is_told_what_was_recorded() -> None:
    @frozen
    class Paths:
        first: str = parameter("The path to look at.")

    def looker(path: str) -> Any:
        @define_tool("look", parameters=Paths, description="Looks at a path.")
        async def look(arguments: Paths, context: ToolContext) -> ToolResult:
            await context.env.files.stat(arguments.first)
            await context.env.files.stat(path)
            return text_result("seen")

        return look

    log = MemoryLog()
    async with memory_environment(FILES) as env, Toolbox(record(env, log), [looker("/project/src")]) as toolbox:
        assert (await toolbox.call("look", {"first": "/project/app.py"})).text == "seen"
    player = replay(log)
    async with Toolbox(player, [looker("/project/data.bin")]) as toolbox:
        assert (await toolbox.call("look", {"first": "/project/app.py"})).error_code == "internal"
    (difference,) = player.differences
    assert '"/project/data.bin"' in difference
    assert '"/project/src"' in difference


async def test_calls_that_are_not_asked_for_are_a_difference() -> None:
    @frozen
    class Nothing:
        pass

    def looker(times: int) -> Any:
        @define_tool("look", parameters=Nothing, description="Looks at the root.")
        async def look(arguments: Nothing, context: ToolContext) -> ToolResult:
            for _ in range(times):
                await context.env.files.stat("/")
            return text_result("seen")

        return look

    log = MemoryLog()
    async with memory_environment() as env, Toolbox(record(env, log), [looker(2)]) as toolbox:
        await toolbox.call("look", {})
    fewer, more = replay(log), replay(log)
    async with Toolbox(fewer, [looker(1)]) as toolbox:
        assert (await toolbox.call("look", {})).text == "seen"
    assert "ended without asking" in fewer.differences[0]
    async with Toolbox(more, [looker(3)]) as toolbox:
        assert (await toolbox.call("look", {})).is_error
    assert "nothing more was recorded" in more.differences[0]


@worlds
async def test_lenient_replay_answers_in_any_order_and_again(world: World, tmp_path: Path) -> None:
    log = MemoryLog()
    async with world(tmp_path) as env:
        recorded = await drive(record(env, log), [[call("read", path="app.py")], [call("ls", path="src")]])
    player = replay(log, "lenient")
    async with Toolbox(player, all_tools()) as toolbox:
        listing = await toolbox.call("ls", {"path": "src"}, call_id="other")
        reads = [await toolbox.call("read", {"path": "app.py"}) for _ in range(3)]
        unknown = await toolbox.call("read", {"path": "long.txt"})
    assert listing.to_dict() == recorded[1][0]
    assert [read.to_dict() for read in reads] == [recorded[0][0]] * 3
    assert unknown.is_error
    assert "no such call was recorded" in player.differences[0]


async def test_names_that_are_not_utf8_survive(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (tmp_path / name).write_text("text")
    log = tmp_path / "log.jsonl"

    async def look(env: Environment) -> list[Any]:
        async with env:
            found = sorted(entry.name for entry in await env.files.list_dir(str(tmp_path)))
            return [found[0], (await env.files.read(f"{tmp_path}/{name}")).data]

    recorded = await look(record(local_environment(tmp_path), log))
    assert recorded == [name, b"text"]
    assert await look(replay(log)) == recorded


async def test_a_log_without_contents_says_what_cannot_be_replayed() -> None:
    log = MemoryLog()
    async with memory_environment({"a.txt": "hello"}) as env:
        await drive(record(env, log, contents="hashes"), [[call("read", path="a.txt")]])
    assert not log.store.contents
    player = replay(log)
    async with player:
        with pytest.raises(ReplayError, match="contents='full'"):
            player.calls()
        async with Toolbox(player, all_tools()) as toolbox:
            result = await toolbox.call("read", {"path": "a.txt"})
    assert "was not kept" in result.text


async def test_a_content_that_is_missing_from_the_store_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with memory_environment({"a.txt": "hello"}) as env:
        await drive(record(env, log), [[call("read", path="a.txt")]])
    shutil.rmtree(tmp_path / "log.jsonl.contents")
    player = replay(log)
    async with Toolbox(player, all_tools()) as toolbox:
        result = await toolbox.call("read", {"path": "a.txt"})
    assert "is not in the store" in result.text
    problem = verify_log(log, contents=True).problem
    assert problem is not None
    assert problem.kind == "content"


async def test_a_log_that_ends_in_the_middle_of_a_call_is_replayed_up_to_there(tmp_path: Path) -> None:
    log = MemoryLog()
    async with memory_environment({"a.txt": "hello"}) as env:
        await drive(record(env, log), [[call("ls")], [call("read", path="a.txt")]])
    cut = next(n for n, line in enumerate(log.lines) if b'"kind":"call"' in line and b'"read"' in line)
    shorter = MemoryLog(log.lines[: cut + 1], log.store)
    player = replay(shorter)
    async with Toolbox(player, all_tools()) as toolbox:
        assert (await toolbox.call("ls", {})).text == "a.txt"
        assert (await toolbox.call("read", {"path": "a.txt"})).is_error
    assert "nothing more was recorded" in player.differences[0]


@pytest.mark.slow
async def test_much_output_is_recorded_and_replayed_in_bounded_memory(tmp_path: Path) -> None:
    megabytes = 200
    batches = [[call("bash", command=f"head -c {megabytes}M /dev/zero | tr '\\0' 'x' | fold -w 99")]]
    log = tmp_path / "log.jsonl"

    async def results(env: Environment) -> Any:
        async with env, Toolbox(env, all_tools()) as toolbox:
            return [result.to_dict() for batch in batches for result in await toolbox.run(batch)]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    recorded = await results(record(local_environment(tmp_path), log))
    assert await results(replay(log)) == recorded
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 * 1024  # KiB; the output is twice as much


async def test_the_clock_of_a_replay_stands_where_nothing_was_recorded() -> None:
    log = MemoryLog()
    async with memory_environment() as env, record(env, log) as recorded:
        first = recorded.clock.now()
        await recorded.clock.sleep(3600)
        second = recorded.clock.now()
    player: ReplayEnvironment = replay(log)
    async with player:
        assert player.clock.now() == first
        await player.clock.sleep(3600)
        assert player.clock.now() == second
        await player.clock.sleep(3600)
        assert player.clock.now() == second
