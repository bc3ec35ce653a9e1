"""Appends of one tool call to one file, compared as one stream.

How much is appended at a time depends on how far a command got while the last piece was written, which no log can
tell exactly. What was appended in all does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, field

from handrail.adapters.recording.replaying.script import RecordedOperation

__all__ = ["AppendedStream"]


@define(eq=False)
class AppendedStream:
    """The recorded appends and how much of them has been asked for.

    Attributes:
        operations: The appends, in order.
        asked_bytes: What was asked for.
    """

    operations: list[RecordedOperation]
    _pieces: Callable[[Mapping[str, Any]], Iterator[bytes]]
    asked_bytes: int = 0
    _source: Iterator[bytes] | None = None
    _held: bytes = b""
    _ends: list[int] = field(factory=list[int])

    def __attrs_post_init__(self) -> None:
        end = 0
        for operation in self.operations:
            end += _described(operation)["size"]
            self._ends.append(end)

    def count(self, data: bytes) -> None:
        """Note data that was asked for exactly as recorded."""
        self.asked_bytes += len(data)
        if self._source is not None:
            self._take(len(data))

    def continues_with(self, data: bytes) -> bool:
        """Whether the recorded appends go on with this; notes it.

        Raises:
            ReplayError: The contents were not kept.
        """
        if self._source is None:
            self._source = (piece for operation in self.operations for piece in self._pieces(_described(operation)))
            self._take(self.asked_bytes)
        if self._take(len(data)) != data:
            return False
        self.asked_bytes += len(data)
        return True

    def is_past(self, operation: RecordedOperation) -> bool:
        """Whether all of a recorded append has been asked for."""
        return operation in self.operations and self._ends[self.operations.index(operation)] <= self.asked_bytes

    def _take(self, size: int) -> bytes:
        assert self._source is not None
        parts, missing = [self._held], size - len(self._held)
        while missing > 0:
            piece = next(self._source, b"")
            if not piece:
                break
            parts.append(piece)
            missing -= len(piece)
        data = b"".join(parts)
        self._held = data[size:]
        return data[:size]


def _described(operation: RecordedOperation) -> Mapping[str, Any]:
    described: Mapping[str, Any] = operation.arguments["data"]
    return described
