"""The toolbox: calls, batches, events, hooks, cancellation, closing, descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import define, field, frozen

from handrail.adapters.memory.environment import memory_environment
from handrail.core.arguments import parameter
from handrail.core.errors import ToolError
from handrail.core.events import CallEnded, CallStarted, CallUpdated, Event
from handrail.core.results import ToolResult, text_result
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.toolbox import ABORTED, Call, Toolbox
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from json_schemas import accepts, check_schema

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


@frozen
class EchoArguments:
    text: str = parameter("What to say back.")
    times: int = parameter("How often.", default=1, minimum=1)


@define_tool("echo", parameters=EchoArguments, description="Says it back.", label="Echo")
async def echo(arguments: EchoArguments, context: ToolContext) -> ToolResult:
    return text_result(" ".join([arguments.text] * arguments.times))


@frozen
class NoArguments:
    pass


@define
class Gate:
    """A tool that waits until it is let go, and remembers how it ended."""

    started: anyio.Event = field(factory=anyio.Event)
    released: anyio.Event = field(factory=anyio.Event)
    cancelled: bool = False
    left: ToolResult | None = None
    """What the tool leaves to say in case it is cancelled."""

    def tool(self, name: str = "hold") -> Tool[NoArguments]:
        @define_tool(name, parameters=NoArguments, description="Waits.")
        async def hold(_: NoArguments, context: ToolContext) -> ToolResult:
            context.aborted_result = self.left
            self.started.set()
            try:
                await self.released.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled = True
                raise
            return text_result("held")

        return hold


def raising(error: Callable[[], Exception]) -> Tool[NoArguments]:
    """A tool that fails."""

    @define_tool("fail", parameters=NoArguments, description="Fails.")
    async def fail(_: NoArguments, context: ToolContext) -> ToolResult:
        raise error()

    return fail


@pytest.fixture
def env() -> Environment:
    return memory_environment(files={"/project/a.txt": "one\n"}, cwd="/project")


async def all_events(toolbox: Toolbox, work: Callable[[], Any]) -> list[Event]:
    """The events of some work, after which the toolbox is closed."""
    stream = toolbox.events()
    await work()
    await toolbox.aclose()
    return [event async for event in stream]


# ------------------------------------------------------------------ one call


async def test_a_call_gives_the_result_of_its_tool(env: Environment) -> None:
    result = await Toolbox(env, [echo]).call("echo", {"text": "hi", "times": 2})
    assert result == text_result("hi hi")


async def test_a_tool_gets_typed_arguments(env: Environment) -> None:
    result = await Toolbox(env, [echo]).call("echo", {"text": 7, "times": "2", "other": None})
    assert result.text == "7 7"


async def test_prepare_reshapes_arguments_before_they_are_validated(env: Environment) -> None:
    def prepare(raw: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"text": raw["message"]}

    tool = define_tool("echo", parameters=EchoArguments, description="", prepare=prepare)(echo.execute)
    assert (await Toolbox(env, [tool]).call("echo", {"message": "hi"})).text == "hi"
    refused = await Toolbox(env, [tool]).call("echo", "not an object")
    assert refused.error_code == "invalid_arguments"


async def test_a_toolbox_may_be_made_of_a_mapping(env: Environment) -> None:
    toolbox = Toolbox(env, {"echo": echo})
    assert dict(toolbox.tools) == {"echo": echo}


async def test_tools_of_one_name_are_refused(env: Environment) -> None:
    with pytest.raises(ValueError, match="several tools have the same name: echo"):
        Toolbox(env, [echo, echo])


async def test_an_unknown_format_is_refused(env: Environment) -> None:
    formats = "jsonschema, anthropic, openai, mcp"
    with pytest.raises(ValueError, match=f"no format 'xml'; the formats are {formats}"):
        Toolbox(env, [echo]).describe("xml")  # type: ignore[arg-type]


async def test_an_unknown_tool_is_an_error_that_lists_the_tools(env: Environment) -> None:
    result = await Toolbox(env, [echo, Gate().tool()]).call("list", {})
    assert (result.is_error, result.error_code) == (True, "unknown_tool")
    assert result.text.startswith("Tool list not found")
    assert "echo, hold" in result.text


async def test_bad_arguments_name_the_field_what_came_and_what_is_wanted(env: Environment) -> None:
    result = await Toolbox(env, [echo]).call("echo", {"text": None, "times": "many"})
    assert result.error_code == "invalid_arguments"
    assert "text must be a string, not null" in result.text
    assert "times must be a whole number, not the string 'many'" in result.text


# ------------------------------------------------------------------ failures


async def test_a_tool_error_becomes_a_result_with_its_code_and_details(env: Environment) -> None:
    tool = raising(lambda: ToolError("stale", "Read it again.", {"line": 3}))
    result = await Toolbox(env, [tool]).call("fail", {})
    assert result.to_dict() == {
        "content": [{"type": "text", "text": "Read it again."}],
        "isError": True,
        "details": {"line": 3},
        "errorCode": "stale",
    }


async def test_a_port_error_is_translated(env: Environment) -> None:
    result = await Toolbox(env, [raising(lambda: PortError("no_space", "/project/a"))]).call("fail", {})
    assert (result.is_error, result.error_code) == (True, "no_space")
    assert "/project/a" in result.text


async def test_any_other_exception_is_reported_as_a_defect(env: Environment) -> None:
    result = await Toolbox(env, [raising(lambda: ZeroDivisionError("ouch"))]).call("fail", {})
    assert (result.is_error, result.error_code) == (True, "internal")
    assert "fail" in result.text
    assert "ZeroDivisionError: ouch" in result.text
    assert "report" in result.text


async def test_the_one_error_of_an_exception_group_counts(env: Environment) -> None:
    def nested() -> Exception:
        return ExceptionGroup("outer", [ExceptionGroup("inner", [ToolError("overlap", "They overlap.")])])

    result = await Toolbox(env, [raising(nested)]).call("fail", {})
    assert (result.error_code, result.text) == ("overlap", "They overlap.")


async def test_several_errors_at_once_are_a_defect(env: Environment) -> None:
    def both() -> Exception:
        return ExceptionGroup("two", [ToolError("overlap", "a"), ToolError("overlap", "b")])

    assert (await Toolbox(env, [raising(both)]).call("fail", {})).error_code == "internal"


async def test_an_error_in_a_prepare_step_is_a_result_too(env: Environment) -> None:
    def prepare(raw: Mapping[str, Any]) -> Mapping[str, Any]:
        raise KeyError("gone")

    tool = define_tool("echo", parameters=EchoArguments, description="", prepare=prepare)(echo.execute)
    assert (await Toolbox(env, [tool]).call("echo", {})).error_code == "internal"


# ------------------------------------------------------------------ batches


async def test_a_batch_runs_in_parallel_and_answers_in_call_order(env: Environment) -> None:
    first, second = Gate(), Gate()

    @define_tool("relay", parameters=NoArguments, description="Lets the second go, then waits for its own turn.")
    async def relay(_: NoArguments, context: ToolContext) -> ToolResult:
        second.released.set()
        await first.released.wait()
        return text_result("relayed")

    @define_tool("last", parameters=NoArguments, description="Waits for its turn and lets the first go.")
    async def last(_: NoArguments, context: ToolContext) -> ToolResult:
        await second.released.wait()
        first.released.set()
        return text_result("last")

    results = await Toolbox(env, [relay, last, echo]).run(
        [("relay", {}), Call("last", {}, "the-last"), ("echo", {"text": "x"}), ("nothing", {})]
    )
    assert [result.text for result in results[:3]] == ["relayed", "last", "x"]
    assert results[3].error_code == "unknown_tool"


async def test_an_empty_batch_has_no_results(env: Environment) -> None:
    assert await Toolbox(env, [echo]).run([]) == []


# ------------------------------------------------------------------ events


@define_tool("steps", parameters=NoArguments, description="Takes a second and a half and shows two steps.")
async def steps(_: NoArguments, context: ToolContext) -> ToolResult:
    context.update(text_result(""))
    await context.env.clock.sleep(1.5)
    context.update(text_result("half"))
    return text_result("whole")


async def test_the_events_of_a_call_are_start_updates_end(env: Environment) -> None:
    toolbox = Toolbox(env, [steps])
    events = await all_events(toolbox, lambda: toolbox.call("steps", {}, call_id="c"))
    assert events == [
        CallStarted("c", "steps", {}),
        CallUpdated("c", "steps", text_result("")),
        CallUpdated("c", "steps", text_result("half")),
        CallEnded("c", "steps", text_result("whole"), 1500.0),
    ]
    assert [event.to_dict()["type"] for event in events] == ["start", "update", "update", "end"]
    assert events[-1].to_dict() == {
        "type": "end",
        "id": "c",
        "tool": "steps",
        "result": text_result("whole").to_dict(),
        "durationMs": 1500.0,
    }


async def test_updates_reach_the_caller_too(env: Environment) -> None:
    seen: list[str] = []
    await Toolbox(env, [steps]).call("steps", {}, on_update=lambda result: seen.append(result.text))
    assert seen == ["", "half"]


@pytest.mark.parametrize("name, arguments", [("gone", {}), ("echo", {}), ("echo", {"text": "denied"})])
async def test_a_call_that_was_never_executed_has_no_duration(
    env: Environment, name: str, arguments: dict[str, Any]
) -> None:
    toolbox = Toolbox(env, [echo], before=[lambda call: "not this one"])
    events = await all_events(toolbox, lambda: toolbox.call(name, arguments))
    end = events[-1]
    assert isinstance(end, CallEnded)
    assert end.result.is_error
    assert "durationMs" not in end.to_dict()


async def test_a_call_that_fails_while_it_runs_has_a_duration(env: Environment) -> None:
    toolbox = Toolbox(env, [raising(ZeroDivisionError)])
    events = await all_events(toolbox, lambda: toolbox.call("fail", {}))
    assert "durationMs" in events[-1].to_dict()


async def test_a_batch_has_one_start_and_one_end_for_each_call(env: Environment) -> None:
    toolbox = Toolbox(env, [echo])
    events = await all_events(toolbox, lambda: toolbox.run([("echo", {"text": str(n)}) for n in range(20)]))
    started = [event.call_id for event in events if isinstance(event, CallStarted)]
    ended = [event.call_id for event in events if isinstance(event, CallEnded)]
    assert len(set(started)) == 20
    assert sorted(started) == sorted(ended)


# ------------------------------------------------------------------ names of calls


async def test_a_name_in_use_is_refused_and_its_owner_goes_on(env: Environment) -> None:
    gate = Gate()
    toolbox = Toolbox(env, [gate.tool()])
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await toolbox.call("hold", {}, call_id="same"))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await gate.started.wait()
        await call()
        gate.released.set()
    refused, held = results
    assert (refused.is_error, refused.error_code) == (True, "invalid_arguments")
    assert "same" in refused.text
    assert held.text == "held"


async def test_a_name_is_free_again_after_its_call(env: Environment) -> None:
    toolbox = Toolbox(env, [echo])
    for _ in range(2):
        assert not (await toolbox.call("echo", {"text": "x"}, call_id="again")).is_error


async def test_made_up_names_keep_clear_of_the_callers_names(env: Environment) -> None:
    gate = Gate()
    toolbox = Toolbox(env, [gate.tool(), echo])
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: toolbox.call("hold", {}, call_id="call-1"))
        await gate.started.wait()
        assert (await toolbox.call("echo", {"text": "x"})).text == "x"
        assert [r.text for r in await toolbox.run([("echo", {"text": "y"})])] == ["y"]
        gate.released.set()


# ------------------------------------------------------------------ hooks


async def test_a_hook_before_a_call_may_refuse_it(env: Environment) -> None:
    asked: list[str] = []

    def allow(call: Call) -> None:
        asked.append(f"allow {call.tool}")

    async def refuse(call: Call) -> str:
        await anyio.lowlevel.checkpoint()
        return f"{call.tool} is not for you"

    def never(call: Call) -> None:
        asked.append("never")

    gate = Gate()
    result = await Toolbox(env, [gate.tool()], before=[allow, refuse, never]).call("hold", {})
    assert (result.is_error, result.error_code, result.text) == (True, "denied", "hold is not for you")
    assert asked == ["allow hold"]
    assert not gate.started.is_set()


async def test_hooks_after_a_call_replace_its_result_in_order(env: Environment) -> None:
    def louder(call: Call, result: ToolResult) -> ToolResult:
        return text_result(result.text.upper())

    async def twice(call: Call, result: ToolResult) -> ToolResult:
        return text_result(result.text * 2)

    def watch(call: Call, result: ToolResult) -> None:
        seen.append(result.text)

    seen: list[str] = []
    toolbox = Toolbox(env, [echo], after=[louder, twice, watch])
    assert (await toolbox.call("echo", {"text": "a"})).text == "AA"
    failed = await toolbox.call("gone", {})
    assert failed.text.startswith("TOOL GONE NOT FOUND")
    assert seen == ["AA", failed.text]


async def test_the_replaced_result_is_the_one_of_the_end_event(env: Environment) -> None:
    toolbox = Toolbox(env, [echo], after=[lambda call, result: text_result("other")])
    events = await all_events(toolbox, lambda: toolbox.call("echo", {"text": "a"}))
    assert isinstance(events[-1], CallEnded)
    assert events[-1].result.text == "other"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_hook_that_fails_is_a_result_and_not_an_exception(env: Environment, when: str) -> None:
    def broken(*_: Any) -> None:
        raise LookupError("hook")

    toolbox = Toolbox(
        env, [echo], before=[broken] if when == "before" else [], after=[broken] if when == "after" else []
    )
    result = await toolbox.call("echo", {"text": "a"})
    assert (result.is_error, result.error_code) == (True, "internal")
    assert "LookupError" in result.text


# ------------------------------------------------------------------ cancellation


async def test_cancel_ends_one_call_with_an_aborted_result(env: Environment) -> None:
    gate, other = Gate(), Gate()
    toolbox = Toolbox(env, [gate.tool(), other.tool("other")])
    results: dict[str, ToolResult] = {}

    async def call(name: str) -> None:
        results[name] = await toolbox.call(name, {}, call_id=name)

    async with anyio.create_task_group() as group:
        group.start_soon(call, "hold")
        group.start_soon(call, "other")
        await gate.started.wait()
        await other.started.wait()
        assert toolbox.cancel("hold")
        other.released.set()
    assert gate.cancelled
    assert (results["hold"].is_error, results["hold"].error_code) == (True, "aborted")
    assert results["hold"].text == ABORTED == "Operation aborted"
    assert results["other"].text == "held"


async def test_cancel_says_whether_there_was_such_a_call(env: Environment) -> None:
    toolbox = Toolbox(env, [echo])
    await toolbox.call("echo", {"text": "x"}, call_id="over")
    assert not toolbox.cancel("over")
    assert not toolbox.cancel("never")


async def test_a_cancelled_tool_may_leave_what_it_has_to_say(env: Environment) -> None:
    gate = Gate(left=ToolResult((), {"done": 3}, is_error=True, error_code="aborted"))
    toolbox = Toolbox(env, [gate.tool()])

    async def cancel() -> None:
        await gate.started.wait()
        toolbox.cancel("c")

    results: list[ToolResult] = []
    async with anyio.create_task_group() as group:
        group.start_soon(cancel)
        results.append(await toolbox.call("hold", {}, call_id="c"))
    assert results == [gate.left]


async def test_a_call_in_a_cancelled_scope_never_executes(env: Environment) -> None:
    gate = Gate()
    toolbox = Toolbox(env, [gate.tool()])
    stream = toolbox.events()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await toolbox.call("hold", {})
    await toolbox.aclose()
    events = [event async for event in stream]
    assert scope.cancelled_caught
    assert not gate.started.is_set()
    assert [event.to_dict()["type"] for event in events] == ["start", "end"]
    assert events[-1].to_dict()["result"]["content"] == [{"type": "text", "text": ABORTED}]
    assert "durationMs" not in events[-1].to_dict()


async def test_cancelling_the_scope_ends_the_call_and_propagates(env: Environment) -> None:
    gate = Gate()
    toolbox = Toolbox(env, [gate.tool()])
    stream = toolbox.events()
    returned = False
    async with anyio.create_task_group() as group:

        async def call() -> None:
            nonlocal returned
            await toolbox.call("hold", {}, call_id="c")
            returned = True

        group.start_soon(call)
        await gate.started.wait()
        group.cancel_scope.cancel()
    await toolbox.aclose()
    events = [event async for event in stream]
    assert gate.cancelled
    assert not returned
    end = events[-1]
    assert isinstance(end, CallEnded)
    assert end.result.error_code == "aborted"
    assert end.duration_ms is not None


async def test_every_call_of_a_batch_that_is_cancelled_ends(env: Environment) -> None:
    gate = Gate()
    toolbox = Toolbox(env, [gate.tool()])
    stream = toolbox.events()
    async with anyio.create_task_group() as group:
        group.start_soon(toolbox.run, [Call("hold", {})] * 10)
        await gate.started.wait()
        group.cancel_scope.cancel()
    await toolbox.aclose()
    ends = [event async for event in stream if isinstance(event, CallEnded)]
    assert [end.result.error_code for end in ends] == ["aborted"] * 10


# ------------------------------------------------------------------ closing


async def test_closing_aborts_what_runs_and_waits_for_it(env: Environment) -> None:
    cleaned: list[str] = []
    started = anyio.Event()

    @define_tool("tidy", parameters=NoArguments, description="Cleans up when it is cancelled.")
    async def tidy(_: NoArguments, context: ToolContext) -> ToolResult:
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                for _step in range(3):
                    await anyio.lowlevel.checkpoint()
                cleaned.append("done")
        raise AssertionError("not reached")

    toolbox = Toolbox(env, [tidy])
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await toolbox.call("tidy", {}))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await started.wait()
        await toolbox.aclose()
        assert cleaned == ["done"]
    assert [(result.is_error, result.error_code, result.text) for result in results] == [(True, "aborted", ABORTED)]


async def test_a_closed_toolbox_refuses_calls(env: Environment) -> None:
    async with Toolbox(env, [echo]) as toolbox:
        pass
    result = await toolbox.call("echo", {"text": "x"})
    assert (result.is_error, result.error_code) == (True, "closed")
    assert [r.error_code for r in await toolbox.run([("echo", {"text": "x"})])] == ["closed"]


async def test_closing_twice_even_at_once_is_harmless(env: Environment) -> None:
    gates = [Gate() for _ in range(3)]
    toolbox = Toolbox(env, [gate.tool(f"hold{n}") for n, gate in enumerate(gates)])
    async with anyio.create_task_group() as group:
        group.start_soon(toolbox.run, [Call(f"hold{n}", {}) for n in range(3)])
        for gate in gates:
            await gate.started.wait()
        group.start_soon(toolbox.aclose)
        group.start_soon(toolbox.aclose)
    await toolbox.aclose()
    assert all(gate.cancelled for gate in gates)


async def test_closing_the_toolbox_leaves_the_environment_open(env: Environment) -> None:
    await Toolbox(env, [echo]).aclose()
    assert (await env.files.read("/project/a.txt")).data == b"one\n"


# ------------------------------------------------------------------ custom tools as peers


async def test_a_custom_tool_gets_the_environment_and_the_queue_of_the_toolbox(env: Environment) -> None:
    contexts: list[ToolContext] = []

    @define_tool("look", parameters=NoArguments, description="Keeps its context.")
    async def look(_: NoArguments, context: ToolContext) -> ToolResult:
        contexts.append(context)
        return text_result("")

    toolbox = Toolbox(env, [look])
    await toolbox.call("look", {}, call_id="mine")
    assert contexts[0].env is env
    assert contexts[0].file_queue is toolbox.file_queue
    assert contexts[0].call_id == "mine"


async def test_custom_tools_take_turns_on_one_file(env: Environment) -> None:
    arrived: list[str] = []

    @define_tool("append", parameters=EchoArguments, description="Adds a line to a.txt.")
    async def append(arguments: EchoArguments, context: ToolContext) -> ToolResult:
        arrived.append(arguments.text)
        async with context.file_queue.turn("/project/a.txt") as path:
            old = (await context.env.files.read(path)).data
            await anyio.lowlevel.checkpoint()
            await context.env.files.write(path, old + arguments.text.encode() + b"\n")
        return text_result("")

    await Toolbox(env, [append]).run([("append", {"text": str(n)}) for n in range(50)])
    content = (await env.files.read("/project/a.txt")).data.decode()
    assert sorted(arrived, key=int) == [str(n) for n in range(50)]
    assert content.split() == ["one", *arrived]


async def test_calls_of_one_toolbox_share_objects_by_class(env: Environment) -> None:
    class Cache:
        pass

    found: list[Cache] = []

    @define_tool("cache", parameters=NoArguments, description="Looks at the shared cache.")
    async def cache(_: NoArguments, context: ToolContext) -> ToolResult:
        found.append(context.shared(Cache))
        return text_result("")

    toolbox = Toolbox(env, [cache])
    await toolbox.call("cache", {})
    await toolbox.call("cache", {})
    await Toolbox(env, [cache]).call("cache", {})
    assert found[0] is found[1]
    assert found[0] is not found[2]


async def test_a_tool_may_be_renamed(env: Environment) -> None:
    toolbox = Toolbox(env, [echo.renamed("say")])
    assert (await toolbox.call("say", {"text": "x"})).text == "x"
    assert (await toolbox.call("echo", {"text": "x"})).error_code == "unknown_tool"


# ------------------------------------------------------------------ descriptions


async def test_descriptions_come_in_the_form_of_each_consumer(env: Environment) -> None:
    toolbox = Toolbox(env, [echo])
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say back."},
            "times": {"type": "integer", "description": "How often.", "minimum": 1},
        },
        "required": ["text"],
    }
    about = {"name": "echo", "description": "Says it back."}
    assert toolbox.describe() == toolbox.describe("jsonschema")
    assert toolbox.describe("jsonschema") == [{**about, "title": "Echo", "parameters": schema}]
    assert toolbox.describe("anthropic") == [{**about, "input_schema": schema}]
    assert toolbox.describe("openai") == [{"type": "function", "function": {**about, "parameters": schema}}]
    assert toolbox.describe("mcp") == [{**about, "title": "Echo", "inputSchema": schema}]


async def test_the_schema_is_a_valid_json_schema(env: Environment) -> None:
    schema = Toolbox(env, [echo]).describe()[0]["parameters"]
    check_schema(schema)
    assert accepts(schema, {"text": "x", "times": 3})
    assert not accepts(schema, {"times": 3})
    assert not accepts(schema, {"text": "x", "times": "3"})


def test_a_toolbox_may_be_made_before_any_event_loop_runs() -> None:
    toolbox = Toolbox(memory_environment(files={}, cwd="/"), [echo])

    async def main() -> str:
        stream = toolbox.events()
        async with toolbox:
            text = (await toolbox.call("echo", {"text": "x"})).text
        assert len([event async for event in stream]) == 2
        return text

    assert anyio.run(main) == "x"


async def test_a_reader_that_closes_its_stream_gets_nothing_more(env: Environment) -> None:
    toolbox = Toolbox(env, [echo])
    stream, other = toolbox.events(), toolbox.events()
    await toolbox.call("echo", {"text": "1"})
    stream.close()
    await toolbox.call("echo", {"text": "2"})
    await toolbox.aclose()
    assert len([event async for event in stream]) == 2
    assert len([event async for event in other]) == 4
