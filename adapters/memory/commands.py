"""ScriptedCommands: a CommandPort whose programs are functions of the test."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import anyio.lowlevel
from attrs import frozen

from handrail.adapters.memory._launching import environment_of, require_startable, require_valid
from handrail.adapters.memory._pipe import Pipe
from handrail.adapters.memory.builtins import BUILTINS
from handrail.adapters.memory.process import Handler, Process
from handrail.adapters.memory.programs import PROGRAMS
from handrail.adapters.memory.shell import run_script_file, shell
from handrail.ports.clock import ClockPort
from handrail.ports.commands import (
    BackgroundProcess,
    Command,
    CommandPort,
    Exit,
    ExitListener,
    OutputSink,
)
from handrail.ports.errors import PortError
from handrail.ports.files import FilePort

__all__ = ["Matcher", "ScriptedCommands", "prints"]

Matcher = str | re.Pattern[str] | tuple[str, ...]
"""What a handler plays. A ``tuple``: every command whose argv begins like this (the program by its name
without directory). A ``str`` or a pattern: the command whose whole text it is, be it the text given to a
shell or one simple command in it."""

_SHELLS: Final = ("bash", "sh")
_PROGRAM_DIRECTORIES: Final = ("/usr/bin", "/bin")


@frozen
class _Rule:
    matcher: Matcher
    handler: Handler

    def matches(self, argv: Sequence[str]) -> bool:
        match self.matcher:
            case tuple():
                return (posixpath.basename(argv[0]), *argv[1 : len(self.matcher)]) == self.matcher
            case str():
                return self.matcher in _texts(argv)
            case _:
                return any(self.matcher.fullmatch(text) for text in _texts(argv))


@frozen(eq=False)
class _Run:
    """A call of ``run``: ended from outside through its scope."""

    process: BackgroundProcess
    scope: anyio.CancelScope


class ScriptedCommands(CommandPort):
    """Programs in memory: a small shell, the usual small programs, and what the test adds.

    What is not known exits as on a real system: ``program_not_found`` from the port, status 127 in the shell.
    Limits of resources are not supported.

    Args:
        files: The files that programs see.
        clock: Their time.
        scripts: Handlers by name: a key of one word is a program, a longer one the text of a command.
            A ``str`` as value is what it prints.
        variables: The variables that commands inherit.
        builtins: Whether there are a shell and the small programs.
    """

    def __init__(
        self,
        files: FilePort,
        clock: ClockPort,
        scripts: Mapping[str, Handler | str] | None = None,
        *,
        variables: Mapping[str, str] | None = None,
        builtins: bool = True,
    ) -> None:
        self._files = files
        self._clock = clock
        self._variables = dict(variables or {})
        self._programs: dict[str, Handler] = {}
        if builtins:
            self._programs |= {**PROGRAMS, **dict.fromkeys(_SHELLS, _shell)}
        self._rules: list[_Rule] = []
        self._runs: list[_Run] = []
        self._background: list[BackgroundProcess] = []
        self._pids = 1000
        self._closed = False
        for name, script in (scripts or {}).items():
            handler = prints(script) if isinstance(script, str) else script
            self.on(name if len(name.split()) > 1 else (name,), handler)

    # ---------------------------------------------------------------- for the test

    def on(self, matcher: Matcher, handler: Handler) -> None:
        """Let a function play commands; where several match, the one added last does.

        A program named by a tuple can be found from then on.
        """
        self._rules.insert(0, _Rule(matcher, handler))

    @property
    def running(self) -> Sequence[BackgroundProcess]:
        """What runs now: the commands of calls under way, and what ended ones left behind."""
        return [run.process for run in self._runs] + self._background

    async def aclose(self) -> None:
        """Kill everything and refuse further commands; a call under way raises ``closed``."""
        self._closed = True
        self._background.clear()
        for run in self._runs:
            run.scope.cancel()

    # ---------------------------------------------------------------- the port

    @property
    def may_survive(self) -> Sequence[str]:
        return ()

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        await anyio.lowlevel.checkpoint()
        program = command.argv[0] if command.argv else ""
        if self._closed:
            raise PortError("closed", program)
        require_valid(command)
        env = environment_of(self._variables, command)
        require_startable(command.argv, env, program)
        await self._require_directory(command.cwd)
        scope = anyio.CancelScope()
        pipe = Pipe(on_output, scope)
        process = Process(
            argv=tuple(command.argv),
            cwd=command.cwd,
            env=env,
            stdin=command.stdin or b"",
            files=self._files,
            clock=self._clock,
            pid=self.next_pid(),
            jobs=[],
            stdout=pipe.write,
            stderr=pipe.write,
            system=self,
        )
        run = _Run(BackgroundProcess(process.pid, shlex.join(command.argv)), scope)
        self._runs.append(run)
        try:
            with scope:
                return await self._follow(process, pipe, on_exit)
            raise pipe.failure or PortError("closed", program)
        finally:
            self._runs.remove(run)

    async def find_program(self, name: str) -> str | None:
        await anyio.lowlevel.checkpoint()
        try:
            return (await self._find(name, self._variables))[0]
        except PortError:
            return None

    async def _follow(self, process: Process, pipe: Pipe, on_exit: ExitListener | None) -> Exit:
        ended = await self.execute(process)
        if on_exit is not None:
            on_exit(ended)
        await pipe.drain(process.jobs, self._clock)
        left = tuple(BackgroundProcess(job.pid, job.command_line) for job in process.jobs if not job.done)
        self._background += left
        return Exit(ended.code, ended.signal, left)

    # ---------------------------------------------------------------- for processes

    async def execute(self, process: Process) -> Exit:
        """Find the program of a process and run it.

        Raises:
            PortError: ``program_not_found``; ``permission_denied``; ``spawn_failed`` for a file that is no
                shell script.
        """
        handler = next((rule.handler for rule in self._rules if rule.matches(process.argv)), None)
        if handler is None:
            _, handler = await self._find(process.argv[0], process.env, process.cwd)
        result = await handler(process)
        return result if isinstance(result, Exit) else Exit(result or 0)

    def next_pid(self) -> int:
        """Return a new process number."""
        self._pids += 1
        return self._pids

    def kill(self, pid: int) -> bool:
        """End what an earlier command left running; returns whether there was such a process."""
        for process in self._background:
            if process.pid == pid:
                self._background.remove(process)
                return True
        return False

    async def _find(self, name: str, env: Mapping[str, str], cwd: str = "/") -> tuple[str, Handler]:
        """Return the path of a program and what plays it."""
        if "/" in name:
            return await self._program_at(posixpath.join(cwd, name), name)
        for directory in filter(None, env.get("PATH", ":".join(_PROGRAM_DIRECTORIES)).split(":")):
            try:
                return await self._program_at(posixpath.join(directory, name), name)
            except PortError:
                continue
        raise PortError("program_not_found", name)

    async def _program_at(self, path: str, name: str) -> tuple[str, Handler]:
        directory, base = posixpath.split(path)
        if directory in _PROGRAM_DIRECTORIES and base:
            handler = self._programs.get(base) or next(
                (rule.handler for rule in self._rules if isinstance(rule.matcher, tuple) and rule.matcher[0] == base),
                None,
            )
            if handler is not None:
                return path, handler
        try:
            found = await self._files.stat(path)
        except PortError as error:
            if error.code == "permission_denied":
                raise PortError(error.code, name) from error
            raise PortError("program_not_found", name) from error
        if found.kind != "file" or not found.mode & 0o111:
            raise PortError("permission_denied", name)
        return path, _script_at(path)

    async def _require_directory(self, path: str) -> None:
        if (await self._files.stat(path)).kind != "directory":
            raise PortError("not_a_directory", path)


def prints(*pieces: str | bytes, every: float = 0.0, exit_code: int = 0) -> Handler:
    """Return a handler that prints pieces, waits this many seconds before each, and ends with this code."""

    async def handler(process: Process, /) -> int:
        for piece in pieces:
            if every:
                await process.sleep(every)
            await process.write(piece)
        return exit_code

    return handler


async def _shell(process: Process, /) -> Exit | int:
    return await shell(process, BUILTINS)


def _script_at(path: str) -> Handler:
    async def handler(process: Process, /) -> Exit | int:
        return await run_script_file(process, path, BUILTINS)

    return handler


def _texts(argv: Sequence[str]) -> tuple[str, ...]:
    """Return what a command says: the script given to a shell, or the simple command itself."""
    if posixpath.basename(argv[0]) in _SHELLS and len(argv) >= 3 and argv[-2].startswith("-") and "c" in argv[-2]:
        return (argv[-1],)
    return (shlex.join(argv), " ".join(argv))
