"""The supervisor: a small program that starts commands and answers for every process they leave behind.

It runs as its own process (``python -I -S _supervisor.py``), needs the standard library only, and is never
imported by the host. It exists because only the ancestor of a process tree can promise that nothing of the
tree is left: the host must not adopt orphans or reap children that belong to the application it lives in.

    host ──control──► nursery            forks a keeper on request, nothing else
      └────line─────► keeper             one command at a time; parent of its shell
                        └─ shell ─ …     and, as child subreaper, of every orphan of the tree (Linux)

A keeper ends a command by killing its children until it has none. Killing a parent makes its children the
keeper's, so this reaches every generation, also after ``setsid``, double forks and ``env -i``. A child that
was not waited for keeps its process id, so no process of anyone else can be hit. ``waitpid`` saying that
there is no child left is the proof; only then does the keeper leave, and its line closes.

The line closing at the other end means that the host has ended, however it ended: the keeper kills.

A command can turn against them. A keeper that it stops is made to go on by the nursery; a keeper that it kills
leaves its orphans to the nursery, which kills them and tells the host when it has none left.

Systems without subreapers (macOS, BSD) get the process group, the descendants that ``ps`` shows and the
carriers of the command's marker variable; see docs/commands.md.

Messages are a 4-byte big-endian length and a ``marshal`` value, both ways. To the keeper: a dict (run this;
descriptors come with it), ``"kill"``, ``"detach"``, ``"busy"``. From it: ``("keeper", pid)`` once,
``("failed", step, errno)``, ``("started", pid)``, ``("exit", status, alone)``,
``("background", [(pid, command line), …])``, ``("busy", whether)``, and ``("gone",)`` when nothing is left and it
leaves. To the nursery: a 4-byte process id and a descriptor; 0 asks for a keeper with this line, the id of a keeper
asks to write to the descriptor when that keeper and what it left have ended.
"""

from __future__ import annotations

import ctypes  # not later: a process that gave up rights may not be able to read the library any more
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NoReturn, cast

__all__ = ["MARKER", "can_adopt", "main", "process_handle"]

MARKER = "HANDRAIL_COMMAND"

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37  # PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER, prctl(2)
_RETRY_SECONDS = 0.02
_LOOK_AGAIN_SECONDS = 1.0
_GIVE_UP_SECONDS = 5.0  # for what even SIGKILL does not end: another user's process, an unreachable disk
_DISCARD_BYTES = 65536
_USUAL_DESCRIPTORS = 1024
_SHOWN_COMMAND_LINE_BYTES = 4096

# What a command must find in its default state, whatever this interpreter or the host does with it.
_DEFAULT_SIGNALS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
)

# Meant for somebody else, or sent by the system because a command stopped a keeper whose parent then ended.
_IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


# ------------------------------------------------------------------ nursery


def main(*, portable: bool) -> None:
    """Serve requests for keepers on standard input, a socket, until it closes.

    Args:
        portable: Do without what only Linux has.
    """
    _close_inherited()
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")  # holds no directory in use
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    subreaper = not portable and _become_subreaper()
    children = _ChildSignal()
    host = process_handle(os.getppid())
    keepers: set[int] = set()
    watched: list[tuple[int, int]] = []  # a keeper, and the descriptor to write to when nothing of it is left
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(children.descriptor, select.POLLIN)
    serving = True
    while serving or keepers:
        ready = {descriptor for descriptor, _ in poll.poll(None if serving else _RETRY_SECONDS * 1000)}
        if serving and control.fileno() in ready:
            keeper, line = _receive_order(control)
            if not line:
                serving = False
                poll.unregister(control)
            elif keeper:
                watched.append((keeper, line[0]))
            else:
                keepers.update(_fork_keeper(socket.socket(fileno=line[0]), control, host, subreaper))
        children.clear()
        ended = _reap(keepers)
        keepers.difference_update(pid for pid in ended if pid is not None)
        if ended or watched:
            orphans = [child for child in _children() if child not in keepers] if subreaper else []
            _kill_each(orphans)  # left by a keeper that was killed
            if not orphans:
                watched = _answer(watched, keepers)


def _fork_keeper(line: socket.socket, control: socket.socket, host: int | None, subreaper: bool) -> tuple[int, ...]:
    """Start a keeper; without one, the line says why and closes."""
    with line:
        try:
            pid = os.fork()
        except OSError as error:
            _send(line, ("failed", "exec", error.errno))
            return ()
        if pid:
            return (pid,)
        try:
            control.close()
            if subreaper:
                _become_subreaper()
            _send(line, ("keeper", os.getpid()))
            _Keeper(line, host, subreaper).serve()
        finally:
            os._exit(0)


