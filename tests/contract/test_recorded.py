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
from contract.hosts import Hosted, local_host, memory_host
from handrail.adapters.recording import MemoryLog, record, verify_log


@asynccontextmanager
async def recorded_memory(_: Path) -> AsyncGenerator[Host]:
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
class TestRecordedMemoryFiles(Hosted, FileContract):
    make = staticmethod(recorded_memory)


@pytest.mark.both_backends
class TestRecordedMemoryCommands(Hosted, CommandContract):
    make = staticmethod(recorded_memory)


@pytest.mark.both_backends
class TestRecordedMemoryClock(Hosted, ClockContract):
    make = staticmethod(recorded_memory)


class TestRecordedLocalFiles(Hosted, FileContract):
    make = staticmethod(recorded_local)


class TestRecordedLocalCommands(Hosted, CommandContract):
    make = staticmethod(recorded_local)


class TestRecordedLocalClock(Hosted, ClockContract):
    make = staticmethod(recorded_local)
