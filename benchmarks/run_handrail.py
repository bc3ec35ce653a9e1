"""handrail as a subject: the Toolbox on the local environment or in memory, in process and warm."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any, Final

import anyio

from benchmarks.measuring import lay_files, run_python, serve_async
from handrail import Call, Environment, Toolbox, all_tools, local_environment, memory_environment

_FILES_IN_MEMORY: Final = 10_000


class Handrail:
    """One toolbox for each working directory, on disk or in memory, kept between rounds."""

    def __init__(self) -> None:
        self._toolboxes: dict[tuple[str, bool], Toolbox] = {}

    async def run(self, workload: dict[str, Any], number: int) -> float:
        """Run one round and return the seconds of a call."""
        if workload["argv"] is not None:
            return run_python(workload["argv"])
        lay_files(workload, number)
        toolbox = self._toolbox(workload)
        calls = [Call(tool, arguments) for tool, arguments in workload["rounds"][number % len(workload["rounds"])]]
        if workload["cancel_after"] is not None:
            return await _cancelled(toolbox, calls[0], workload["cancel_after"])
        begun = time.perf_counter()
        for _ in range(workload["repeat"]):
            if workload["parallel"]:
                results = await toolbox.run(calls)
            else:
                results = [await toolbox.call(call.tool, call.arguments) for call in calls]
        seconds = time.perf_counter() - begun
        for result in results:
            if result.is_error:
                raise RuntimeError(result.text[:200])
        return seconds / float(workload["repeat"] * workload["per"])

    def _toolbox(self, workload: dict[str, Any]) -> Toolbox:
        key = workload["cwd"], workload["in_memory"] is not None
        toolbox = self._toolboxes.get(key)
        if toolbox is None or workload["fresh"]:
            env = toolbox.env if toolbox else _environment(workload)
            toolbox = self._toolboxes[key] = Toolbox(env, all_tools())
        return toolbox


def _environment(workload: dict[str, Any]) -> Environment:
    if workload["in_memory"] is None:
        return local_environment(workload["cwd"])
    paths = islice((path for path in Path(workload["in_memory"]).rglob("*") if path.is_file()), _FILES_IN_MEMORY)
    return memory_environment({str(path): path.read_bytes() for path in paths}, cwd=workload["cwd"])


async def _cancelled(toolbox: Toolbox, call: Call, after: float) -> float:
    ended = 0.0

    async def run() -> None:
        nonlocal ended
        await toolbox.call(call.tool, call.arguments, call_id="cancelled")
        ended = time.perf_counter()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.sleep(after)
        begun = time.perf_counter()
        toolbox.cancel("cancelled")
    return ended - begun


if __name__ == "__main__":
    anyio.run(serve_async, Handrail().run)
