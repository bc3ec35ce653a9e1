"""Commands on POSIX systems: each is given to a keeper, which answers for its process tree.

What a keeper promises stands in ``_supervisor``. Nothing here waits for a process: a keeper's line and the
command's pipe are descriptors that the event loop watches. A keeper that does not do its work, because the
command stopped or killed it, is replaced by its parent and by a search of the process table.
"""

from __future__ import annotations

import errno
import fcntl
import marshal
import os
import selectors
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

import anyio
import anyio.to_thread
from attrs import define, field

from handrail.adapters.local import _supervisor
from handrail.adapters.local._keepers import GONE, LOST, Keeper, Supervisor
from handrail.ports.commands import BackgroundProcess, Command, Exit, ResourceLimits
from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["Process", "Processes"]

_PIPE_BYTES: Final = 1024 * 1024
"""A large pipe lets a fast program and the event loop work side by side instead of taking turns."""

_MAX_IDLE: Final = 16
"""Idle keepers beyond these end; a burst of commands leaves no crowd."""

_WAKE_SECONDS: Final = 1.0
"""A command may have stopped its keepers, and then nothing would ever tell of its end."""

_ANSWER_SECONDS: Final = 1.0
"""A keeper that takes longer to kill a tree is killed itself: its parent and the host do its work."""

_GIVE_UP_SECONDS: Final = 5.0
"""For what even SIGKILL does not end: another user's process, an unreachable disk."""

_ATTEMPTS: Final = 10
"""How often a command is given to another supervisor when commands at the same time kill those they find."""

_SET_PIPE_SIZE: Final = getattr(fcntl, "F_SETPIPE_SZ", None)

_SPAWN_CODES: Final[dict[tuple[str, int], PortErrorCode]] = {
    ("cwd", errno.ENOENT): "not_found",
    ("cwd", errno.ENOTDIR): "not_a_directory",
    ("cwd", errno.EACCES): "permission_denied",
    ("exec", errno.ENOENT): "program_not_found",
    ("exec", errno.ENOTDIR): "program_not_found",
    ("exec", errno.EACCES): "permission_denied",
    ("exec", errno.EAGAIN): "resource_limit",
    ("exec", errno.ENOMEM): "resource_limit",
    ("exec", errno.EMFILE): "resource_limit",
    ("exec", errno.ENFILE): "resource_limit",
}

_LIMITS: Final = {
    "cpu_seconds": "RLIMIT_CPU",
    "address_space_bytes": "RLIMIT_AS",
    "file_size_bytes": "RLIMIT_FSIZE",
    "processes": "RLIMIT_NPROC",
    "open_files": "RLIMIT_NOFILE",
}


