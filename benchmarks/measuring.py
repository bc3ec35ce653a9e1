"""What the Python subjects share: the request loop, the clock, the peak of memory. Standard library only."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["added_memory", "lay_files", "reset_peak", "run_python", "serve", "serve_async"]


def serve(run: Callable[[dict[str, Any], int], float]) -> None:
    """Answer requests until standard input ends.

    Args:
        run: Runs one round of a workload and returns the seconds of a call.
    """

    async def run_now(workload: dict[str, Any], number: int) -> float:
        return run(workload, number)

    asyncio.run(serve_async(run_now))


async def serve_async(run: Callable[[dict[str, Any], int], Awaitable[float]]) -> None:
    """Answer requests until standard input ends, all in one event loop, as a host would."""
    while line := sys.stdin.readline():
        request = json.loads(line)
        try:
            before = reset_peak()
            seconds = await run(request["workload"], request["round"])
            answer: dict[str, Any] = {"seconds": seconds, "added_bytes": added_memory(before)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


def lay_files(workload: dict[str, Any], number: int) -> None:
    """Lay the workload's files, before its first round."""
    if number == 0:
        for name, text in (workload["files"] or {}).items():
            Path(workload["cwd"], name).write_text(text)


def run_python(argv: Sequence[str]) -> float:
    """Run a Python command line to its end, with bytecode that is kept as usual, and return the seconds."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run([sys.executable, *argv], stdout=subprocess.DEVNULL, env=environment, check=True)
    return time.perf_counter() - begun


def reset_peak() -> int:
    """Start a new peak (Linux) and return the memory in use now, in bytes; 0 elsewhere."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0
    return _status("VmRSS")


def added_memory(before: int) -> int | None:
    """Return how far the peak rose above what was in use before."""
    return max(0, _status("VmHWM") - before) if before else None


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0
