"""The driver through which the bug-report cases call our tools, and a child that runs cases without rights."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from anyio.abc import TaskStatus
from attrs import define

from conformance.reference import SHARED, load_module
from conformance.unprivileged import drop_rights
from handrail.adapters.confined import environment as confined
from handrail.adapters.local.environment import local_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import all_tools
from handrail.ports.environment import Environment

__all__ = ["Driver", "factory"]


@define
class Driver:
    """What the runner of the cases calls."""

    env: Environment
    toolbox: Toolbox
    calls: int = 0

    async def call(self, tool: str, args: Any, cancel_after_s: float | None = None) -> dict[str, Any]:
        """Run one tool; after this many seconds, cancel it."""
        self.calls += 1
        name = f"case-call-{self.calls}"
        if cancel_after_s is None:
            return _answer(await self.toolbox.call(tool, args, call_id=name))
        results: list[ToolResult] = []
        async with anyio.create_task_group() as group:
            await group.start(self._cancel_later, name, cancel_after_s)
            results.append(await self.toolbox.call(tool, args, call_id=name))
            group.cancel_scope.cancel()
        return _answer(results[0])

    async def aclose(self) -> None:
        """End what still runs."""
        await self.toolbox.aclose()
        await self.env.aclose()

    async def _cancel_later(self, name: str, seconds: float, *, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await anyio.sleep(seconds)
        self.toolbox.cancel(name)


def factory(cwd: str, *, confine: bool = False) -> Driver:
    """Return a driver on a real directory, whose file tools stay inside it if asked."""
    env = local_environment(cwd)
    if confine:
        env = confined.confine(env, [cwd])
    return Driver(env, Toolbox(env, all_tools()))


def _answer(result: ToolResult) -> dict[str, Any]:
    wire = result.to_dict()
    return {
        "is_error": result.is_error,
        "text": result.text,
        "content": wire["content"],
        "details": wire.get("details"),
    }


async def _run_cases(identifiers: list[str]) -> dict[str, Any]:
    runner = load_module(SHARED / "cases" / "run_cases.py")
    lines = (SHARED / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    drop_rights()
    cases = {case["id"]: case for case in map(json.loads, filter(None, lines))}
    return {identifier: await runner.run_case(factory, cases[identifier]) for identifier in identifiers}


if __name__ == "__main__":
    print(json.dumps(anyio.run(_run_cases, sys.argv[1:])))
