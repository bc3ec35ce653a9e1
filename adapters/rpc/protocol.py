"""The lines of the protocol: bytes to requests, events to bytes. Pure.

A request is one JSON object on one line, UTF-8:

    {"id": 1, "tool": "read", "arguments": {"path": "a.txt"}}
    {"id": 1, "cancel": true}

Answers are the events of ``handrail.core.events`` with the caller's own id, or
``{"type": "error", "id": …, "errorCode": …, "message": …}`` for a line that makes no call.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final, Literal, cast

from attrs import frozen

from handrail.core.events import Event

__all__ = [
    "MAX_LINE_BYTES",
    "CallRequest",
    "CancelRequest",
    "ErrorCode",
    "LineSplitter",
    "RequestError",
    "RequestId",
    "call_id_of",
    "encode_error",
    "encode_event",
    "parse_request",
]

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""A longer line is answered with an error and skipped, so that no client can fill the memory."""

RequestId = str | int

ErrorCode = Literal[
    "malformed_line",  # not UTF-8, not JSON, or not an object
    "line_too_long",  # over MAX_LINE_BYTES
    "invalid_request",  # an object that is neither a call nor a cancel
    "duplicate_id",  # a call of this id has not ended
    "unknown_id",  # no call of this id runs
]


class RequestError(Exception):
    """A line that makes no request.

    Attributes:
        code: Why.
        message: What a developer reads.
        request_id: The id of the line, where it has a usable one.
    """

    def __init__(self, code: ErrorCode, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.code: ErrorCode = code
        self.message = message
        self.request_id = request_id


@frozen
class CallRequest:
    """Call a tool."""

    id: RequestId
    tool: str
    arguments: Any


@frozen
class CancelRequest:
    """End a running call; its end event tells what it came to."""

    id: RequestId


def parse_request(line: bytes) -> CallRequest | CancelRequest:
    """Return the request on a line.

    Raises:
        RequestError: ``malformed_line`` or ``invalid_request``.
    """
    request = _parse_object(line)
    request_id = request.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise RequestError("invalid_request", "A request needs an id, a string or a whole number.")
    if "cancel" in request:
        if request["cancel"] is not True or "tool" in request:
            raise RequestError("invalid_request", 'A cancel is {"id": …, "cancel": true} and no more.', request_id)
        return CancelRequest(request_id)
    tool = request.get("tool")
    if not isinstance(tool, str):
        raise RequestError("invalid_request", "A call needs tool, the name of a tool.", request_id)
    return CallRequest(request_id, tool, request.get("arguments", {}))


def encode_event(event: Event) -> bytes:
    """Return the line of an event, under the id that the caller chose."""
    wire = event.to_dict()
    wire["id"] = json.loads(wire["id"])
    return _encode(wire)


def encode_error(error: RequestError) -> bytes:
    """Return the line that answers a line without a request."""
    named = {} if error.request_id is None else {"id": error.request_id}
    return _encode({"type": "error", **named, "errorCode": error.code, "message": error.message})


def call_id_of(request_id: RequestId) -> str:
    """Return the toolbox's name of a call; the numbers and the strings of callers stay apart."""
    return json.dumps(request_id)


class LineSplitter:
    """Cuts a stream of bytes into lines of bounded length.

    Args:
        max_bytes: Longest line, its newline not counted.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Yield the lines that these bytes complete; ``None`` stands for one that was too long."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._take()
        self._add(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Yield the last line, where the stream ended without a newline."""
        if self._line or self._too_long:
            yield self._take()

    def _add(self, piece: bytes) -> None:
        if self._too_long or len(self._line) + len(piece) > self._max_bytes:
            self._too_long = True
            self._line.clear()
        else:
            self._line += piece

    def _take(self) -> bytes | None:
        line = None if self._too_long else bytes(self._line)
        self._line.clear()
        self._too_long = False
        return line


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        request: Any = json.loads(line.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise RequestError("malformed_line", f"The line is not UTF-8 at byte {error.start}.") from None
    except RecursionError:
        raise RequestError("malformed_line", "The line is nested too deeply.") from None
    except ValueError as error:
        raise RequestError("malformed_line", f"The line is not JSON: {error}.") from None
    if not isinstance(request, dict):
        raise RequestError("malformed_line", "The line is not a JSON object.")
    return cast("dict[str, Any]", request)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is out of range")
    return number


def _encode(wire: dict[str, Any]) -> bytes:
    # Pure ASCII: no encoding, half surrogate or line separator can break a line. A custom tool's details may
    # hold what JSON has no form for; their text is better than no answer.
    return json.dumps(wire, separators=(",", ":"), default=str).encode("ascii") + b"\n"
