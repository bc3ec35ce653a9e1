"""The recorder: numbers, chains and writes entries; one for each recorded environment.

Entries are made at once and written in batches: before something is changed, when a tool call begins and ends,
when many wait, and at the end. What is written at a time is one piece, so that a crash loses the last batch at most.
"""

from __future__ import annotations

import logging
import uuid
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from typing import Any, Final, Literal, TypeVar

import anyio
import anyio.to_thread
from attrs import define, field

from handrail.adapters.recording.anchors import AnchorSource, keep_head
from handrail.adapters.recording.chain import GENESIS, Head, Line, seal
from handrail.adapters.recording.format import FORMAT, VERSION
from handrail.adapters.recording.json_values import is_mapping
from handrail.adapters.recording.keeping import ContentKeeper
from handrail.adapters.recording.signing import Signer, signed_bytes
from handrail.adapters.recording.sinks.base import Sink
from handrail.adapters.recording.values import Encoder
from handrail.ports.clock import ClockPort
from handrail.ports.context import CallContext, current_call
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["FailurePolicy", "Operation", "Recorder"]

T = TypeVar("T")

FailurePolicy = Literal["fail", "warn"]

_REFUSING: Final = ("files", "commands")
"""Ports whose calls may fail with a PortError."""

_MAX_WAITING: Final = 512
_MAX_TORN: Final = 4096

_log: Final = logging.getLogger("handrail.recording")


@define(eq=False)
class _Call:
    """A running tool call as the log knows it."""

    seq: int
    hidden: bool
    """Whether it was shown what a path rule hides."""


