"""Cancellation in asyncio's own way (``Task.cancel``, ``asyncio.timeout``) ends a call like a cancelled scope."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from attrs import frozen

from handrail.adapters.memory.environment import memory_environment
from handrail.core.events import CallEnded
from handrail.core.results import ToolResult, text_result
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.toolbox import Call, Toolbox

pytestmark = pytest.mark.anyio


@frozen
class NoArguments:
    pass


def slow_to_stop(started: asyncio.Event, steps: list[str]) -> Tool[NoArguments]:
    """A tool that needs some turns of the event loop to stop."""

    @define_tool("hold", parameters=NoArguments, description="Waits.")
    async def hold(_: NoArguments, context: ToolContext) -> ToolResult:
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                for _step in range(5):
                    await anyio.lowlevel.checkpoint()
                steps.append("stopped")
        return text_result("never")

    return hold


async def test_cancelling_the_task_ends_the_call_and_propagates() -> None:
    started, steps = asyncio.Event(), list[str]()
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [slow_to_stop(started, steps)])
    stream = toolbox.events()
    task = asyncio.create_task(toolbox.call("hold", {}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["stopped"]
    await toolbox.aclose()
    ends = [event for event in [event async for event in stream] if isinstance(event, CallEnded)]
    assert [end.result.error_code for end in ends] == ["aborted"]


async def test_cancelling_again_and_again_does_not_cut_the_clean_up_short() -> None:
    started, steps = asyncio.Event(), list[str]()
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [slow_to_stop(started, steps)])
    task = asyncio.create_task(toolbox.call("hold", {}))
    await started.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert steps == ["stopped"]


async def test_a_task_that_is_cancelled_before_its_first_step_calls_nothing() -> None:
    started, steps = asyncio.Event(), list[str]()
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [slow_to_stop(started, steps)])
    task = asyncio.create_task(toolbox.call("hold", {}))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not started.is_set()
    await toolbox.aclose()


async def test_a_timeout_of_asyncio_is_a_timeout_for_its_caller() -> None:
    started, steps = asyncio.Event(), list[str]()
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [slow_to_stop(started, steps)])

    async def expire(limit: asyncio.Timeout) -> None:
        await started.wait()
        limit.reschedule(asyncio.get_running_loop().time())

    async def call() -> None:
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            group.create_task(expire(limit))
            await toolbox.call("hold", {})

    with pytest.raises(TimeoutError):
        await call()
    assert steps == ["stopped"]


async def test_cancelling_the_task_of_a_batch_ends_every_call() -> None:
    started, steps = asyncio.Event(), list[str]()
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [slow_to_stop(started, steps)])
    stream = toolbox.events()
    task = asyncio.create_task(toolbox.run([Call("hold", {})] * 5))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await toolbox.aclose()
    ends = [event for event in [event async for event in stream] if isinstance(event, CallEnded)]
    assert [end.result.error_code for end in ends] == ["aborted"] * 5
