"""RecordingCommands: a CommandPort that records every call and passes it on unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from handrail.adapters.recording.recorder import Recorder
from handrail.adapters.recording.streams import finished, record_piece
from handrail.ports.commands import Command, CommandPort, Exit, ExitListener, OutputSink

__all__ = ["RecordingCommands"]


class RecordingCommands(CommandPort):
    """Records commands and their output, as it passes.

    Args:
        commands: The port to wrap.
        recorder: Where entries go.
    """

    def __init__(self, commands: CommandPort, recorder: Recorder) -> None:
        self._commands = commands
        self._recorder = recorder

    @property
    def may_survive(self) -> Sequence[str]:
        return self._commands.may_survive

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        encoder = self._recorder.encoder
        operation = self._recorder.operation("commands", "run", encoder.command(command))
        await operation.intend()
        stream = self._recorder.keeper.stream()

        async def take(data: bytes) -> None:
            await record_piece(stream, operation, data)
            await on_output(data)

        def note_exit(ended: Exit) -> None:
            operation.note("exit", {"exit": encoder.exit(ended)})
            if on_exit is not None:
                on_exit(ended)

        try:
            ended = await self._commands.run(command, take, note_exit)
        except GeneratorExit:
            stream.abandon()
            raise
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                operation.fail(error, {"content": await finished(stream, operation)})
            raise
        with anyio.CancelScope(shield=True):
            operation.end({"exit": encoder.exit(ended), "content": await finished(stream, operation)})
        return ended

    async def find_program(self, name: str) -> str | None:
        encoder = self._recorder.encoder
        operation = self._recorder.operation("commands", "find_program", {"name": encoder.value(name)})
        return await operation.run(lambda: self._commands.find_program(name), encoder.value)
