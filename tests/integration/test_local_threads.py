"""The worker threads behind the real files: groups of brief work, cancellation, closing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from handrail.adapters.local._threads import Threads
from handrail.adapters.local.files import LocalFiles
from handrail.ports.errors import PortError

pytestmark = pytest.mark.anyio


async def test_brief_work_of_tasks_that_are_ready_together_shares_a_thread() -> None:
    threads = Threads()
    used: list[int] = []

    async def one() -> None:
        used.append(await threads.run(threading.get_ident, brief=True))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    threads.close()
    assert len(used) == 20
    assert len(set(used)) == 1


async def test_each_of_a_group_gets_its_own_result_or_error() -> None:
    threads = Threads()
    answers: dict[int, object] = {}

    def work(number: int) -> int:
        if number % 3 == 0:
            raise ValueError(number)
        return number

    async def one(number: int) -> None:
        try:
            answers[number] = await threads.run(lambda: work(number), brief=True)
        except ValueError as error:
            answers[number] = error.args

    async with anyio.create_task_group() as group:
        for number in range(9):
            group.start_soon(one, number)
    threads.close()
    assert answers == {n: (n,) if n % 3 == 0 else n for n in range(9)}


async def test_a_write_that_waits_for_its_group_is_refused_when_the_files_close(tmp_path: Path) -> None:
    files = LocalFiles()
    codes: list[str] = []

    async def write(name: str) -> None:
        try:
            await files.write(str(tmp_path / name), b"x")
        except PortError as error:
            codes.append(error.code)

    async with anyio.create_task_group() as group:
        group.start_soon(write, "a")
        group.start_soon(write, "b")
        group.start_soon(files.aclose)  # runs before the group is handed to a thread
    assert codes == ["closed", "closed"]
    assert os.listdir(tmp_path) == []


async def test_a_cancelled_group_has_settled_when_the_cancellation_arrives(tmp_path: Path) -> None:
    files = LocalFiles()
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(files.write, str(tmp_path / f"{number}.txt"), b"whole")
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    found = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    assert set(found.values()) <= {b"whole"}
    await files.aclose()
    assert set(os.listdir(tmp_path)) == set(found)
