"""The host's line to the supervisor and to each of its keepers: start them, ask them, wake them.

A command can stop the processes that answer for it. Whoever waits for one of them therefore wakes it again and
again; a process that runs does not notice.
"""

from __future__ import annotations

import gc
import marshal
import os
import signal
import socket
import sys
import warnings
from contextlib import suppress
from typing import Any, Final

import anyio
from attrs import define, field

from handrail.adapters.local import _supervisor

__all__ = ["GONE", "LOST", "Keeper", "Supervisor"]

GONE: Final = ("gone",)
"""The keeper has left, and nothing of its command is left."""

LOST: Final = ("lost",)
"""The keeper has ended without a word: it was killed."""

_NO_SIGNAL: Final = getattr(socket, "MSG_NOSIGNAL", 0)
"""A keeper that was killed is an error to handle, also for an application that wants SIGPIPE."""

_WAKE_SECONDS: Final = 0.1

_CLOSE_SECONDS: Final = 6.0
"""A keeper gives up after 5 seconds, so a supervisor that needs longer does not work any more."""


class Supervisor:
    """The supervisor of one environment; it starts with this object.

    Args:
        portable: Do without what only Linux has.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, *, portable: bool) -> None:
        self._control, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._pid = _spawn_supervisor(theirs.fileno(), null, portable=portable)
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
            os.close(null)
        self._handle = _supervisor.process_handle(self._pid)

    async def new_keeper(self) -> Keeper:
        """Return a new keeper that is there.

        Raises:
            ConnectionError: The supervisor or the keeper was killed.
            OSError: There are no descriptors or processes left.
        """
        mine, theirs = socket.socketpair()
        try:
            with theirs:
                self._order(0, theirs)
            mine.setblocking(False)
            keeper = Keeper(mine, self)
            await keeper.wait_ready()
        except BaseException:
            mine.close()
            raise
        return keeper

    @property
    def ended(self) -> bool:
        """Whether it has ended, which it does before its time only when it is killed."""
        try:
            return not self._control.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    async def wait_without_orphans(self, keeper: int) -> None:
        """Wait until a keeper that was killed and what it left have ended; at once where nobody is there to tell."""
        mine, theirs = socket.socketpair()
        with mine:
            with theirs, suppress(OSError):  # the supervisor was killed, too
                self._order(keeper, theirs)
            await self._wait_readable(mine)

    def wake(self) -> None:
        """Let it go on in case that it was stopped."""
        _send_signal(self._pid, self._handle, signal.SIGCONT)

    def collect(self) -> None:
        """Release what is left of it after its end."""
        with suppress(ChildProcessError):  # the application collects all children itself
            os.waitpid(self._pid, 0)
        self._control.close()
        if self._handle is not None:
            os.close(self._handle)
        self._pid, self._handle = 0, None

    async def aclose(self) -> None:
        """End it; returns when it has ended, and its keepers before it."""
        with suppress(OSError):  # it was killed
            self._control.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(_CLOSE_SECONDS) as deadline:
            await self._wait_readable(self._control)  # its end of the line closes as it ends
        if deadline.cancelled_caught:
            _send_signal(self._pid, self._handle, signal.SIGKILL)
        self.collect()

    def _order(self, keeper: int, line: socket.socket) -> None:
        socket.send_fds(self._control, [keeper.to_bytes(4, "big")], [line.fileno()], _NO_SIGNAL)

    async def _wait_readable(self, line: socket.socket) -> None:
        while True:
            self.wake()
            with anyio.move_on_after(_WAKE_SECONDS):
                await anyio.wait_readable(line)
                return


@define(eq=False)
class Keeper:
    """The host's line to one keeper.

    Attributes:
        line: The socket.
        supervisor: The keeper's parent.
        pid: Its process id, 0 until it has told.
        shell: Process id of its latest command's program, 0 until it has told.
    """

    line: socket.socket
    supervisor: Supervisor
    pid: int = 0
    shell: int = 0
    _received: bytearray = field(factory=bytearray, init=False)
    _left: bool = field(default=False, init=False)
    """Whether it said that nothing is left."""
    _closed: bool = field(default=False, init=False)

    async def wait_ready(self) -> None:
        """Wait until it is there.

        Raises:
            ConnectionError: It was killed.
            OSError: There was no process for it.
        """
        while not self.pid:
            message = self.next_message()
            if message == LOST:
                raise ConnectionAbortedError
            if message is not None:
                _, _, number = message
                raise OSError(number, os.strerror(number))
            if not self.pid:
                await self._wait_readable()

    async def send_request(self, message: bytes, descriptors: list[int]) -> None:
        """Send a command and its descriptors.

        Raises:
            ConnectionError: The keeper has ended.
        """
        self.supervisor.wake()
        self.shell = 0
        rest = memoryview(message)[socket.send_fds(self.line, [message], descriptors, _NO_SIGNAL) :]
        while rest:
            try:
                rest = rest[self.line.send(rest, _NO_SIGNAL) :]
            except BlockingIOError:
                with anyio.move_on_after(_WAKE_SECONDS):
                    await anyio.wait_writable(self.line)
                self.wake()

    async def ask(self, question: str) -> Any:
        """Ask something; returns the answer, or ``GONE`` or ``LOST``."""
        self._send(question)
        return await self._receive()

    async def kill_command(self) -> bool:
        """Let the keeper kill its command and leave; tell whether it says that nothing is left."""
        self._send("kill")
        while (message := await self._receive()) not in (GONE, LOST):
            pass
        return bool(message == GONE)

    def next_message(self) -> Any:
        """The next message, ``None`` when none has come yet; after the last one ``GONE`` or ``LOST`` for ever."""
        self._read()
        while (size := int.from_bytes(self._received[:4], "big")) and size <= len(self._received) - 4:
            message = marshal.loads(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]
            match message:
                case ("keeper", pid):
                    self.pid = pid
                case ("started", pid):
                    self.shell = pid
                case ("gone",):
                    self._left = True
                case _:
                    return message
        if self._left:
            return GONE
        return LOST if self._closed else None

    def wake(self) -> None:
        """Let the keeper and its parent go on in case that they were stopped."""
        self.supervisor.wake()
        self.signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        """Send the keeper a signal, and nothing to whoever gets its number after its end."""
        if not self.pid:
            return
        handle = _supervisor.process_handle(self.pid)
        self._read()
        if not self._closed:  # so the handle is the keeper's
            _send_signal(self.pid, handle, number)
        if handle is not None:
            os.close(handle)

    def _send(self, question: str) -> None:
        body = marshal.dumps(question)
        with suppress(OSError):  # the keeper has ended; the answer says how
            self.line.send(len(body).to_bytes(4, "big") + body, _NO_SIGNAL)

    async def _receive(self) -> Any:
        while (message := self.next_message()) is None:
            await self._wait_readable()
        return message

    async def _wait_readable(self) -> None:
        self.wake()
        with anyio.move_on_after(_WAKE_SECONDS):
            await anyio.wait_readable(self.line)

    def _read(self) -> None:
        """Take what has come."""
        while not self._closed:
            try:
                data = self.line.recv(65536)
            except BlockingIOError:
                return
            except ConnectionError:
                data = b""
            self._received += data
            self._closed = not data


def _send_signal(pid: int, handle: int | None, number: int) -> None:
    with suppress(OSError):  # it has ended
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        elif pid:
            os.kill(pid, number)


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
        for target, source in enumerate((control, null, null)):
            os.dup2(source, target)
        _supervisor.main(portable=portable)
    finally:
        os._exit(0)
