"""JournaledFiles: a FilePort that notes what was there before each change."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import anyio
from attrs import evolve

from handrail.adapters.journal.ledger import Intent, Ledger, digest_of
from handrail.adapters.journal.looking import join, look, read_state, split
from handrail.adapters.journal.states import ABSENT, Effect, State
from handrail.adapters.journal.watching import Watch
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FilePort, FileStart, FileStat, Version, WriteReceipt

__all__ = ["JournaledFiles"]

T = TypeVar("T")

_Outcome = tuple[Effect, Mapping[str, bytes]]
"""What was done, and contents to keep."""


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

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        return await self._files.stat_many(paths, follow_symlinks=follow_symlinks)

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return await self._files.list_dir(path)

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        return await self._files.list_dirs(paths)

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        return await self._files.read(path, max_bytes=max_bytes)

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        return await self._files.read_many(paths, max_bytes=max_bytes)

    async def read_starts(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileStart | PortError]:
        return await self._files.read_starts(paths, max_bytes=max_bytes)

    def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        return self._files.read_chunks(path, start=start, end=end)

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        return await self._files.scan(path, consume, start=start)

    async def read_link(self, path: str) -> str:
        return await self._files.read_link(path)

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
        digest = digest_of(data) if len(data) <= most else None
        async with self._ledger.lock:
            place, before, old, readable = await self._read_before(path)
            after = State("file", before.mode if mode is None and before.kind == "file" else mode, len(data), digest)
            contents = {} if digest is None else {digest: data}
            limit = max(previous_limit, most + 1) if readable else previous_limit

            async def settled(receipt: WriteReceipt) -> _Outcome:
                really, kept = before, dict[str, bytes]()
                if receipt.previous is not None and readable:
                    # The port gives the content before together with the write: nobody could come in between.
                    really, found = read_state(receipt.previous, most)
                    kept = _contents((really, found)) if really != before else {}
                elif receipt.created:
                    really = ABSENT
                return {receipt.canonical_path: (really, evolve(after, mode=receipt.stat.mode))}, kept

            receipt = await self._change(
                {place: (before, after)},
                contents | _contents((before, old)),
                lambda: self._files.write(path, data, expect=expect, mode=mode, previous_limit=limit),
                settled,
            )
        return evolve(receipt, previous=_cut(receipt.previous, previous_limit))

    async def append(self, path: str, data: bytes) -> None:
        if path in self._temporary:
            await self._files.append(path, data)
            return
        most = self._ledger.max_bytes
        async with self._ledger.lock:
            place = await self._place(path)
            before, old = await look(self._files, place, most)
            whole = None if old is None or len(old) + len(data) > most else old + data
            digest = None if whole is None else digest_of(whole)
            after = State("file", before.mode, before.size + len(data), digest)
            await self._change(
                {place: (before, after)},
                _contents((before, old), (after, whole)),
                lambda: self._files.append(path, data),
                partial=True,
            )

    async def make_dirs(self, path: str) -> Sequence[str]:
        async with self._ledger.lock:
            missing = await self._missing(await self._place(path))
            effect = {place: (ABSENT, State("directory", None)) for place in missing}

            async def settled(created: Sequence[str]) -> _Outcome:
                return await self._found({place: effect[place] for place in missing[len(missing) - len(created) :]})

            return await self._change(effect, {}, lambda: self._files.make_dirs(path), settled)

    async def remove(self, path: str) -> None:
        if path in self._temporary:
            await self._files.remove(path)
            self._temporary.discard(path)
            return
        async with self._ledger.lock:
            place = await self._name(path)
            before, old = await look(self._files, place, self._ledger.max_bytes)
            await self._change({place: (before, ABSENT)}, _contents((before, old)), lambda: self._files.remove(path))

    async def rename(self, source: str, target: str) -> None:
        async with self._ledger.lock:
            from_place, to_place = await self._name(source), await self._name(target)
            moved = await self._watch.tree(from_place)
            replaced, old = await look(self._files, to_place, self._ledger.max_bytes)
            effect: dict[str, tuple[State, State]] = {}
            if from_place != to_place and moved[from_place] != ABSENT:
                for path, state in moved.items():
                    effect[path] = (state, ABSENT)
                for path, state in moved.items():
                    there = to_place + path[len(from_place) :]
                    effect[there] = (replaced if there == to_place else ABSENT, state)
            await self._change(effect, _contents((replaced, old)), lambda: self._files.rename(source, target))

    async def make_link(self, path: str, target: str) -> None:
        async with self._ledger.lock:
            place = await self._name(path)
            before, _ = await look(self._files, place, 0)
            effect = {place: (before, State("symlink", target=target))} if before == ABSENT else {}
            await self._change(effect, {}, lambda: self._files.make_link(path, target))

    async def change_mode(self, path: str, mode: int) -> None:
        async with self._ledger.lock:
            place = await self._place(path)
            before, old = await look(self._files, place, self._ledger.max_bytes)
            after = evolve(before, mode=mode) if before.kind in ("file", "directory") else before
            await self._change(
                {place: (before, after)},
                _contents((before, old)),
                lambda: self._files.change_mode(path, mode),
            )

    # -------------------------------------------------------------- parts

    async def _change(
        self,
        intended: Effect,
        contents: Mapping[str, bytes],
        work: Callable[[], Awaitable[T]],
        outcome: Callable[[T], Awaitable[_Outcome]] | None = None,
        *,
        partial: bool = False,
    ) -> T:
        """Make a change and note what it did, whatever happens to this task once it is done.

        Args:
            intended: What it should do.
            contents: What is needed to undo and redo that.
            work: Does it; may be cancelled.
            outcome: Tells from its result what it did, with contents to keep; by default that is looked at.
            partial: Whether it may leave something half done when it fails.
        """
        intent = await self._ledger.intend(intended, contents)
        try:
            result = await work()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._settle(intent, await self._found(intended, partial=partial))
            raise
        with anyio.CancelScope(shield=True):
            done = self._found(intended, partial=True) if outcome is None else outcome(result)
            await self._settle(intent, await done)
        return result

    async def _settle(self, intent: Intent, outcome: _Outcome) -> None:
        effect, contents = outcome
        for path, (_, after) in effect.items():
            self._watch.learn(path, after)
        await self._ledger.settle(intent, effect, contents)

    async def _found(self, intended: Effect, *, partial: bool = False) -> _Outcome:
        """Look at what became of paths that were to be changed.

        Args:
            intended: What was to become of them.
            partial: Whether something else can have become of them; otherwise that was somebody else.
        """
        effect: dict[str, tuple[State, State]] = {}
        contents: dict[str, bytes] = {}
        for path, (before, after) in intended.items():
            now, data = await look(self._files, path, self._ledger.max_bytes)
            if not before.matches(now) and (partial or after.matches(now)):
                effect[path] = (before, now)
                contents |= _contents((now, data))
        return effect, contents

    async def _read_before(self, path: str) -> tuple[str, State, bytes | None, bool]:
        """Return where a write would go, what is there, its content, and whether it can be read just so."""
        most = self._ledger.max_bytes
        try:
            content = await self._files.read(path, max_bytes=most + 1)
        except PortError as error:
            place = await self._place(path)
            if error.code == "not_found":
                return place, ABSENT, None, True
            return place, *await look(self._files, place, most), False
        return content.canonical_path, *read_state(content, most), True

    async def _missing(self, place: str) -> list[str]:
        """The directories that are not there yet on the way to one, outermost first."""
        missing: list[str] = []
        while place and (await look(self._files, place, 0))[0] == ABSENT:
            missing.insert(0, place)
            place, _ = split(place)
        return missing

    async def _place(self, path: str) -> str:
        try:
            return await self._files.canonical_path(path)
        except PortError:
            return path  # the operation itself will meet it

    async def _name(self, path: str) -> str:
        """The canonical path of a name itself: only its directory is resolved."""
        directory, name = split(path)
        try:
            return join(await self._files.canonical_path(directory), name) if directory else path
        except PortError:
            return path  # the operation itself will meet it


def _cut(previous: FileContent | None, limit: int) -> FileContent | None:
    """What the caller asked for of the content before."""
    if previous is None or limit == 0:
        return None
    return evolve(previous, data=previous.data[:limit])


def _contents(*looks: tuple[State, bytes | None]) -> dict[str, bytes]:
    return {state.digest: data for state, data in looks if state.digest is not None and data is not None}
