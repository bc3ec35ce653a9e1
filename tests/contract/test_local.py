"""The contract suites over the real disk, real processes and real time."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from contract.clock_contract import ClockContract
from contract.command_contract import CommandContract
from contract.file_contract import FileContract
from contract.host import Host
from contract.hosts import Hosted, local_host, unprivileged


class TestLocalFiles(Hosted, FileContract):
    make = staticmethod(local_host)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can become somebody else")
class TestLocalFilesOfAnOrdinaryUser(FileContract):
    """Where tests run as root: the same, with permissions that bind."""

    @pytest.fixture
    def root(self) -> Generator[Path]:
        # Not below pytest's own directory, which is closed to others.
        with tempfile.TemporaryDirectory() as name, unprivileged(Path(name)):
            yield Path(name)

    @pytest.fixture
    async def host(self, root: Path) -> AsyncGenerator[Host]:
        async with local_host(root) as host:
            yield host


class TestLocalCommands(Hosted, CommandContract):
    make = staticmethod(local_host)


class TestLocalClock(Hosted, ClockContract):
    make = staticmethod(local_host)
