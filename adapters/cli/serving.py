"""``handrail rpc``: the JSON-lines server on standard input and output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio

from handrail.adapters.cli import terminal
from handrail.adapters.cli.composition import local_toolbox, working_directory
from handrail.adapters.cli.signals import on_interruption
from handrail.adapters.rpc.server import Server
from handrail.adapters.rpc.streams import LineWriter, read_chunks, reader_gone

__all__ = ["serve_standard_streams"]

_STDIN: Final = 0
_STDOUT: Final = 1


def serve_standard_streams(*, cwd: str | None, record: str | None = None, roots: Sequence[str] = ()) -> int:
    """Serve until standard input ends and its calls have; return the exit status.

    Raises:
        UsageError: ``cwd`` is no directory, or there cannot be a log at ``record``.
    """
    return anyio.run(partial(_serve, working_directory(cwd), record, roots))


async def _serve(cwd: str, record: str | None, roots: Sequence[str]) -> int:
    async with local_toolbox(cwd, record=record, roots=roots) as toolbox:
        server = Server(toolbox, LineWriter(_STDOUT).write)
        with on_interruption(server.stop) as interruption:
            async with anyio.create_task_group() as group:
                group.start_soon(_watch_reader, server)
                await server.serve(read_chunks(_STDIN))
                group.cancel_scope.cancel()
    if server.reader_gone:
        terminal.say("handrail rpc: nobody reads the answers any more; what ran was cancelled.", error=True)
    return interruption.exit_status(1 if server.reader_gone else 0)


async def _watch_reader(server: Server) -> None:
    """End a server whose client has died, also while nothing is to be written."""
    await reader_gone(_STDOUT)
    server.reader_gone = True
    server.stop()
