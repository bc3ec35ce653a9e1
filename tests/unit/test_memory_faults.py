"""Faults in memory: what goes wrong, and how long things take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import pytest

from handrail.adapters.memory import MemoryEnvironment, Operation, memory_environment
from handrail.ports.errors import PortError

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


@pytest.fixture
def env() -> MemoryEnvironment:
    return memory_environment({"a": "old", "b": "old", "sub/c": "old"})


async def outcome(env: MemoryEnvironment, path: str) -> str:
    try:
        await env.files.write(path, b"new")
    except PortError as error:
        return error.code if error.path == path else "error of another path"
    return "written"


async def test_the_nth_write_fails(env: MemoryEnvironment) -> None:
    env.files.faults.fail("io_error", operation="write", nth=2)
    assert [await outcome(env, f"/project/{name}") for name in ("a", "b", "a")] == ["written", "io_error", "written"]
    assert env.files.read_text("/project/b") == "old"


async def test_a_fault_can_last(env: MemoryEnvironment) -> None:
    env.files.faults.fail("no_space", operation="write", nth=2, times=2)
    answers = [await outcome(env, "/project/a") for _ in range(4)]
    assert answers == ["written", "no_space", "no_space", "written"]
    env.files.faults.fail("read_only", operation="write", times=None)
    assert [await outcome(env, "/project/a") for _ in range(3)] == ["read_only"] * 3
    env.files.faults.clear()
    assert await outcome(env, "/project/a") == "written"


async def test_other_operations_are_not_counted(env: MemoryEnvironment) -> None:
    env.files.faults.fail("io_error", operation="write", path="/project/b")
    await env.files.read("/project/b")
    assert await outcome(env, "/project/a") == "written"
    assert await outcome(env, "/project/b") == "io_error"


async def test_a_path_can_be_denied_with_what_is_below(env: MemoryEnvironment) -> None:
    env.files.faults.deny("/project/sub")
    for path in ("/project/sub/c", "/project/./sub/c", "/project/sub/../sub/new"):
        assert await outcome(env, path) == "permission_denied"
    with pytest.raises(PortError):
        await env.files.list_dir("/project/sub")
    assert await outcome(env, "/project/subway") == "written"
    listings = await env.files.list_dirs(["/project/sub", "/project"])
    assert [listing.error.code if listing.error else None for listing in listings] == ["permission_denied", None]
    contents = await env.files.read_many(["/project/sub/c", "/project/a"], max_bytes=10)
    assert [isinstance(content, PortError) for content in contents] == [True, False]


OPERATIONS: list[Operation] = [
    "stat",
    "list_dir",
    "read",
    "read_chunks",
    "scan",
    "write",
    "append",
    "make_dirs",
    "remove",
    "rename",
    "canonical_path",
    "create_temp_file",
]


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_every_operation_can_fail_and_then_changes_nothing(env: MemoryEnvironment, operation: Operation) -> None:
    async def chunks() -> None:
        async for _ in env.files.read_chunks("/project/a"):
            pass

    calls: Mapping[Operation, Callable[[], Awaitable[object]]] = {
        "stat": lambda: env.files.stat("/project/a"),
        "list_dir": lambda: env.files.list_dir("/project"),
        "read": lambda: env.files.read("/project/a"),
        "read_chunks": chunks,
        "scan": lambda: env.files.scan("/project/a", lambda _: True),
        "write": lambda: env.files.write("/project/a", b"new"),
        "append": lambda: env.files.append("/project/a", b"new"),
        "make_dirs": lambda: env.files.make_dirs("/project/new"),
        "remove": lambda: env.files.remove("/project/a"),
        "rename": lambda: env.files.rename("/project/a", "/project/new"),
        "canonical_path": lambda: env.files.canonical_path("/project/a"),
        "create_temp_file": lambda: env.files.create_temp_file(prefix="x", suffix="y"),
    }
    before = env.files.tree()
    env.files.faults.fail("io_error", operation=operation)
    with pytest.raises(PortError) as caught:
        await calls[operation]()
    assert caught.value.code == "io_error"
    assert env.files.tree() == before
    await calls[operation]()


async def test_reading_can_fail_half_way(env: MemoryEnvironment) -> None:
    env.files["/project/large"] = "x" * 200_000
    env.files.faults.fail("io_error", operation="next_chunk", nth=3)
    chunks = env.files.read_chunks("/project/large")
    assert await anext(chunks)
    assert await anext(chunks)
    with pytest.raises(PortError):
        await anext(chunks)


async def test_operations_take_their_time(env: MemoryEnvironment) -> None:
    env.files.faults.delay(2, operation="read")
    env.files.faults.delay(1, path="/project/sub", after=0.5)
    await env.files.stat("/project/a")
    assert env.clock.monotonic() == 0
    await env.files.read("/project/a")
    assert env.clock.monotonic() == 2
    await env.files.read("/project/sub/c")
    assert env.clock.monotonic() == 5.5


@pytest.mark.parametrize(("limit", "content"), [(0.5, "old"), (1.5, "new")])
async def test_a_delay_is_before_or_after_the_effect(env: MemoryEnvironment, limit: float, content: str) -> None:
    env.files.faults.delay(1, operation="write", after=1)
    with env.clock.move_on_after(limit) as deadline:
        await env.files.write("/project/a", b"new")
    assert deadline.expired
    assert env.files.read_text("/project/a") == content


async def test_another_writer_can_come_in_between(env: MemoryEnvironment) -> None:
    async def other() -> None:
        env.files["/project/a"] = "other"

    version = (await env.files.read("/project/a")).stat.version
    env.files.faults.before(other, operation="write")
    with pytest.raises(PortError) as caught:
        await env.files.write("/project/a", b"new", expect=version)
    assert caught.value.code == "conflict"
    assert env.files.read_text("/project/a") == "other"
    assert await outcome(env, "/project/a") == "written"


async def test_an_operation_can_be_held_until_the_test_lets_go(env: MemoryEnvironment) -> None:
    reached, release = anyio.Event(), anyio.Event()

    async def hold() -> None:
        reached.set()
        await release.wait()

    env.files.faults.before(hold, operation="write", path="/project/b")
    async with anyio.create_task_group() as group:
        group.start_soon(outcome, env, "/project/b")
        await reached.wait()
        assert env.files.read_text("/project/b") == "old"
        assert await outcome(env, "/project/a") == "written"
        env.files["/project/b"] = "changed meanwhile"
        release.set()
    assert env.files.read_text("/project/b") == "new"


async def test_closing_during_a_delay_refuses_the_operation(env: MemoryEnvironment) -> None:
    env.files.faults.delay(5, operation="write")
    answers: list[str] = []

    async def write() -> None:
        answers.append(await outcome(env, "/project/a"))

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        await env.clock.sleep(1)
        await env.aclose()
    assert answers == ["closed"]
    assert env.files.read_text("/project/a") == "old"
