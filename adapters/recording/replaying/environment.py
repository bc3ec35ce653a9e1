"""replay: an environment that answers from a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from attrs import field, frozen

from handrail.adapters.recording.contents import ContentStore
from handrail.adapters.recording.errors import ReplayError
from handrail.adapters.recording.keeping import ContentKeeper
from handrail.adapters.recording.reading import LogSource, content_store, read_log
from handrail.adapters.recording.redaction import Redaction, Redactor
from handrail.adapters.recording.replaying.clock import ReplayedClock
from handrail.adapters.recording.replaying.commands import ReplayedCommands
from handrail.adapters.recording.replaying.files import ReplayedFiles
from handrail.adapters.recording.replaying.offloading import ReplayedOffload
from handrail.adapters.recording.replaying.player import Player
from handrail.adapters.recording.replaying.script import RecordedCall, parse_script
from handrail.adapters.recording.values import decode_value
from handrail.ports.environment import Environment, Session

__all__ = ["RecordedToolCall", "ReplayEnvironment", "replay"]


@frozen
class RecordedToolCall:
    """A tool call of a log, to be made again.

    Attributes:
        call_id: The caller's name for it.
        tool: The tool.
        arguments: What it was given.
        result: What it answered, in wire form; ``None`` when the log ends before.
        began: ``seq`` of its start.
        ended: ``seq`` of its result.
    """

    call_id: str
    tool: str
    arguments: Any
    result: Any
    began: int
    ended: int | None


@frozen(eq=False, kw_only=True)
class ReplayEnvironment(Environment):
    """An environment that answers from a log. It touches no disk and starts no process.

    Attributes:
        redacted: Whether the log is redacted: what is replayed then has markers where secrets were.
        damaged: A word on each line of the log that could not be read.
    """

    redacted: bool
    damaged: Sequence[str]
    player: Player = field(repr=False)

    @property
    def differences(self) -> Sequence[str]:
        """What was asked differently than recorded, in order."""
        return tuple(self.player.differences)

    def calls(self) -> list[RecordedToolCall]:
        """Return the recorded tool calls in the order of their start.

        Raises:
            ReplayError: A long argument or result was not kept.
        """
        return [self._tool_call(call) for call in self.player.script.calls]

    def check(self) -> None:
        """Demand that there was no difference.

        Raises:
            ReplayError: The first one.
        """
        if self.player.differences:
            raise ReplayError(self.player.differences[0])

    def _tool_call(self, call: RecordedCall) -> RecordedToolCall:
        result = None if call.result is None else decode_value(call.result, self.player.content)
        arguments = decode_value(call.arguments, self.player.content)
        ended = None if call.end is None else call.end.key[0]
        return RecordedToolCall(call.call_id, call.tool, arguments, result, call.began, ended)


def replay(
    log: LogSource,
    mode: Literal["strict", "lenient"] = "strict",
    *,
    store: ContentStore | None = None,
    redact: Redaction | None = None,
) -> ReplayEnvironment:
    """Return an environment that answers from a log.

    Args:
        log: The log.
        mode: ``strict``: each tool call makes the port calls that were recorded for it, in their order, and parallel
            calls meet as they met; anything else raises ReplayError and stands in ``differences``. ``lenient``: a
            port call is answered by a recorded one that is like it, wherever that is; the last of several answers
            for ever.
        store: Where the contents are; by default beside the log.
        redact: The redaction that the log was recorded with, so that what is asked is compared in that form.

    Raises:
        LogError: The log cannot be read.
    """
    damaged: list[str] = []
    script = parse_script(read_log(log, damaged=damaged))
    keeper = ContentKeeper("hashes", None, 0, _Comparing(redact) if redact is not None else None)
    player = Player(script, store or content_store(log), keeper, strict=mode == "strict")
    header = script.header
    return ReplayEnvironment(
        files=ReplayedFiles(player),
        commands=ReplayedCommands(player),
        clock=ReplayedClock(player),
        cwd=header["cwd"],
        home=header["home"],
        session=Session(**header["session"]),
        offload=ReplayedOffload(player),
        observers=(player,),
        redacted=script.redacted,
        damaged=damaged,
        player=player,
    )


class _Comparing(Redactor):
    """Redacts what is asked. Versions come from the log, so they are aliases already."""

    def alias(self, version: str) -> str:
        return version
