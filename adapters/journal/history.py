"""History: undo, redo and the difference since a point, by tool call."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

import anyio
from attrs import define, evolve, frozen

from handrail.adapters.journal.ledger import Ledger, net_effect
from handrail.adapters.journal.looking import Openings, join, look, split
from handrail.adapters.journal.states import ABSENT, Change, Effect, State
from handrail.adapters.journal.watching import Watch
from handrail.ports.errors import PortError
from handrail.ports.files import FilePort

__all__ = ["History", "JournalError", "UndoConflict", "Undone"]

_MAX_DIFF_BYTES: Final = 1024 * 1024


class JournalError(Exception):
    """Nothing can be undone that way; the message says why."""


class UndoConflict(JournalError):
    """Files are not as the journal left them.

    Attributes:
        paths: Those files.
        diff: How they differ from what the journal expects, as unified diffs.
    """

    def __init__(self, paths: Sequence[str], diff: str) -> None:
        super().__init__(paths, diff)
        self.paths = paths
        self.diff = diff

    def __str__(self) -> str:
        names = ", ".join(self.paths)
        return f"Changed by somebody else since: {names}. Nothing was undone. What differs:\n{self.diff}"


@frozen
class Undone:
    """What an undo or a redo did.

    Attributes:
        paths: What is as it was.
        not_restored: What could not be brought back, with the reason.
    """

    paths: Sequence[str]
    not_restored: Mapping[str, str]


@define(eq=False)
class History:
    """What can be undone in one environment."""

    _files: FilePort
    _ledger: Ledger
    _watch: Watch

    def point(self) -> int:
        """Return the present moment, for ``undo_since`` and ``diff``."""
        return len(self._ledger.changes)

    def changes(self, call_id: str | None = None) -> list[Change]:
        """Return the changes that are not undone, oldest first; with a name, those of such tool calls.

        Args:
            call_id: The call's name, or the beginning of its group, which is unique (at least 8 characters).
        """
        return [
            change
            for change in self._ledger.changes
            if not self._ledger.is_undone(change.group)
            and (call_id in (None, change.call_id) or _names_group(call_id, change.group))
        ]

    @property
    def not_covered(self) -> Mapping[str, str]:
        """What in the watched roots cannot be brought back, with the reason."""
        return dict(self._watch.left_out)

    async def undo(self, call_id: str | None = None, *, force: bool = False) -> Undone:
        """Undo the last tool call of this name that changed something; by default the last of all.

        Args:
            call_id: The tool call.
            force: Undo also where somebody else, or a later call, changed the same files since.

        Raises:
            UndoConflict: A file is not as the call left it. Nothing was done.
            JournalError: There is no such call.
        """
        await self._settle()
        changes = self.changes(call_id)
        if not changes:
            what = "Nothing" if call_id is None else f"No call {call_id} that changed anything"
            raise JournalError(f"{what} is left to undo.")
        group = changes[-1].group
        return await self._undo([change for change in changes if change.group == group], force)

    async def undo_since(self, point: int, *, force: bool = False) -> Undone:
        """Undo everything that was done after a point.

        Raises:
            UndoConflict: A file is not as the last call left it. Nothing was done.
        """
        await self._settle()
        return await self._undo([change for change in self.changes() if change.number >= point], force)

    async def redo(self, *, force: bool = False) -> Undone:
        """Take the last undo back.

        Raises:
            UndoConflict: A file is not as the undo left it. Nothing was done.
            JournalError: Nothing was undone, or it was redone already.
        """
        if not self._ledger.undone:
            raise JournalError("Nothing is left to redo.")
        groups = self._ledger.undone[-1]
        effect = net_effect(change for change in self._ledger.changes if change.group in groups)
        done = await self._restore({path: (after, before) for path, (before, after) in effect.items()}, force)
        await self._ledger.mark("redone", groups)
        return done

    async def diff(self, point: int = 0) -> str:
        """Return what is different now from how it was at a point, as unified diffs, for all journaled paths."""
        await self._settle()
        effect = net_effect(change for change in self.changes() if change.number >= point)
        parts: list[str] = []
        for path, (before, _) in sorted(effect.items()):
            now, data = await look(self._files, path, self._ledger.max_bytes)
            parts.append(_difference(path, before, await self._content(before), now, data))
        return "".join(parts)

    # -------------------------------------------------------------- parts

    async def _settle(self) -> None:
        """Find out which changes that a killed process announced were never made; those are no part of the history."""
        ledger = self._ledger
        async with ledger.lock:
            for name, intended in list(ledger.unsettled.items()):
                latest = {change.path: change for change in ledger.changes}
                not_made: list[Change] = []
                for change in intended:
                    now, _ = await look(self._files, change.path, ledger.max_bytes)
                    last = latest[change.path]
                    is_latest = evolve(last, number=change.number) == change
                    if is_latest and change.before.matches(now) and not change.after.matches(now):
                        not_made.append(last)
                await ledger.settle_later(name, not_made)

    async def _undo(self, changes: Sequence[Change], force: bool) -> Undone:
        if not changes:
            return Undone((), {})
        done = await self._restore(net_effect(changes), force)
        await self._ledger.mark("undone", list(dict.fromkeys(change.group for change in changes)))
        return done

    async def _restore(self, effect: Effect, force: bool) -> Undone:
        """Bring each path from its second state to its first."""
        async with self._ledger.lock:
            wanted = {path: before for path, (before, after) in effect.items() if before != after}
            opened = Openings(self._files)
            modes: dict[str, int] = {}
            failed: dict[str, str] = {}
            try:
                current = await self._look(wanted, opened)
                if not force:
                    await self._refuse_conflicts(effect, current)
                with anyio.CancelScope(shield=True):  # all of it or nothing
                    await self._apply(wanted, {path: state for path, (state, _) in current.items()}, modes, failed)
            finally:
                failed |= await opened.close(modes)
            return Undone(sorted(wanted.keys() - failed.keys()), failed)

    async def _look(self, wanted: Iterable[str], opened: Openings) -> dict[str, tuple[State, bytes | None]]:
        """Look at paths as they are now, from the outside in.

        What is behind something that is no directory (any more) is not there: a link in the place of a directory is
        not followed. Directories of which the owner may not change the entries are opened.
        """
        paths = set(wanted)
        around = {directory for path in paths for directory in self._directories_of(path, paths)}
        current: dict[str, tuple[State, bytes | None]] = {}
        for path in sorted(paths | around, key=_depth):
            directory = split(path)[0]
            if directory in current and current[directory][0].kind != "directory":
                current[path] = (ABSENT, None)
                continue
            current[path] = await look(self._files, path, self._ledger.max_bytes)
            state = current[path][0]
            if path in around and state.kind == "directory" and state.mode is not None:
                await opened.open_to_change(path, state.mode)
        return {path: found for path, found in current.items() if path in paths}

    def _directories_of(self, path: str, changed: Container[str]) -> Iterator[str]:
        """The directories that a path is in, as far as they are watched or changed themselves."""
        directory, _ = split(path)
        while directory and (directory in changed or self._watch.covers(directory)):
            yield directory
            directory, _ = split(directory)

    async def _refuse_conflicts(self, effect: Effect, current: Mapping[str, tuple[State, bytes | None]]) -> None:
        conflicts: dict[str, str] = {}
        for path, (now, data) in current.items():
            before, expected = effect[path]
            if not expected.matches(now) and not before.matches(now):
                conflicts[path] = _difference(path, expected, await self._content(expected), now, data)
        for path, (before, after) in effect.items():
            if after.kind == "directory" and before.kind != "directory" and path not in conflicts:
                for extra in await self._extra(path, effect):
                    conflicts[extra] = f"{extra} was added by somebody else\n"
        if conflicts:
            raise UndoConflict(sorted(conflicts), "".join(conflicts[path] for path in sorted(conflicts)))

    async def _extra(self, directory: str, effect: Effect) -> list[str]:
        """What is in a directory that is to go, and is not to go itself."""
        try:
            entries = await self._files.list_dir(directory)
        except PortError:
            return []
        paths = [join(directory, entry.name) for entry in entries]
        return [path for path in paths if path not in effect or effect[path][0] != ABSENT]

    async def _apply(
        self,
        wanted: Mapping[str, State],
        current: Mapping[str, State],
        modes: dict[str, int],
        failed: dict[str, str],
    ) -> None:
        """Remove what must go and make what is missing; notes the modes that directories are to have in the end."""
        for path, state in wanted.items():
            if state.kind == "other":
                failed[path] = "what was there cannot be made again"
            elif not state.can_be_restored:
                failed[path] = "the content before was not kept (too large or unreadable)"
        todo = {
            path: state for path, state in wanted.items() if path not in failed and not state.matches(current[path])
        }
        for path in sorted((path for path in todo if _must_go(current[path], todo[path])), key=_depth, reverse=True):
            await self._attempt(path, self._files.remove(path), failed)
        for path in sorted(todo, key=_depth):
            state = todo[path]
            if state.kind == "directory":
                await self._attempt(path, self._make_directory(path, state, modes), failed)
            elif state.kind == "file":
                await self._attempt(path, self._write(path, state), failed)
            elif state.kind == "symlink":
                await self._attempt(path, self._make_link(path, state), failed)
        for path, state in todo.items():
            if path not in failed:
                self._watch.learn(path, state)

    async def _make_directory(self, path: str, state: State, modes: dict[str, int]) -> None:
        await self._refuse_detour(path)
        await self._files.make_dirs(path)
        if state.mode is not None:
            modes[path] = state.mode  # at the very end: it may forbid what is still to be done in there

    async def _write(self, path: str, state: State) -> None:
        data = await self._content(state)
        if data is None:
            raise PortError("io_error", path, "the content is missing from the journal's store")
        await self._make_room(path)
        try:
            await self._files.write(path, data, mode=state.mode)
        except PortError as error:
            if error.code != "permission_denied":
                raise
            await self._files.remove(path)  # a file that is read-only now
            await self._files.write(path, data, mode=state.mode)

    async def _make_link(self, path: str, state: State) -> None:
        assert state.target is not None
        await self._make_room(path)
        await self._files.make_link(path, state.target)

    async def _make_room(self, path: str) -> None:
        """Make the directory of a path, which somebody may have removed."""
        directory, _ = split(path)
        await self._refuse_detour(directory)
        await self._files.make_dirs(directory)

    async def _refuse_detour(self, directory: str) -> None:
        """Refuse to go on where a directory has become a link to somewhere else."""
        if await self._files.canonical_path(directory) != directory:
            raise PortError("conflict", directory, "a link leads elsewhere from here")

    async def _attempt(self, path: str, work: Awaitable[object], failed: dict[str, str]) -> None:
        try:
            await work
        except PortError as error:
            if error.code != "not_found":
                failed[path] = str(error)

    async def _content(self, state: State) -> bytes | None:
        return None if state.digest is None else await self._ledger.content(state.digest)


def _names_group(name: str | None, group: str) -> bool:
    return name is not None and len(name) >= 8 and group.startswith(name)


def _must_go(now: State, wanted: State) -> bool:
    """Whether what is there must be removed first: a file is replaced and a directory kept, a link is made anew."""
    return now.kind != "absent" and (now.kind != wanted.kind or now.kind == "symlink")


def _depth(path: str) -> int:
    return path.count("/") + path.count("\\")


def _difference(path: str, before: State, old: bytes | None, after: State, new: bytes | None) -> str:
    if before == after:
        return ""
    lines: list[str] = []
    if before.mode != after.mode and before.mode is not None and after.mode is not None and before.kind == after.kind:
        lines.append(f"{path}: mode {before.mode:04o} -> {after.mode:04o}\n")
    if lines and (before.kind == "directory" or before.digest == after.digest):
        return "".join(lines)
    if not {before.kind, after.kind} <= {"file", "absent"}:
        return f"{path}: {_said(before)} -> {_said(after)}\n"
    texts = _texts(old if before.kind == "file" else b"", new if after.kind == "file" else b"")
    if texts is None:
        return "".join([*lines, f"{path}: {_said(before)} -> {_said(after)}\n"])
    old_name = "/dev/null" if before.kind == "absent" else path
    new_name = "/dev/null" if after.kind == "absent" else path
    for line in difflib.unified_diff(*texts, old_name, new_name):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines) or f"{path}: {_said(before)} -> {_said(after)}\n"


def _texts(old: bytes | None, new: bytes | None) -> tuple[list[str], list[str]] | None:
    """Both contents as lines; ``None`` when they are no texts to be compared."""
    if old is None or new is None or len(old) + len(new) > _MAX_DIFF_BYTES or b"\0" in old + new:
        return None
    try:
        return old.decode().splitlines(keepends=True), new.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


def _said(state: State) -> str:
    if state.kind == "file":
        return f"file of {state.size} bytes ({'unknown content' if state.digest is None else state.digest[:12]})"
    if state.kind == "symlink":
        return f"a link to {state.target}"
    return {"absent": "nothing", "directory": "a directory", "other": "something else"}[state.kind]
