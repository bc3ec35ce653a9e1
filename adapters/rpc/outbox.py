"""Answers on their way out: bounded, in order, of each call only the newest update. Pure but for waiting."""

from __future__ import annotations

from collections import deque

import anyio
from attrs import define

from handrail.adapters.rpc.protocol import RequestError
from handrail.core.events import CallUpdated, Event

__all__ = ["Outbox"]


@define(eq=False)
class _Place:
    """A place in the queue; a newer update may take it over."""

    message: Event | RequestError


class Outbox:
    """Answers in the order in which they came.

    A reader slower than the updates of a call gets fewer of them: a newer update takes the place of one
    that still waits. Starts, ends and errors are never dropped.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Place] = deque()
        self._updates: dict[str, _Place] = {}
        self._closed = False
        self._changed = anyio.Event()

    def put(self, message: Event | RequestError) -> None:
        """Add an answer."""
        if isinstance(message, CallUpdated):
            waiting = self._updates.get(message.call_id)
            if waiting is not None:
                waiting.message = message
                return
            self._waiting.append(_Place(message))
            self._updates[message.call_id] = self._waiting[-1]
        else:
            self._waiting.append(_Place(message))
        self._changed.set()

    def close(self) -> None:
        """No more answers follow."""
        self._closed = True
        self._changed.set()

    async def next(self) -> Event | RequestError | None:
        """Take the first answer, waiting for one; ``None`` after the last."""
        while not self._waiting:
            if self._closed:
                return None
            self._changed = anyio.Event()
            await self._changed.wait()
        message = self._waiting.popleft().message
        if isinstance(message, CallUpdated):
            del self._updates[message.call_id]
        return message
