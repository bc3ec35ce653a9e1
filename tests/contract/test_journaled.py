"""The contract suites through the journal: keeping a journal changes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import evolve

from contract.clock_contract import ClockContract
from contract.command_contract import CommandContract
from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import Hosted, local_host, memory_host
from handrail.adapters.journal import journal


@asynccontextmanager
async def journaled_memory(_: Path) -> AsyncGenerator[Host]:
    async with memory_host() as host:
        yield evolve(host, env=journal(host.env))


@asynccontextmanager
async def journaled_local(tmp_path: Path) -> AsyncGenerator[Host]:
    root = tmp_path / "root"
    root.mkdir()
    async with local_host(root) as host:
        yield evolve(host, env=journal(host.env, tmp_path / "journal"))


@pytest.mark.both_backends
class TestJournaledMemoryFiles(Hosted, FileContract):
    make = staticmethod(journaled_memory)


class TestJournaledMemoryCommands(Hosted, CommandContract):
    make = staticmethod(journaled_memory)


class TestJournaledLocalFiles(Hosted, FileContract):
    make = staticmethod(journaled_local)


class TestJournaledLocalCommands(Hosted, CommandContract):
    make = staticmethod(journaled_local)


class TestJournaledLocalClock(Hosted, ClockContract):
    make = staticmethod(journaled_local)
