"""bash: run a command in a shell. Contract section 8."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from handrail.core.tool import Tool
from handrail.core.tools._shell import Shell, ShellArguments, ShellDetails, ShellOptions, SpawnRequest, shell_tool

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
    description="Run a bash command in the working directory and return stdout and stderr together.",
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
    return shell_tool(_BASH, BashArguments, options)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
