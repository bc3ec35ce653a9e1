"""The systems that are compared, each in a process of its own that answers JSON lines.

A request is a workload with a round number; the answer is ``{"seconds": …, "added_bytes": …}`` (time of a call,
peak memory that the round added) or ``{"error": …}``. A subject that cannot run says why and is left out; a
workload that fails for one of them never spoils the rest.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

__all__ = ["Subject", "Unavailable", "limit", "ours", "peers", "reference"]

_HERE: Final = Path(__file__).resolve().parent
_REFERENCE: Final = "@earendil-works/pi-coding-agent@1.6.0"
_PEERS: Final = {"deepagents": "deepagents==0.7.*", "mcp-files": "mcp==1.*"}


class Unavailable(Exception):
    """A subject cannot run here; the text says why."""


@define(eq=False)
class Subject:
    """A running system."""

    name: str
    command: Sequence[str]
    environment: dict[str, str] = field(factory=dict)
    _process: subprocess.Popen[str] | None = None

    def run(self, workload: dict[str, Any], number: int, timeout_seconds: float = 120) -> dict[str, Any]:
        """Run one round and return the answer."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"workload": workload, "round": number}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self._process = None
            return {"error": f"the process of {self.name} ended with code {process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(10)
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
            )
        return self._process


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
    return [_peer(name, package, cache) for name, package in _PEERS.items()]


def _peer(name: str, package: str, cache: Path) -> Subject | Unavailable:
    home = cache / f"peer-{name}"
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        venv.create(home, with_pip=True, clear=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", package], capture_output=True, text=True)
        if done.returncode:
            return Unavailable(f"{name}: pip could not install {package}: {done.stderr.strip()[-200:]}")
        (home / "complete").touch()
    return Subject(name, [str(python), str(_HERE / "run_peer.py"), name])
