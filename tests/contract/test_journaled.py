"""The contract suites through the journal: keeping a journal changes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from attrs import evolve

from contract.clock_contract import ClockContract
from contract.command_contract import CommandContract
from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import local_host, memory_host
from handrail.adapters.journal import journal


@pytest.mark.both_backends
class TestJournaledMemoryFiles(FileContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with memory_host() as host:
            yield evolve(host, env=journal(host.env))


class TestJournaledMemoryCommands(CommandContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with memory_host() as host:
            yield evolve(host, env=journal(host.env))


class TestJournaledLocalFiles(FileContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        root = tmp_path / "root"
        root.mkdir()
        async with local_host(root) as host:
            yield evolve(host, env=journal(host.env, tmp_path / "journal"))


class TestJournaledLocalCommands(CommandContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        root = tmp_path / "root"
        root.mkdir()
        async with local_host(root) as host:
            yield evolve(host, env=journal(host.env, tmp_path / "journal"))


class TestJournaledLocalClock(ClockContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        async with local_host(tmp_path) as host:
            yield evolve(host, env=journal(host.env))
