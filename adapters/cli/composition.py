"""The one place where the command line names concrete adapters."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from handrail.adapters.cli.errors import UsageError
from handrail.adapters.local.environment import local_environment
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import BashOptions
from handrail.core.tools.powershell import PowershellOptions
from handrail.core.toolsets import all_tools

__all__ = ["local_toolbox", "working_directory"]


@asynccontextmanager
async def local_toolbox(
    cwd: str, *, keep_output_files: bool = False, record: str | None = None, roots: Sequence[str] = ()
) -> AsyncGenerator[Toolbox, None]:
    """Open all tools on this machine; leaving the block ends whatever they still run.

    Args:
        cwd: Absolute working directory.
        keep_output_files: Leave saved command output where it is.
        record: Where to keep a log.
        roots: With a log: directories in which what commands change can be undone.

    Raises:
        UsageError: There cannot be a log at that place.
    """
    tools = all_tools(
        bash=BashOptions(keep_output_files=keep_output_files),
        powershell=PowershellOptions(keep_output_files=keep_output_files),
    )
    env = local_environment(cwd)
    if record is not None:
        from handrail.adapters.cli.recording import recorded

        env = recorded(env, record, roots)
    async with env, Toolbox(env, tools) as toolbox:
        yield toolbox


def working_directory(given: str | None) -> str:
    """Return the absolute directory that ``--cwd`` names, by default the current one.

    Raises:
        UsageError: It is no directory. A typing error must not make a tool work, or write, elsewhere.
    """
    try:
        path = os.path.abspath(given or ".")
    except FileNotFoundError:
        raise UsageError("The current directory does not exist any more. Go to another one, or give --cwd.") from None
    if not os.path.isdir(path):
        raise UsageError(f"--cwd {given}: not a directory.")
    return path
