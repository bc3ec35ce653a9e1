"""The commands of the small shell itself: those that change the shell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Final

from handrail.adapters.memory._syntax import parse
from handrail.adapters.memory.process import describe
from handrail.adapters.memory.shell import Builtin, Leave, Shell, Streams, status_of
from handrail.ports.commands import Exit
from handrail.ports.errors import PortError

__all__ = ["BUILTINS"]

_SIGNALS: Final = {"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}


async def _change_directory(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    state = shell.state
    target = arguments[0] if arguments else state.variables.get("HOME", "/")
    if target == "-":
        target = state.variables.get("OLDPWD", state.cwd)
    path = posixpath.normpath(posixpath.join(state.cwd, target))
    try:
        kind = (await shell.process.files.stat(path)).kind
    except PortError as error:
        return await shell.complain(streams, f"cd: {target}: {describe(error)}")
    if kind != "directory":
        return await shell.complain(streams, f"cd: {target}: Not a directory")
    state.variables["OLDPWD"], state.cwd = state.cwd, path
    return 0


async def _print_directory(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    await streams.stdout(f"{shell.state.cwd}\n".encode("utf-8", "surrogateescape"))
    return 0


async def _export(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    for argument in arguments:
        name, assigned, value = argument.partition("=")
        if assigned:
            shell.state.variables[name] = value
        shell.state.exported.add(name)
    return 0


async def _unset(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    for name in arguments:
        shell.state.variables.pop(name, None)
    return 0


async def _exit(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    if not arguments:
        raise Leave(Exit(shell.state.status))
    if not re.fullmatch(r"-?\d+", arguments[0]):
        raise Leave(Exit(await shell.complain(streams, f"exit: {arguments[0]}: numeric argument required", 2)))
    raise Leave(Exit(int(arguments[0]) % 256))


async def _nothing(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    return 0


async def _set(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    words = list(arguments)
    try:
        unknown = shell.state.take_options(words)
    except ValueError as error:
        return await shell.complain(streams, f"set: {error}", 2)
    if unknown:
        return await shell.complain(streams, f"set: -{unknown}: option not supported in this shell", 2)
    if words or "--" in arguments:
        shell.state.arguments = words
    return 0


async def _source(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    if not arguments:
        return await shell.complain(streams, "source: filename argument required", 2)
    try:
        content = await shell.process.files.read(posixpath.join(shell.state.cwd, arguments[0]))
    except PortError as error:
        return await shell.complain(streams, f"{arguments[0]}: {describe(error)}")
    return status_of(await shell.run_statements(parse(content.data.decode("utf-8", "surrogateescape")), streams))


async def _evaluate(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    return status_of(await shell.run_statements(parse(" ".join(arguments)), streams))


async def _execute(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    if not arguments:
        return 0
    raise Leave(await shell.run_program(arguments, streams, {}))


async def _kill(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    signal, status = 15, 0
    for argument in arguments:
        if argument.startswith("-"):
            name = argument[1:].removeprefix("SIG")
            signal = int(name) if name.isdigit() else _SIGNALS.get(name, signal)
        elif argument == str(shell.state.pid):
            raise Leave(Exit(None, signal))
        elif not (argument.isdigit() and shell.process.kill(int(argument))):
            status = await shell.complain(streams, f"kill: ({argument}) - No such process")
    return status


async def _wait(shell: Shell, arguments: Sequence[str], streams: Streams) -> int:
    await shell.process.finish_jobs()
    return 0


BUILTINS: Final[Mapping[str, Builtin]] = {
    ".": _source,
    ":": _nothing,
    "cd": _change_directory,
    "eval": _evaluate,
    "exec": _execute,
    "exit": _exit,
    "export": _export,
    "kill": _kill,
    "pwd": _print_directory,
    "set": _set,
    "source": _source,
    "unset": _unset,
    "wait": _wait,
}
