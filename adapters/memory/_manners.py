"""What the small programs in memory share: options, and the manners of a program."""

from __future__ import annotations

from handrail.adapters.memory.process import Handler, Process, describe
from handrail.ports.commands import Exit
from handrail.ports.errors import PortError

__all__ = ["options", "polite"]


def options(process: Process, known: str) -> tuple[str, list[str]]:
    """Split arguments into the letters of known options and the rest; an unknown one is a ValueError."""
    letters, rest = "", list(process.arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        for letter in word[1:]:
            if letter not in known:
                raise ValueError(f"invalid option -- '{letter}'")
            letters += letter
    return letters, rest


def polite(program: Handler, code: int = 1) -> Handler:
    """Let a program say as programs do that it does not know an option, or cannot write."""

    async def run(process: Process, /) -> Exit | int | None:
        try:
            return await program(process)
        except ValueError as error:
            return await process.fail(str(error), code)
        except PortError as error:
            return await process.fail(f"write error: {describe(error)}")

    return run
