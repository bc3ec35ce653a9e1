"""A log, taken apart into tool calls and port calls, each with the moments it had in the order of the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from handrail.adapters.recording.chain import Line

__all__ = ["Moment", "RecordedCall", "RecordedOperation", "Script", "parse_script"]


@define(eq=False)
class Moment:
    """Something that happened at one place in the order of the log.

    ``key`` orders moments. The start of a port call has no entry of its own; it lies before the entry that was
    written next.
    """

    key: tuple[int, int, int]
    done: bool = False
    """Whether the replay has come past it."""
    released: bool = False
    """Whether it may happen out of turn."""

    def release(self) -> None:
        """Let it happen out of turn."""
        self.released = True


@define(eq=False)
class RecordedCall:
    """A tool call.

    Attributes:
        call_id: The caller's name for it.
        tool: The tool.
        arguments: In recorded form.
        began: ``seq`` of its start.
        result: In recorded form; ``None`` when the log ends before it.
        end: The moment of the result.
    """

    call_id: str
    tool: str
    arguments: Any
    began: int
    result: Mapping[str, Any] | None = None
    end: Moment | None = None
    operations: list[RecordedOperation] = field(factory=lambda: list[RecordedOperation]())

    @property
    def was_aborted(self) -> bool:
        """Whether it was cancelled."""
        return self.result is not None and self.result.get("errorCode") == "aborted"


@define(eq=False)
class RecordedOperation:
    """A port call.

    Attributes:
        pieces: The ``chunk`` and ``exit`` entries during it.
        outcome: Its last entry; ``None`` when the log ends before it.
    """

    port: str
    method: str
    arguments: Mapping[str, Any]
    start: Moment
    pieces: list[tuple[Moment, Mapping[str, Any]]] = field(factory=list[tuple[Moment, Mapping[str, Any]]])
    outcome: Mapping[str, Any] | None = None
    end: Moment | None = None

    @property
    def moments(self) -> Iterable[Moment]:
        """All moments, in order."""
        yield self.start
        for moment, _ in self.pieces:
            yield moment
        if self.end is not None:
            yield self.end


@define(eq=False)
class Script:
    """What a log says.

    Attributes:
        header: The first entry.
        calls: The tool calls in the order of their start.
        outside: The port calls that belong to no tool call.
        redacted: Whether something may stand for something else.
    """

    header: Mapping[str, Any]
    calls: list[RecordedCall] = field(factory=list[RecordedCall])
    outside: list[RecordedOperation] = field(factory=list[RecordedOperation])
    redacted: bool = False


def parse_script(lines: Iterable[Line]) -> Script:
    """Take a log apart."""
    parser = _Parser()
    for line in lines:
        parser.take(line.entry)
    assert parser.script is not None
    for operations in (parser.script.outside, *(call.operations for call in parser.script.calls)):
        operations.sort(key=lambda operation: operation.start.key)
    return parser.script


@define(eq=False)
class _Parser:
    script: Script | None = None
    _running: dict[int, RecordedOperation] = field(factory=dict[int, RecordedOperation])
    """The port calls of the current recorder that have begun and not ended."""
    _calls: dict[int, RecordedCall] = field(factory=dict[int, RecordedCall])

    def take(self, entry: Mapping[str, Any]) -> None:
        match entry["kind"]:
            case "log":
                self._take_header(entry)
            case "call":
                call = RecordedCall(entry["call"], entry["tool"], entry["arguments"], entry["seq"])
                self._calls[entry["seq"]] = call
                self._known.calls.append(call)
            case "result":
                ended = self._calls.get(entry["within"])
                if ended is not None:
                    ended.result, ended.end = entry["result"], _moment(entry)
            case "start":
                self._begin(entry, begun=entry["seq"])
            case "chunk" | "exit":
                running = self._running.get(entry["op"])
                if running is not None:
                    running.pieces.append((_moment(entry), entry))
            case "port":
                operation = self._running.pop(entry["op"], None) or self._begin(entry, begun=entry["begun"])
                self._running.pop(entry["op"], None)
                operation.outcome, operation.end = entry, _moment(entry)
            case _:
                pass

    @property
    def _known(self) -> Script:
        assert self.script is not None
        return self.script

    def _take_header(self, entry: Mapping[str, Any]) -> None:
        if self.script is None:
            self.script = Script(entry)
        self.script.redacted = self.script.redacted or bool(entry["redacted"])
        self._running.clear()

    def _begin(self, entry: Mapping[str, Any], *, begun: int) -> RecordedOperation:
        start = Moment((begun, 0, entry["op"]))
        operation = RecordedOperation(entry["port"], entry["method"], entry["arguments"], start)
        call = self._calls.get(entry.get("within", -1))
        (self._known.outside if call is None else call.operations).append(operation)
        self._running[entry["op"]] = operation
        return operation


def _moment(entry: Mapping[str, Any]) -> Moment:
    return Moment((entry["seq"], 1, 0))
