"""The contract suites over the adapter in memory, on asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import pytest

from contract.clock_contract import ClockContract
from contract.command_contract import CommandContract
from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import Hosted, in_memory, memory_host
from handrail.adapters.memory import MemoryFiles


@asynccontextmanager
async def one_by_one() -> AsyncGenerator[Host]:
    """Yield a host that uses the port's default bodies: where faults are planned, each step of a batch may meet one."""
    async with memory_host() as host:
        cast(MemoryFiles, host.env.files).faults.delay(0.0, path="/nowhere")
        yield host


HOSTS: Mapping[str, Callable[[], AbstractAsyncContextManager[Host]]] = {
    "superuser": lambda: memory_host(superuser=True),
    "ignores_case": lambda: memory_host(case_sensitive=False),
    "decomposes": lambda: memory_host(normalization="NFD"),
    "one_by_one": one_by_one,
}


@pytest.mark.both_backends
class TestMemoryFiles(Hosted, FileContract):
    make = staticmethod(in_memory)


class TestMemoryFilesOfOtherKinds(FileContract):
    @pytest.fixture(params=list(HOSTS.values()), ids=list(HOSTS))
    async def host(self, request: pytest.FixtureRequest) -> AsyncGenerator[Host]:
        async with request.param() as host:
            yield host


@pytest.mark.both_backends
class TestMemoryCommands(Hosted, CommandContract):
    make = staticmethod(in_memory)


@pytest.mark.both_backends
class TestMemoryClock(Hosted, ClockContract):
    make = staticmethod(in_memory)
