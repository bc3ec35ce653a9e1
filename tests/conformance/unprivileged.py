"""Running a job as a user without rights, in a process of its own.

The interpreter and the checkout may be closed to that user, so the child imports everything first and only
then gives its rights away.
"""

from __future__ import annotations

import encodings
import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio

__all__ = ["can_drop_rights", "drop_rights", "run_unprivileged"]


_TESTS: Final = str(Path(__file__).resolve().parents[1])


def can_drop_rights() -> bool:
    """Whether this process may become another user."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def drop_rights() -> None:
    """Become ``nobody`` for good; without root's rights, stay who we are."""
    if not can_drop_rights():
        return
    import pwd

    _load_codecs()
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
    os.environ.update({"HOME": "/nonexistent", "USER": "nobody", "LOGNAME": "nobody"})
    os.chdir("/")
    if not os.access(sys.executable, os.X_OK):  # commands are watched by a child of the interpreter
        sys.executable = shutil.which("python3") or sys.executable


def _load_codecs() -> None:
    """Import what the interpreter otherwise imports at first use, perhaps from a place that will be closed."""
    for module in pkgutil.iter_modules(encodings.__path__):
        with suppress(ImportError):  # of another operating system
            importlib.import_module(f"encodings.{module.name}")


async def run_unprivileged(module: str, *arguments: str) -> Any:
    """Run a module of the tests as a child that drops its rights and prints JSON; return what it printed last.

    Raises:
        AssertionError: The child failed; with what it wrote to stderr.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([_TESTS, os.environ.get("PYTHONPATH", "")])}
    done = await anyio.run_process(
        [sys.executable, "-m", module, *arguments],
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode().splitlines()[-1])
