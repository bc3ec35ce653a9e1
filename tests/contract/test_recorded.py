"""The contract suites through the recorder: recording changes nothing, and the log is whole afterwards."""

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
from contract.hosts import local_host, memory_host
from handrail.adapters.recording import MemoryLog, record, verify_log


@asynccontextmanager
async def recorded_memory() -> AsyncGenerator[Host]:
    log = MemoryLog()
    async with memory_host() as host:
        env = record(host.env, log)
        yield evolve(host, env=env)
        await env.aclose()
    assert verify_log(log, contents=True).intact


@asynccontextmanager
async def recorded_local(tmp_path: Path) -> AsyncGenerator[Host]:
    root, log = tmp_path / "root", tmp_path / "log.jsonl"
    root.mkdir()
    async with local_host(root) as host:
        env = record(host.env, log)
        yield evolve(host, env=env)
        await env.aclose()
    assert verify_log(log, contents=True).intact


@pytest.mark.both_backends
class TestRecordedMemoryFiles(FileContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with recorded_memory() as host:
            yield host


@pytest.mark.both_backends
class TestRecordedMemoryCommands(CommandContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with recorded_memory() as host:
            yield host


@pytest.mark.both_backends
class TestRecordedMemoryClock(ClockContract):
    @pytest.fixture
    async def host(self) -> AsyncGenerator[Host]:
        async with recorded_memory() as host:
            yield host


class TestRecordedLocalFiles(FileContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        async with recorded_local(tmp_path) as host:
            yield host


class TestRecordedLocalCommands(CommandContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        async with recorded_local(tmp_path) as host:
            yield host


class TestRecordedLocalClock(ClockContract):
    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        async with recorded_local(tmp_path) as host:
            yield host
