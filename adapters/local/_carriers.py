"""Finds and kills what is left of a command whose keeper was killed: the host's own look at the process table.

A keeper needs none of this, for it is the parent of what it kills. Here processes are known by signs: the marker
variable of the command, the session of its shell, sessions made by what was found, and descent. A process that
has none of these signs is not found; see docs/commands.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import psutil

from handrail.adapters.local import _supervisor

__all__ = ["kill_carriers"]

_GIVE_UP_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.02
_CLEAN_LOOKS: Final = 2
"""One look is no proof: a process that forks and ends meanwhile can be missed."""

_START_TOLERANCE_SECONDS: Final = 2.0
"""How far a shell's creation time may be from the moment of the request; the table tells times roughly."""


def kill_carriers(marker: str, shell: int, began: float) -> None:
    """Kill the processes of a command until none is found, or until what is found cannot be killed. Blocks.

    Args:
        marker: The value of its marker variable.
        shell: Process id of its program, 0 where it is not known.
        began: When it was started, in seconds since the epoch.
    """
    until = time.monotonic() + _GIVE_UP_SECONDS
    sessions: set[int] = set()
    clean = 0
    while clean < _CLEAN_LOOKS and time.monotonic() < until:
        found = _find(marker, shell, began, sessions)
        for process in found:
            with suppress(psutil.Error):  # gone meanwhile, or another user's
                process.kill()  # compares the creation time first
        clean = 0 if found else clean + 1
        time.sleep(_RETRY_SECONDS)


def _find(marker: str, shell: int, began: float, sessions: set[int]) -> list[psutil.Process]:
    """Processes of a command; adds the sessions they are in to those that are known."""
    table = {process.pid: process for process in psutil.process_iter() if process.pid != os.getpid()}
    parents = {pid: _parent(process) for pid, process in table.items()}
    found: set[int] = set()
    more = {pid for pid, process in table.items() if _session(pid) in sessions or _is_marked(process, marker)}
    if shell in table and abs(_created(table[shell]) - began) < _START_TOLERANCE_SECONDS:
        more.add(shell)
    while more:
        found |= more
        sessions |= {session for pid in more if (session := _session(pid)) is not None}
        more = {pid for pid in table if parents[pid] in found or _session(pid) in sessions} - found
    return [table[pid] for pid in found if not _has_ended(table[pid])]


def _is_marked(process: psutil.Process, marker: str) -> bool:
    environ: Mapping[str, str] = {}
    with suppress(psutil.Error, OSError):
        environ = process.environ()
    return environ.get(_supervisor.MARKER) == marker


def _parent(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return process.ppid()
    return 0


def _created(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        return process.create_time()
    return 0.0


def _session(pid: int) -> int | None:
    """The session of a process; ``None`` for the host's own, which no command is in."""
    with suppress(OSError):
        session = os.getsid(pid)
        return session if session != os.getsid(0) else None
    return None


def _has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.status() == psutil.STATUS_ZOMBIE
    return True
