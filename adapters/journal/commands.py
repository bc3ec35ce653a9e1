"""JournaledCommands: a CommandPort whose commands can be undone inside the watched roots."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from handrail.adapters.journal.ledger import Ledger
from handrail.adapters.journal.watching import Watch
from handrail.ports.commands import Command, CommandPort, Exit, ExitListener, OutputSink

__all__ = ["JournaledCommands"]


class JournaledCommands(CommandPort):
    """Looks at the watched roots before and after each command.

    Args:
        commands: The port to wrap.
        ledger: Takes the changes.
        watch: Looks at the roots.
    """

    def __init__(self, commands: CommandPort, ledger: Ledger, watch: Watch) -> None:
        self._commands = commands
        self._ledger = ledger
        self._watch = watch

    @property
    def may_survive(self) -> Sequence[str]:
        return self._commands.may_survive

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        if not self._watch.roots:
            return await self._commands.run(command, on_output, on_exit)
        group = self._ledger.group()
        async with self._ledger.lock:
            await self._watch.refresh()  # what others did meanwhile is not the command's doing
        try:
            return await self._commands.run(command, on_output, on_exit)
        finally:
            with anyio.CancelScope(shield=True):
                async with self._ledger.lock:
                    effect = await self._watch.refresh()
                    await self._ledger.note(effect, {}, group)

    async def find_program(self, name: str) -> str | None:
        return await self._commands.find_program(name)
