"""handrail as a subject: the Toolbox on the local environment, in process and warm."""

from __future__ import annotations

import time
from typing import Any

import anyio

from benchmarks.measuring import lay_files, serve_async
from handrail import Call, Toolbox, all_tools, local_environment


class Handrail:
    """One toolbox for each working directory, kept between rounds."""

    def __init__(self) -> None:
        self._toolboxes: dict[str, Toolbox] = {}

    async def run(self, workload: dict[str, Any], number: int) -> float:
        """Run one round and return the seconds of a call."""
        lay_files(workload, number)
        toolbox = self._toolboxes.get(workload["cwd"])
        if toolbox is None:
            toolbox = self._toolboxes[workload["cwd"]] = Toolbox(local_environment(workload["cwd"]), all_tools())
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
