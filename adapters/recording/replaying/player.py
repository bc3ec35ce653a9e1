"""The player: finds the recorded port call for each one that is asked, and lets it have its recorded outcome."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from handrail.adapters.recording.chain import canonical_json
from handrail.adapters.recording.contents import ContentStore
from handrail.adapters.recording.errors import ContentError, ReplayError
from handrail.adapters.recording.json_values import is_list, is_object
from handrail.adapters.recording.keeping import HIDDEN, ContentKeeper
from handrail.adapters.recording.replaying.appending import AppendedStream
from handrail.adapters.recording.replaying.schedule import Schedule, Track
from handrail.adapters.recording.replaying.script import Moment, RecordedCall, RecordedOperation, Script
from handrail.adapters.recording.values import Encoder, decode_error
from handrail.ports.context import CallContext, current_call

__all__ = ["Answer", "Player"]

_SHOWN: Final = 600

_LOOSE: Final = ("clock", "offload")
"""Ports that are asked by the way; what differs there is no difference."""


@define(eq=False)
class _Part:
    """What is left of one recorded tool call, or of all that was in none."""

    call: RecordedCall | None
    operations: list[RecordedOperation]
    track: Track = field(init=False)
    context: CallContext | None = None
    difference: ReplayError | None = None
    _next: int = 0
    _loose: dict[str, deque[RecordedOperation]] = field(factory=dict[str, deque[RecordedOperation]])
    _others: list[RecordedOperation] = field(factory=list[RecordedOperation])
    _appended: dict[bytes, AppendedStream] = field(factory=dict[bytes, AppendedStream])
    _readings: dict[str, Any] = field(factory=dict[str, Any])
    _progress: Track = field(init=False)
    """The moments of files and commands only."""

    def __attrs_post_init__(self) -> None:
        moments = [moment for operation in self.operations for moment in operation.moments]
        if self.call is not None and self.call.end is not None:
            moments.append(self.call.end)
        self.track = Track(sorted(moments, key=lambda moment: moment.key))
        for operation in self.operations:
            if operation.port in _LOOSE:
                self._loose.setdefault(f"{operation.port}.{operation.method}", deque()).append(operation)
            else:
                self._others.append(operation)
        others = [moment for operation in self._others for moment in operation.moments]
        self._progress = Track(sorted(others, key=lambda moment: moment.key))

    def reading(self, method: str) -> tuple[list[Moment], Any]:
        """The next recorded reading of the clock: its moments and its value; the one before where there is no other.

        A program that looks at the clock less or more often than when it was recorded gets neither times of long ago
        nor times to come: readings from before what has happened already are left out, and those from after what is
        to happen next are kept for then.
        """
        waiting = self._loose.get(f"clock.{method}") or deque[RecordedOperation]()
        passed, following = self._progress.passed(), self._progress.first()
        moments: list[Moment] = []
        while waiting and (following is None or waiting[0].start.key < following.key):
            operation = waiting.popleft()
            moments += operation.moments
            self._readings[method] = (operation.outcome or {}).get("result")
            if passed is None or operation.start.key >= passed.key:
                break
        return moments, self._readings.get(method)

    def next_loose(self, port: str, method: str) -> RecordedOperation | None:
        """The next recorded use of clock or threads; programs may interleave them in any order."""
        waiting = self._loose.get(f"{port}.{method}")
        return waiting.popleft() if waiting else None

    def next(self) -> RecordedOperation | None:
        """The next recorded call of files or commands."""
        if self._next == len(self._others):
            return None
        self._next += 1
        return self._others[self._next - 1]

    def left(self) -> RecordedOperation | None:
        """The first recorded call of files or commands that was not asked for."""
        return self._others[self._next] if self._next < len(self._others) else None

    def appended(self, path: Any, pieces: Callable[[Mapping[str, Any]], Iterator[bytes]]) -> AppendedStream:
        """The recorded appends to a path."""
        key = canonical_json(path)
        if key not in self._appended:
            operations = [
                each
                for each in self._others
                if (each.port, each.method) == ("files", "append") and each.arguments["path"] == path
            ]
            self._appended[key] = AppendedStream(operations, pieces)
        return self._appended[key]


@define(eq=False)
class Answer:
    """A recorded port call that is being replayed."""

    player: Player
    part: _Part
    operation: RecordedOperation

    @property
    def pieces(self) -> Iterator[tuple[Moment, Mapping[str, Any]]]:
        """The entries during the call."""
        return iter(self.operation.pieces)

    async def reach(self, moment: Moment) -> None:
        """Wait for the turn of one of its moments."""
        await self.player.schedule.turn(moment, self.part.track)

    async def outcome(self) -> Any:
        """Wait for the turn of its end and return the recorded result.

        Raises:
            PortError: The recorded one.
            ReplayError: The recording ends before, or the port broke.
        """
        operation = self.operation
        if operation.outcome is None or operation.end is None:
            raise self.player.differ(self.part, f"{_named(operation)} had no end when the recording ended.")
        if operation.outcome.get("cancelled"):
            await self.player.be_cancelled(self)
        await self.reach(operation.end)
        if "error" in operation.outcome:
            raise decode_error(operation.outcome["error"])
        if "raised" in operation.outcome:
            raised = operation.outcome["raised"]
            raise self.player.differ(self.part, f"{_named(operation)} raised {raised} when it was recorded.")
        return operation.outcome.get("result")

    async def ended(self) -> None:
        """Wait for the turn of its end, whatever it was."""
        if self.operation.end is not None:
            await self.reach(self.operation.end)

    def leave(self) -> None:
        """The call is over, at whatever point: nothing waits for the rest of it."""
        self.player.schedule.happened(*self.operation.moments)


class Player:
    """Replays one log.

    Args:
        script: The log.
        store: Its contents.
        keeper: Describes the contents of what is asked, as the recorder did.
        strict: Whether the order of port calls matters.
    """

    def __init__(self, script: Script, store: ContentStore | None, keeper: ContentKeeper, *, strict: bool) -> None:
        self.script = script
        self.schedule = Schedule(ordered=strict)
        self.encoder = Encoder(keeper)
        self.keeper = keeper
        self.differences: list[str] = []
        self._store = store
        self._has_contents = store is not None and script.header["contents"] == "full"
        self._strict = strict
        self._parts: dict[CallContext, _Part] = {}
        self._outside = _Part(None, script.outside)
        self._unused = list(script.calls)
        self._deadlines: list[tuple[_Part, RecordedOperation, Any]] = []
        self._pool = {} if strict else _pool(script)

    # -------------------------------------------------------------- tool calls

    async def call_started(self, call: CallContext, arguments: Any) -> None:
        """Find the recorded tool call for one that begins.

        Raises:
            ReplayError: None was recorded, by ``strict``.
        """
        asked = self.encoder.value(arguments)
        recorded = self._recorded_call(call, asked)
        if recorded is None:
            if self._strict:
                self.differences.append(_no_call(call, asked, self._unused))
                raise ReplayError(self.differences[-1])
            return
        self._unused.remove(recorded)
        part = _Part(recorded, recorded.operations, call)
        self._parts[call] = part
        self.schedule.enter(part.track)
        if recorded.was_aborted and recorded.end is not None:
            # Cancelled while it waited for something else than a port, e.g. for its turn to change a file.
            self.schedule.push_when_idle(recorded.end, call.cancel)

    async def call_ended(self, call: CallContext, arguments: Any, result: Mapping[str, Any]) -> None:
        """Let a tool call end when it ended then."""
        part = self._parts.pop(call, None)
        if part is None:
            return
        assert part.call is not None
        self.schedule.push_no_more(part.call.end)
        try:
            if part.call.end is not None and part.difference is None:
                await self.schedule.turn(part.call.end, part.track)
            left = part.left()
            if self._strict and left is not None and part.difference is None:
                self.differ(part, f"{_named(left)} was recorded, and the call ended without asking for it.")
        finally:
            self.schedule.leave(part.track)

    def _recorded_call(self, call: CallContext, asked: Any) -> RecordedCall | None:
        same = [each for each in self._unused if each.tool == call.tool and self._alike(each.arguments, asked)]
        return next((each for each in same if each.call_id == call.call_id), same[0] if same else None)

    # -------------------------------------------------------------- port calls

    def ask(self, port: str, method: str, arguments: Mapping[str, Any]) -> Answer:
        """Return the recorded port call for one that is asked.

        Raises:
            ReplayError: It differs from what was recorded.
        """
        part = self._part()
        if part.difference is not None:
            raise part.difference
        asked = self.encoder.value(arguments) if port == "files" else arguments
        operation = part.next() if self._strict else self._pooled(port, method, asked)
        if operation is None and part.call is not None and part.call.was_aborted and part.call.end is not None:
            # It was cancelled before it could ask for more.
            return Answer(self, part, _cancelled_at(part.call.end, port, method, asked))
        if operation is None:
            raise self.differ(part, f"Asked for {_shown(port, method, asked)}, but {self._what_is_left()}.")
        if (operation.port, operation.method) != (port, method) or not self._alike(operation.arguments, asked):
            raise self.differ(part, f"Asked for {_shown(port, method, asked)}, but {_named(operation)} was recorded.")
        self.schedule.happened(operation.start)
        return Answer(self, part, operation)

    def ask_append(self, path: str, data: bytes, described: Mapping[str, Any]) -> Sequence[Answer]:
        """Return the recorded appends that this one completes: one as a rule, none or several where it differs.

        Raises:
            ReplayError: It differs from what was recorded.
        """
        part = self._part()
        asked = self.encoder.value({"path": path, "data": described})
        stream = part.appended(asked["path"], self.pieces)
        following = part.left()
        exact = following is not None and following.method == "append" and self._alike(following.arguments, asked)
        if exact or not self._strict or not stream.operations or not stream.continues_with(data):
            answer = self.ask("files", "append", {"path": path, "data": described})
            stream.count(data)
            return [answer]
        completed: list[Answer] = []
        while (following := part.left()) is not None and stream.is_past(following):
            part.next()
            self.schedule.happened(following.start)
            completed.append(Answer(self, part, following))
        return completed

    def ask_loosely(self, port: str, method: str) -> Answer | None:
        """Return the next recorded use of clock or threads; ``None`` when there was none."""
        part = self._part()
        operation = part.next_loose(port, method)
        if operation is None:
            return None
        self.schedule.happened(operation.start)
        return Answer(self, part, operation)

    def reading(self, method: str) -> Any:
        """Return what the clock said when it was asked at this point; ``None`` when it never was."""
        moments, value = self._part().reading(method)
        self.schedule.happened(*moments)
        return value

    def differ(self, part: _Part, text: str) -> ReplayError:
        """Note a difference; nothing more of the tool call is replayed."""
        where = "" if part.call is None else f"In {part.call.call_id} ({part.call.tool}): "
        self.differences.append(where + text)
        part.difference = ReplayError(where + text)
        self.schedule.leave(part.track)
        return part.difference

    def _what_is_left(self) -> str:
        return "nothing more was recorded" if self._strict else "no such call was recorded"

    def _part(self) -> _Part:
        context = current_call.get()
        return self._parts.get(context, self._outside) if context is not None else self._outside

    def _pooled(self, port: str, method: str, asked: Any) -> RecordedOperation | None:
        """A recorded call like this one, from anywhere in the log; the last one answers for ever."""
        waiting = self._pool.get(_key(port, method, self._plain(asked)))
        if not waiting:
            return None
        return waiting.popleft() if len(waiting) > 1 else waiting[0]

    def _alike(self, recorded: Any, asked: Any) -> bool:
        return bool(recorded == asked or self._plain(recorded) == self._plain(asked))

    def _plain(self, value: Any) -> Any:
        return _plain(value, with_hashes=self.script.header["contents"] != "off")

    # -------------------------------------------------------------- cancellation

    def open_deadline(self, answer: Answer, scope: Any) -> None:
        """A block with a deadline begins."""
        self._deadlines.append((answer.part, answer.operation, scope))

    def close_deadline(self, scope: Any) -> None:
        """It ends."""
        self._deadlines = [each for each in self._deadlines if each[2] is not scope]

    async def be_cancelled(self, answer: Answer) -> None:
        """Wait to be cancelled as the recorded call was; does not return."""
        end = answer.operation.end
        assert end is not None
        await self.schedule.wait_for_cancellation(end, lambda: self._cancel(answer.part, end))

    def _cancel(self, part: _Part, moment: Moment) -> None:
        """Do what had come from outside: the deadline that passed around this moment, or the end of the call."""
        for owner, operation, scope in reversed(self._deadlines):
            if owner is part and _expired_around(operation, moment):
                scope.cancel()
                return
        if part.call is not None and part.call.was_aborted and part.context is not None:
            part.context.cancel()

    # -------------------------------------------------------------- contents

    def content(self, described: Mapping[str, Any]) -> bytes:
        """Return a recorded content.

        Raises:
            ReplayError: It was not kept, or is gone.
        """
        return b"".join(self.pieces(described))

    def pieces(self, described: Mapping[str, Any] | None) -> Iterator[bytes]:
        """Yield a recorded content in pieces of bounded size."""
        if described is None:
            raise ReplayError("A content could not be stored when it was recorded; this part cannot be replayed.")
        if described["size"] == 0:
            return
        if described.get("redacted") == ["path"]:
            yield HIDDEN.encode()
            return
        if not self._has_contents or "sha256" not in described or not described.get("kept", True):
            raise ReplayError(
                f"A content of {described['size']} bytes was not kept, so this part cannot be replayed. "
                "Record with contents='full' and a larger max_content_bytes."
            )
        try:
            assert self._store is not None
            yield from self._store.pieces(described["sha256"])
        except ContentError as error:
            raise ReplayError(str(error)) from error


def _cancelled_at(end: Moment, port: str, method: str, arguments: Any) -> RecordedOperation:
    """A port call that a cancelled tool call would have made next."""
    return RecordedOperation(port, method, arguments, Moment(end.key), outcome={"cancelled": True}, end=Moment(end.key))


def _expired_around(operation: RecordedOperation, moment: Moment) -> bool:
    outcome, end = operation.outcome, operation.end
    if outcome is None or end is None or not outcome.get("result", {}).get("expired"):
        return False
    return operation.start.key < moment.key < end.key


def _pool(script: Script) -> dict[bytes, deque[RecordedOperation]]:
    pool: dict[bytes, deque[RecordedOperation]] = {}
    with_hashes = script.header["contents"] != "off"
    for operations in (script.outside, *(call.operations for call in script.calls)):
        for operation in operations:
            if operation.outcome is not None and operation.port not in _LOOSE:
                plain = _plain(operation.arguments, with_hashes=with_hashes)
                pool.setdefault(_key(operation.port, operation.method, plain), deque()).append(operation)
    return pool


def _key(port: str, method: str, arguments: Any) -> bytes:
    return canonical_json([port, method, arguments])


def _plain(value: Any, *, with_hashes: bool) -> Any:
    """A value without what depends on how contents were kept."""
    if is_object(value):
        left_out = {"kept", "redacted"} if with_hashes else {"kept", "redacted", "sha256"}
        names = value.keys() - left_out if "size" in value else value.keys()
        return {name: _plain(value[name], with_hashes=with_hashes) for name in names}
    if is_list(value):
        return [_plain(item, with_hashes=with_hashes) for item in value]
    return value


def _named(operation: RecordedOperation) -> str:
    return _shown(operation.port, operation.method, operation.arguments)


def _shown(port: str, method: str, arguments: Any) -> str:
    text = json.dumps(arguments, sort_keys=True)
    return f"{port}.{method} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def _no_call(call: CallContext, asked: Any, unused: list[RecordedCall]) -> str:
    text = f"The call {call.call_id} of {_shown('tool', call.tool, asked)} was not recorded"
    if not unused:
        return f"{text}; nothing more was."
    return f"{text}; next was {unused[0].call_id}: {_shown('tool', unused[0].tool, unused[0].arguments)}."
