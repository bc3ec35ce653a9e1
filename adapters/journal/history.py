"""History: undo, redo and the difference since a point, by tool call."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

import anyio
from attrs import define, frozen

from handrail.adapters.journal.ledger import Ledger, net_effect
from handrail.adapters.journal.looking import look
from handrail.adapters.journal.states import ABSENT, Change, State
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
        effect = net_effect(change for change in self.changes() if change.number >= point)
        parts: list[str] = []
        for path, (before, _) in sorted(effect.items()):
            now, data = await look(self._files, path, self._ledger.max_bytes)
            parts.append(_difference(path, before, await self._content(before), now, data))
        return "".join(parts)

    # -------------------------------------------------------------- parts

    async def _undo(self, changes: Sequence[Change], force: bool) -> Undone:
        if not changes:
            return Undone((), {})
        done = await self._restore(net_effect(changes), force)
        await self._ledger.mark("undone", list(dict.fromkeys(change.group for change in changes)))
        return done

    async def _restore(self, effect: Mapping[str, tuple[State, State]], force: bool) -> Undone:
        """Bring each path from its second state to its first."""
        async with self._ledger.lock:
            wanted = {path: before for path, (before, after) in effect.items() if before != after}
            current = {path: await look(self._files, path, self._ledger.max_bytes) for path in wanted}
            if not force:
                await self._refuse_conflicts(effect, current)
            failed: dict[str, str] = {}
            with anyio.CancelScope(shield=True):  # all of it or nothing
                await self._apply(wanted, {path: state for path, (state, _) in current.items()}, failed)
            return Undone(sorted(wanted.keys() - failed.keys()), failed)

    async def _refuse_conflicts(
        self, effect: Mapping[str, tuple[State, State]], current: Mapping[str, tuple[State, bytes | None]]
    ) -> None:
        conflicts: dict[str, str] = {}
        for path, (now, data) in current.items():
            expected = effect[path][1]
            if not _alike(expected, now):
                conflicts[path] = _difference(path, expected, await self._content(expected), now, data)
        for path, (before, after) in effect.items():
            if after.kind == "directory" and before.kind != "directory" and path not in conflicts:
                for extra in await self._extra(path, effect):
                    conflicts[extra] = f"{extra} was added by somebody else\n"
        if conflicts:
            raise UndoConflict(sorted(conflicts), "".join(conflicts[path] for path in sorted(conflicts)))

    async def _extra(self, directory: str, effect: Mapping[str, tuple[State, State]]) -> list[str]:
        """What is in a directory that is to go, and is not to go itself."""
        try:
            entries = await self._files.list_dir(directory)
        except PortError:
            return []
        paths = [f"{directory}/{entry.name}" for entry in entries]
        return [path for path in paths if path not in effect or effect[path][0] != ABSENT]

    async def _apply(self, wanted: Mapping[str, State], current: Mapping[str, State], failed: dict[str, str]) -> None:
        for path, state in wanted.items():
            if state.kind == "other":
                failed[path] = "links and special files cannot be made again"
            elif not state.can_be_restored:
                failed[path] = "the content before was not kept (too large or unreadable)"
        todo = {path: state for path, state in wanted.items() if path not in failed and not _same(state, current[path])}
        gone = [path for path in todo if current[path].kind not in ("absent", todo[path].kind)]
        for path in sorted(gone, key=_depth, reverse=True):
            await self._attempt(path, self._files.remove(path), failed)
        for path in sorted((path for path in todo if todo[path].kind == "directory"), key=_depth):
            await self._make_directory(path, todo[path].mode, failed)
        for path, state in sorted(todo.items()):
            if state.kind == "file":
                await self._write(path, state, failed)
        for path, state in todo.items():
            if path not in failed:
                self._watch.learn(path, state)

    async def _make_directory(self, path: str, mode: int, failed: dict[str, str]) -> None:
        try:
            await self._files.make_dirs(path)
            if (await self._files.stat(path)).mode != mode:
                failed[path] = f"the directory is there; its mode {mode:04o} cannot be set through the port"
        except PortError as error:
            failed[path] = str(error)

    async def _write(self, path: str, state: State, failed: dict[str, str]) -> None:
        data = await self._content(state)
        if data is None:
            failed[path] = "the content is missing from the journal's store"
        else:
            await self._attempt(path, self._write_unlocked(path, data, state.mode), failed)

    async def _write_unlocked(self, path: str, data: bytes, mode: int) -> None:
        directory = path.rpartition("/")[0]
        if directory:
            await self._files.make_dirs(directory)
        try:
            await self._files.write(path, data, mode=mode)
        except PortError as error:
            if error.code != "permission_denied":
                raise
            await self._files.remove(path)  # a file that is read-only now
            await self._files.write(path, data, mode=mode)

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


def _alike(expected: State, now: State) -> bool:
    """Whether a path is as it was left. What was never known by content is compared by what is known."""
    if expected.kind == "directory":
        return now.kind == "directory"
    if expected.kind == "file" and expected.digest is None:
        return (now.kind, now.size) == ("file", expected.size)
    return _same(expected, now)


def _same(one: State, other: State) -> bool:
    if one.kind == other.kind == "other":
        return True
    return one == other


def _depth(path: str) -> int:
    return path.count("/") + path.count("\\")


def _difference(path: str, before: State, old: bytes | None, after: State, new: bytes | None) -> str:
    if before == after:
        return ""
    if "directory" in (before.kind, after.kind) or "other" in (before.kind, after.kind):
        return f"{path}: {_said(before)} -> {_said(after)}\n"
    lines: list[str] = []
    if before.mode != after.mode and "absent" not in (before.kind, after.kind):
        lines.append(f"{path}: mode {before.mode:04o} -> {after.mode:04o}\n")
    texts = _texts(old if before.kind == "file" else b"", new if after.kind == "file" else b"")
    if before.digest == after.digest and before.kind == after.kind:
        return "".join(lines)
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
    return {"absent": "nothing", "directory": "a directory", "other": "a link or special file"}[state.kind]