@define(eq=False)
class Process:
    """A running command: its output, its end, and the keeper that answers for its tree."""

    keeper: Keeper
    _output: int
    _command: Command
    _marker: str
    _owner: Processes
    _events: selectors.BaseSelector = field(factory=selectors.DefaultSelector)
    _began: float = field(factory=time.time)
    _alone: bool = False
    """Whether the command left nothing behind, so that its keeper is free again."""

    def __attrs_post_init__(self) -> None:
        self._events.register(self._output, selectors.EVENT_READ)
        self._events.register(self.keeper.line, selectors.EVENT_READ)

    async def wait_progress(self) -> None:
        """Wait until there may be output to read or an end to learn of."""
        # A selector with a descriptor of its own (epoll, kqueue) lets the event loop watch both at once.
        with anyio.move_on_after(_WAKE_SECONDS):
            await anyio.wait_readable(self._events.fileno())  # type: ignore[attr-defined]
            return
        self.keeper.wake()

    def read_nowait(self, buffer: memoryview) -> int | None:
        """Fill a buffer with output that is there: its size, 0 at the end, ``None`` when there is none yet."""
        size = 0
        while size < len(buffer):
            try:
                count = os.readv(self._output, [buffer[size:]])
            except BlockingIOError:
                return size or None
            if not count:
                break
            size += count
        if not size:
            self._events.unregister(self._output)
        return size

    def poll(self) -> Exit | None:
        """Return the end of the program itself; of no known kind when its keeper was killed.

        Raises:
            PortError: The program could not be started.
        """
        message = self.keeper.next_message()
        if message is None:
            return None
        if message == LOST:
            return Exit(None)
        if message[0] == "failed":
            self._alone = True
            raise self._failure(message[1], message[2])
        _, status, self._alone = message
        code = os.waitstatus_to_exitcode(status)
        return Exit(code) if code >= 0 else Exit(None, -code)

    async def is_busy(self) -> bool:
        """Whether the program left something that computes, or waits for a processor or a disk."""
        if self._alone:
            return False
        message = await self.keeper.ask("busy")
        if message[0] == "busy":
            return bool(message[1])
        self._ignore_line()
        return False

    async def kill(self) -> None:
        """Kill the whole tree; returns when nothing of it is left."""
        if self._alone:
            return
        self._ignore_line()
        await self.end()

    async def end(self) -> None:
        """Kill what a detached command left; returns when nothing of it is left."""
        with anyio.move_on_after(_ANSWER_SECONDS):
            if await self.keeper.kill_command():
                return
        self.keeper.signal(signal.SIGKILL)  # where it still lives, something holds it up
        with anyio.move_on_after(_GIVE_UP_SECONDS):
            from handrail.adapters.local._carriers import kill_carriers  # psutil is slow to import and seldom needed

            await anyio.to_thread.run_sync(
                kill_carriers, self._marker, self.keeper.shell, self._began, abandon_on_cancel=True
            )
            await self.keeper.supervisor.wait_without_orphans(self.keeper.pid)

    async def detach(self) -> Sequence[BackgroundProcess]:
        """Stop listening after a normal end; tell what goes on. It is killed when the owner closes."""
        if self._alone:
            return ()
        message = await self.keeper.ask("detach")
        if message == LOST:
            await self.end()
        if message[0] != "background":
            return ()
        self._owner.keep(self)
        return tuple(BackgroundProcess(pid, line) for pid, line in message[1])

    def close(self) -> None:
        """Release what was opened; a keeper whose command left nothing behind is used again."""
        self._events.close()
        os.close(self._output)
        self._owner.release(self, self._alone)

    @property
    def ended(self) -> bool:
        """Whether a detached command has nothing left that a keeper watches."""
        return self.keeper.next_message() in (GONE, LOST)

    def _ignore_line(self) -> None:
        with suppress(KeyError):
            self._events.unregister(self.keeper.line)

    def _failure(self, step: str, number: int) -> PortError:
        path = self._command.cwd if step == "cwd" else self._command.argv[0]
        return PortError(_SPAWN_CODES.get((step, number), "spawn_failed"), path, os.strerror(number))


