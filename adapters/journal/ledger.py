"""The ledger: takes in changes, keeps the contents before and after, groups them by tool call."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread
from attrs import define, field

from handrail.adapters.journal.states import Change, State
from handrail.adapters.journal.store import JournalStore
from handrail.ports.context import CallContext, current_call
from handrail.ports.files import FileContent

__all__ = ["Ledger", "digest_of", "file_state", "net_effect"]


def digest_of(data: bytes) -> str:
    """Return the name of a content."""
    return hashlib.sha256(data).hexdigest()


def file_state(content: FileContent) -> State:
    """Return the state of a file that was read; without a digest where the content is not complete."""
    stat = content.stat
    digest = digest_of(content.data) if content.complete else None
    return State("file", stat.mode, stat.size, digest)


@define(eq=False)
class Ledger:
    """All changes of one journal.

    Attributes:
        store: Where they are kept.
        max_bytes: Contents of larger files are not kept, so their changes cannot be undone.
        lock: Held while files are changed or looked at, so that each change is seen once.
    """

    store: JournalStore
    max_bytes: int
    changes: list[Change] = field(factory=list[Change])
    undone: list[list[str]] = field(factory=list[list[str]])
    """Groups that were undone and not redone, the last step last."""
    lock: anyio.Lock = field(factory=anyio.Lock)
    _groups: WeakKeyDictionary[CallContext, str] = field(factory=WeakKeyDictionary[CallContext, str])

    def load(self) -> None:
        """Take in what the store has. Blocks."""
        for record in self.store.records():
            self._take(record)

    def group(self) -> str:
        """Return the group of the running tool call; a new one outside of any."""
        context = current_call.get()
        if context is None:
            return uuid.uuid4().hex
        return self._groups.setdefault(context, uuid.uuid4().hex)

    async def note(
        self, changes: Iterable[tuple[str, State, State]], contents: Mapping[str, bytes], group: str | None = None
    ) -> None:
        """Add changes of the running tool call, with the contents that are new.

        Args:
            changes: Path, state before, state after; those without a difference are left out.
            contents: Contents by digest.
            group: The group, when it is not a new one for what runs outside of any call.
        """
        context = current_call.get()
        group = group or self.group()
        noted = [
            Change(
                len(self.changes) + index,
                group,
                context.call_id if context is not None else None,
                context.tool if context is not None else None,
                path,
                before,
                after,
            )
            for index, (path, before, after) in enumerate(each for each in changes if each[1] != each[2])
        ]
        if noted:
            self.changes += noted
            await self._save([_to_record(change) for change in noted], contents)

    async def keep(self, contents: Mapping[str, bytes]) -> None:
        """Keep contents that may be needed later."""
        if contents:
            await self._save([], contents)

    async def mark(self, word: str, groups: Sequence[str]) -> None:
        """Note that groups were ``undone`` or ``redone``."""
        record = {word: list(groups)}
        self._take(record)
        await self._save([record], {})

    async def content(self, digest: str) -> bytes | None:
        """Return a kept content."""
        return await anyio.to_thread.run_sync(self.store.get, digest)

    def is_undone(self, group: str) -> bool:
        """Whether a group is undone at present."""
        return any(group in groups for groups in self.undone)

    async def _save(self, records: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes]) -> None:
        def work() -> None:
            for digest, data in contents.items():
                self.store.put(digest, data)
            if records:
                self.store.add(records)

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(work)

    def _take(self, record: Mapping[str, Any]) -> None:
        if "undone" in record:
            self.undone.append(list(record["undone"]))
        elif "redone" in record:
            self.undone = [groups for groups in self.undone if groups != record["redone"]]
        else:
            self.changes.append(_from_record(record, len(self.changes)))


def _to_record(change: Change) -> dict[str, Any]:
    return {
        "group": change.group,
        "call": change.call_id,
        "tool": change.tool,
        "path": change.path,
        "before": change.before.to_json(),
        "after": change.after.to_json(),
    }


def _from_record(record: Mapping[str, Any], number: int) -> Change:
    before, after = State.from_json(record["before"]), State.from_json(record["after"])
    return Change(number, record["group"], record["call"], record["tool"], record["path"], before, after)


def net_effect(changes: Iterable[Change]) -> dict[str, tuple[State, State]]:
    """Return, per path, the state before the first and after the last of some changes."""
    effect: dict[str, tuple[State, State]] = {}
    for change in changes:
        before = effect[change.path][0] if change.path in effect else change.before
        effect[change.path] = (before, change.after)
    return effect
