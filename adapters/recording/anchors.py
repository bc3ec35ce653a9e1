"""An anchor keeps the head of a log in another place, so that a missing end is noticed."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from inspect import isawaitable

import anyio.to_thread

from handrail.adapters.recording.chain import Head
from handrail.adapters.recording.errors import LogError

__all__ = ["AnchorSource", "keep_head", "read_head"]

AnchorSource = str | os.PathLike[str] | Callable[[Head], object]
"""A file to keep the head in, or a function (also a coroutine function) that gets each new one."""


async def keep_head(anchor: AnchorSource, head: Head) -> None:
    """Store a new head.

    Raises:
        OSError: The file cannot be written.
    """
    if callable(anchor):
        outcome = anchor(head)
        if isawaitable(outcome):
            await outcome
    else:
        await anyio.to_thread.run_sync(_replace, os.fspath(anchor), head)


def read_head(path: str | os.PathLike[str]) -> Head:
    """Return the head that a file keeps.

    Raises:
        LogError: The file keeps none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        return Head(int(kept["seq"]), str(kept["hash"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LogError(f"{os.fspath(path)} keeps no head of a log: {error}") from error


def _replace(path: str, head: Head) -> None:
    handle, draft = tempfile.mkstemp(prefix=".head-", dir=os.path.dirname(os.path.abspath(path)))
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"seq": head.seq, "hash": head.hash}, file)
    os.replace(draft, path)
