"""ReplayedCommands: a CommandPort that answers from a log."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.adapters.recording.replaying.files import PieceReader
from handrail.adapters.recording.replaying.player import Player
from handrail.adapters.recording.values import decode_exit, decode_value
from handrail.ports.commands import Command, CommandPort, Exit, ExitListener, OutputSink

__all__ = ["ReplayedCommands"]


class ReplayedCommands(CommandPort):
    """Prints what the recorded commands printed; there are no processes.

    Args:
        player: The log.
    """

    def __init__(self, player: Player) -> None:
        self._player = player

    @property
    def may_survive(self) -> Sequence[str]:
        return tuple(self._player.script.header.get("may_survive", ()))

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        answer = self._player.ask("commands", "run", self._player.encoder.command(command))
        reader = PieceReader(self._player, answer.operation.outcome)
        try:
            for moment, entry in answer.pieces:
                await answer.reach(moment)
                if entry["kind"] == "chunk":
                    await on_output(reader.take(entry["content"]["size"]))
                elif on_exit is not None:
                    on_exit(decode_exit(entry["exit"], self._player.content))
            return decode_exit((await answer.outcome())["exit"], self._player.content)
        finally:
            answer.leave()

    async def find_program(self, name: str) -> str | None:
        answer = self._player.ask("commands", "find_program", {"name": self._player.encoder.value(name)})
        try:
            found = await answer.outcome()
        finally:
            answer.leave()
        return None if found is None else str(decode_value(found, self._player.content))
