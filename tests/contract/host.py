"""What a contract suite needs to know of an adapter: its environment, its abilities as data, and its help.

An adapter of another project is tested with a few lines::

    class TestMyFiles(FileContract):
        @pytest.fixture
        async def host(self) -> AsyncIterator[Host]:
            async with my_environment() as env:
                yield Host(env, "/work", Capabilities(symlinks=False), MySetup())

Suites ask for nothing else; they use only ports and this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import pytest
from attrs import frozen

from handrail.ports.environment import Environment

__all__ = ["Capabilities", "Host", "Setup"]


@frozen
class Capabilities:
    """What an adapter or its host can do. A suite leaves out what is not declared, and says so.

    Attributes:
        symlinks: ``Setup.make_symlink`` works.
        hard_links: ``Setup.make_hard_link`` works.
        fifos: ``Setup.make_fifo`` works.
        makes_links: ``read_link`` and ``make_link`` of the port work.
        modes: Permission bits are kept; ``Setup.set_mode`` works.
        changes_modes: ``change_mode`` of the port works.
        markings: A file has an owner, a group or attributes; ``Setup.mark`` and ``Setup.marking`` work.
        enforces_permissions: They bind the user (not so for root).
        undecodable_names: Names need not be UTF-8.
        case_sensitive: ``A`` and ``a`` are two files.
        normalization: Names that differ only in Unicode normalisation are one file, stored in this form.
        new_file_mode: Mode that a new file gets; ``None`` where it is not known.
        limited_space: ``Setup.make_small_disk`` works.
        read_only_mounts: ``Setup.make_read_only`` works.
        commands: There are programs: a POSIX shell, ``cat``, ``printf``, ``sleep``, ``env``.
        background_work: What a command leaves running goes on working after the call.
        resource_limits: Commands can be limited.
        kills_everything: No shape of process can outlive a kill.
    """

    symlinks: bool = True
    hard_links: bool = True
    fifos: bool = True
    makes_links: bool = True
    modes: bool = True
    changes_modes: bool = True
    markings: bool = True
    enforces_permissions: bool = True
    undecodable_names: bool = True
    case_sensitive: bool = True
    normalization: Literal["NFC", "NFD"] | None = None
    new_file_mode: int | None = None
    limited_space: bool = True
    read_only_mounts: bool = True
    commands: bool = True
    background_work: bool = True
    resource_limits: bool = True
    kills_everything: bool = True


class Setup(Protocol):
    """What a test needs and no port offers. All but ``names`` is called only where the capabilities say so."""

    async def make_symlink(self, target: str, path: str) -> None:
        """Create a symbolic link."""
        ...

    async def make_hard_link(self, source: str, path: str) -> None:
        """Give a file one more name."""
        ...

    async def make_fifo(self, path: str) -> None:
        """Create a named pipe."""
        ...

    async def set_mode(self, path: str, mode: int) -> None:
        """Change permission bits."""
        ...

    async def mark(self, path: str) -> None:
        """Give a file an owner, a group or attributes that a new file would not have."""
        ...

    async def marking(self, path: str) -> object:
        """Return owner, group and attributes of a file, to compare."""
        ...

    async def make_small_disk(self, path: str) -> None:
        """Let a new directory have less than 1 MiB of space."""
        ...

    async def make_read_only(self, path: str) -> None:
        """Mount an existing directory read-only."""
        ...

    async def names(self, path: str) -> list[str]:
        """Return the names in a directory, also after the environment closed."""
        ...


@frozen
class Host:
    """An environment under test.

    Attributes:
        env: The environment; the fixture closes it.
        root: An empty directory in it, writable.
        capabilities: What can be tested.
        setup: Help for what no port offers.
        variables: Variables that commands inherit; ``VISIBLE`` and ``SECRET`` are among them where there
            are commands.
    """

    env: Environment
    root: str
    capabilities: Capabilities
    setup: Setup
    variables: Mapping[str, str] = {}

    def path(self, *names: str) -> str:
        """Return a path below the root."""
        return "/".join([self.root, *names])

    def require(self, ability: bool, what: str) -> None:
        """Skip a test for what this host has not."""
        if not ability:
            pytest.skip(f"this host has no {what}")

    async def write(self, name: str, data: bytes = b"content") -> str:
        """Create a file below the root, its directories too; returns its path."""
        path = self.path(name)
        await self.env.files.make_dirs(path.rpartition("/")[0])
        await self.env.files.write(path, data)
        return path

    async def make_dirs(self, name: str) -> str:
        """Create a directory below the root; returns its path."""
        path = self.path(name)
        await self.env.files.make_dirs(path)
        return path

    async def symlink(self, target: str, name: str) -> str:
        """Create a symbolic link below the root; returns its path. Skips where there are none."""
        self.require(self.capabilities.symlinks, "symbolic links")
        await self.setup.make_symlink(target, self.path(name))
        return self.path(name)

    async def content(self, path: str) -> bytes:
        """Return the content of a file."""
        return (await self.env.files.read(path)).data

    async def names(self, path: str | None = None) -> list[str]:
        """Return the sorted names in a directory, by default the root."""
        return sorted(entry.name for entry in await self.env.files.list_dir(path or self.root))
