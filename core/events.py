"""What happens during a call, for people and programs that watch: start, updates, end."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Self

import anyio
from attrs import frozen

from handrail.core.results import ToolResult, to_wire

__all__ = ["CallEnded", "CallStarted", "CallUpdated", "Event", "EventStream"]

_MAX_WAITING_UPDATES: Final = 256


@frozen
class CallStarted:
    """A call was accepted; exactly one end follows."""

    call_id: str
    tool: str
    arguments: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"type": "start", "id": self.call_id, "tool": self.tool, "arguments": self.arguments}


@frozen
class CallUpdated:
    """An intermediate result of a running call; each one replaces the one before."""

    call_id: str
    tool: str
    result: ToolResult

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"type": "update", "id": self.call_id, "tool": self.tool, "result": self.result.to_dict()}


@frozen
class CallEnded:
    """A call is over."""

    call_id: str
    tool: str
    result: ToolResult
    duration_ms: float | None
    """Milliseconds of execution; ``None`` where the call failed before it was executed."""

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        wire: Mapping[str, Any] = {"type": "end", "id": self.call_id, "tool": self.tool}
        duration = {} if self.duration_ms is None else {"durationMs": to_wire(self.duration_ms)}
        return {**wire, "result": self.result.to_dict(), **duration}


Event = CallStarted | CallUpdated | CallEnded


class EventStream:
    """An async iterator over the events from its creation on; ends when its toolbox closes.

    A reader that falls behind loses old updates, never a start or an end. A reader that has seen enough closes
    the stream, so that nothing more is kept for it.

    Attributes:
        closed: Whether nothing will be added any more.
    """

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._updates = 0
        self.closed = False
        self._changed = anyio.Event()

    def push(self, event: Event) -> None:
        """Add an event; called by the toolbox. A closed stream takes none."""
        if self.closed:
            return
        if isinstance(event, CallUpdated):
            if self._updates >= _MAX_WAITING_UPDATES:
                self._drop_oldest_update()
            self._updates += 1
        self._waiting.append(event)
        self._changed.set()

    def close(self) -> None:
        """End the stream after the events that wait in it."""
        self.closed = True
        self._changed.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self.closed:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        event = self._waiting.popleft()
        self._updates -= isinstance(event, CallUpdated)
        return event

    def _drop_oldest_update(self) -> None:
        oldest = next(event for event in self._waiting if isinstance(event, CallUpdated))
        self._waiting.remove(oldest)
        self._updates -= 1
