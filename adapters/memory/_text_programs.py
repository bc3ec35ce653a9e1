"""The small programs that read and print: echo printf cat head tail wc, and those that only end or wait."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from handrail.adapters.memory._manners import options, polite
from handrail.adapters.memory.process import Handler, Process, describe
from handrail.ports.commands import Exit
from handrail.ports.errors import PortError

__all__ = ["TEXT_PROGRAMS"]


async def _echo(process: Process) -> int:
    words = list(process.arguments)
    newline = "\n"
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags = words.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags or (escapes and "E" not in flags)
    text = " ".join(words)
    await process.write((_unescape(text) if escapes else text) + newline)
    return 0


async def _printf(process: Process) -> int:
    if not process.arguments:
        return await process.fail("usage: printf format [arguments]", 2)
    template, values = _unescape(process.arguments[0]), list(process.arguments[1:])
    while True:
        before = len(values)
        await process.write(_formatted(template, values))
        if not values or len(values) == before:  # the format is used again for the values that are left
            return 0


def _formatted(template: str, values: list[str]) -> str:
    def fill(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        value = values.pop(0) if values else ""
        if found[2] in "di":
            return f"%{found[1]}d" % (int(value) if re.fullmatch(r"[+-]?\d+", value) else 0)
        return f"%{found[1]}s" % (_unescape(value) if found[2] == "b" else value)

    return re.sub(r"%(-?0?\d*)([sdib%])", fill, template)


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "\\": "\\"}


def _unescape(text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] == "x":
            return bytes([int(code[1:], 16)]).decode("utf-8", "surrogateescape")
        if code[0].isdigit():
            return bytes([int(code, 8) & 0xFF]).decode("utf-8", "surrogateescape")
        return _ESCAPES[code]

    return re.sub(r"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,4}|[ntrabefv\\])", replace, text)


async def _true(process: Process) -> int:
    return 0


async def _false(process: Process) -> int:
    return 1


async def _pwd(process: Process) -> int:
    await process.write(f"{process.cwd}\n")
    return 0


async def _sleep(process: Process) -> int:
    seconds = 0.0
    for word in process.arguments:
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+|infinity)([smhd]?)", word)
        if found is None:
            return await process.fail(f"invalid time interval '{word}'")
        if found[1] == "infinity":
            await process.hang()
        seconds += float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]
    if not process.arguments:
        return await process.fail("missing operand")
    await process.sleep(seconds)
    return 0


async def _env(process: Process) -> Exit | int:
    words, variables = list(process.arguments), dict(process.env)
    while words and (words[0] in ("-i", "-u") or re.match(r"[A-Za-z_]\w*=", words[0])):
        word = words.pop(0)
        if word == "-i":
            variables = {}
        elif word == "-u":
            variables.pop(words.pop(0) if words else "", None)
        else:
            name, _, value = word.partition("=")
            variables[name] = value
    if words:
        return await process.run(words, env=variables)
    await process.write("".join(f"{name}={value}\n" for name, value in variables.items()))
    return 0


async def _cat(process: Process) -> int:
    status = 0
    async for name, data in _inputs(process, process.arguments):
        if isinstance(data, bytes):
            await process.write(data)
        else:
            status = await process.fail(f"{name}: {describe(data)}")
    return status


async def _head(process: Process) -> int:
    count, names = _line_count(process)
    status = 0
    async for name, data in _inputs(process, names):
        if isinstance(data, bytes):
            await process.write(b"".join(data.splitlines(keepends=True)[:count]))
        else:
            status = await process.fail(f"cannot open '{name}' for reading: {describe(data)}")
    return status


async def _tail(process: Process) -> int:
    count, names = _line_count(process)
    status = 0
    async for name, data in _inputs(process, names):
        if isinstance(data, bytes):
            lines = data.splitlines(keepends=True)
            await process.write(b"".join(lines[max(len(lines) - count, 0) :]))
        else:
            status = await process.fail(f"cannot open '{name}' for reading: {describe(data)}")
    return status


def _line_count(process: Process) -> tuple[int, list[str]]:
    """Understand ``-n 5``, ``-n5`` and ``-5``; 10 lines by default."""
    words = list(process.arguments)
    if words and (found := re.fullmatch(r"-n?(\d+)", words[0])):
        return int(found[1]), words[1:]
    if len(words) > 1 and words[0] == "-n" and words[1].isdigit():
        return int(words[1]), words[2:]
    if words and words[0].startswith("-") and words[0] != "-":
        raise ValueError(f"invalid option -- '{words[0][1]}'")
    return 10, words


async def _wc(process: Process) -> int:
    letters, names = options(process, "lwc")
    status = 0
    async for name, data in _inputs(process, names):
        if not isinstance(data, bytes):
            status = await process.fail(f"{name}: {describe(data)}")
            continue
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
        shown = [str(counts[letter]) for letter in "lwc" if letter in (letters or "lwc")]
        await process.write(" ".join(shown + ([name] if name else [])) + "\n")
    return status


async def _inputs(process: Process, names: Sequence[str]) -> AsyncIterator[tuple[str, bytes | PortError]]:
    """Yield name and content of each input, standard input where none is named or the name is ``-``."""
    for name in names or [""]:
        if name in ("", "-"):
            yield name, process.stdin
            continue
        try:
            yield name, (await process.files.read(process.path(name))).data
        except PortError as error:
            yield name, error


TEXT_PROGRAMS: Final[Mapping[str, Handler]] = {
    "cat": polite(_cat),
    "echo": polite(_echo),
    "env": _env,
    "false": _false,
    "head": polite(_head),
    "printf": polite(_printf),
    "pwd": polite(_pwd),
    "sleep": _sleep,
    "tail": polite(_tail),
    "true": _true,
    "wc": polite(_wc),
}
