"""JournaledFiles: a FilePort that notes what was there before each change."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from attrs import evolve

from handrail.adapters.journal.ledger import Ledger, digest_of
from handrail.adapters.journal.looking import look, read_state
from handrail.adapters.journal.states import ABSENT, State
from handrail.adapters.journal.watching import Watch
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FilePort, FileStat, Version, WriteReceipt

__all__ = ["JournaledFiles"]


class JournaledFiles(FilePort):
    """Notes changes; everything else passes.

    Files made by ``create_temp_file`` belong to the environment, not to the workspace, and are not noted.

    Args:
        files: The port to wrap.
        ledger: Takes the changes.
        watch: Knows what is in the watched roots.
    """

    def __init__(self, files: FilePort, ledger: Ledger, watch: Watch) -> None:
        self._files = files
        self._ledger = ledger
        self._watch = watch
        self._temporary: set[str] = set()

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        return await self._files.stat(path, follow_symlinks=follow_symlinks)

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return await self._files.list_dir(path)

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        return await self._files.list_dirs(paths)

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        return await self._files.read(path, max_bytes=max_bytes)

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        return await self._files.read_many(paths, max_bytes=max_bytes)

    def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        return self._files.read_chunks(path, start=start, end=end)

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        return await self._files.scan(path, consume, start=start)

    async def canonical_path(self, path: str) -> str:
        return await self._files.canonical_path(path)

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        path = await self._files.create_temp_file(prefix=prefix, suffix=suffix)
        self._temporary.add(path)
        return path

    # -------------------------------------------------------------- changes

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        if path in self._temporary:
            return await self._files.write(path, data, expect=expect, mode=mode, previous_limit=previous_limit)
        most = self._ledger.max_bytes
        async with self._ledger.lock:
            # The port gives the content before together with the write: nobody can come in between.
            receipt = await self._files.write(
                path, data, expect=expect, mode=mode, previous_limit=max(previous_limit, most + 1)
            )
            contents: dict[str, bytes] = {}
            before = ABSENT
            if receipt.previous is not None:
                before, old = read_state(receipt.previous, most)
                if old is not None and before.digest is not None:
                    contents[before.digest] = old
            digest = digest_of(data) if len(data) <= most else None
            after = State("file", receipt.stat.mode, len(data), digest)
            if digest is not None:
                contents[digest] = data
            await self._note({receipt.canonical_path: (before, after)}, contents)
        return evolve(receipt, previous=_cut(receipt.previous, previous_limit))

    async def append(self, path: str, data: bytes) -> None:
        if path in self._temporary:
            await self._files.append(path, data)
            return
        async with self._ledger.lock:
            place = await self._place(path)
            before, old = await look(self._files, place, self._ledger.max_bytes)
            await self._files.append(path, data)
            after, new = await look(self._files, place, self._ledger.max_bytes)
            await self._note({place: (before, after)}, _contents((before, old), (after, new)))

    async def make_dirs(self, path: str) -> Sequence[str]:
        async with self._ledger.lock:
            created = await self._files.make_dirs(path)
            effect: dict[str, tuple[State, State]] = {}
            for each in created:
                place = await self._place(each)
                effect[place] = (ABSENT, State("directory", await self._mode(place)))
            await self._note(effect, {})
        return created

    async def remove(self, path: str) -> None:
        if path in self._temporary:
            await self._files.remove(path)
            self._temporary.discard(path)
            return
        async with self._ledger.lock:
            place = await self._name(path)
            before, old = await look(self._files, place, self._ledger.max_bytes)
            await self._files.remove(path)
            await self._note({place: (before, ABSENT)}, _contents((before, old)))

    async def rename(self, source: str, target: str) -> None:
        async with self._ledger.lock:
            from_place, to_place = await self._name(source), await self._name(target)
            moved = await self._watch.tree(from_place)
            replaced, old = await look(self._files, to_place, self._ledger.max_bytes)
            await self._files.rename(source, target)
            effect: dict[str, tuple[State, State]] = {}
            if from_place != to_place:
                for path, state in moved.items():
                    effect[path] = (state, ABSENT)
                for path, state in moved.items():
                    there = to_place + path[len(from_place) :]
                    effect[there] = (replaced if there == to_place else ABSENT, state)
            await self._note(effect, _contents((replaced, old)))

    # -------------------------------------------------------------- parts

    async def _note(self, effect: Mapping[str, tuple[State, State]], contents: Mapping[str, bytes]) -> None:
        for path, (_, after) in effect.items():
            self._watch.learn(path, after)
        await self._ledger.note([(path, before, after) for path, (before, after) in effect.items()], contents)

    async def _place(self, path: str) -> str:
        try:
            return await self._files.canonical_path(path)
        except PortError:
            return path  # the operation itself will meet it

    async def _name(self, path: str) -> str:
        """The canonical path of a name itself: only its directory is resolved."""
        directory, separator, name = path.rstrip("/\\").rpartition("\\" if "\\" in path and "/" not in path else "/")
        if not separator:
            return path
        try:
            return (await self._files.canonical_path(directory or separator)).rstrip(separator) + separator + name
        except PortError:
            return path  # the operation itself will meet it

    async def _mode(self, path: str) -> int:
        try:
            return (await self._files.stat(path)).mode
        except PortError:
            return 0o755


def _cut(previous: FileContent | None, limit: int) -> FileContent | None:
    """What the caller asked for of the content before."""
    if previous is None or limit == 0:
        return None
    return evolve(previous, data=previous.data[:limit])


def _contents(*looks: tuple[State, bytes | None]) -> dict[str, bytes]:
    return {state.digest: data for state, data in looks if state.digest is not None and data is not None}