class Processes:
    """Starts commands of one environment through one supervisor, which starts with the first of them.

    Args:
        portable: Do without what only Linux has; for tests.
    """

    def __init__(self, *, portable: bool = False) -> None:
        self._portable = portable or not _supervisor.can_adopt()
        self.may_survive: Sequence[str] = ("a double fork with an empty environment",) if self._portable else ()
        """Without adoption, orphans are only found by the marker in their environment."""
        self._supervisor: Supervisor | None = None
        self._idle: list[Keeper] = []
        self._background: list[Process] = []

    async def start(self, command: Command, program: str, env: dict[str, str]) -> Process:
        """Start a program in a session of its own, stdout and stderr on one pipe.

        Raises:
            PortError: ``resource_limit`` or ``spawn_failed``. Errors of the program itself come from ``wait``.
        """
        await self._forget_ended()
        try:
            stdin = _open_stdin(command.stdin)
        except OSError as error:
            raise _host_failure(error, command) from error
        try:
            read, write = _open_pipe()
        except OSError as error:
            os.close(stdin)
            raise _host_failure(error, command) from error
        marker = env[_supervisor.MARKER] = os.urandom(8).hex()
        try:
            keeper = await self._request(_message(command, program, env, marker), [write, read, stdin])
        except OSError as error:
            os.close(read)
            raise _host_failure(error, command) from error
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
            os.close(stdin)
        return Process(keeper, read, command, marker, self)

    def keep(self, process: Process) -> None:
        """Remember a command that left background processes."""
        self._background.append(process)

    def release(self, process: Process, reusable: bool) -> None:
        """Take back the keeper of a command."""
        process.keeper.supervisor.wake()
        self._drop_killed()
        if reusable and process.keeper.supervisor is self._supervisor and len(self._idle) < _MAX_IDLE:
            self._idle.append(process.keeper)
        elif process not in self._background:
            process.keeper.line.close()

    async def aclose(self) -> None:
        """Kill background processes and end the supervisor."""
        for keeper in self._idle:
            keeper.line.close()
        self._idle.clear()
        for process in self._background:
            await process.end()
            process.keeper.line.close()
        self._background.clear()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await supervisor.aclose()

    async def _request(self, message: bytes, descriptors: list[int]) -> Keeper:
        """Send a command to a keeper: one that is idle, else a new one."""
        while True:
            reused = bool(self._idle)
            keeper = self._idle.pop() if reused else await self._new_keeper()
            try:
                await keeper.send_request(message, descriptors)
                return keeper
            except BaseException as error:
                keeper.line.close()
                if not (reused and isinstance(error, ConnectionError)):  # an idle keeper was killed: take another
                    raise

    async def _new_keeper(self) -> Keeper:
        for _ in range(_ATTEMPTS):
            self._drop_killed()
            if self._supervisor is None:
                self._supervisor = Supervisor(portable=self._portable)
            with suppress(ConnectionError):
                return await self._supervisor.new_keeper()
        raise ConnectionError(errno.ECONNABORTED, "a command killed what starts commands")

    def _drop_killed(self) -> None:
        """Collect a supervisor that a command killed; its keepers would have no parent to follow them."""
        if self._supervisor is not None and self._supervisor.ended:
            self._supervisor.collect()
            self._supervisor = None
            for keeper in self._idle:
                keeper.line.close()
            self._idle.clear()

    async def _forget_ended(self) -> None:
        ended = [process for process in self._background if process.ended]
        self._background = [process for process in self._background if process not in ended]
        with anyio.CancelScope(shield=True):
            for process in ended:
                await process.end()  # nothing to do, but for a keeper that was killed
                process.keeper.line.close()


def _message(command: Command, program: str, env: dict[str, str], marker: str) -> bytes:
    body = marshal.dumps(
        {
            "program": os.fsencode(program),
            "argv": [os.fsencode(argument) for argument in command.argv],
            "env": {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            "cwd": os.fsencode(command.cwd),
            "limits": _limits(command.limits),
            "marker": marker,
        }
    )
    return len(body).to_bytes(4, "big") + body


def _limits(limits: ResourceLimits) -> dict[str, int]:
    return {kind: value for name, kind in _LIMITS.items() if (value := getattr(limits, name)) is not None}


def _open_stdin(data: bytes | None) -> int:
    """A descriptor that gives these bytes, or an immediate end of file."""
    if data is None:
        return os.open(os.devnull, os.O_RDONLY)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def _open_pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    if _SET_PIPE_SIZE is not None:
        with suppress(OSError):  # over the user's share of pipe memory: the usual size does as well
            fcntl.fcntl(read, _SET_PIPE_SIZE, _PIPE_BYTES)
    return read, write


def _host_failure(error: OSError, command: Command) -> PortError:
    exhausted = error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
    code: Literal["resource_limit", "spawn_failed"] = "resource_limit" if exhausted else "spawn_failed"
    return PortError(code, command.argv[0], error.strerror or str(error))
