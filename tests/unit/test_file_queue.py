"""One writer a file: order of arrival, spellings of one file, and waiters that give up."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from handrail.adapters.memory.entries import Symlink
from handrail.adapters.memory.environment import MemoryEnvironment, memory_environment
from handrail.core.file_queue import FileQueue
from handrail.ports.errors import PortError

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

A = "/project/a.txt"


@pytest.fixture
def env() -> MemoryEnvironment:
    return memory_environment(
        files={A: "a", "/project/b.txt": "b", "/project/link": Symlink("a.txt"), "/project/d/c.txt": "c"},
        cwd="/project",
    )


async def arrive_in_order(queue: FileQueue, paths: list[str], inside: Callable[[int], None]) -> None:
    """Let one task for each path ask for its turn, one after another, while the first holds it."""
    async with anyio.create_task_group() as group, queue.turn(paths[0]):
        inside(0)

        async def member(number: int) -> None:
            async with queue.turn(paths[number]):
                inside(number)
                await anyio.lowlevel.checkpoint()

        for number in range(1, len(paths)):
            group.start_soon(member, number)
            await anyio.wait_all_tasks_blocked()


async def test_turns_of_one_file_come_in_order_of_arrival(env: MemoryEnvironment) -> None:
    order: list[int] = []
    await arrive_in_order(FileQueue(env.files), [A] * 20, order.append)
    assert order == list(range(20))


@pytest.mark.parametrize("other", ["/project/link", "/project/./a.txt", "/project/d/../a.txt", "/project//a.txt"])
async def test_other_spellings_of_a_file_share_its_turn(env: MemoryEnvironment, other: str) -> None:
    order: list[int] = []
    await arrive_in_order(FileQueue(env.files), [A, other, A, other], order.append)
    assert order == [0, 1, 2, 3]


async def test_names_that_the_file_system_takes_for_one_share_a_turn() -> None:
    composed, decomposed = "/project/caf\u00e9.TXT", "/project/cafe\u0301.txt"
    env = memory_environment(files={composed: ""}, cwd="/project", case_sensitive=False, normalization="NFD")
    queue = FileQueue(env.files)
    async with queue.turn(composed) as first:
        waiting = anyio.CancelScope()

        async def second() -> None:
            with waiting:
                async with queue.turn(decomposed):
                    raise AssertionError("two writers at once")

        async with anyio.create_task_group() as group:
            group.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            waiting.cancel()
    async with queue.turn(decomposed) as again:
        assert again == first


async def test_a_file_that_does_not_exist_yet_has_a_turn_too(env: MemoryEnvironment) -> None:
    order: list[int] = []
    await arrive_in_order(FileQueue(env.files), ["/project/new.txt", "/project/d/../new.txt"], order.append)
    assert order == [0, 1]


async def test_different_files_do_not_wait_for_each_other(env: MemoryEnvironment) -> None:
    queue = FileQueue(env.files)
    async with queue.turn(A) as a, queue.turn("/project/b.txt") as b, queue.turn("/project/d/c.txt") as c:
        assert (a, b, c) == (A, "/project/b.txt", "/project/d/c.txt")


async def test_two_hundred_tasks_never_meet(env: MemoryEnvironment) -> None:
    queue = FileQueue(env.files)
    inside = 0
    done: list[int] = []

    async def member(number: int) -> None:
        nonlocal inside
        async with queue.turn(A if number % 2 else "/project/link"):
            inside += 1
            assert inside == 1
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            inside -= 1
            done.append(number)

    async with anyio.create_task_group() as group:
        for number in range(200):
            group.start_soon(member, number)
    assert sorted(done) == list(range(200))


async def test_waiters_that_give_up_leave_the_line_intact(env: MemoryEnvironment) -> None:
    queue = FileQueue(env.files)
    order: list[int] = []
    scopes = [anyio.CancelScope() for _ in range(10)]

    async def member(number: int) -> None:
        with scopes[number]:
            async with queue.turn(A):
                order.append(number)

    async with anyio.create_task_group() as group, queue.turn(A):
        for number in range(10):
            group.start_soon(member, number)
            await anyio.wait_all_tasks_blocked()
        for number in (0, 4, 9):
            scopes[number].cancel()
        await anyio.wait_all_tasks_blocked()
    assert order == [1, 2, 3, 5, 6, 7, 8]


async def test_a_failing_holder_hands_its_turn_on(env: MemoryEnvironment) -> None:
    queue = FileQueue(env.files)
    with pytest.raises(ValueError, match="mine"):
        async with queue.turn(A):
            raise ValueError("mine")
    with anyio.fail_after(5):
        async with queue.turn(A) as path:
            assert path == A


async def test_a_path_without_a_canonical_form_is_refused_and_blocks_nobody(env: MemoryEnvironment) -> None:
    env.files["/project/loop"] = Symlink("loop")
    queue = FileQueue(env.files)
    with pytest.raises(PortError, match="symlink_loop"):
        async with queue.turn("/project/loop"):
            raise AssertionError("not reached")
    with anyio.fail_after(5):
        async with queue.turn(A):
            pass


async def test_the_queue_forgets_files_that_nobody_waits_for(env: MemoryEnvironment) -> None:
    queue = FileQueue(env.files)
    assert queue.busy_files == 0
    async with queue.turn(A), queue.turn("/project/b.txt"):
        assert queue.busy_files == 2
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with queue.turn(A):
            raise AssertionError("not reached")
    assert queue.busy_files == 0
