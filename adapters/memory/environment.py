"""memory_environment: a whole world in memory as one Environment."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from handrail.adapters.memory.clock import VirtualClock
from handrail.adapters.memory.commands import ScriptedCommands
from handrail.adapters.memory.entries import Directory, Entry
from handrail.adapters.memory.files import MemoryFiles, NameRules
from handrail.adapters.memory.process import Handler
from handrail.ports.environment import Environment, Session

__all__ = ["MemoryEnvironment", "memory_environment"]


@frozen(eq=False, kw_only=True)
class MemoryEnvironment(Environment):
    """An Environment whose parts a test can look at and change.

    Attributes:
        files: The files; see ``MemoryFiles.tree``, ``MemoryFiles.faults``.
        commands: The programs; see ``ScriptedCommands.on``, ``ScriptedCommands.running``.
        clock: The clock; it jumps by itself unless another one was handed in.
    """

    files: MemoryFiles
    commands: ScriptedCommands
    clock: VirtualClock


def memory_environment(
    files: Mapping[str, Entry] | None = None,
    *,
    cwd: str = "/project",
    home: str = "/home/user",
    commands: Mapping[str, Handler | str] | None = None,
    clock: VirtualClock | None = None,
    session: Session | None = None,
    variables: Mapping[str, str] | None = None,
    builtins: bool = True,
    case_sensitive: bool = True,
    normalization: Literal["NFD"] | None = None,
    umask: int = 0o022,
    superuser: bool = False,
) -> MemoryEnvironment:
    """Return an environment in memory. Nothing it does touches the real system.

    Args:
        files: What is there at first: path -> text, bytes, ``Symlink("target")``, ``Directory()``, ….
            Relative paths start at ``cwd``.
        cwd: Working directory; created.
        home: What ``~`` means; created.
        commands: Handlers: a key of one word plays a program, a longer one the text of a command; a ``str``
            as value is what it prints. More through ``env.commands.on``.
        clock: By default a VirtualClock that jumps as soon as everything waits, so that time-outs cost nothing.
        session: What commands are told about the agent session.
        variables: Variables that commands inherit, beside PATH, HOME and USER.
        builtins: Whether there are a shell and the usual small programs.
        case_sensitive: Whether ``A`` and ``a`` are two files.
        normalization: ``"NFD"`` for a file system that stores names decomposed, as HFS+ does.
        umask: Taken from the mode of new files and directories.
        superuser: Whether permission bits do not bind the user, as for root.
    """
    clock = clock or VirtualClock(autojump=True)
    places: dict[str, Entry] = {"/tmp": Directory(0o1777), home: Directory(), cwd: Directory()}
    given = {posixpath.join(cwd, path): entry for path, entry in (files or {}).items()}
    tree = MemoryFiles(
        clock,
        {**{path: place for path, place in places.items() if path not in given}, **given},
        names=NameRules(case_sensitive, normalization),
        umask=umask,
        superuser=superuser,
    )
    programs = ScriptedCommands(
        tree,
        clock,
        commands,
        variables={"PATH": "/usr/bin:/bin", "HOME": home, "USER": "user", **(variables or {})},
        builtins=builtins,
    )
    return MemoryEnvironment(
        files=tree,
        commands=programs,
        clock=clock,
        cwd=cwd,
        home=home,
        session=session or Session(),
        on_close=[tree.aclose, programs.aclose],
    )
