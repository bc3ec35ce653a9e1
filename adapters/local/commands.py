"""LocalCommands: the CommandPort on this machine.

The rules of the port are here: output in arrival order, the end of a program against the end of its output,
killing on cancellation. How processes are started, watched and killed is the platform's file.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import anyio.lowlevel
from attrs import define, field

if sys.platform == "win32":
    from handrail.adapters.local._windows import Process, Processes
else:
    from handrail.adapters.local._posix import Process, Processes

from handrail.adapters.local._variables import command_environment
from handrail.ports.commands import Command, CommandPort, Exit, ExitListener, OutputSink
from handrail.ports.errors import PortError

__all__ = ["LocalCommands"]

_IDLE_SECONDS: Final = 0.1
_IDLE_STEPS: Final = 5
"""How long a pipe must be silent after the program's end until its output counts as complete."""

_BUSY_STEPS: Final = 50
"""How many steps a program that computes in silence is waited for."""

_REST_SECONDS: Final = 2.0

_PIECE_BYTES: Final = 256 * 1024


@define(eq=False)
class _Run:
    """A call of ``run``: ended from outside through its scope."""

    scope: anyio.CancelScope = field(factory=anyio.CancelScope)
    over: anyio.Event = field(factory=anyio.Event)


class LocalCommands(CommandPort):
    """Programs of this machine, each with its whole process tree under watch.

    Args:
        portable: Use only what every POSIX system offers; for tests on Linux.
    """

    def __init__(self, *, portable: bool = False) -> None:
        self._processes = Processes(portable=portable)
        self._runs: set[_Run] = set()
        self._closed = False

    @property
    def may_survive(self) -> Sequence[str]:
        return self._processes.may_survive

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        if self._closed:
            raise PortError("closed", command.argv[0])
        _refuse_nul(command)
        env = command_environment(os.environ, command)
        program = _look_up(command, env)
        run = _Run()
        self._runs.add(run)
        try:
            with run.scope:
                process = await self._processes.start(command, program, env)
                return await _follow(process, on_output, on_exit)
            raise PortError("closed", command.argv[0])
        finally:
            self._runs.discard(run)
            run.over.set()

    async def find_program(self, name: str) -> str | None:
        return shutil.which(name)

    async def aclose(self) -> None:
        """Kill what runs and what commands left behind; returns when nothing of it is left."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            for run in list(self._runs):
                run.scope.cancel()
                await run.over.wait()
            await self._processes.aclose()


async def _follow(process: Process, on_output: OutputSink, on_exit: ExitListener | None) -> Exit:
    """Hand over the output of a started command and return its end; kill it whole when anything goes wrong."""
    pump = _Pump(process, on_output)
    try:
        ended = await pump.run(on_exit)
        return Exit(ended.code, ended.signal, await process.detach())
    except GeneratorExit:
        raise  # the event loop is gone; closing the process kills it
    except BaseException:
        with anyio.CancelScope(shield=True):
            await process.kill()
            if not pump.refused:
                await pump.hand_over_rest()
        raise
    finally:
        process.close()


class _Pump:
    """Moves output from a process to the sink until the program has ended and the pipe is closed or idle."""

    def __init__(self, process: Process, on_output: OutputSink) -> None:
        self._process = process
        self._on_output = on_output
        self._buffer = memoryview(bytearray(_PIECE_BYTES))
        self._closed = False
        self.refused = False
        """Whether the sink raised; it gets nothing more then."""

    async def run(self, on_exit: ExitListener | None) -> Exit:
        """Hand over all output; return the program's end.

        Raises:
            PortError: The program could not be started.
            Exception: What the sink or the listener raised.
        """
        ended: Exit | None = None
        while True:
            await self._move()
            if ended is None:
                ended = self._process.poll()
                if ended == Exit(None):
                    await self._process.kill()  # nobody answers for the tree any more
                if ended is not None and on_exit is not None:
                    on_exit(ended)
            if ended is None:
                await self._process.wait_progress()
            elif self._closed or await self._is_idle():
                return ended

    async def hand_over_rest(self) -> None:
        """Hand over what a killed command had printed; nobody is left who could print more."""
        with anyio.move_on_after(_REST_SECONDS):  # but for a process that could not be killed
            await self._move()
            while not self._closed and not await self._is_idle():
                await self._move()

    async def _move(self) -> None:
        """Hand over what is there now."""
        while not self._closed:
            size = self._process.read_nowait(self._buffer)
            if size is None:
                return
            if size:
                await self._hand_over(bytes(self._buffer[:size]))
            else:
                self._closed = True
            if size == _PIECE_BYTES:
                await anyio.lowlevel.checkpoint()  # an endless program must not keep other tasks waiting

    async def _hand_over(self, data: bytes) -> None:
        try:
            await self._on_output(data)
        except Exception:
            self.refused = True
            raise

    async def _is_idle(self) -> bool:
        """Wait for more output for a while; tell that none came.

        In several steps, and only those count in which what was left behind had nothing to do: on a busy machine it
        may wait for a processor longer than a pipe has to be silent.
        """
        silent = 0
        for _ in range(_BUSY_STEPS):
            silent += not await self._process.is_busy()
            with anyio.move_on_after(_IDLE_SECONDS / _IDLE_STEPS):
                await self._process.wait_progress()
                return False
            if silent == _IDLE_STEPS:
                break
        return True


def _refuse_nul(command: Command) -> None:
    for text in (*command.argv, command.cwd):
        if "\0" in text:
            raise PortError("invalid_path", text, "a NUL byte")
    for name, value in command.env.items():
        if "\0" in name or "=" in name or "\0" in (value or ""):
            raise PortError("invalid_path", name, "a variable name or value that no program can get")


def _look_up(command: Command, env: Mapping[str, str]) -> str:
    name = command.argv[0]
    if os.path.dirname(name):
        return name
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is None:
        raise PortError("program_not_found", name)
    return found
