"""local_environment: the real disk, real processes and real time as one Environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

from handrail.adapters.local.clock import LocalClock
from handrail.adapters.local.commands import LocalCommands
from handrail.adapters.local.files import LocalFiles
from handrail.ports.environment import Environment, Session

__all__ = ["local_environment"]

T = TypeVar("T")


async def _in_thread(function: Callable[[], T], /) -> T:
    """Run a computation in a worker thread, so that the event loop goes on; a cancellation does not wait for it."""
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


def local_environment(
    cwd: str | os.PathLike[str] = ".",
    *,
    home: str | os.PathLike[str] | None = None,
    session: Session | None = None,
    fsync: bool = False,
    temp_directory: str | os.PathLike[str] | None = None,
) -> Environment:
    """Return an environment on this machine. Close it (``async with``) to end what it still runs.

    Args:
        cwd: Working directory; need not exist yet.
        home: What ``~`` means; by default the user's home directory.
        session: What commands are told about the agent session.
        fsync: Flush written files to the device before a write returns.
        temp_directory: Where saved command output goes; by default the system's place for such files.
    """
    files = LocalFiles(fsync=fsync, temp_directory=os.fspath(temp_directory) if temp_directory else None)
    commands = LocalCommands()
    return Environment(
        files=files,
        commands=commands,
        clock=LocalClock(),
        cwd=os.path.abspath(cwd),
        home=os.path.abspath(home) if home is not None else os.path.expanduser("~"),
        session=session or Session(),
        offload=_in_thread,
        on_close=[files.aclose, commands.aclose],
    )
