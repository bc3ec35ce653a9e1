"""The real program ``handrail`` in a process of its own, as the end-to-end tests run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

__all__ = ["PATIENCE_SECONDS", "PROGRAM", "Rpc", "handrail", "interrupt", "pid_in", "rpc", "started", "wait_until"]

PROGRAM: Final = str(Path(sys.executable).with_name("handrail"))
PATIENCE_SECONDS: Final = 60.0
"""How long anything may take before it counts as hanging; nothing should come near."""


def handrail(
    *arguments: str | bytes,
    cwd: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end; output is decoded leniently."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, **(env or {})},
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


@contextmanager
def started(
    arguments: Sequence[str],
    *,
    cwd: Path,
    stdin: int | None = subprocess.DEVNULL,
    stdout: int | None = subprocess.PIPE,
    env: Mapping[str, str] | None = None,
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run the program in the background; it is killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that other processes bring about.

    Raises:
        AssertionError: It did not come about.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.01)


def pid_in(path: Path) -> psutil.Process:
    """The process that writes its id into a file, as soon as it has."""
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"{path.name} was written")
    return psutil.Process(int(path.read_text()))


class Rpc:
    """A client of ``handrail rpc``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, *requests: Mapping[str, Any]) -> None:
        """Write requests, a line each."""
        self.send_raw(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def send_raw(self, data: bytes) -> None:
        """Write bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close_input(self) -> None:
        """End the input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield answers to the end of the output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            assert isinstance(answer, dict)
            yield answer

    def answer(self, kind: str, request_id: str | int | None = None) -> dict[str, Any]:
        """Return the next answer of a kind, of one call if an id is given; others are passed over."""
        for answer in self.answers():
            if answer["type"] == kind and request_id in (None, answer.get("id")):
                return answer
        raise AssertionError(f"the output ended without {kind} of {request_id}")

    def exit_status(self) -> int:
        """Wait for the server to leave."""
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def rpc(cwd: Path, *options: str) -> Generator[Rpc, None, None]:
    """Run a server and talk to it; a test that waits in vain is ended by the time limit of the test run."""
    with started(["rpc", *options], cwd=cwd, stdin=subprocess.PIPE) as process:
        yield Rpc(process)


def interrupt(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGINT) -> int:
    """Send a signal and return the exit status."""
    process.send_signal(number)
    return process.wait(PATIENCE_SECONDS)
