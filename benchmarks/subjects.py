"""The systems that are compared, each in a process of its own that answers JSON lines.

A request is a workload with a round number; the answer is ``{"seconds": …, "added_bytes": …}`` (time of a call,
peak memory that the round added) or ``{"error": …}``. A subject that cannot run says why and is left out; a
workload that fails for one of them never spoils the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from benchmarks.peers.environment import Unavailable, make_environment

__all__ = ["Subject", "Unavailable", "limit", "ours", "peers", "reference"]

_HERE: Final = Path(__file__).resolve().parent
_REFERENCE: Final = "@earendil-works/pi-coding-agent@1.6.0"


@frozen
class _Peer:
    name: str
    packages: Sequence[str]
    npm_package: str | None = None
    python: tuple[int, int] = (3, 11)


_PEERS: Final = (
    _Peer("deepagents", ["deepagents==0.7.32"]),
    _Peer("mcp-files", ["mcp==2.3.0"], npm_package="@modelcontextprotocol/server-filesystem@2026.8.31"),
    _Peer("pydantic-ai", ["pydantic-ai-harness==0.62.0"], python=(3, 12)),
    # The tools do not say which version of their kit they need.
    _Peer("openhands", ["openhands-tools==1.58.2", "openhands-sdk==1.58.2"], python=(3, 12)),
)


@define(eq=False)
class Subject:
    """A running system."""

    name: str
    command: Sequence[str]
    environment: dict[str, str] = field(factory=dict)
    _process: subprocess.Popen[str] | None = None

    def run(self, workload: dict[str, Any], number: int, timeout_seconds: float = 120) -> dict[str, Any]:
        """Run one round and return the answer.

        A process that ends, or that is killed because its answer takes too long, is an answer with an error; the
        next round starts a new one.
        """
        try:
            process = self._started()
        except OSError as error:
            return {"error": f"{self.name} does not start: {error}"}
        late = threading.Event()

        def end_it() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(timeout_seconds, end_it)
        timer.start()
        answer = _ask(process, {"workload": workload, "round": number})
        timer.cancel()
        timer.join()
        if answer is not None and not late.is_set():
            return answer
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # it is ending by itself if it was not late: its exit code says more than ours
        _kill(process)
        self._process = None
        if late.is_set():
            return {"error": f"no answer in {timeout_seconds:g} s, killed"}
        return {"error": f"the process of {self.name} ended with code {process.returncode}"}

    def close(self) -> None:
        """End the process, by force if it takes long."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            _kill(self._process)
        self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=_HERE.parent,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        return self._process


def _ask(process: subprocess.Popen[str], request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer to a request; ``None`` if the process ends before."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
    except OSError:
        return None
    for line in process.stdout:
        # A library may print lines of its own.
        if line.startswith(('{"seconds":', '{"error":')):
            answer: dict[str, Any] = json.loads(line)
            return answer
    return None


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and what it started in its own session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ours() -> Subject:
    """handrail itself, as installed here."""
    return Subject("handrail", [sys.executable, "-m", "benchmarks.run_handrail"])


def limit() -> Subject:
    """The bare system work."""
    return Subject("limit", [sys.executable, "-m", "benchmarks.run_limit"])


def reference(cache: Path) -> Subject:
    """pi's published tools, driven by a small script of ours.

    Raises:
        Unavailable: Node 22 or npm is missing, or the package cannot be installed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    home = cache / "reference"
    if not (home / "complete").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true, "type": "module"}')
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", _REFERENCE, "node@22"], cwd=home, capture_output=True, text=True
        )
        if done.returncode:
            raise Unavailable(f"npm could not install {_REFERENCE}: {done.stderr.strip()[-200:]}")
        (home / "complete").touch()
    script = home / "run_reference.mjs"
    shutil.copy(_HERE / "run_reference.mjs", script)
    return Subject("reference", [str(home / "node_modules" / ".bin" / "node"), str(script)])


def peers(cache: Path) -> list[Subject | Unavailable]:
    """Python systems of the same kind, each in a virtual environment of its own."""
    return [_peer(peer, cache / f"peer-{peer.name}") for peer in _PEERS]


def _peer(peer: _Peer, home: Path) -> Subject | Unavailable:
    try:
        python = make_environment(home, peer.packages, peer.npm_package, peer.python)
    except Unavailable as reason:
        return Unavailable(f"{peer.name}: {reason}")
    # Nothing of ours is seen by a peer but the folder of the benchmarks.
    return Subject(peer.name, [str(python), "-m", "benchmarks.peers", peer.name], {"PYTHONPATH": ""})
