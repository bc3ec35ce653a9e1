"""ripgrep as a sieve: which of many files may hold a match. It runs through the CommandPort only.

What ripgrep answers is never shown. It gets the directories and files that the walk left, a pattern that is a little
too wide (``core.spelling``), and names the files worth reading; the scan then decides. So its version, its ignore
rules and its idea of encodings cannot change an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import anyio
from attrs import define, field

from handrail.core.paths import join, relative_to
from handrail.core.walking import Listed
from handrail.ports.commands import Command, Exit
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["MAX_ARGUMENT_BYTES", "Ripgrep", "RipgrepProgram", "targets_of"]

_OLDEST_VERSION: Final = 13

MAX_ARGUMENT_BYTES: Final = 120_000
"""How many bytes of paths one run is given; below what every Unix accepts."""

_OPTIONS: Final = (
    "--no-config",  # the user's configuration has no say
    "--no-messages",
    "--files-with-matches",
    "--null",
    "--binary",  # a NUL ends a line and no search
    "--no-ignore",  # the walk has applied the rules
    "--hidden",
    "--max-depth=1",
    "--no-mmap",
    "--color=never",
)


@define(eq=False)
class RipgrepProgram:
    """The ripgrep of one environment, looked for once."""

    _path: str | None = None
    _was_sought: bool = False
    _lock: anyio.Lock = field(factory=anyio.Lock)

    async def path(self, env: Environment) -> str | None:
        """Where the program is; ``None`` when there is none, or only one that is too old."""
        async with self._lock:
            if not self._was_sought:
                self._path = await _find(env)
                self._was_sought = True
        return self._path


async def _find(env: Environment) -> str | None:
    path = await env.commands.find_program("rg")
    if path is None:
        return None
    try:
        output, _ = await _run(env, Command((path, "--no-config", "--version"), cwd=env.cwd))
    except PortError:
        return None
    version = re.match(rb"ripgrep (\d+)\.", output)
    return path if version is not None and int(version[1]) >= _OLDEST_VERSION else None


@define(eq=False)
class Ripgrep:
    """One search.

    Attributes:
        program: Path of ripgrep.
        pattern: From ``core.spelling.to_ripgrep``.
        root: Directory that the search started in.
    """

    program: str
    pattern: str
    root: str

    async def sieve(self, env: Environment, targets: Sequence[str]) -> tuple[set[str], bool] | None:
        """Return the files that may hold a match, and whether all others were read.

        ``None``: ripgrep did not do its work, so nothing is known.
        """
        argv = (self.program, *_OPTIONS, f"--regexp={self.pattern}", "--", *targets)
        try:
            output, ended = await _run(env, Command(argv, cwd=self.root))
        except PortError:
            return None
        *names, rest = output.split(b"\0")
        if ended.code not in (0, 1, 2) or rest:  # what is no list of names is an error message
            return None
        found = {join(self.root, name.decode("utf-8", "surrogateescape").removeprefix("./")) for name in names}
        return found, ended.code != 2


def targets_of(listed: Listed, root: str) -> list[str]:
    """What ripgrep is given for a directory: itself, or its files one by one where some are not wanted."""
    if not listed.files:
        return []
    if listed.has_others:
        return [f"./{relative_to(path, root)}" for path in listed.files]
    return ["." if listed.path == root else f"./{relative_to(listed.path, root)}"]


async def _run(env: Environment, command: Command) -> tuple[bytes, Exit]:
    output = bytearray()

    async def keep(chunk: bytes) -> None:
        output.extend(chunk)

    ended = await env.commands.run(command, keep)
    return bytes(output), ended
