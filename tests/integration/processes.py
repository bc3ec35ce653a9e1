"""What tests of real processes share: looking at the process table of this machine."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["children_of", "new_marker", "parent_of", "processes_with", "until", "zombies_below"]

_numbers = itertools.count(1)


def new_marker() -> str:
    """A number of seconds that no other test sleeps."""
    return f"{os.getpid()}{next(_numbers):07d}.5"


def processes_with(marker: str) -> list[str]:
    """Processes whose command line has this marker: id, state and command line."""
    found: list[str] = []
    for pid, state, _ in _table():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if marker in line:
            found.append(f"{pid} {state} {line[:200]}")
    return found


def zombies_below(pid: int) -> list[int]:
    """Descendants of a process that ended and were not collected."""
    table = _table()
    family = {pid}
    while more := {child for child, _, parent in table if parent in family} - family:
        family |= more
    return [child for child, state, _ in table if child in family and state == "Z"]


def children_of(pid: int) -> list[int]:
    """Direct children of a process."""
    return [child for child, _, parent in _table() if parent == pid]


def parent_of(pid: int) -> int:
    """The parent of a process."""
    return next(parent for child, _, parent in _table() if child == pid)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for something that another process brings about; tell whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _table() -> list[tuple[int, str, int]]:
    """Id, state and parent of every process."""
    rows: list[tuple[int, str, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state, parent = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            rows.append((int(name), state, int(parent)))
    return rows