def _answer(watched: list[tuple[int, int]], keepers: set[int]) -> list[tuple[int, int]]:
    """Say of keepers that they have ended; return the rest."""
    for keeper, descriptor in watched:
        if keeper not in keepers:
            with suppress(OSError):  # nobody listens any more
                os.write(descriptor, b"0")
            os.close(descriptor)
    return [(keeper, descriptor) for keeper, descriptor in watched if keeper in keepers]


# ------------------------------------------------------------------ keeper


class _Keeper:
    """Runs commands for one line to the host, one after another."""

    def __init__(self, line: socket.socket, host: int | None, subreaper: bool) -> None:
        self._line = line
        self._subreaper = subreaper
        self._children = _ChildSignal()
        self._poll = select.poll()
        self._poll.register(line, select.POLLIN)
        self._poll.register(self._children.descriptor, select.POLLIN)
        self._host = host
        if host is not None:
            self._poll.register(host, select.POLLIN)
        self._shell = 0
        self._marker = ""
        self._status: int | None = None
        self._output: int | None = None

    def serve(self) -> None:
        """Run what is asked until the host is gone or a command leaves something behind that then ends."""
        while True:
            ready = self._wait()
            if self._host_is_gone(ready):
                return
            if self._line.fileno() not in ready:
                continue
            request, descriptors = _receive(self._line)
            if not isinstance(request, dict):
                return
            if not self._run(cast("dict[str, Any]", request), descriptors):
                _send(self._line, ("gone",))
                return

    def _run(self, request: dict[str, Any], descriptors: list[int]) -> bool:
        """Run one command; tell whether the keeper is as it was before."""
        output, self._output, stdin = descriptors
        self._marker = request["marker"]
        self._status = None
        try:
            self._shell = _spawn(request, stdin, output)
        except _SpawnError as error:
            self._close_output()
            _send(self._line, ("failed", error.step, error.errno))
            return True
        finally:
            os.close(stdin)
            os.close(output)
            os.chdir("/")
        _send(self._line, ("started", self._shell))
        return self._watch()

    def _watch(self) -> bool:
        """Stay until no process of the command is left; tell whether that was so when the shell ended."""
        detached = False
        while True:
            # Orphans that are not adopted end without a signal.
            ready = self._wait(None if self._subreaper or self._status is None else _LOOK_AGAIN_SECONDS)
            self._children.clear()
            was_running = self._status is None
            alone = self._reap()
            if was_running and self._status is not None:
                _send(self._line, ("exit", self._status, alone))
                if alone:
                    self._close_output()
                    return True
            if alone:
                return False
            if self._host_is_gone(ready):
                return self._kill()
            if self._line.fileno() in ready:
                request, _ = _receive(self._line)
                if request == "busy":
                    _send(self._line, ("busy", self._subreaper and any(map(_is_at_work, self._members()))))
                elif request == "detach":
                    detached = True
                    self._discard_output()
                    _send(self._line, ("background", self._background()))
                else:
                    return self._kill()
            elif detached and self._output in ready:
                self._discard_output()

    def _wait(self, seconds: float | None = None) -> set[int]:
        return {descriptor for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000)}

    def _host_is_gone(self, ready: set[int]) -> bool:
        return self._host is not None and self._host in ready

    def _reap(self) -> bool:
        """Collect children that ended; tell whether no process of the command is left."""
        ended = _reap()
        if self._shell in ended:
            self._status = ended[self._shell]
        return None in ended and (self._subreaper or not _descendants(self._shell, self._marker))

    def _discard_output(self) -> None:
        """Go on reading what background processes print, so that they neither block nor break."""
        if self._output is None:
            return
        os.set_blocking(self._output, False)
        self._poll.register(self._output, select.POLLIN)
        try:
            while os.read(self._output, _DISCARD_BYTES):
                pass
        except BlockingIOError:
            return
        self._close_output()

    def _close_output(self) -> None:
        if self._output is None:
            return
        with suppress(KeyError):
            self._poll.unregister(self._output)
        os.close(self._output)
        self._output = None

    def _background(self) -> list[tuple[int, str]]:
        return [(pid, line) for pid in self._members() if (line := _command_line(pid))]

    def _members(self) -> list[int]:
        return _tree_of(os.getpid()) if self._subreaper else _descendants(self._shell, self._marker)

    def _kill(self) -> bool:
        """Kill until no process is left, or until what is left cannot be killed."""
        until = time.monotonic() + _GIVE_UP_SECONDS
        while time.monotonic() < until:
            if self._status is None:
                _kill_group(self._shell)  # the shell was not waited for, so the group is still its own
            _kill_each(_children() if self._subreaper else self._members())
            if self._reap():
                break
            select.select([self._children.descriptor], [], [], _RETRY_SECONDS)
            self._children.clear()
        return False