@define(eq=False)
class Recorder:
    """Writes the log of one environment.

    Attributes:
        clock: The recorded environment's own clock, not recorded.
        sink: Where entries go; open already.
        keeper: Where contents go.
        on_failure: ``fail``: when the sink fails, so does every call from then on. ``warn``: entries are lost,
            which a later entry says, and the calls go on.
        signer: Signs checkpoints.
        checkpoint_every: After how many entries there is one.
        anchor: Gets the head after each write.
    """

    clock: ClockPort
    sink: Sink
    keeper: ContentKeeper
    on_failure: FailurePolicy
    signer: Signer | None
    checkpoint_every: int
    anchor: AnchorSource | None
    encoder: Encoder = field(init=False)
    _next_seq: int = 0
    _previous: str = GENESIS
    _operations: int = 0
    _waiting: list[dict[str, Any]] = field(factory=list[dict[str, Any]])
    _lost: tuple[int, int] | None = None
    _unsigned: int = 0
    _broken: PortError | None = None
    _started: float = field(init=False)
    _calls: dict[CallContext, _Call] = field(factory=dict[CallContext, _Call])
    _writing: anyio.Lock = field(factory=lambda: anyio.Lock(fast_acquire=True))
    _closed: bool = False
    _ending: bool = False

    def __attrs_post_init__(self) -> None:
        self.encoder = Encoder(self.keeper)
        self._started = self.clock.monotonic()

    def begin(self, env: Environment, *, continues: Head | None, torn: bytes) -> None:
        """Make the header of this recorder."""
        if continues is not None:
            self._next_seq, self._previous = continues.seq + 1, continues.hash
        session = env.session
        header: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "recorder": uuid.uuid4().hex,
            "cwd": env.cwd,
            "home": env.home,
            "session": {
                name: self.keeper.text(value)
                for name in ("id", "file", "provider", "model", "reasoning_level")
                if (value := getattr(session, name)) is not None
            },
            "contents": self.keeper.mode,
            "redacted": self.keeper.redactor is not None,
        }
        if env.commands.may_survive:
            header["may_survive"] = list(env.commands.may_survive)
        if torn:
            shown = torn[:_MAX_TORN].decode("utf-8", "surrogateescape")
            header["torn"] = {"size": len(torn), "start": self.keeper.text(shown)}
        self.add("log", header)

    # -------------------------------------------------------------- entries

    def add(self, kind: str, fields: Mapping[str, Any]) -> int:
        """Add an entry of the running tool call; returns its ``seq``. It is written later."""
        if self._broken is not None:
            return self._next_seq
        entry: dict[str, Any] = {
            "seq": self._next_seq,
            "time": _timestamp(self.clock),
            "at": round(self.clock.monotonic() - self._started, 6),
            "kind": kind,
        }
        context = current_call.get()
        if context is not None and "call" not in fields:
            entry["call"] = context.call_id
            entry["tool"] = context.tool
            known = self._calls.get(context)
            if known is not None:
                entry["within"] = known.seq
        entry.update(fields)
        self._next_seq += 1
        self._waiting.append(entry)
        return int(entry["seq"])

    def operation(self, port: str, method: str, arguments: Mapping[str, Any]) -> Operation:
        """Begin a port call.

        Raises:
            PortError: Nothing can be recorded any more, so nothing may be done. Not for clock and threads, which
                change nothing and have no such error.
        """
        if port in _REFUSING:
            self.check()
        self._operations += 1
        return Operation(self, self._operations, self._next_seq, port, method, arguments, self.clock.monotonic())

    def check(self) -> None:
        """Refuse to go on when nothing can be recorded.

        Raises:
            PortError: ``io_error``.
        """
        if self._broken is not None:
            raise PortError(self._broken.code, self._broken.path, self._broken.detail) from self._broken

    def note_hidden(self) -> None:
        """Note that the running tool call gets to see what a path rule hides."""
        context = current_call.get()
        if context in self._calls:
            self._calls[context].hidden = True

    async def stored(self, work: Callable[[], T], size: int) -> T | None:
        """Let a content be stored; ``None`` when that failed, by the policy ``warn``.

        Args:
            work: Stores it.
            size: How many bytes are written; many are written in a thread.

        Raises:
            PortError: ``io_error``, by the policy ``fail``.
        """
        try:
            return await anyio.to_thread.run_sync(work) if self.keeper.needs_thread(size) else work()
        except OSError as error:
            self._warn_or_break(error, "a content could not be stored")
            self.check()
            return None

    # -------------------------------------------------------------- tool calls

    async def call_started(self, call: CallContext, arguments: Any) -> None:
        """Record that a tool call begins, before it does."""
        self.check()
        self._add_call(call, arguments)
        await self.flush()

    async def call_ended(self, call: CallContext, arguments: Any, result: Mapping[str, Any]) -> None:
        """Record the result of a tool call."""
        if call not in self._calls:
            self._add_call(call, arguments)
        known = self._calls.pop(call)
        max_text = 512 if self.keeper.mode == "full" else 0
        recorded = {
            key: self.encoder.value(value, max_text=max_text if key in _TEXTS else 512, hidden=known.hidden)
            if key != "errorCode"
            else value
            for key, value in result.items()
        }
        self.add("result", {"call": call.call_id, "tool": call.tool, "within": known.seq, "result": recorded})
        await self.flush()

    def _add_call(self, call: CallContext, arguments: Any) -> None:
        hidden = self._names_hidden(arguments)
        fields: dict[str, Any] = {"call": self.keeper.text(call.call_id), "tool": self.keeper.text(call.tool)}
        fields["arguments"] = _without_contents(self.encoder, arguments) if hidden else self.encoder.value(arguments)
        self._calls[call] = _Call(self.add("call", fields), hidden)

    def _names_hidden(self, arguments: Any) -> bool:
        path = arguments.get("path") if is_mapping(arguments) else None
        return isinstance(path, str) and self.keeper.hides(path)

    # -------------------------------------------------------------- writing

    async def flush(self) -> None:
        """Write all entries made so far.

        Raises:
            PortError: ``io_error``, by the policy ``fail``.
        """
        with anyio.CancelScope(shield=True):
            async with self._writing:
                if self._closed and not self._ending:
                    self._waiting.clear()  # the wrapped environment is closed too and refuses everything
                elif self._waiting:
                    await self._write()
        self.check()

    async def flush_if_many(self) -> None:
        """Write when so much waits that memory would grow."""
        if len(self._waiting) >= _MAX_WAITING or self.keeper.is_full:
            await self.flush()

    async def aclose(self) -> None:
        """End the log.

        Raises:
            PortError: ``io_error``: the last entries could not be written, by the policy ``fail``.
        """
        if self._closed:
            return
        self._closed = self._ending = True
        try:
            if self._broken is None:
                self.add("end", {})
                await self.flush()
        finally:
            self._ending = False
            with anyio.CancelScope(shield=True):
                await self.sink.aclose()

    async def _write(self) -> None:
        entries, self._waiting = self._waiting, []
        first, last = entries[0]["seq"], entries[-1]["seq"]
        try:
            lines = self._sealed(entries)
            last = lines[-1].entry["seq"]
            # Contents first: an entry in the log never names what is not there yet.
            if self.keeper.needs_thread(self.keeper.waiting_bytes):
                await anyio.to_thread.run_sync(self.keeper.drain)
            elif self.keeper.waits:
                self.keeper.drain()
            await self.sink.write(lines)
            self._previous = lines[-1].hash
            self._lost = None
            if self.anchor is not None:
                await keep_head(self.anchor, lines[-1].head)
        except Exception as error:
            self._failed(error, first, last)

    def _sealed(self, entries: list[dict[str, Any]]) -> list[Line]:
        lines: list[Line] = []
        previous = self._previous
        if self._lost is not None:
            lost_first, lost_last = self._lost
            notice = {"seq": lost_last, "time": entries[0]["time"], "at": entries[0]["at"], "kind": "lost"}
            lines.append(seal({**notice, "first": lost_first, "prev": previous}))
            previous = lines[-1].hash
        for entry in entries:
            line = seal(entry | {"prev": previous})
            lines.append(line)
            previous = line.hash
        self._unsigned += len(entries)
        if self.signer is not None and (self._unsigned >= self.checkpoint_every or entries[-1]["kind"] == "end"):
            lines.append(self._checkpoint(self.signer, lines[-1]))
            self._unsigned = 0
        return lines

    def _checkpoint(self, signer: Signer, before: Line) -> Line:
        """Sign the newest entry; only possible while no entry waits behind it."""
        entry: dict[str, Any] = {name: before.entry[name] for name in ("time", "at")}
        entry |= {"seq": self._take_seq(), "kind": "checkpoint", "key": signer.key, "prev": before.hash}
        signature = b64encode(signer.sign(signed_bytes(entry))).decode()
        return seal(entry | {"signature": signature})

    def _take_seq(self) -> int:
        self._next_seq += 1
        return self._next_seq - 1

    def _failed(self, error: Exception, first: int, last: int) -> None:
        self._warn_or_break(error, f"entries {first} to {last} could not be recorded")
        self._lost = (first if self._lost is None else self._lost[0], last)

    def _warn_or_break(self, error: Exception, what: str) -> None:
        _log.warning("%s: %s", what, error)
        if self.on_failure == "fail":
            self._broken = PortError("io_error", "", f"the recording failed, so nothing more is done: {error}")
            self._broken.__cause__ = error


