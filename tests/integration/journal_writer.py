"""A process that changes files under a journal; a test kills it at some moment.

    python -m integration.journal_writer DIRECTORY STORE SEED

It prints a line before and after each change, for ever.
"""

from __future__ import annotations

import random
import sys

import anyio

from handrail.adapters.journal import journal
from handrail.adapters.local.environment import local_environment
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

_NAMES = ("a", "b", "c", "d/a", "d/b", "d/e/f")


async def change(env: Environment, choose: random.Random) -> None:
    """Make one change, if it can be made."""
    files, path, other = env.files, *(f"{env.cwd}/{name}" for name in choose.sample(_NAMES, 2))
    data = choose.choice("xyz").encode() * choose.choice((1, 100, 100_000))
    match choose.randrange(8):
        case 0 | 1:
            await files.write(path, data)
        case 2:
            await files.append(path, data[:100])
        case 3:
            await files.remove(path)
        case 4:
            await files.rename(path, other)
        case 5:
            await files.make_link(path, choose.choice(("a", "missing")))
        case 6:
            await files.change_mode(path, choose.choice((0o600, 0o640, 0o755)))
        case _:
            await files.make_dirs(path.rpartition("/")[0])


async def main(directory: str, store: str, seed: int) -> None:
    choose = random.Random(seed)
    async with journal(local_environment(directory), store, roots=()) as env:
        while True:
            print("begins", flush=True)
            try:
                await change(env, choose)
            except PortError as error:
                print(error.code, flush=True)
            print("ends", flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
