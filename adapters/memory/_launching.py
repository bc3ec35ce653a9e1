"""What has to be right before a command starts: its words, its variables, its size."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Final

from handrail.ports.commands import Command, Inheritance, ResourceLimits
from handrail.ports.errors import PortError

__all__ = ["environment_of", "require_startable", "require_valid"]

_MAX_ARGUMENT_BYTES: Final = 128 * 1024
_MAX_ARGUMENTS_BYTES: Final = 2 * 1024 * 1024
_MINIMAL: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TERM", "TZ", "TMPDIR")


def environment_of(host: Mapping[str, str], command: Command) -> dict[str, str]:
    env = {name: value for name, value in host.items() if _is_inherited(name, command.inherit)}
    for name, value in command.env.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def _is_inherited(name: str, policy: Inheritance) -> bool:
    if _matches(name, policy.allow):
        return True
    return (policy.base == "all" or _matches(name, _MINIMAL)) and not _matches(name, policy.deny)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def require_valid(command: Command) -> None:
    if not command.argv:
        raise PortError("invalid_path", "", "a command has a program")
    for text in (*command.argv, command.cwd, *command.env, *command.env.values()):
        if text is not None and "\0" in text:
            raise PortError("invalid_path", text, "it has a NUL")
    if command.limits != ResourceLimits():
        raise PortError("not_supported", command.argv[0], "programs in memory have no limits of resources")


def require_startable(argv: Sequence[str], env: Mapping[str, str], program: str) -> None:
    """Refuse what execve(2) refuses on Linux with E2BIG; a test of long commands needs to meet it."""
    strings = [*argv, *(f"{name}={value}" for name, value in env.items())]
    sizes = [len(text.encode("utf-8", "surrogateescape")) + 1 for text in strings]
    if max(sizes) > _MAX_ARGUMENT_BYTES or sum(sizes) > _MAX_ARGUMENTS_BYTES:
        raise PortError("spawn_failed", program, "Argument list too long")
