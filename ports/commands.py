"""CommandPort: programs run in one environment, and the plain data that crosses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

from attrs import Factory, frozen

__all__ = [
    "BackgroundProcess",
    "Command",
    "CommandPort",
    "Exit",
    "ExitListener",
    "Inheritance",
    "OutputSink",
    "ResourceLimits",
]

OutputSink = Callable[[bytes], Awaitable[None]]
"""Takes the next bytes of output (stdout and stderr together, in arrival order, never empty). While it
waits, the port reads no further, so a slow sink slows the program and not the memory."""

ExitListener = Callable[["Exit"], None]
"""Called once, as soon as the program itself has ended, while output of others may still follow."""


@frozen
class Inheritance:
    """Which variables of the host a command inherits.

    The base is all of them, or the minimal set (PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*, TERM, TZ,
    TMPDIR and what the platform cannot run without). ``deny`` then removes and ``allow`` adds back from
    the host, both by ``fnmatch`` patterns on the name; ``allow`` wins.
    """

    base: Literal["all", "minimal"] = "all"
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()


@frozen
class ResourceLimits:
    """Limits for a command and its children; ``None`` leaves the host's own."""

    cpu_seconds: int | None = None
    address_space_bytes: int | None = None
    file_size_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None


@frozen
class Command:
    """A program to run."""

    argv: Sequence[str]
    """The program (a name to look up on PATH, or a path) and its arguments."""
    cwd: str
    env: Mapping[str, str | None] = Factory(dict[str, str | None])
    """Changes to the inherited variables: a value sets, ``None`` removes."""
    inherit: Inheritance = Inheritance()
    stdin: bytes | None = None
    """What the program reads from its standard input; ``None`` gives an immediate end of file."""
    limits: ResourceLimits = ResourceLimits()


@frozen
class BackgroundProcess:
    """A process that a command left running."""

    pid: int
    command_line: str


@frozen
class Exit:
    """How a program ended."""

    code: int | None
    """Exit code, ``None`` when a signal ended it or the code is not known."""
    signal: int | None = None
    """Number of the signal that ended it."""
    background: Sequence[BackgroundProcess] = ()
    """What it left running; those processes live until the environment closes."""


class CommandPort(Protocol):
    """Programs of one environment."""

    @property
    def may_survive(self) -> Sequence[str]:
        """Shapes of process that no kill here can be guaranteed to reach, each in a few words.

        Empty where the promises of ``run`` hold without exception. Not counted is what no host promises: a process
        of another user, and one that a service starts on request.
        """
        return ()

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        """Run a program to its end and hand its output to ``on_output`` as it comes.

        stdout and stderr share one pipe. After the program itself has ended, output is taken until the
        pipe is closed or has been idle for about 100 ms, so that a background process that keeps the
        pipe open does not hold the call.

        When cancelled (or when ``on_output`` raises), the whole process tree is killed: the process
        group, children that left it, and daemons. Output that was already in the pipe is still handed
        over. The cancellation propagates only when nothing of the tree is left.

        A background process of a program that ended normally is left alone and killed when the
        environment closes.

        Raises:
            PortError: ``not_found`` or ``not_a_directory`` with the path ``command.cwd``;
                ``program_not_found`` or ``permission_denied`` with the path ``command.argv[0]``;
                ``invalid_path`` for a NUL in argv, cwd or env; ``spawn_failed``, e.g. arguments longer
                than the host takes; ``resource_limit``; ``not_supported`` for limits that the host has
                not; ``closed``.
        """
        ...

    async def find_program(self, name: str) -> str | None:
        """Return the path of a program that commands here can run, or ``None``.

        A path is checked as it is; a bare name is looked up on the environment's PATH.
        """
        ...
