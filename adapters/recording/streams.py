"""The pieces of a recorded stream, as they pass."""

from __future__ import annotations

from typing import Any

from handrail.adapters.recording.keeping import ContentStream
from handrail.adapters.recording.recorder import Operation

__all__ = ["finished", "record_piece"]


async def record_piece(stream: ContentStream, operation: Operation, data: bytes) -> None:
    """Record a piece of a stream.

    Raises:
        PortError: ``io_error``: it cannot be recorded, by the policy ``fail``.
    """
    said = stream.feed(data)
    if said is not None:
        operation.note("chunk", {"content": said})
    if stream.wants_drain:
        await operation.recorder.stored(stream.drain, stream.waiting_bytes)
    await operation.recorder.flush_if_many()


async def finished(stream: ContentStream, operation: Operation) -> Any:
    """End a stream; returns what is said of all of it."""
    rest = stream.rest()
    if rest is not None:
        operation.note("chunk", {"content": rest})
    return await operation.recorder.stored(stream.finish, stream.waiting_bytes)
