"""powershell: run a command in PowerShell. Contract section 8."""

from __future__ import annotations

import codecs
from typing import Final

from attrs import frozen

from handrail.core.tool import Tool
from handrail.core.tools._shell import Shell, ShellArguments, ShellDetails, ShellOptions, shell_tool

__all__ = ["PowershellArguments", "PowershellDetails", "PowershellOptions", "powershell_tool"]

_MAX_INLINE_BYTES: Final = 16_000  # a whole command line of Windows has 32 767 UTF-16 units

# UTF-8 on both pipes, no progress records in the output, and no exit code left over from before.
_BEFORE: Final = (
    "[Console]::OutputEncoding = $OutputEncoding = New-Object System.Text.UTF8Encoding $false; "
    "$ProgressPreference = 'SilentlyContinue'; $global:LASTEXITCODE = 0\n"
)
# -Command alone reports 1 for every failure. The code of a native program that failed is passed on; so is its
# success when Windows PowerShell took a line on its redirected stderr for an error; a failed cmdlet is 1.
_AFTER: Final = (
    "\nif ($?) { exit 0 }"
    "\nif ($LASTEXITCODE -ne 0) { exit $LASTEXITCODE }"
    "\nif ($Error.Count -and $Error[0].FullyQualifiedErrorId -like 'NativeCommandError*') { exit 0 }"
    "\nexit 1"
)


@frozen
class PowershellArguments(ShellArguments):
    """Arguments of powershell."""


PowershellDetails = ShellDetails


@frozen(kw_only=True)
class PowershellOptions(ShellOptions):
    """What the host decides about powershell; see ``ShellOptions``."""


_POWERSHELL: Final = Shell(
    name="powershell",
    description="Run a PowerShell command in the working directory and return its output and errors together.",
    programs=("pwsh", "powershell"),
    missing=(
        "No PowerShell was found. Install PowerShell 7 (https://aka.ms/install-powershell) so that pwsh is on PATH, "
        "let the host name one with the option shell_path, or use bash."
    ),
    argv=lambda text: (
        "-NoProfile",
        "-NonInteractive",
        "-ExecutionPolicy",
        "Bypass",
        "-Command",
        f"{_BEFORE}{text}{_AFTER}",
    ),
    source=lambda path: ". '" + path.replace("'", "''") + "'",
    script_suffix=".ps1",
    script_start=codecs.BOM_UTF8,  # without it Windows PowerShell reads a script in the ANSI code page
    max_inline_bytes=_MAX_INLINE_BYTES,
    utf16=True,
)


def powershell_tool(options: PowershellOptions = PowershellOptions()) -> Tool[PowershellArguments]:
    """Return the powershell tool.

    Args:
        options: What the host decides.
    """
    return shell_tool(_POWERSHELL, PowershellArguments, options)
