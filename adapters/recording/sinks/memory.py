"""A log in memory: for tests, and for replay without any disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from inspect import isawaitable
from typing import Any

from attrs import define, field

from handrail.adapters.recording.chain import Line
from handrail.adapters.recording.contents import ContentStore, MemoryStore
from handrail.adapters.recording.sinks.base import Opened

__all__ = ["CallableSink", "ListSink", "MemoryLog"]


@define(eq=False)
class MemoryLog:
    """A log and its contents in memory. It can be read while it is written.

    Attributes:
        lines: The lines as they would stand in a file.
        store: The contents.
    """

    lines: list[bytes] = field(factory=list[bytes], repr=False)
    store: MemoryStore = field(factory=MemoryStore)
    _head: Line | None = None

    def open(self) -> Opened:
        return Opened(self._head.head if self._head is not None else None)

    async def write(self, lines: Sequence[Line]) -> None:
        self.lines += [line.raw for line in lines]
        self._head = lines[-1]

    async def aclose(self) -> None:
        pass

    def default_store(self) -> ContentStore | None:
        return self.store


class ListSink:
    """Adds entries, as mappings with ``hash``, to the user's list."""

    def __init__(self, entries: MutableSequence[Mapping[str, Any]]) -> None:
        self._entries = entries

    def open(self) -> Opened:
        return Opened()

    async def write(self, lines: Sequence[Line]) -> None:
        self._entries.extend({**line.entry, "hash": line.hash} for line in lines)

    async def aclose(self) -> None:
        pass

    def default_store(self) -> ContentStore | None:
        return None


class CallableSink:
    """Hands each entry, as a mapping with ``hash``, to the user's function, which may be a coroutine function."""

    def __init__(self, function: Callable[[Mapping[str, Any]], object]) -> None:
        self._function = function

    def open(self) -> Opened:
        return Opened()

    async def write(self, lines: Sequence[Line]) -> None:
        for line in lines:
            outcome = self._function({**line.entry, "hash": line.hash})
            if isawaitable(outcome):
                await outcome

    async def aclose(self) -> None:
        pass

    def default_store(self) -> ContentStore | None:
        return None
