"""The bare system work behind each workload: what no tool can be faster than by much."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.measuring import lay_files, run_python, serve


def read(cwd: str, path: str) -> None:
    handle = os.open(os.path.join(cwd, path), os.O_RDONLY)
    os.read(handle, 1 << 20)
    os.close(handle)


def count_lines(cwd: str, path: str) -> None:
    buffer = bytearray(256 * 1024)
    with open(path, "rb", buffering=0) as stream:
        while stream.readinto(buffer):
            buffer.count(b"\n")


def write(cwd: str, path: str) -> None:
    target = os.path.join(cwd, path)
    _put(target, b"hello\n")


def replace(cwd: str, path: str) -> None:
    _replaced(os.path.join(cwd, path), 1)


def replace20(cwd: str, path: str) -> None:
    _replaced(os.path.join(cwd, path), 20)


def _replaced(target: str, count: int) -> None:
    text = Path(target).read_bytes().decode()
    for number in range(1, count + 1):
        at = text.find(f"line {number * 6000} of")
        text.find(f"line {number * 6000} of", at + 1)
    _put(target, text.encode())


def _put(target: str, data: bytes) -> None:
    sibling = target + ".limit"
    handle = os.open(sibling, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(handle, data)
    os.close(handle)
    os.replace(sibling, target)


def list_directory(cwd: str, path: str) -> None:
    with os.scandir(path) as entries:
        sorted((entry.name.casefold(), entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)


def fd(cwd: str, pattern: str) -> None:
    program = shutil.which("fd") or shutil.which("fdfind")
    if program:
        command = [program, "--glob", "--hidden", pattern]
    else:
        command = ["rg", "--files", "--hidden", "--no-require-git", "--glob", pattern]
    subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, check=False)


def rg(cwd: str, pattern: str) -> None:
    command = ["rg", "--hidden", "--no-require-git", "--line-number", pattern]
    subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)


def spawn(cwd: str, count: int) -> None:
    pids = [os.posix_spawn("/bin/bash", ["bash", "-c", "true"], os.environ) for _ in range(count)]
    for pid in pids:
        os.waitpid(pid, 0)


def pipe(cwd: str, command: str) -> None:
    with subprocess.Popen(["/bin/bash", "-c", command], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        buffer = bytearray(256 * 1024)
        while process.stdout.readinto(buffer):  # type: ignore[attr-defined]
            pass


_WORK: Final[dict[str, Callable[[str, Any], None]]] = {
    "read": read,
    "count_lines": count_lines,
    "write": write,
    "replace": replace,
    "replace20": replace20,
    "list": list_directory,
    "fd": fd,
    "rg": rg,
    "spawn": spawn,
    "pipe": pipe,
}


def kill(count: int) -> float:
    """Return the seconds from the signal to a group of processes to the last one's end."""
    alive, held = os.pipe()  # each process holds the writing end
    command = ["/bin/bash", "-c", f"for i in $(seq {count}); do sleep 1000 & done; wait"]
    process = subprocess.Popen(command, start_new_session=True, pass_fds=[held])
    os.close(held)
    time.sleep(1)
    begun = time.perf_counter()
    os.killpg(process.pid, signal.SIGKILL)
    os.read(alive, 1)
    seconds = time.perf_counter() - begun
    process.wait()
    os.close(alive)
    return seconds


def run(workload: dict[str, Any], number: int) -> float:
    """Run one round and return the seconds of a call."""
    name, argument = workload["limit"]
    lay_files(workload, number)
    if name == "kill":
        return kill(argument)
    if name == "start":
        return run_python(argument)
    begun = time.perf_counter()
    for _ in range(workload["repeat"]):
        _WORK[name](workload["cwd"], argument)
    return (time.perf_counter() - begun) / float(workload["repeat"] * workload["per"])


if __name__ == "__main__":
    serve(run)
