"""The host's side of the supervisor: start it, lease keepers from it, talk to them.

What a keeper promises stands in ``_supervisor``. Nothing here waits for a process: a keeper's line and the
command's pipe are descriptors that the event loop watches.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import marshal
import os
import selectors
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import anyio
from attrs import define, field

from handrail.adapters.local import _supervisor
from handrail.ports.commands import BackgroundProcess, Command, Exit, ResourceLimits
from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["Process", "Processes"]

_PIPE_BYTES: Final = 1024 * 1024
"""A large pipe lets a fast program and the event loop work side by side instead of taking turns."""

_NO_SIGNAL: Final = getattr(socket, "MSG_NOSIGNAL", 0)
"""A keeper that was killed is an error to handle, also for an application that wants SIGPIPE."""

_MAX_IDLE: Final = 16
"""Idle keepers beyond these end; a burst of commands leaves no crowd."""

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

    line: socket.socket
    """To the keeper."""
    _output: int
    _command: Command
    _owner: Processes
    _events: selectors.BaseSelector = field(factory=selectors.DefaultSelector)
    _message: bytearray = field(factory=bytearray)
    _alone: bool = False
    """Whether the command left nothing behind, so that its keeper is free again."""

    def __attrs_post_init__(self) -> None:
        self._events.register(self._output, selectors.EVENT_READ)
        self._events.register(self.line, selectors.EVENT_READ)

    async def wait_progress(self) -> None:
        """Wait until there may be output to read or an end to learn of."""
        # A selector with a descriptor of its own (epoll, kqueue) lets the event loop watch both at once.
        await anyio.wait_readable(self._events.fileno())  # type: ignore[attr-defined]

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
        message = self._next_message()
        if message is None:
            return None
        if message == _GONE:
            return Exit(None)
        if message[0] == "failed":
            self._alone = True
            raise self._failure(message[1], message[2])
        _, status, self._alone = message
        code = os.waitstatus_to_exitcode(status)
        return Exit(code) if code >= 0 else Exit(None, -code)

    async def kill(self) -> None:
        """Kill the whole tree; returns when nothing of it is left."""
        if self._alone:
            return
        self._events.unregister(self.line)
        await self.end()

    async def end(self) -> None:
        """Kill what a detached command left; returns when nothing of it is left."""
        self._send("kill")
        while await self._receive() != _GONE:
            pass

    async def detach(self) -> Sequence[BackgroundProcess]:
        """Stop listening after a normal end; tell what goes on. It is killed when the owner closes."""
        if self._alone:
            return ()
        self._send("detach")
        message = await self._receive()
        if message == _GONE:
            return ()
        self._owner.keep(self)
        return [BackgroundProcess(pid, line) for pid, line in message[1]]

    def close(self) -> None:
        """Release what was opened; a keeper whose command left nothing behind is used again."""
        self._events.close()
        os.close(self._output)
        self._owner.release(self, self._alone)

    @property
    def ended(self) -> bool:
        """Whether a detached command has nothing left to watch."""
        return bool(self._next_message() == _GONE)

    def _send(self, message: str) -> None:
        body = marshal.dumps(message)
        with suppress(OSError):  # the keeper is gone, and with it what it kept
            self.line.send(len(body).to_bytes(4, "big") + body, _NO_SIGNAL)

    async def _receive(self) -> Any:
        while (message := self._next_message()) is None:
            await anyio.wait_readable(self.line)
        return message

    def _next_message(self) -> Any:
        """The next message; ``None`` when none has come yet, ``_GONE`` when none will."""
        while True:
            size = int.from_bytes(self._message[:4], "big")
            if 0 < size <= len(self._message) - 4:
                message = marshal.loads(bytes(self._message[4 : 4 + size]))
                del self._message[: 4 + size]
                return message
            try:
                data = self.line.recv(65536)
            except BlockingIOError:
                return None
            except ConnectionError:
                return _GONE
            if not data:
                return _GONE
            self._message += data

    def _failure(self, step: str, number: int) -> PortError:
        path = self._command.cwd if step == "cwd" else self._command.argv[0]
        return PortError(_SPAWN_CODES.get((step, number), "spawn_failed"), path, os.strerror(number))


_GONE: Final = ("gone",)
"""The keeper has ended: nothing of its command is left."""


class Processes:
    """Starts commands of one environment through one supervisor, which starts with the first of them.

    Args:
        portable: Do without what only Linux has; for tests.
    """

    def __init__(self, *, portable: bool = False) -> None:
        self._portable = portable
        self._control: socket.socket | None = None
        self._supervisor = 0
        self._idle: list[socket.socket] = []
        self._background: list[Process] = []

    async def start(self, command: Command, program: str, env: dict[str, str]) -> Process:
        """Start a program in a session of its own, stdout and stderr on one pipe.

        Raises:
            PortError: ``resource_limit`` or ``spawn_failed``. Errors of the program itself come from ``wait``.
        """
        self._forget_ended()
        try:
            stdin = _open_stdin(command.stdin)
        except OSError as error:
            raise _host_failure(error, command) from error
        try:
            read, write = _open_pipe()
        except OSError as error:
            os.close(stdin)
            raise _host_failure(error, command) from error
        try:
            line = await self._request(self._message(command, program, env), [write, read, stdin])
        except OSError as error:
            os.close(read)
            raise _host_failure(error, command) from error
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
            os.close(stdin)
        return Process(line, read, command, self)

    def keep(self, process: Process) -> None:
        """Remember a command that left background processes."""
        self._background.append(process)

    def release(self, process: Process, reusable: bool) -> None:
        """Take back the keeper of a command."""
        if reusable and self._control is not None and len(self._idle) < _MAX_IDLE:
            self._idle.append(process.line)
        elif process not in self._background:
            process.line.close()

    async def aclose(self) -> None:
        """Kill background processes and end the supervisor."""
        for line in self._idle:
            line.close()
        self._idle.clear()
        for process in self._background:
            await process.end()
            process.line.close()
        self._background.clear()
        control, self._control = self._control, None
        if control is not None:
            with control:
                with suppress(OSError):  # it was killed
                    control.shutdown(socket.SHUT_WR)
                await anyio.wait_readable(control)  # its end of the line closes as it ends
            _collect(self._supervisor)

    async def _request(self, message: bytes, descriptors: list[int]) -> socket.socket:
        """Send a command to a keeper: one that is idle, else a new one."""
        while True:
            reused = bool(self._idle)
            line = self._idle.pop() if reused else self._new_keeper()
            try:
                await _send_all(line, message, descriptors)
                return line
            except BaseException as error:
                line.close()
                if not (reused and isinstance(error, ConnectionError)):  # an idle keeper was killed: take another
                    raise

    def _new_keeper(self) -> socket.socket:
        for attempt in range(2):
            if self._control is None:
                self._start_supervisor()
            assert self._control is not None
            mine, theirs = socket.socketpair()
            try:
                socket.send_fds(self._control, [b"k"], [theirs.fileno()], _NO_SIGNAL)
            except ConnectionError:  # the supervisor was killed
                mine.close()
                self._control.close()
                self._control = None
                _collect(self._supervisor)
                if attempt:
                    raise
                continue
            except OSError:
                mine.close()
                raise
            finally:
                theirs.close()
            mine.setblocking(False)
            return mine
        raise AssertionError("unreachable")

    def _start_supervisor(self) -> None:
        mine, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._supervisor = _spawn_supervisor(theirs.fileno(), null, portable=self._portable)
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
            os.close(null)
        self._control = mine

    def _forget_ended(self) -> None:
        for process in [process for process in self._background if process.ended]:
            self._background.remove(process)
            process.line.close()

    def _message(self, command: Command, program: str, env: dict[str, str]) -> bytes:
        marker = ""
        if self._portable or not sys.platform.startswith("linux"):
            marker = os.urandom(8).hex()
            env[_supervisor.MARKER] = marker
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


async def _send_all(line: socket.socket, message: bytes, descriptors: list[int]) -> None:
    rest = memoryview(message)[socket.send_fds(line, [message], descriptors, _NO_SIGNAL) :]
    while rest:
        try:
            rest = rest[line.send(rest, _NO_SIGNAL) :]
        except BlockingIOError:
            await anyio.wait_writable(line)


def _host_failure(error: OSError, command: Command) -> PortError:
    exhausted = error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
    code: Literal["resource_limit", "spawn_failed"] = "resource_limit" if exhausted else "spawn_failed"
    return PortError(code, command.argv[0], error.strerror or str(error))


def _spawn_supervisor(control: int, null: int, *, portable: bool) -> int:
    """Start the supervisor in a process group of its own: what the terminal sends to the host's is not for it."""
    if sys.executable and not getattr(sys, "frozen", False) and os.path.isfile(_supervisor.__file__):
        program = sys.executable
        arguments = [program, "-I", "-S", _supervisor.__file__, *(["--portable"] if portable else [])]
        streams = [(os.POSIX_SPAWN_DUP2, source, target) for target, source in enumerate((control, null, null))]
        # Only what the interpreter and ps need: commands get their variables with each request.
        names = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
        env = {name: os.environ[name] for name in names if name in os.environ}
        with suppress(FileNotFoundError, PermissionError):
            return os.posix_spawn(program, arguments, env, file_actions=streams, setpgroup=0, setsigmask=())
    return _fork_supervisor(control, null, portable=portable)


def _fork_supervisor(control: int, null: int, *, portable: bool) -> int:
    """Start the supervisor as a copy of this process, where no interpreter can be executed.

    That is so in a frozen or zipped application, and after giving up the right to read the interpreter's directory.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads are not copied, and the copy needs none
        pid = os.fork()
    if pid:
        return pid
    try:
        gc.disable()  # what is left of the host must not close descriptors that mean something else here
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for target, source in enumerate((control, null, null)):
            os.dup2(source, target)
        _supervisor.main(portable=portable)
    finally:
        os._exit(0)


def _collect(pid: int) -> None:
    """Collect a child that is ending."""
    with suppress(ChildProcessError):  # the application collects all children itself
        os.waitpid(pid, 0)