# ------------------------------------------------------------------ starting


class _SpawnError(Exception):
    """A command could not be started."""

    def __init__(self, step: str, errno: int) -> None:
        super().__init__(step, errno)
        self.step = step
        self.errno = errno


def _spawn(request: dict[str, Any], stdin: int, output: int) -> int:
    """Start the program of a request in a session of its own; return its process id."""
    try:
        os.chdir(request["cwd"])
    except OSError as error:
        raise _SpawnError("cwd", error.errno or 0) from error
    try:
        if request["limits"]:
            return _spawn_limited(request, stdin, output)
        return os.posix_spawn(
            request["program"],
            request["argv"],
            request["env"],
            file_actions=[(os.POSIX_SPAWN_DUP2, source, target) for source, target in _streams(stdin, output)],
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID
        return _spawn_limited(request, stdin, output)
    except OSError as error:
        raise _SpawnError("exec", error.errno or 0) from error


def _spawn_limited(request: dict[str, Any], stdin: int, output: int) -> int:
    """Start a program the slow way: fork, set limits, execute. Safe here, where there is one thread."""
    answer, problem = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(request, stdin, output, problem)
    os.close(problem)
    with open(answer, "rb") as stream:
        text = stream.read()
    if text:
        os.waitpid(pid, 0)
        raise _SpawnError("exec", int(text))
    return pid


def _become(request: dict[str, Any], stdin: int, output: int, problem: int) -> NoReturn:
    try:
        import resource

        os.setsid()
        for number in _DEFAULT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        for source, target in _streams(stdin, output):
            os.dup2(source, target)
        for name, value in request["limits"].items():
            kind = getattr(resource, name)
            _, most = resource.getrlimit(kind)
            # CPU time: the soft limit sends a signal that tells the reason, the hard one only kills.
            hard = value + 1 if name == "RLIMIT_CPU" else value
            hard = hard if most == resource.RLIM_INFINITY else min(hard, most)
            resource.setrlimit(kind, (min(value, hard), hard))
        os.execve(request["program"], request["argv"], request["env"])
    except OSError as error:
        os.write(problem, str(error.errno).encode())
    except ValueError:
        os.write(problem, b"22")  # EINVAL
    finally:
        os._exit(127)


def _streams(stdin: int, output: int) -> tuple[tuple[int, int], ...]:
    return ((stdin, 0), (output, 1), (output, 2))


# ------------------------------------------------------------------ processes


class _ChildSignal:
    """A descriptor that becomes readable when a child ends."""

    def __init__(self) -> None:
        self.descriptor, write = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(write, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.descriptor, 4096)


def _close_inherited() -> None:
    """Close what the host left open for its children: none of it is for commands."""
    try:
        descriptors = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # a process that changed its user may not look
        descriptors = list(range(_USUAL_DESCRIPTORS))
    for descriptor in descriptors:
        if descriptor > 2:
            with suppress(OSError):  # the directory itself is closed already
                os.close(descriptor)


def _become_subreaper() -> bool:
    """Make this process the parent of orphans among its descendants; tell whether the system can."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0) == 0)


def can_adopt() -> bool:
    """Tell whether a process of this system can become the parent of orphans among its descendants."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_GET_SUBREAPER, ctypes.byref(ctypes.c_int()), 0, 0, 0) == 0)


def process_handle(pid: int) -> int | None:
    """A descriptor that becomes readable when a process ends, where the system has such a thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _reap(keepers: Collection[int] = ()) -> dict[int | None, int]:
    """Collect every child that ended: process id to status; the key ``None`` when no child is left.

    A keeper that was stopped is made to go on.
    """
    ended: dict[int | None, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if keepers else 0))
        except ChildProcessError:
            ended[None] = 0
            return ended
        if not pid:
            return ended
        if not os.WIFSTOPPED(status):
            ended[pid] = status
        elif pid in keepers:
            os.kill(pid, signal.SIGCONT)


def _kill_each(pids: list[int]) -> None:
    for pid in pids:
        with suppress(OSError):  # gone meanwhile, or another user's
            os.kill(pid, signal.SIGKILL)


def _kill_group(leader: int) -> None:
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def _children(pid: int | None = None) -> list[int]:
    """Direct children of a process, by default of this one (Linux)."""
    owner = os.getpid() if pid is None else pid
    try:
        found: list[int] = []
        for thread in os.listdir(f"/proc/{owner}/task"):
            with open(f"/proc/{owner}/task/{thread}/children", "rb") as stream:
                found += map(int, stream.read().split())
        return found
    except FileNotFoundError:  # the process ended, or a kernel without CONFIG_PROC_CHILDREN
        return [child for child, parent in _parents().items() if parent == owner]
    except OSError:
        return []


def _parents() -> dict[int, int]:
    """The parent of every process (Linux)."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stream:
                # The name in parentheses may hold anything; the fields after the last one are plain.
                parents[int(name)] = int(stream.read().rpartition(b")")[2].split()[1])
    return parents


def _is_at_work(pid: int) -> bool:
    """Whether a process runs, waits for a processor, or waits for a disk (Linux)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] in (b"R", b"D")
    except OSError:
        return False


def _tree_of(pid: int) -> list[int]:
    """Every descendant of a process (Linux)."""
    found: list[int] = []
    waiting = _children(pid)
    while waiting:
        child = waiting.pop()
        found.append(child)
        waiting += _children(child)
    return sorted(found)


def _descendants(leader: int, marker: str) -> list[int]:
    """Processes of a command as ``ps`` shows them: descendants, its group, carriers of its marker."""
    rows = [row.split(None, 4) for row in _ps("pid=,ppid=,pgid=,stat=,command=", environment=True)]
    members = {os.getpid()}
    found: set[int] = set()
    while True:
        more = {
            int(pid)
            for pid, parent, group, state, *rest in rows
            if not state.startswith("Z")
            and (
                int(parent) in members
                or int(group) == leader
                or (rest and marker and f"{MARKER}={marker}" in rest[0].split())
            )
        } - members
        if not more:
            return sorted(found)
        found |= more
        members |= more


def _ps(columns: str, *, environment: bool) -> list[str]:
    """Rows of ``ps`` for all processes of this user, without ``ps`` itself."""
    options = "eww" if sys.platform.startswith("linux") else "-Eww"
    arguments = ["ps", *([options] if environment else ["-ww"]), "-A" if options[0] == "-" else "ax", "-o", columns]
    read, write = os.pipe()
    try:
        pid = os.posix_spawnp("ps", arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    except OSError:
        os.close(read)
        return []
    finally:
        os.close(write)
    with open(read, encoding="utf-8", errors="replace") as stream:
        rows = stream.read().splitlines()
    os.waitpid(pid, 0)
    return [row for row in rows if row.split(None, 1)[:1] != [str(pid)]]


def _command_line(pid: int) -> str:
    """The command line of a process, arguments separated by spaces; empty when it is ending."""
    if not sys.platform.startswith("linux"):
        return next((row.strip() for row in _ps(f"command= -p {pid}", environment=False)), "")
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            data = stream.read(_SHOWN_COMMAND_LINE_BYTES)
    except OSError:
        return ""
    return data.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")


# ------------------------------------------------------------------ messages


def _receive_order(control: socket.socket) -> tuple[int, list[int]]:
    """The next order to the nursery and its descriptor; without one at the end of the stream."""
    data, descriptors, _, _ = socket.recv_fds(control, 4, 1)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return int.from_bytes(data, "big"), descriptors if data else []


def _receive(connection: socket.socket) -> tuple[Any, list[int]]:
    """The next message and its descriptors; ``None`` when the host is gone."""
    try:
        head, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        head += _receive_exactly(connection, 4 - len(head)) if head else b""
        if len(head) < 4:
            return None, descriptors
        size = int.from_bytes(head, "big")
        body = _receive_exactly(connection, size)
    except OSError:
        return None, []
    return (marshal.loads(body) if len(body) == size else None), descriptors


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            break
        parts += part
    return bytes(parts)


def _send(connection: socket.socket, message: Any) -> None:
    body = marshal.dumps(message)
    with suppress(OSError):  # the host is gone; the poll says so next
        connection.sendall(len(body).to_bytes(4, "big") + body)


if __name__ == "__main__":
    main(portable="--portable" in sys.argv)
    os._exit(0)  # nothing to tidy up, and the host waits for the end
