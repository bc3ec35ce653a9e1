"""Commands on Windows: each in a Job Object, which holds every process of the tree and can end them all.

A process cannot leave its job, so the job is the proof that nothing is left; it is told to kill what it holds
when its last handle closes, which covers a host that ends in any way. Pipes cannot be watched by the event
loop here, so a thread reads while a command runs.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from ctypes import wintypes
from typing import Any, Final

import anyio
import psutil

from handrail.ports.commands import BackgroundProcess, Command, Exit, ResourceLimits
from handrail.ports.errors import PortError, PortErrorCode

assert sys.platform == "win32"  # tells type checkers, too

__all__ = ["Process", "Processes"]

_CREATE_SUSPENDED: Final = 0x4
_PIECE_BYTES: Final = 65536
_MAX_WAITING: Final = 16
_KILL_EXIT_CODE: Final = 1
_LOOK_AGAIN_SECONDS: Final = 0.01

# https://learn.microsoft.com/windows/win32/debug/system-error-codes
_SPAWN_CODES: Final[dict[int, tuple[str, PortErrorCode]]] = {
    2: ("program", "program_not_found"),  # ERROR_FILE_NOT_FOUND
    3: ("program", "program_not_found"),  # ERROR_PATH_NOT_FOUND
    5: ("program", "permission_denied"),  # ERROR_ACCESS_DENIED
    8: ("program", "resource_limit"),  # ERROR_NOT_ENOUGH_MEMORY
    193: ("program", "spawn_failed"),  # ERROR_BAD_EXE_FORMAT
    206: ("program", "spawn_failed"),  # ERROR_FILENAME_EXCED_RANGE: the command line is too long
    267: ("cwd", "not_found"),  # ERROR_DIRECTORY
}


class Process:
    """A running command: its output, its end, and its job."""

    def __init__(self, popen: subprocess.Popen[bytes], job: _Job, output: int, owner: Processes) -> None:
        self._popen = popen
        self._job = job
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._progress = asyncio.Event()
        self._pieces: deque[bytes] = deque()
        self._room = threading.Semaphore(_MAX_WAITING)
        self._dropping = False
        threading.Thread(target=self._read, args=(output,), daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    async def wait_progress(self) -> None:
        """Wait until there may be output to read or an end to learn of."""
        await self._progress.wait()
        self._progress.clear()

    def read_nowait(self, buffer: memoryview) -> int | None:
        """Fill a buffer with output that is there: its size, 0 at the end, ``None`` when there is none yet."""
        if not self._pieces:
            return None
        piece = self._pieces.popleft()
        self._room.release()
        buffer[: len(piece)] = piece
        return len(piece)

    def poll(self) -> Exit | None:
        """Return the end of the program itself."""
        code = self._popen.poll()
        return None if code is None else Exit(code)

    async def is_busy(self) -> bool:
        """Whether the program left something that is at work; not known here."""
        return False

    async def kill(self) -> None:
        """Kill the whole tree; returns when nothing of it is left."""
        await _end(self._job)

    async def detach(self) -> Sequence[BackgroundProcess]:
        """Stop listening after a normal end; tell what goes on. It is killed when the owner closes."""
        pids = self._job.pids()
        if pids:
            self._owner.keep(self._job)
        return [BackgroundProcess(pid, _command_line(pid)) for pid in pids]

    def close(self) -> None:
        """Release what was opened; what prints on is read and dropped."""
        self._dropping = True
        self._room.release()
        self._owner.release(self._job)

    def _read(self, output: int) -> None:
        with open(output, "rb", buffering=0) as stream:
            while True:
                piece = stream.read(_PIECE_BYTES) or b""
                if not self._dropping:
                    self._room.acquire()
                    self._pieces.append(piece)
                    self._wake()
                if not piece:
                    return

    def _watch(self) -> None:
        self._popen.wait()
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the event loop is gone
            self._loop.call_soon_threadsafe(self._progress.set)


class Processes:
    """Starts commands of one environment, each in a job of its own.

    Args:
        portable: Without meaning here.
    """

    def __init__(self, *, portable: bool = False) -> None:
        del portable
        self._background: list[_Job] = []
        self.may_survive: Sequence[str] = ()
        """No process of a job can leave it."""

    async def start(self, command: Command, program: str, env: dict[str, str]) -> Process:
        """Start a program, stdout and stderr on one pipe.

        Raises:
            PortError: What the port's ``run`` lists.
        """
        if command.limits != ResourceLimits():
            raise PortError("not_supported", command.argv[0], "Windows has no resource limits of this kind")
        self._forget_ended()
        read, write = os.pipe()
        job = _Job()
        try:
            popen = _start_suspended(command, program, env, write)
        except OSError as error:
            os.close(read)
            job.close()
            where, code = _SPAWN_CODES.get(error.winerror or 0, ("program", "spawn_failed"))
            path = command.cwd if where == "cwd" else command.argv[0]
            raise PortError(code, path, error.strerror or str(error)) from error
        finally:
            os.close(write)
        # Suspended until it is in the job: so no child of it can be outside.
        handle = int(popen._handle)  # type: ignore[attr-defined]
        try:
            job.assign(handle)
            _resume(handle)
        except OSError as error:
            popen.kill()
            os.close(read)
            job.close()
            raise PortError("spawn_failed", command.argv[0], error.strerror or str(error)) from error
        if popen.stdin is not None:
            threading.Thread(target=_feed, args=(popen.stdin, command.stdin), daemon=True).start()
        return Process(popen, job, read, self)

    def keep(self, job: _Job) -> None:
        """Remember a command that left background processes."""
        self._background.append(job)

    def release(self, job: _Job) -> None:
        """Close the job of a command that left nothing behind."""
        if job not in self._background:
            job.close()

    async def aclose(self) -> None:
        """Kill background processes."""
        for job in self._background:
            await _end(job)
            job.close()
        self._background.clear()

    def _forget_ended(self) -> None:
        for job in [job for job in self._background if not job.pids()]:
            self._background.remove(job)
            job.close()


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
        ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_ulonglong * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


_MAX_LISTED: Final = 4096


class _ProcessIds(ctypes.Structure):
    _fields_ = (
        ("NumberOfAssignedProcesses", wintypes.DWORD),
        ("NumberOfProcessIdsInList", wintypes.DWORD),
        ("ProcessIdList", ctypes.c_size_t * _MAX_LISTED),
    )


_EXTENDED_LIMIT_INFORMATION: Final = 9
_BASIC_PROCESS_ID_LIST: Final = 3
_LIMIT_KILL_ON_JOB_CLOSE: Final = 0x2000

_kernel: Final[Any] = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
_kernel.QueryInformationJobObject.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.c_void_p,
)
_kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)


class _Job:
    """A Job Object that ends what it holds when it is closed."""

    def __init__(self) -> None:
        self._handle = _kernel.CreateJobObjectW(None, None)
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _LIMIT_KILL_ON_JOB_CLOSE
        _check(
            self._handle
            and _kernel.SetInformationJobObject(
                self._handle, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
            )
        )

    def assign(self, process: int) -> None:
        _check(_kernel.AssignProcessToJobObject(self._handle, process))

    def pids(self) -> list[int]:
        """The processes in the job; of more than 4096, the first."""
        found = _ProcessIds()
        _kernel.QueryInformationJobObject(
            self._handle, _BASIC_PROCESS_ID_LIST, ctypes.byref(found), ctypes.sizeof(found), None
        )
        return list(found.ProcessIdList[: found.NumberOfProcessIdsInList])

    def terminate(self) -> None:
        _kernel.TerminateJobObject(self._handle, _KILL_EXIT_CODE)

    def close(self) -> None:
        if self._handle:
            _kernel.CloseHandle(self._handle)
            self._handle = None


async def _end(job: _Job) -> None:
    """Kill what is in a job; returns when it is empty."""
    job.terminate()
    while job.pids():  # noqa: ASYNC110 - a job tells no event loop that it is empty
        await anyio.sleep(_LOOK_AGAIN_SECONDS)


def _check(succeeded: Any) -> None:
    if not succeeded:
        raise ctypes.WinError(ctypes.get_last_error())


def _start_suspended(command: Command, program: str, env: dict[str, str], output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, *command.argv[1:]],
        stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
        stdout=output,
        stderr=output,
        cwd=command.cwd,
        env=env,
        creationflags=_CREATE_SUSPENDED | subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
    )


def _resume(process: int) -> None:
    """Let a suspended process run; ``subprocess`` keeps no handle of its thread."""
    resume = ctypes.WinDLL("ntdll").NtResumeProcess
    resume.argtypes = (wintypes.HANDLE,)
    if resume(process):
        raise OSError("NtResumeProcess failed")


def _feed(stdin: Any, data: bytes | None) -> None:
    with suppress(OSError), stdin:  # the program may end without reading all of it
        stdin.write(data or b"")


def _command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""
