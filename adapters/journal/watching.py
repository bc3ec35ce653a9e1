"""Watch: what is in the roots that commands may change, so that a command's changes can be told and undone.

A look at a root lists its directories and asks for the stat of every file in one step; only files whose version is
new, or that were changed too recently for their time stamps to be trusted, are read and hashed. The first look
reads everything: a command can change any file, so the content of each must be known before.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from handrail.adapters.journal.ledger import Ledger
from handrail.adapters.journal.looking import look, read_state
from handrail.adapters.journal.states import ABSENT, State
from handrail.ports.clock import ClockPort
from handrail.ports.errors import PortError
from handrail.ports.files import FilePort, Version

__all__ = ["Watch"]

_SETTLED_NS: Final = 2_000_000_000
_STATS_AT_ONCE: Final = 4096
_READS_AT_ONCE: Final = 64


@frozen
class _Known:
    state: State
    version: Version | None
    """``None``: must be read again."""


@define(eq=False)
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
        if not self._is_watched(path):
            return
        if state == ABSENT:
            self._known.pop(path, None)
        else:
            self._known[path] = _Known(state, None)

    async def refresh(self) -> dict[str, tuple[State, State]]:
        """Look at the roots; returns what changed since the last look. New contents are kept."""
        self.left_out.clear()
        found = await self._look(await self._resolved_roots())
        before = self._known
        self._known = found
        effect: dict[str, tuple[State, State]] = {}
        for path in before.keys() | found.keys():
            old = before[path].state if path in before else ABSENT
            new = found[path].state if path in found else ABSENT
            if old != new:
                effect[path] = (old, new)
        return dict(sorted(effect.items()))

    async def tree(self, root: str) -> dict[str, State]:
        """Return the states of a path and of all below it. Contents are kept."""
        state, data = await look(self.files, root, self.ledger.max_bytes)
        if data is not None and state.digest is not None:
            await self.ledger.keep({state.digest: data})
        states = {root: state}
        if state.kind == "directory":
            found = await self._look([root], fresh=True)
            states |= {path: known.state for path, known in found.items()}
        return states

    # -------------------------------------------------------------- parts

    def _is_watched(self, path: str) -> bool:
        for root in self._canonical_roots or ():
            prefix = root.rstrip("/\\")
            if path.startswith((prefix + "/", prefix + "\\")):
                return not any(
                    self._is_excluded(name) for name in path[len(prefix) + 1 :].replace("\\", "/").split("/")
                )
        return False

    def _is_excluded(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.exclude)

    async def _resolved_roots(self) -> list[str]:
        if self._canonical_roots is None:
            self._canonical_roots = [await self.files.canonical_path(root) for root in self.roots]
        return self._canonical_roots

    async def _look(self, roots: Sequence[str], *, fresh: bool = False) -> dict[str, _Known]:
        """Return all below some directories; with ``fresh``, nothing known is relied upon."""
        found: dict[str, _Known] = {}
        paths: list[str] = []
        level = list(roots)
        while level:
            below: list[str] = []
            for listing in await self.files.list_dirs(level):
                if listing.error is not None:
                    if listing.error.code != "not_found":
                        self.left_out[listing.path] = str(listing.error)
                    continue
                separator = "\\" if "\\" in listing.path and "/" not in listing.path else "/"
                prefix = listing.path.rstrip(separator) + separator
                for entry in listing.entries:
                    if not fresh and self._is_excluded(entry.name):
                        continue
                    path = prefix + entry.name
                    if entry.kind == "directory":
                        below.append(path)
                    elif entry.kind == "file":
                        paths.append(path)
                    else:
                        found[path] = _Known(State("other"), None)
                        self.left_out[path] = f"a {entry.kind} cannot be made again"
            for path in below:
                try:
                    found[path] = _Known(State("directory", (await self.files.stat(path)).mode), None)
                except PortError:
                    continue
            level = below
        await self._look_at_files(paths, found, {} if fresh else self._known)
        return found

    async def _look_at_files(self, paths: Sequence[str], found: dict[str, _Known], known: Mapping[str, _Known]) -> None:
        """Add the states of files to what was found."""
        now_ns = int(self.clock.now().timestamp() * 1e9)
        changed: list[str] = []
        for start in range(0, len(paths), _STATS_AT_ONCE):
            batch = paths[start : start + _STATS_AT_ONCE]
            for path, content in zip(batch, await self.files.read_many(batch, max_bytes=0), strict=True):
                if isinstance(content, PortError):
                    if content.code not in ("not_found", "not_a_directory"):
                        self.left_out[path] = str(content)
                        found[path] = _Known(State("other"), None)
                    continue
                before = known.get(path)
                if before is not None and before.version == content.stat.version:
                    found[path] = before
                else:
                    changed.append(path)
        for start in range(0, len(changed), _READS_AT_ONCE):
            batch = changed[start : start + _READS_AT_ONCE]
            read = await self.files.read_many(batch, max_bytes=self.ledger.max_bytes + 1)
            pieces: dict[str, bytes] = {}
            for path, content in zip(batch, read, strict=True):
                if isinstance(content, PortError):
                    continue
                state, data = read_state(content, self.ledger.max_bytes)
                if data is not None and state.digest is not None:
                    pieces[state.digest] = data
                else:
                    self.left_out[path] = f"larger than {self.ledger.max_bytes} bytes"
                settled = now_ns - content.stat.mtime_ns > _SETTLED_NS
                found[path] = _Known(state, content.stat.version if settled else None)
            await self.ledger.keep(pieces)  # now, so that memory does not grow with the tree
