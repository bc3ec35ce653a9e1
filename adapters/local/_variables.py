"""The variables of a command: what it inherits and what it changes."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from handrail.ports.commands import Command, Inheritance

__all__ = ["command_environment", "inherited"]

_POSIX_MINIMUM: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TERM", "TZ", "TMPDIR")
_WINDOWS_MINIMUM: Final = (
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP"),
    *("USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES*"),
)
_MINIMUM: Final = (*_POSIX_MINIMUM, *(_WINDOWS_MINIMUM if sys.platform == "win32" else ()))


def command_environment(host: Mapping[str, str], command: Command) -> dict[str, str]:
    """Return the variables of a command: inherited by its policy, then changed as it asks."""
    env = inherited(host, command.inherit)
    for name, value in command.env.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def inherited(host: Mapping[str, str], policy: Inheritance) -> dict[str, str]:
    """Return the host's variables that a policy lets through."""
    if policy == Inheritance():
        return dict(host)
    return {name: value for name, value in host.items() if _passes(name, policy)}


def _passes(name: str, policy: Inheritance) -> bool:
    if _matches(name, policy.allow):
        return True
    return (policy.base == "all" or _matches(name, _MINIMUM)) and not _matches(name, policy.deny)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
