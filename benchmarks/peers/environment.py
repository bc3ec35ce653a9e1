"""Throw-away environments: an interpreter that is new enough, and packages of PyPI and npm in one directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["Unavailable", "make_environment"]

_NAMED_BY: Final = "HANDRAIL_BENCH_PYTHON"
_INSTALL_SECONDS: Final = 1800
_PROBE_SECONDS: Final = 60


class Unavailable(Exception):
    """A subject cannot run here; the text is one line that says why."""


def make_environment(
    home: Path, packages: Sequence[str], npm_package: str | None = None, minimum: tuple[int, int] = (3, 11)
) -> Path:
    """Make a virtual environment, or find it complete from an earlier run, and return its interpreter.

    Args:
        home: The directory of the environment; what is there but not complete is replaced.
        packages: What pip installs.
        npm_package: What npm installs beside it.
        minimum: The oldest version of Python that will do.

    Raises:
        Unavailable: No interpreter will do, or something cannot be installed.
    """
    python, complete = home / "bin" / "python", home / "complete"
    content = "\n".join([*packages, npm_package or ""])
    if not complete.exists() or complete.read_text() != content:
        shutil.rmtree(home, ignore_errors=True)
        _run([_interpreter(minimum), "-m", "venv", str(home)])
        _run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q", *packages])
        if npm_package is not None:
            _run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), npm_package])
        complete.write_text(content)
    return python


def _interpreter(minimum: tuple[int, int]) -> str:
    """Return the interpreter that runs handrail if it will do, so that both are compared on the same one."""
    if sys.version_info >= minimum:
        return sys.executable
    for candidate in (os.environ.get(_NAMED_BY), "python3.13", "python3.12"):
        if candidate and _is_new_enough(candidate, minimum):
            return candidate
    raise Unavailable(f"needs Python {minimum[0]}.{minimum[1]} or newer and finds none; {_NAMED_BY} may name one")


def _is_new_enough(python: str, minimum: tuple[int, int]) -> bool:
    """Whether an interpreter really runs: a name on PATH may stand for a version that is not installed."""
    try:
        done = subprocess.run(
            [python, "-c", f"import sys; sys.exit(sys.version_info < {minimum})"],
            capture_output=True,
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"cannot install: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).splitlines()
        # pip sums up in its last error, npm begins with what went wrong.
        of_pip = [line for line in lines if line.startswith("ERROR:")][-1:]
        of_npm = [line for line in lines if line.startswith("npm error")][:2]
        raise Unavailable(f"cannot install: {' '.join(of_pip or of_npm or lines[-1:])[:300]}")
