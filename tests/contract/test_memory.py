"""The contract suites over the adapter in memory, on asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import pytest

from contract.clock_contract import ClockContract
from contract.command_contract import CommandContract
from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import memory_host

HOSTS: Mapping[str, Callable[[], AbstractAsyncContextManager[Host]]] = {
    "superuser": lambda: memory_host(superuser=True),
    "ignores_case": lambda: memory_host(case_sensitive=False),
    "decomposes": lambda: memory_host(normalization="NFD"),
}


@pytest.mark.both_backends
class TestMemoryFiles(FileContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with memory_host() as host:
            yield host


class TestMemoryFilesOfOtherKinds(FileContract):
    @pytest.fixture(params=list(HOSTS.values()), ids=list(HOSTS))
    async def host(self, request: pytest.FixtureRequest) -> AsyncGenerator[Host]:
        async with request.param() as host:
            yield host


@pytest.mark.both_backends
class TestMemoryCommands(CommandContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with memory_host() as host:
            yield host


@pytest.mark.both_backends
class TestMemoryClock(ClockContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with memory_host() as host:
            yield host
