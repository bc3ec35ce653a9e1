"""The contract suite through confine: inside its roots, a confined environment is like any other."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import evolve

from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import Hosted, local_host, memory_host
from handrail.adapters.confined import confine


@asynccontextmanager
async def confined_memory(_: Path) -> AsyncGenerator[Host]:
    async with memory_host() as host:
        yield evolve(host, env=confine(host.env, host.root))


@asynccontextmanager
async def confined_local(tmp_path: Path) -> AsyncGenerator[Host]:
    async with local_host(tmp_path) as host:
        yield evolve(host, env=confine(host.env, host.root))


@pytest.mark.both_backends
class TestConfinedMemoryFiles(Hosted, FileContract):
    make = staticmethod(confined_memory)


class TestConfinedLocalFiles(Hosted, FileContract):
    make = staticmethod(confined_local)
