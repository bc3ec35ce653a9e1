"""MemoryFiles: the FilePort on a tree in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

import anyio.lowlevel

from handrail.adapters.memory._direct_access import DirectAccess
from handrail.adapters.memory._tree import FileTree
from handrail.adapters.memory._walk import NameRules
from handrail.adapters.memory.entries import Entry
from handrail.adapters.memory.faults import FaultPlan, Faults, Operation
from handrail.ports.clock import ClockPort
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FilePort, FileStat, Version, WriteReceipt

__all__ = ["MemoryFiles", "NameRules"]

T = TypeVar("T")

_CHUNK: Final = 64 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryFiles(DirectAccess, FilePort):
    """A complete file system in memory. Nothing in it touches the real one.

    A test looks at it and prepares it through the plain methods of ``DirectAccess``, which take no time, meet no
    faults and know no rights. The methods of the port behave like those of a real disk.

    Args:
        clock: Gives the timestamps and passes the time of injected delays.
        files: What is there at first: absolute path -> text, bytes, or another entry.
        names: Which spellings of a name are one name.
        umask: Taken from the mode of new files and directories.
        superuser: Whether permission bits do not bind the user, as for root.
        temp_directory: Where ``create_temp_file`` puts files.

    Attributes:
        faults: What goes wrong, and how long things take.
    """

    def __init__(
        self,
        clock: ClockPort,
        files: Mapping[str, Entry] | None = None,
        *,
        names: NameRules | None = None,
        umask: int = 0o022,
        superuser: bool = False,
        temp_directory: str = "/tmp",
    ) -> None:
        super().__init__(
            FileTree(lambda: _nanoseconds(clock.now()), names=names or NameRules(), umask=umask, superuser=superuser)
        )
        self.faults = Faults()
        self._clock = clock
        self._temp_directory = temp_directory
        # The same names in every run, so that a test may compare whole outputs.
        self._temp_names = random.Random(0)
        self._closed = False
        for path, entry in (files or {}).items():
            self[path] = entry

    async def aclose(self) -> None:
        """Refuse further operations of the port; looking at the files still works."""
        self._closed = True

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        return await self._perform("stat", path, lambda: self._tree.stat(path, follow=follow_symlinks))

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        if self.faults:
            return await super().stat_many(paths, follow_symlinks=follow_symlinks)
        await self._enter("")
        return [_or_error(partial(self._tree.stat, path, follow=follow_symlinks)) for path in paths]

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return await self._perform("list_dir", path, lambda: self._tree.list_dir(path))

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        if self.faults:
            return await super().list_dirs(paths)
        await self._enter("")
        return [self._listing(path) for path in paths]

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        return await self._perform("read", path, lambda: self._tree.read(path, max_bytes))

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        if self.faults:
            return await super().read_many(paths, max_bytes=max_bytes)
        await self._enter("")
        return [_or_error(partial(self._tree.read, path, max_bytes)) for path in paths]

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        data, _ = await self._perform("read_chunks", path, lambda: self._tree.open(path))
        position = start
        while position < (len(data) if end is None else min(end, len(data))):
            await self._perform("next_chunk", path, lambda: None)
            chunk = bytes(data[position : position + _CHUNK if end is None else min(position + _CHUNK, end)])
            position += len(chunk)
            yield chunk

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        data, found = await self._perform("scan", path, lambda: self._tree.open(path))
        for position in range(start, found.size, _CHUNK):
            if not consume(bytes(data[position : min(position + _CHUNK, found.size)])):
                break
            await anyio.lowlevel.checkpoint()
        return found

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        return await self._perform("write", path, lambda: self._tree.write(path, data, expect, mode, previous_limit))

    async def append(self, path: str, data: bytes) -> None:
        await self._perform("append", path, lambda: self._tree.append(path, data))

    async def make_dirs(self, path: str) -> Sequence[str]:
        return await self._perform("make_dirs", path, lambda: self._tree.make_dirs(path))

    async def remove(self, path: str) -> None:
        await self._perform("remove", path, lambda: self._tree.remove(path))

    async def rename(self, source: str, target: str) -> None:
        await self._perform("rename", source, lambda: self._tree.rename(source, target))

    async def read_link(self, path: str) -> str:
        return await self._perform("read_link", path, lambda: self._tree.link_target(path))

    async def make_link(self, path: str, target: str) -> None:
        await self._perform("make_link", path, lambda: self._tree.make_link(target, path))

    async def change_mode(self, path: str, mode: int) -> None:
        await self._perform("change_mode", path, lambda: self._tree.set_mode(path, mode))

    async def canonical_path(self, path: str) -> str:
        return await self._perform("canonical_path", path, lambda: self._tree.canonical_path(path))

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        path = self._temp_path(prefix, suffix)
        await self._perform("create_temp_file", path, lambda: self._tree.create_private_file(path))
        return path

    # ---------------------------------------------------------------- one operation

    async def _perform(self, operation: Operation, path: str, work: Callable[[], T]) -> T:
        """Do one step of work, surrounded by what ``faults`` plans. Without a plan it cannot be interrupted."""
        plan = self._plan(operation, path)
        if plan.delay_seconds:
            await self._clock.sleep(plan.delay_seconds)
        for hook in plan.hooks:
            await hook()
        await self._enter(path)
        if plan.error:
            raise plan.error
        result = work()
        if plan.delay_after_seconds:
            await self._clock.sleep(plan.delay_after_seconds)
        return result

    async def _enter(self, path: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self._closed:
            raise PortError("closed", path)

    def _temp_path(self, prefix: str, suffix: str) -> str:
        while True:
            path = f"{self._temp_directory}/{prefix}{self._temp_names.getrandbits(32):08x}{suffix}"
            if path not in self:
                return path

    def _plan(self, operation: Operation, path: str) -> FaultPlan:
        if not self.faults:
            return FaultPlan()
        try:
            canonical = self._tree.canonical_path(path)
        except PortError:
            canonical = path
        return self.faults.plan(operation, canonical, path)

    def _listing(self, path: str) -> DirListing:
        try:
            return DirListing.of(path, self._tree.list_dir(path))
        except PortError as error:
            return DirListing(path, error=error)


def _or_error(work: Callable[[], T]) -> T | PortError:
    try:
        return work()
    except PortError as error:
        return error


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
