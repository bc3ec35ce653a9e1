"""The small shell behind ``bash`` and ``sh`` in memory: enough for simple scripts, never a wrong guess.

Statements run one after another, and so do the commands of a pipeline: each reads all that the one before has
written. What is started with ``&`` runs when the script has ended. The grammar is in ``_syntax``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from attrs import evolve, frozen

from handrail.adapters.memory._expansion import ShellState, UnboundVariable, fields_of, value_of
from handrail.adapters.memory._syntax import Command, Pipeline, Redirect, Statement, SyntaxProblem, parse
from handrail.adapters.memory.process import Process, describe
from handrail.ports.commands import Exit, OutputSink
from handrail.ports.errors import PortError

__all__ = ["Builtin", "Leave", "Shell", "Streams", "run_script_file", "shell", "status_of"]


class Leave(Exception):
    """The shell ends here."""

    def __init__(self, result: Exit) -> None:
        self.result = result


@frozen
class Streams:
    """Where a command reads and writes."""

    stdin: bytes
    stdout: OutputSink
    stderr: OutputSink


async def shell(process: Process, builtins: Mapping[str, Builtin]) -> Exit | int:
    """Play ``bash``: ``-c text [name arguments…]``, a script file with arguments, or a script on stdin."""
    words = list(process.arguments)
    shell = Shell(process, [], builtins)
    try:
        flags = shell.state.take_options(words)
    except ValueError as error:
        return await process.fail(str(error), 2)
    if unknown := flags.strip("csil"):  # the letters known: command, stdin, interactive, login
        return await process.fail(f"-{unknown}: option not supported in this shell", 2)
    if "c" in flags:
        if not words:
            return await process.fail("-c: option requires an argument", 2)
        shell.state.name, shell.state.arguments = words[1] if len(words) > 1 else "bash", words[2:]
        return await shell.run_text(words[0], "-c: line 1: ")
    if words and "s" not in flags:
        return await _run_file(shell, process.path(words[0]), words[0], words[1:])
    shell.state.arguments = words
    return await shell.run_text(process.stdin.decode("utf-8", "surrogateescape"), "line 1: ", stdin=b"")


async def run_script_file(process: Process, path: str, builtins: Mapping[str, Builtin]) -> Exit | int:
    """Play an executable file: a shell script, or something that cannot run here."""
    return await _run_file(Shell(process, [], builtins), path, process.argv[0], process.arguments)


async def _run_file(shell: Shell, path: str, name: str, arguments: Sequence[str]) -> Exit | int:
    process = shell.process
    try:
        data = (await process.files.read(path)).data
    except PortError as error:
        await process.write_error(f"bash: {name}: {describe(error)}\n")
        return 127 if error.code == "not_found" else 126
    first_line = data.partition(b"\n")[0]
    if b"\0" in data or (first_line.startswith(b"#!") and not re.search(rb"\b(ba|da)?sh\b", first_line)):
        raise PortError("spawn_failed", name, "Exec format error: only shell scripts run in memory")
    text = data.decode("utf-8", "surrogateescape")
    shell.state.name, shell.state.arguments = name, arguments
    return await shell.run_text(text, f"{name}: line 1: ")


class Shell:
    """One shell process.

    Attributes:
        process: The process that plays it.
        state: What it remembers.
    """

    def __init__(self, process: Process, arguments: Sequence[str], builtins: Mapping[str, Builtin]) -> None:
        self.process = process
        self.state = ShellState(process.cwd, dict(process.env), set(process.env), arguments, process.pid)
        self._builtins = builtins

    async def run_text(self, text: str, origin: str, *, stdin: bytes | None = None) -> Exit:
        """Run a script to its end.

        Args:
            text: The script.
            origin: What precedes a message about its syntax.
            stdin: What its commands read; by default what the process got.
        """
        process = self.process
        streams = Streams(process.stdin if stdin is None else stdin, process.write, process.write_error)
        try:
            return await self.run_statements(parse(text), streams)
        except SyntaxProblem as problem:
            await process.write_error(f"bash: {origin}{problem}\n")
            return Exit(2)
        except UnboundVariable as error:
            return Exit(await self.complain(streams, str(error), 127))
        except Leave as leaving:
            return leaving.result

    async def run_statements(self, statements: Sequence[Statement], streams: Streams) -> Exit:
        """Run statements one after another.

        Raises:
            Leave: One of them ends the shell.
            SyntaxProblem: One of them uses what this shell does not know.
        """
        result = Exit(0)
        for statement in statements:
            if statement.background:
                self._start_background(statement, streams)
                continue
            for step in statement.steps:
                if (step.condition == "&&" and self.state.status) or (step.condition == "||" and not self.state.status):
                    continue
                result = await self._run_pipeline(step.pipeline, streams)
                self.state.status = status_of(result)
                if "errexit" in self.state.options and self.state.status and step is statement.steps[-1]:
                    raise Leave(Exit(self.state.status))
        if len(statements) == 1 and len(statements[0].steps) == 1:
            return result  # as if the shell had become the program: a signal stays a signal
        return Exit(self.state.status)

    async def complain(self, streams: Streams, message: str, status: int = 1) -> int:
        """Write a line to standard error and return the status."""
        await streams.stderr(_encode(f"bash: line 1: {message}\n"))
        return status

    def _subshell(self) -> Shell:
        copy = Shell(self.process, self.state.arguments, self._builtins)
        copy.state = self.state.copy()
        return copy

    def _start_background(self, statement: Statement, streams: Streams) -> None:
        subshell = self._subshell()

        async def work() -> None:
            try:
                await subshell.run_statements([evolve(statement, background=False)], evolve(streams, stdin=b""))
            except Leave:
                return

        self.state.last_background = str(self.process.leave_running(statement.source, work))
        self.state.status = 0

    async def _run_pipeline(self, pipeline: Pipeline, streams: Streams) -> Exit:
        if len(pipeline) == 1:
            return await self._run_command(pipeline[0], streams)
        stdin = streams.stdin
        result = failure = Exit(0)
        for position, command in enumerate(pipeline, start=1):
            collected = bytearray()
            stdout = streams.stdout if position == len(pipeline) else _into(collected)
            try:
                result = await self._subshell()._run_command(command, Streams(stdin, stdout, streams.stderr))
            except Leave as leaving:
                result = leaving.result
            stdin = bytes(collected)
            failure = result if status_of(result) else failure
        return failure if "pipefail" in self.state.options else result

    async def _run_command(self, command: Command, streams: Streams) -> Exit:
        try:
            for redirect in command.redirects:
                streams = await self._redirected(redirect, streams)
        except PortError as error:
            return Exit(await self.complain(streams, f"{error.path}: {describe(error)}"))
        words: list[str] = []
        for word in command.words:
            words += await fields_of(word, self.state, self.process.files)
        assigned = {name: value_of(word, self.state) for name, word in command.assignments}
        if not words:
            self.state.variables |= assigned
            return Exit(0)
        if builtin := self._builtins.get(words[0]):
            return Exit(await builtin(self, words[1:], streams))
        return await self.run_program(words, streams, assigned)

    async def run_program(self, words: Sequence[str], streams: Streams, assigned: Mapping[str, str]) -> Exit:
        """Run a program with the exported variables and some of its own."""
        exported = {name: value for name, value in self.state.variables.items() if name in self.state.exported}
        try:
            return await self.process.run(
                words,
                cwd=self.state.cwd,
                env=exported | dict(assigned),
                stdin=streams.stdin,
                stdout=streams.stdout,
                stderr=streams.stderr,
            )
        except PortError as error:
            if error.code == "program_not_found":
                message = "No such file or directory" if "/" in words[0] else "command not found"
                return Exit(await self.complain(streams, f"{words[0]}: {message}", 127))
            if error.code in ("permission_denied", "spawn_failed"):
                return Exit(await self.complain(streams, f"{words[0]}: {error.detail or describe(error)}", 126))
            if error.code == "closed":
                raise
            return Exit(await self.complain(streams, f"{words[0]}: {describe(error)}"))

    # ---------------------------------------------------------------- redirections

    async def _redirected(self, redirect: Redirect, streams: Streams) -> Streams:
        """Return the streams after one redirection. Errors name the target as it is written."""
        target = value_of(redirect.target, self.state)
        try:
            if redirect.operator == "<":
                return evolve(streams, stdin=await self._file_content(target))
            sink = await self._sink(redirect.operator, target, streams)
        except PortError as error:
            raise PortError(error.code, target) from error
        stdout = sink if redirect.stream in ("1", "&") else streams.stdout
        stderr = sink if redirect.stream in ("2", "&") else streams.stderr
        return Streams(streams.stdin, stdout, stderr)

    async def _file_content(self, target: str) -> bytes:
        if target == "/dev/null":
            return b""
        return (await self.process.files.read(posixpath.join(self.state.cwd, target))).data

    async def _sink(self, operator: str, target: str, streams: Streams) -> OutputSink:
        if operator == ">&":
            if target not in ("1", "2"):
                raise PortError("invalid_path", target)
            return streams.stdout if target == "1" else streams.stderr
        if target == "/dev/null":
            return _into(bytearray())
        files, path = self.process.files, posixpath.join(self.state.cwd, target)
        if operator == ">>":
            await self._append_or_create(path)
        else:
            await files.write(path, b"")

        async def sink(data: bytes) -> None:
            await files.append(path, data)

        return sink

    async def _append_or_create(self, path: str) -> None:
        try:
            await self.process.files.append(path, b"")
        except PortError as error:
            if error.code != "not_found":
                raise
            await self.process.files.write(path, b"")


Builtin = Callable[[Shell, Sequence[str], Streams], Awaitable[int]]
"""A command of the shell itself: gets the shell, its arguments and streams, and returns the status."""


def status_of(result: Exit) -> int:
    """Return what ``$?`` says."""
    return result.code if result.code is not None else 128 + (result.signal or 0)


def _into(collected: bytearray) -> OutputSink:
    async def sink(data: bytes) -> None:
        collected.extend(data)

    return sink


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
