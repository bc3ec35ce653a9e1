"""The ledger: takes in changes, keeps the contents before and after, groups them by tool call."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread
from attrs import define, evolve, field, frozen

from handrail.adapters.journal.states import Change, Effect, State
from handrail.adapters.journal.store import JournalStore
from handrail.ports.context import CallContext, current_call

__all__ = ["Intent", "Ledger", "digest_of", "net_effect"]


def digest_of(data: bytes) -> str:
    """Return the name of a content."""
    return hashlib.sha256(data).hexdigest()


@frozen(eq=False)
class Intent:
    """A change that is about to be made.

    Attributes:
        name: Unique.
        group: What it belongs to.
        effect: What it should do.
    """

    name: str
    group: str
    effect: Effect


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
    unsettled: dict[str, list[Change]] = field(factory=dict[str, list[Change]])
    """Intents of which a process that was killed has not told what came of them, by name."""
    lock: anyio.Lock = field(factory=anyio.Lock)
    _groups: WeakKeyDictionary[CallContext, str] = field(factory=WeakKeyDictionary[CallContext, str])

    def load(self) -> None:
        """Take in what the store has. Blocks."""
        blocks: list[list[Change]] = []
        intended: dict[str, tuple[list[Change], list[Change]]] = {}  # what is taken for done, what was intended
        self.unsettled.clear()
        for record in self.store.records():
            if "undone" in record or "redone" in record:
                self._mark(record)
            elif "done" in record:
                block, whole = intended.get(record["done"], ([], []))
                block[:] = [_from_record(each) for each in record["changes"]] if "changes" in record else whole
                self.unsettled.pop(record["done"], None)
            elif "intent" in record:
                whole = [_from_record(each) for each in record["changes"]]
                blocks.append([*whole])
                intended[record["intent"]] = blocks[-1], whole
                self.unsettled[record["intent"]] = whole
            else:
                blocks.append([_from_record(record)])
        self.changes = [evolve(each, number=number) for number, each in enumerate(chain.from_iterable(blocks))]

    def group(self) -> str:
        """Return the group of the running tool call; a new one outside of any."""
        context = current_call.get()
        if context is None:
            return uuid.uuid4().hex
        return self._groups.setdefault(context, uuid.uuid4().hex)

    async def note(self, effect: Effect, contents: Mapping[str, bytes], group: str | None = None) -> None:
        """Add changes of the running tool call, with the contents that are new.

        Args:
            effect: What changed; what did not is left out.
            contents: Contents by digest.
            group: The group, when it is not a new one for what runs outside of any call.
        """
        noted = self._changes(effect, group or self.group())
        if noted:
            self.changes += noted
            await self._save(_to_records(noted), contents)

    async def intend(self, effect: Effect, contents: Mapping[str, bytes]) -> Intent:
        """Keep what a change is about to do, and what is needed to undo it, before it is made.

        When the process is killed before ``settle``, the next one to load the journal takes it for done; where it
        was not, there is nothing to undo.
        """
        intent = Intent(uuid.uuid4().hex, self.group(), effect)
        records = _to_records(self._changes(effect, intent.group))
        if records:
            await self._save([{"intent": intent.name, "changes": records}], contents)
        return intent

    async def settle(self, intent: Intent, effect: Effect, contents: Mapping[str, bytes]) -> None:
        """Note what an intended change has really done."""
        noted = self._changes(effect, intent.group)
        self.changes += noted
        intended = self._changes(intent.effect, intent.group)
        if not intended:
            if noted:
                await self._save(_to_records(noted), contents)
        elif _to_records(noted) == _to_records(intended):
            await self._save([{"done": intent.name}], contents)
        else:
            await self._save([{"done": intent.name, "changes": _to_records(noted)}], contents)

    async def settle_later(self, name: str, not_made: Sequence[Change]) -> None:
        """Note what came of an intent of a process that was killed: all of it but some changes."""
        paths = {change.path for change in not_made}
        made = [change for change in self.unsettled.pop(name) if change.path not in paths]
        kept = [change for change in self.changes if change not in not_made]
        self.changes = [evolve(change, number=number) for number, change in enumerate(kept)]
        await self._save([{"done": name, "changes": _to_records(made)}], {})

    async def keep(self, contents: Mapping[str, bytes]) -> None:
        """Keep contents that may be needed later."""
        if contents:
            await self._save([], contents)

    async def mark(self, word: str, groups: Sequence[str]) -> None:
        """Note that groups were ``undone`` or ``redone``."""
        record = {word: list(groups)}
        self._mark(record)
        await self._save([record], {})

    async def content(self, digest: str) -> bytes | None:
        """Return a kept content."""
        return await anyio.to_thread.run_sync(self.store.get, digest)

    def is_undone(self, group: str) -> bool:
        """Whether a group is undone at present."""
        return any(group in groups for groups in self.undone)

    def _changes(self, effect: Effect, group: str) -> list[Change]:
        context = current_call.get()
        call_id, tool = (None, None) if context is None else (context.call_id, context.tool)
        really = [(path, before, after) for path, (before, after) in effect.items() if before != after]
        return [
            Change(len(self.changes) + index, group, call_id, tool, path, before, after)
            for index, (path, before, after) in enumerate(really)
        ]

    async def _save(self, records: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes]) -> None:
        def work() -> None:
            for digest, data in contents.items():
                self.store.put(digest, data)
            if records:
                self.store.add(records)

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(work)

    def _mark(self, record: Mapping[str, Any]) -> None:
        if "undone" in record:
            self.undone.append(list(record["undone"]))
        else:
            self.undone = [groups for groups in self.undone if groups != record["redone"]]


def _to_records(changes: Iterable[Change]) -> list[dict[str, Any]]:
    return [_to_record(change) for change in changes]


def _to_record(change: Change) -> dict[str, Any]:
    return {
        "group": change.group,
        "call": change.call_id,
        "tool": change.tool,
        "path": change.path,
        "before": change.before.to_json(),
        "after": change.after.to_json(),
    }


def _from_record(record: Mapping[str, Any]) -> Change:
    """Return a change; its number is given when all are loaded."""
    before, after = State.from_json(record["before"]), State.from_json(record["after"])
    return Change(-1, record["group"], record["call"], record["tool"], record["path"], before, after)


def net_effect(changes: Iterable[Change]) -> dict[str, tuple[State, State]]:
    """Return, per path, the state before the first and after the last of some changes."""
    effect: dict[str, tuple[State, State]] = {}
    for change in changes:
        before = effect[change.path][0] if change.path in effect else change.before
        effect[change.path] = (before, change.after)
    return effect
