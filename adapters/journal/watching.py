"""Watch: what is in the roots that commands may change, so that a command's changes can be told and undone.

A look at a root lists its directories and asks for the stats of all that is in them, two steps for each level of the
tree. Only files and links whose version is new, or that were changed too recently for their time stamps to be trusted,
are read. The first look reads everything: a command can change any file, so the content of each must be known before.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from attrs import define, field, frozen

from handrail.adapters.journal.ledger import Ledger
from handrail.adapters.journal.looking import Openings, look, look_at_link, read_anyway, read_state
from handrail.adapters.journal.states import ABSENT, Effect, State
from handrail.ports.clock import ClockPort
from handrail.ports.errors import PortError
from handrail.ports.files import FilePort, FileStat, Version

__all__ = ["Watch"]

_NameTest = Callable[[str], bool]

_SETTLED_NS: Final = 2_000_000_000
_STATS_AT_ONCE: Final = 4096
_READS_AT_ONCE: Final = 64
_BYTES_AT_ONCE: Final = 64 * 1024 * 1024


@frozen
class _Known:
    state: State
    version: Version | None
    """``None``: must be read again."""


_GONE: Final = ("not_found", "not_a_directory")
_OTHER: Final = _Known(State("other"), None)


@define(eq=False, slots=False)
class Watch:
    """Knows the watched roots as they were at the last look.

    Attributes:
        files: The port, not journaled.
        clock: Tells how fresh a time stamp is.
        ledger: Keeps contents.
        roots: Canonical directories to watch.
        exclude: Names (``fnmatch``) that are left out, with all below them.
        left_out: Paths that cannot be covered, with the reason.
    """

    files: FilePort
    clock: ClockPort
    ledger: Ledger
    roots: Sequence[str]
    exclude: Sequence[str]
    left_out: dict[str, str] = field(factory=dict[str, str])
    _known: dict[str, _Known] = field(factory=dict[str, _Known])
    _canonical_roots: list[str] | None = None

    def learn(self, path: str, state: State) -> None:
        """Take over a change that was made through the port."""
        if not self.covers(path):
            return
        if state == ABSENT:
            self._known.pop(path, None)
        else:
            self._known[path] = _Known(state, None)

    def covers(self, path: str) -> bool:
        """Whether a path is in a root, or one itself, and not left out by its name."""
        for root in self._canonical_roots or ():
            if path == root:
                return True
            prefix = root.rstrip("/\\")
            if path.startswith((prefix + "/", prefix + "\\")):
                return not any(map(self._is_excluded, path[len(prefix) + 1 :].replace("\\", "/").split("/")))
        return False

    async def refresh(self) -> Effect:
        """Look at the roots; returns what changed since the last look. New contents are kept."""
        self.left_out.clear()
        found = await self._look(await self._resolved_roots(), self._known, self._is_excluded)
        before, self._known = self._known, found
        effect: dict[str, tuple[State, State]] = {}
        for path, now in found.items():
            then = before.get(path)
            if then is now:
                continue
            old = ABSENT if then is None else then.state
            if old != now.state:
                effect[path] = (old, now.state)
        for path in before.keys() - found.keys():
            effect[path] = (before[path].state, ABSENT)
        return dict(sorted(effect.items()))

    async def tree(self, root: str) -> dict[str, State]:
        """Return the states of a path and of all below it. Contents are kept."""
        state, data = await look(self.files, root, self.ledger.max_bytes)
        if data is not None and state.digest is not None:
            await self.ledger.keep({state.digest: data})
        if state.kind != "directory":
            return {root: state}
        found = await self._look([root], {}, lambda _: False)
        return {root: state} | {path: known.state for path, known in found.items()}

    # -------------------------------------------------------------- parts

    @cached_property
    def _excluding(self) -> re.Pattern[str]:
        return re.compile("|".join(map(fnmatch.translate, self.exclude)) or r"(?!)")

    def _is_excluded(self, name: str) -> bool:
        return self._excluding.match(name) is not None

    async def _resolved_roots(self) -> list[str]:
        if self._canonical_roots is None:
            self._canonical_roots = [await self.files.canonical_path(root) for root in self.roots]
        return self._canonical_roots

    async def _look(
        self, roots: Sequence[str], known: Mapping[str, _Known], is_excluded: _NameTest
    ) -> dict[str, _Known]:
        """Return some directories and all below them.

        Args:
            roots: The directories.
            known: What is known already; relied upon where versions are the same.
            is_excluded: Tells which names to leave out.
        """
        found: dict[str, _Known] = {}
        changed: list[tuple[str, FileStat]] = []
        opened = Openings(self.files)
        try:
            level = await self._sort(roots, known, found, changed, opened)
            while level:
                paths = await self._paths_in(level, known, found, is_excluded)
                level = await self._sort(paths, known, found, changed, opened)
            await self._read(changed, found)
        finally:
            self.left_out |= await opened.close()
        return found

    async def _paths_in(
        self,
        directories: Sequence[str],
        known: Mapping[str, _Known],
        found: dict[str, _Known],
        is_excluded: _NameTest,
    ) -> list[str]:
        paths: list[str] = []
        for listing in await self.files.list_dirs(directories):
            if listing.error is not None and listing.error.code not in _GONE:
                self._leave(listing.path, listing.error, known, found)
            separator = "\\" if "\\" in listing.path and "/" not in listing.path else "/"
            prefix = listing.path.rstrip(separator) + separator
            paths += [prefix + entry.name for entry in listing.entries if not is_excluded(entry.name)]
        return paths

    async def _sort(
        self,
        paths: Sequence[str],
        known: Mapping[str, _Known],
        found: dict[str, _Known],
        changed: list[tuple[str, FileStat]],
        opened: Openings,
    ) -> list[str]:
        """Sort paths into what was found and what must be read; returns the directories among them."""
        directories: list[str] = []
        async for path, stat in self._stats(paths):
            before = known.get(path)
            if isinstance(stat, PortError):
                if stat.code not in _GONE:
                    self._leave(path, stat, known, found)
            elif stat.kind == "directory":
                directories.append(path)
                found[path] = _Known(State("directory", stat.mode), None)
                await opened.open_to_look(path, stat.mode)
            elif stat.kind not in ("file", "symlink"):
                self.left_out[path] = f"a {stat.kind} cannot be made again"
                found[path] = _OTHER
            elif stat.kind == "file" and stat.size > self.ledger.max_bytes:
                self.left_out[path] = f"larger than {self.ledger.max_bytes} bytes"
                found[path] = _Known(State("file", stat.mode, stat.size), None)
            elif before is not None and before.version == stat.version:
                found[path] = before
            else:
                changed.append((path, stat))
        return directories

    def _leave(self, path: str, error: PortError, known: Mapping[str, _Known], found: dict[str, _Known]) -> None:
        """Say that there can be no look at a path, and take it and all below it for unchanged."""
        self.left_out[path] = str(error)
        found.setdefault(path, known.get(path, _OTHER))
        below = (path + "/", path + "\\")
        found |= {each: state for each, state in known.items() if each.startswith(below)}

    async def _stats(self, paths: Sequence[str]) -> AsyncIterator[tuple[str, FileStat | PortError]]:
        for start in range(0, len(paths), _STATS_AT_ONCE):
            batch = paths[start : start + _STATS_AT_ONCE]
            for pair in zip(batch, await self.files.stat_many(batch, follow_symlinks=False), strict=True):
                yield pair

    async def _read(self, changed: Sequence[tuple[str, FileStat]], found: dict[str, _Known]) -> None:
        """Add the states of files and links to what was found."""
        now_ns = int(self.clock.now().timestamp() * 1e9)
        for path, stat in changed:
            if stat.kind == "symlink":
                await self._read_link(path, stat, found, now_ns)
        for batch in _batches([each for each in changed if each[1].kind == "file"]):
            pieces: dict[str, bytes] = {}
            paths = [path for path, _ in batch]
            contents = await self.files.read_many(paths, max_bytes=self.ledger.max_bytes + 1)
            for (path, stat), content in zip(batch, contents, strict=True):
                version = None
                if isinstance(content, PortError):
                    try:
                        content = await read_anyway(self.files, path, stat.mode, self.ledger.max_bytes)
                    except PortError as error:
                        if error.code not in _GONE:
                            self.left_out[path] = str(error)
                            found[path] = _OTHER
                        continue
                elif now_ns - content.stat.mtime_ns > _SETTLED_NS:
                    version = content.stat.version
                state, data = read_state(content, self.ledger.max_bytes)
                if data is not None and state.digest is not None:
                    pieces[state.digest] = data
                found[path] = _Known(state, version)
            await self.ledger.keep(pieces)  # now, so that memory does not grow with the tree

    async def _read_link(self, path: str, stat: FileStat, found: dict[str, _Known], now_ns: int) -> None:
        try:
            state = await look_at_link(self.files, path)
        except PortError as error:
            if error.code not in _GONE:
                self.left_out[path] = str(error)
                found[path] = _OTHER
            return
        if state.kind == "other":
            self.left_out[path] = "not_supported: links cannot be read and made here"
        settled = state.kind == "symlink" and now_ns - stat.mtime_ns > _SETTLED_NS
        found[path] = _Known(state, stat.version if settled else None)


def _batches(files: Iterable[tuple[str, FileStat]]) -> Iterator[list[tuple[str, FileStat]]]:
    """Cut files to be read into portions that fit into memory."""
    batch: list[tuple[str, FileStat]] = []
    size = 0
    for path, stat in files:
        if batch and (len(batch) == _READS_AT_ONCE or size + stat.size > _BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append((path, stat))
        size += stat.size
    if batch:
        yield batch