@define(eq=False)
class Operation:
    """One port call on its way into the log."""

    recorder: Recorder
    number: int
    begun: int
    port: str
    method: str
    arguments: Mapping[str, Any]
    started: float
    announced: bool = False

    def announce(self) -> None:
        """Record that the call is about to run."""
        self.announced = True
        self.note("start", {"port": self.port, "method": self.method, "arguments": self.arguments})

    async def intend(self) -> None:
        """Write that the call is about to run, before it does: nothing is changed unrecorded.

        Raises:
            PortError: ``io_error``: it must not run.
        """
        self.announce()
        await self.recorder.flush()

    async def run(self, work: Callable[[], Awaitable[T]], encode: Callable[[T], Any]) -> T:
        """Do the call's work and record what came of it; the outcome passes through."""
        try:
            outcome = await work()
        except BaseException as error:
            self.fail(error)
            raise
        self.end(encode(outcome))
        if self.port in _REFUSING:
            await self.recorder.flush_if_many()
        return outcome

    def end(self, result: Any) -> None:
        """Record a result in its recorded form."""
        self._end({} if result is None else {"result": result})

    def fail(self, error: BaseException, result: Any = None) -> None:
        """Record how the call failed, and what had come of it until then."""
        had = {} if result is None else {"result": result}
        if isinstance(error, PortError):
            self._end({"error": self.recorder.encoder.error(error), **had})
        elif isinstance(error, Exception):
            self._end({"raised": type(error).__name__, **had})
        else:
            self._end({"cancelled": True, **had})

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record something that happens during the call."""
        self.recorder.add(kind, {"op": self.number, **fields})

    def _end(self, outcome: Mapping[str, Any]) -> None:
        seconds = round(self.recorder.clock.monotonic() - self.started, 6)
        fields: dict[str, Any] = {"op": self.number, "begun": self.begun, "port": self.port, "method": self.method}
        if not self.announced:
            fields["arguments"] = self.arguments
        self.recorder.add("port", {**fields, "seconds": seconds, **outcome})


_TEXTS: Final = ("content", "structuredContent", "details")


def _without_contents(encoder: Encoder, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call on a hidden path: the path, and that there were others."""
    return {
        str(key): encoder.value(value, hidden=key != "path" and not isinstance(value, bool | int | float))
        for key, value in arguments.items()
    }


def _timestamp(clock: ClockPort) -> str:
    return clock.now().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
