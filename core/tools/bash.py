"""bash: run a command in a shell. Contract section 8."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from handrail.core.results import ToolResult
from handrail.core.tool import Tool, ToolContext
from handrail.core.tools._shell import (
    Shell,
    ShellArguments,
    ShellDetails,
    ShellOptions,
    SpawnRequest,
    run_shell,
)

__all__ = ["BashArguments", "BashDetails", "BashOptions", "SpawnRequest", "bash_tool"]

_MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1  # MAX_ARG_STRLEN of Linux, less its NUL


@frozen
class BashArguments(ShellArguments):
    """Arguments of bash."""


BashDetails = ShellDetails


@frozen(kw_only=True)
class BashOptions(ShellOptions):
    """What the host decides about bash; see ``ShellOptions``."""


_BASH: Final = Shell(
    name="bash",
    programs=("/bin/bash", "bash"),
    missing="No bash was found. Install it, or let the host name a shell with the option shell_path.",
    argv=lambda text: ("-c", text),
    source=lambda path: f". {_quoted(path)}",
    script_suffix=".sh",
    script_start=b"",
    max_inline_bytes=_MAX_ARGUMENT_BYTES,
    utf16=False,
)


def bash_tool(options: BashOptions = BashOptions()) -> Tool[BashArguments]:
    """Return the bash tool.

    Args:
        options: What the host decides.
    """

    async def execute(arguments: BashArguments, context: ToolContext) -> ToolResult:
        return await run_shell(_BASH, arguments, context, options)

    return Tool(
        name="bash",
        label="bash",
        description=(
            "Run a bash command in the working directory and return stdout and stderr together. Long output is cut "
            "to its last 2000 lines or 50KB and saved whole in a file that the result names. "
            "No timeout unless one is given."
        ),
        parameters=BashArguments,
        execute=execute,
        details=BashDetails,
    )


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
