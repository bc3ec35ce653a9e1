"""Process: what the handler of a scripted command sees of its world and may do in it."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NoReturn, Protocol

import anyio
from attrs import define, field

from handrail.ports.clock import ClockPort
from handrail.ports.commands import Exit, OutputSink
from handrail.ports.errors import PortError, PortErrorCode
from handrail.ports.files import FilePort

__all__ = ["Handler", "Job", "Process", "System", "describe"]


class Handler(Protocol):
    """Plays a program."""

    async def __call__(self, process: Process, /) -> Exit | int | None:
        """Run to the end. An ``int`` is the exit code, ``None`` is 0, ``Exit(None, 9)`` an end by signal."""
        ...


@define(eq=False)
class Job:
    """Something that a program leaves running."""

    pid: int
    command_line: str
    work: Callable[[], Awaitable[object]] | None = None
    """What it still does while it holds the pipe; ``None`` when it does nothing and holds no pipe."""
    done: bool = False


class System(Protocol):
    """What stands behind a process."""

    async def execute(self, process: Process, /) -> Exit:
        """Find the program of a process and run it. Raises PortError where there is none."""
        ...

    def next_pid(self) -> int:
        """Return a process number that nothing else has."""
        ...

    def kill(self, pid: int) -> bool:
        """End a background process; returns whether there was one."""
        ...


@define(eq=False)
class Process:
    """A running program in memory.

    Attributes:
        argv: The program and its arguments.
        cwd: Absolute working directory.
        env: All its variables.
        stdin: Everything it can read.
        files: The files of its environment.
        clock: The clock of its environment.
        pid: Its number.
        jobs: What it has left running.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    files: FilePort
    clock: ClockPort
    pid: int
    jobs: list[Job] = field(repr=False)
    _stdout: OutputSink = field(repr=False, alias="stdout")
    _stderr: OutputSink = field(repr=False, alias="stderr")
    _system: System = field(repr=False, alias="system")

    @property
    def name(self) -> str:
        """The program's name without its directory."""
        return posixpath.basename(self.argv[0])

    @property
    def arguments(self) -> Sequence[str]:
        """What follows the program's name."""
        return self.argv[1:]

    def path(self, name: str) -> str:
        """Return the absolute path that a name means here."""
        return posixpath.join(self.cwd, name) if name else ""

    async def write(self, data: str | bytes) -> None:
        """Write to standard output; waits while the reader does not read."""
        await _write(self._stdout, data)

    async def write_error(self, data: str | bytes) -> None:
        """Write to standard error."""
        await _write(self._stderr, data)

    async def fail(self, message: str, code: int = 1) -> int:
        """Write a line to standard error as programs do, and return the exit code."""
        await self.write_error(f"{self.name}: {message}\n")
        return code

    async def sleep(self, seconds: float) -> None:
        """Let time of the environment pass."""
        await self.clock.sleep(seconds)

    async def hang(self) -> NoReturn:
        """Wait until killed."""
        await anyio.sleep_forever()
        raise AssertionError("it is over only by cancellation")

    def leave_running(self, command_line: str, work: Callable[[], Awaitable[object]] | None = None) -> int:
        """Leave a background process and return its number.

        It starts when the program itself has ended. With ``work`` it holds the pipe: what it writes
        within 0.1 s of the last output still arrives. After that its work stops where it is; it counts
        as running until the environment closes. Later effects on the world go to the clock
        (``VirtualClock.call_later``).
        """
        job = Job(self._system.next_pid(), command_line, work)
        self.jobs.append(job)
        return job.pid

    async def finish_jobs(self) -> None:
        """Do now what was left running, to its end; what writes nothing stays."""
        for job in self.jobs:
            if job.work is not None and not job.done:
                await job.work()
                job.done = True

    def kill(self, pid: int) -> bool:
        """End a background process of this environment; returns whether there was one."""
        for job in self.jobs:
            if job.pid == pid:
                self.jobs.remove(job)
                return True
        return self._system.kill(pid)

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        stdout: OutputSink | None = None,
        stderr: OutputSink | None = None,
    ) -> Exit:
        """Run another program to its end; by default it shares everything with this one.

        Raises:
            PortError: ``program_not_found``; ``permission_denied``.
        """
        child = Process(
            argv=argv,
            cwd=self.cwd if cwd is None else cwd,
            env=self.env if env is None else env,
            stdin=self.stdin if stdin is None else stdin,
            files=self.files,
            clock=self.clock,
            pid=self._system.next_pid(),
            jobs=self.jobs,
            stdout=stdout or self._stdout,
            stderr=stderr or self._stderr,
            system=self._system,
        )
        return await self._system.execute(child)


async def _write(sink: OutputSink, data: str | bytes) -> None:
    encoded = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if encoded:
        await sink(encoded)


_DESCRIPTIONS: Mapping[PortErrorCode, str] = {
    "not_found": "No such file or directory",
    "permission_denied": "Permission denied",
    "not_a_directory": "Not a directory",
    "is_a_directory": "Is a directory",
    "already_exists": "File exists",
    "not_empty": "Directory not empty",
    "no_space": "No space left on device",
    "read_only": "Read-only file system",
    "symlink_loop": "Too many levels of symbolic links",
    "name_too_long": "File name too long",
    "invalid_path": "Invalid argument",
}


def describe(error: PortError) -> str:
    """Return what programs print for an error, as strerror(3) does."""
    return _DESCRIPTIONS.get(error.code, "Input/output error")
