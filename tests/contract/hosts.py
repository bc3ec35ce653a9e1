"""The hosts of this project's own adapters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Literal, Protocol

import pytest
from attrs import Factory, frozen

from contract.host import Capabilities, Host
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import MemoryEnvironment, MemoryFiles, Special, Symlink, VirtualClock, memory_environment

__all__ = ["VARIABLES", "Hosted", "LocalSetup", "MemorySetup", "in_memory", "local_host", "memory_host", "unprivileged"]

VARIABLES = {"VISIBLE": "shown", "SECRET": "hidden"}
"""What a test may expect a command to inherit."""


@frozen
class MemorySetup:
    """Help in memory."""

    files: MemoryFiles

    async def make_symlink(self, target: str, path: str) -> None:
        self.files[path] = Symlink(target)

    async def make_hard_link(self, source: str, path: str) -> None:
        self.files.make_hard_link(source, path)

    async def make_fifo(self, path: str) -> None:
        self.files[path] = Special("fifo")

    async def set_mode(self, path: str, mode: int) -> None:
        self.files.set_mode(path, mode)

    async def mark(self, path: str) -> None:
        raise NotImplementedError

    async def marking(self, path: str) -> object:
        raise NotImplementedError

    async def make_small_disk(self, path: str) -> None:
        self.files.limit_space(1_000_000)

    async def make_read_only(self, path: str) -> None:
        self.files.mount_read_only(path)

    async def names(self, path: str) -> list[str]:
        return [name.removeprefix(f"{path}/") for name in self.files.tree(path)]


@asynccontextmanager
async def memory_host(
    *,
    superuser: bool = False,
    case_sensitive: bool = True,
    normalization: Literal["NFD"] | None = None,
    clock: VirtualClock | None = None,
) -> AsyncGenerator[Host]:
    """Yield a host in memory."""
    env: MemoryEnvironment = memory_environment(
        superuser=superuser,
        case_sensitive=case_sensitive,
        normalization=normalization,
        variables=VARIABLES,
        clock=clock,
    )
    capabilities = Capabilities(
        enforces_permissions=not superuser,
        case_sensitive=case_sensitive,
        normalization=normalization,
        markings=False,
        new_file_mode=0o644,
        background_work=False,
        resource_limits=False,
    )
    async with env:
        yield Host(env, "/project", capabilities, MemorySetup(env.files), VARIABLES)


@frozen
class LocalSetup:
    """Help on the real disk. What it mounts, it unmounts at the end."""

    mounts: list[str] = Factory(lambda: list[str]())

    async def make_symlink(self, target: str, path: str) -> None:
        os.symlink(target, path)

    async def make_hard_link(self, source: str, path: str) -> None:
        os.link(source, path)

    async def make_fifo(self, path: str) -> None:
        os.mkfifo(path)

    async def set_mode(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    async def mark(self, path: str) -> None:
        if _has_attributes(Path(path).parent):
            os.setxattr(path, "user.handrail.mark", b"kept")
        if os.geteuid() == 0:
            os.chown(path, 12345, 54321)

    async def marking(self, path: str) -> object:
        found = os.stat(path)
        attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)} if sys.platform == "linux" else {}
        return found.st_uid, found.st_gid, attributes

    async def make_small_disk(self, path: str) -> None:
        os.mkdir(path)
        self._mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", path)

    async def make_read_only(self, path: str) -> None:
        self._mount("--bind", path, path)
        self._mount("-o", "remount,bind,ro", path)

    async def names(self, path: str) -> list[str]:
        return os.listdir(path)

    def _mount(self, *arguments: str) -> None:
        subprocess.run(["mount", *arguments], check=True)
        if arguments[-1] not in self.mounts:
            self.mounts.append(arguments[-1])

    def clean_up(self) -> None:
        """Unmount what was mounted."""
        for mount in reversed(self.mounts):
            subprocess.run(["umount", mount], check=True)


class HostMaker(Protocol):
    """Makes a host; gets a directory of the test's own."""

    def __call__(self, tmp_path: Path, /) -> AbstractAsyncContextManager[Host]: ...


class Hosted:
    """Gives a contract suite its fixture ``host``; mixed in before the suite."""

    make: ClassVar[HostMaker]

    @pytest.fixture
    async def host(self, tmp_path: Path) -> AsyncGenerator[Host]:
        async with type(self).make(tmp_path) as host:
            yield host


def in_memory(_: Path) -> AbstractAsyncContextManager[Host]:
    """Return an ordinary host in memory, for ``Hosted``."""
    return memory_host()


@contextmanager
def unprivileged(root: Path) -> Generator[None, None, None]:
    """Work as a user whom permissions bind, and who owns a directory; needs root."""
    for lazy in ("concurrent.futures.thread", "encodings.unicode_escape"):
        import_module(lazy)  # later the interpreter's own files may be out of reach
    nobody = 65534
    os.chown(root, nobody, nobody)
    os.setegid(nobody)
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@asynccontextmanager
async def local_host(root: Path) -> AsyncGenerator[Host]:
    """Yield a host on the real disk and real processes, in an empty directory."""
    umask = os.umask(0o022)
    os.umask(umask)
    setup = LocalSetup()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        is_root = os.geteuid() == 0
        may_mount = is_root and sys.platform == "linux" and _can_mount(root)
        capabilities = Capabilities(
            enforces_permissions=not is_root,
            markings=is_root or _has_attributes(root),
            case_sensitive=sys.platform != "darwin",
            undecodable_names=sys.platform == "linux",
            new_file_mode=0o666 & ~umask,
            limited_space=may_mount,
            read_only_mounts=may_mount,
            kills_everything=sys.platform in ("linux", "win32"),
        )
        try:
            async with local_environment(cwd=root) as env:
                yield Host(env, str(root), capabilities, setup, VARIABLES)
        finally:
            setup.clean_up()


def _has_attributes(root: Path) -> bool:
    """Whether the file system keeps extended attributes."""
    if sys.platform != "linux":
        return False
    try:
        os.setxattr(root, "user.handrail.probe", b"")
    except OSError:
        return False
    os.removexattr(root, "user.handrail.probe")
    return True


def _can_mount(root: Path) -> bool:
    """Whether this process may mount file systems; root in a container often may not."""
    probe = root.with_name(f"{root.name}-probe")
    probe.mkdir()
    try:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", probe], capture_output=True).returncode:
            return False
        subprocess.run(["umount", probe], check=True)
        return True
    finally:
        probe.rmdir()
