"""``python -m benchmarks.peers NAME``: serve one peer as a subject."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from benchmarks.measuring import lay_files, serve_async
from benchmarks.peers.checks import WrongResult, all_ended, check, processes_in
from benchmarks.peers.peer import Peer

# Only the module of the peer that is served can be imported here.
_CLASSES: Final = {
    "deepagents": ("deep_agents", "DeepAgents"),
    "mcp-files": ("mcp_files", "McpFiles"),
    "openhands": ("openhands_editor", "OpenHandsEditor"),
    "pydantic-ai": ("pydantic_workspace", "PydanticWorkspace"),
}


class Rounds:
    """Runs the rounds of the workloads on one peer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._peer: Peer | None = None

    async def run(self, workload: dict[str, Any], number: int) -> float:
        """Run one round, check what came of it, and return the seconds of a call."""
        cwd, repeat = workload["cwd"], workload["repeat"]
        if self._peer is None:
            self._peer = _make(self._name)
        await self._peer.open(cwd)
        lay_files(workload, number)
        calls = [(tool, arguments) for tool, arguments in workload["rounds"][number % len(workload["rounds"])]]
        if workload["cancel_after"] is not None:
            return await _cancelled(self._peer, cwd, calls[0], workload["cancel_after"])
        answers: list[str | BaseException] = []
        begun = time.perf_counter()
        for _ in range(repeat):
            if workload["parallel"]:
                running = [self._peer.call(cwd, tool, arguments) for tool, arguments in calls]
                answers = list(await asyncio.gather(*running, return_exceptions=True))
            else:
                answers = [await self._peer.call(cwd, tool, arguments) for tool, arguments in calls]
        seconds = time.perf_counter() - begun
        check(cwd, calls, answers)
        return seconds / float(repeat * workload["per"])

    async def aclose(self) -> None:
        """End the peer."""
        if self._peer is not None:
            await self._peer.aclose()


def _make(name: str) -> Peer:
    module, class_name = _CLASSES[name]
    make: Callable[[], Peer] = getattr(import_module(f"benchmarks.peers.{module}"), class_name)
    return make()


async def _cancelled(peer: Peer, cwd: str, call: tuple[str, dict[str, Any]], after: float) -> float:
    task = asyncio.ensure_future(peer.call(cwd, *call))
    await asyncio.wait([task], timeout=after)
    if task.done():
        raise WrongResult(f"ended before it was cancelled, with {task.result()[:100]!r}")
    processes = processes_in(cwd)
    begun = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    # Our own call ends when its processes have ended; a peer's may end before.
    await all_ended(processes, cwd)
    return time.perf_counter() - begun


async def _serve(name: str) -> None:
    logging.disable(logging.WARNING)  # what a peer logs about itself is no part of the report
    rounds = Rounds(name)
    await serve_async(rounds.run)
    await rounds.aclose()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
