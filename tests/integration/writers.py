"""A process that changes files through the tools; tests start several of them and kill some.

    python -m integration.writers edit DIRECTORY FIRST LAST    edits lines FIRST to LAST-1 of shared.txt
    python -m integration.writers write DIRECTORY SIZE         rewrites whole.txt for ever, with a's and b's in turn

It prints ``ready``, waits for a line on its standard input, then prints one line of JSON for each call.
"""

from __future__ import annotations

import itertools
import json
import sys

import anyio

from handrail.adapters.local.environment import local_environment
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import coding_tools


async def edit(directory: str, first: int, last: int) -> None:
    """Change each line by one edit of its own; several at a time."""
    async with local_environment(directory) as env, Toolbox(env, coding_tools()) as toolbox:
        _start()

        async def one(number: int) -> None:
            edits = [{"oldText": f"line {number:03}.", "newText": f"LINE {number:03}."}]
            result = await toolbox.call("edit", {"path": "shared.txt", "edits": edits})
            print(json.dumps([number, result.error_code, result.text]), flush=True)

        async with anyio.create_task_group() as group:
            for number in range(first, last):
                group.start_soon(one, number)


async def write(directory: str, size: int) -> None:
    """Replace the whole file again and again until killed."""
    async with local_environment(directory) as env, Toolbox(env, coding_tools()) as toolbox:
        _start()
        for letter in itertools.cycle("ab"):
            result = await toolbox.call("write", {"path": "whole.txt", "content": letter * size})
            print(json.dumps([letter, result.error_code, result.text]), flush=True)


def _start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    kind, place, *numbers = sys.argv[1:]
    if kind == "edit":
        anyio.run(edit, place, int(numbers[0]), int(numbers[1]))
    else:
        anyio.run(write, place, int(numbers[0]))
