"""Toolbox: tools bound to an environment; calls them, watches them, ends them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

import anyio
import anyio.lowlevel
from attrs import define, field, frozen

from handrail.core.arguments import json_schema, structure
from handrail.core.errors import ToolError, tool_error
from handrail.core.events import CallEnded, CallStarted, CallUpdated, Event, EventStream
from handrail.core.file_queue import FileQueue
from handrail.core.results import TextContent, ToolResult
from handrail.core.tool import Tool, ToolContext
from handrail.core.truncation import truncate_middle
from handrail.ports.context import CallContext, current_call
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["ABORTED", "After", "Before", "Call", "SchemaFormat", "Toolbox", "UpdateListener", "describe"]

ABORTED: Final = "Operation aborted"

_MAX_ERROR_BYTES: Final = 16 * 1024

SchemaFormat = Literal["jsonschema", "anthropic", "openai", "mcp"]
UpdateListener = Callable[[ToolResult], None]


@frozen
class Call:
    """A request: one tool, its raw arguments, and the caller's name for it."""

    tool: str
    arguments: Any
    call_id: str | None = None


Before = Callable[[Call], str | Awaitable[str | None] | None]
"""Looks at a call before it runs; a text refuses it and is the reason the model reads."""

After = Callable[[Call, ToolResult], ToolResult | Awaitable[ToolResult | None] | None]
"""Looks at a result before it is given out; may return another one."""


@define(eq=False)
class _Running:
    """A call in progress and what it came to."""

    scope: anyio.CancelScope = field(init=False)
    context: ToolContext | None = None
    started: float | None = None
    result: ToolResult | None = None
    interrupted: bool = False
    """Whether the caller's own task or scope was cancelled."""
    ended: anyio.Event = field(factory=anyio.Event)

    def cancel(self) -> None:
        self.scope.cancel()

    def answer(self) -> ToolResult:
        """The result; of a cancelled call, what its tool left to say."""
        left = self.context.aborted_result if self.context else None
        cancelled = self.interrupted or self.scope.cancel_called
        if self.result is None or (cancelled and left is not None):
            return left or _failure("aborted", ABORTED)
        return self.result

    def duration_ms(self, now: float) -> float | None:
        return None if self.started is None else round((now - self.started) * 1000, 3)


class Toolbox:
    """Tools bound to one environment. An async context manager: leaving it closes it.

    ``call`` answers every request with a ToolResult and raises nothing but cancellation: what goes wrong
    in a tool is an error result. Calls may run at the same time; changes of one file take turns.

    Args:
        env: The environment the tools work in. It stays the caller's: closing the toolbox does not close it.
        tools: A sequence of tools, or a mapping as ``all_tools`` returns it.
        before: Hooks that may refuse a call (``denied``), asked in order.
        after: Hooks that may replace a result, applied in order.
    """

    def __init__(
        self,
        env: Environment,
        tools: Iterable[Tool[Any]] | Mapping[str, Tool[Any]],
        *,
        before: Sequence[Before] = (),
        after: Sequence[After] = (),
    ) -> None:
        listed = cast("Iterable[Tool[Any]]", tools.values() if isinstance(tools, Mapping) else tools)
        self._tools = {tool.name: tool for tool in listed}
        self.env = env
        self.file_queue = FileQueue(env.files)
        self._before = tuple(before)
        self._after = tuple(after)
        self._shared: dict[type[Any], Any] = {}
        self._running: dict[str, _Running] = {}
        self._streams: list[EventStream] = []
        self._numbers = count(1)
        self._closed = False

    @property
    def tools(self) -> Mapping[str, Tool[Any]]:
        """The tools by name."""
        return dict(self._tools)

    async def call(
        self,
        name: str,
        arguments: Any,
        *,
        call_id: str | None = None,
        on_update: UpdateListener | None = None,
    ) -> ToolResult:
        """Run one tool and return its result.

        Args:
            name: The tool's name.
            arguments: Raw arguments as they came from the model.
            call_id: The caller's name for this call, for events and ``cancel``; unique among running calls.
            on_update: Called with each intermediate result.
        """
        return await self._call(Call(name, arguments, call_id or self._new_id()), on_update)

    async def run(self, calls: Iterable[Call | tuple[str, Any]]) -> list[ToolResult]:
        """Run a batch in parallel and return the results in call order."""
        batch = [call if isinstance(call, Call) else Call(*call) for call in calls]
        results: dict[int, ToolResult] = {}

        async def one(index: int, call: Call) -> None:
            results[index] = await self._call(call, None)

        named = [Call(call.tool, call.arguments, call.call_id or self._new_id()) for call in batch]
        async with anyio.create_task_group() as group:
            for index, call in enumerate(named):
                group.start_soon(one, index, call)
        return [results[index] for index in range(len(named))]

    def cancel(self, call_id: str) -> bool:
        """End a running call with an ``aborted`` result; returns whether there was one of this name."""
        running = self._running.get(call_id)
        if running is not None:
            running.cancel()
        return running is not None

    def events(self) -> EventStream:
        """Return a stream of all events from now on."""
        stream = EventStream()
        if self._closed:
            stream.close()
        else:
            self._streams.append(stream)
        return stream

    def describe(self, format: SchemaFormat = "jsonschema") -> list[dict[str, Any]]:  # noqa: A002
        """Return what a model provider needs to offer the tools, in one of four formats."""
        return describe(self._tools.values(), format)

    async def aclose(self) -> None:
        """Abort what runs, wait for it to end, and refuse further calls. Closing twice is harmless."""
        self._closed = True
        left = list(self._running.values())
        for running in left:
            running.cancel()
        with anyio.CancelScope(shield=True):
            for running in left:
                await running.ended.wait()
        for stream in self._streams:
            stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    # -------------------------------------------------------------- one call

    async def _call(self, call: Call, on_update: UpdateListener | None) -> ToolResult:
        call_id = call.call_id or self._new_id()
        if self._closed:
            return _failure("closed", "The toolbox is closed; nothing was done. Make a new one.")
        if call_id in self._running:
            return _failure("invalid_arguments", f"A call named {call_id} is running; give each call its own id.")
        self._emit(CallStarted(call_id, call.tool, call.arguments))
        # The tool runs in a task of its own: even when the caller's task is cancelled in the plain asyncio
        # way, what the tool shields (killing a process tree, a write under way) runs to its end.
        running = self._running[call_id] = _Running()
        seen = CallContext(call_id, call.tool, running.cancel)
        outer = current_call.set(seen)
        try:
            async with anyio.create_task_group() as group:
                running.scope = group.cancel_scope
                group.start_soon(self._execute, call, seen, running, on_update)
        except BaseException:
            running.interrupted = True
            raise
        finally:
            duration_ms = running.duration_ms(self.env.clock.monotonic())
            result = await self._observed_end(seen, call.arguments, running.answer())
            current_call.reset(outer)
            del self._running[call_id]
            self._emit(CallEnded(call_id, call.tool, result, duration_ms))
            running.ended.set()
        return result

    async def _execute(
        self, call: Call, seen: CallContext, running: _Running, on_update: UpdateListener | None
    ) -> None:
        await anyio.lowlevel.checkpoint_if_cancelled()

        def update(result: ToolResult) -> None:
            self._emit(CallUpdated(seen.call_id, call.tool, result))
            if on_update is not None:
                on_update(result)

        try:
            for observer in self.env.observers:
                await observer.call_started(seen, call.arguments)
            tool = self._find(call.tool)
            arguments = structure(tool.name, _prepared(tool, call.arguments), tool.parameters)
            await self._ask(call)
            running.context = ToolContext(self.env, seen.call_id, self.file_queue, update, shared=self._shared)
            running.started = self.env.clock.monotonic()
            result = _checked(call.tool, await tool.execute(arguments, running.context))
        except Exception as error:
            result = _error_result(call.tool, error)
        try:
            for hook in self._after:
                result = await _awaited(hook(call, result)) or result
        except Exception as error:
            result = _error_result(call.tool, error)
        running.result = result

    async def _observed_end(self, seen: CallContext, arguments: Any, result: ToolResult) -> ToolResult:
        """Tell the observers of a result; one of them may have to withhold it."""
        for observer in self.env.observers:
            with anyio.CancelScope(shield=True):
                try:
                    await observer.call_ended(seen, arguments, result.to_dict())
                except Exception as error:
                    result = _error_result(seen.tool, error)
        return result

    def _find(self, name: str) -> Tool[Any]:
        try:
            return self._tools[name]
        except KeyError:
            known = ", ".join(self._tools)
            raise ToolError("unknown_tool", f"Tool {name} not found. Available tools: {known}") from None

    async def _ask(self, call: Call) -> None:
        for hook in self._before:
            reason = await _awaited(hook(call))
            if reason:
                raise ToolError("denied", reason)

    def _emit(self, event: Event) -> None:
        self._streams = [stream for stream in self._streams if not stream.closed]
        for stream in self._streams:
            stream.push(event)

    def _new_id(self) -> str:
        while (name := f"call-{next(self._numbers)}") in self._running:
            continue
        return name


def _prepared(tool: Tool[Any], raw: Any) -> Any:
    return tool.prepare(cast("dict[str, Any]", raw)) if tool.prepare and isinstance(raw, Mapping) else raw


def _checked(tool: str, result: Any) -> ToolResult:
    """Refuse what a custom tool must not return."""
    if isinstance(result, ToolResult):
        return result
    raise TypeError(
        f"the tool {tool} returned {type(result).__name__}; it must return a ToolResult, e.g. text_result()"
    )


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _failure(code: str, message: str, details: Any = None) -> ToolResult:
    text = truncate_middle(message, max_bytes=_MAX_ERROR_BYTES)
    return ToolResult((TextContent(text),), details, is_error=True, error_code=code)


def _unwrapped(error: Exception) -> Exception:
    """What a tool's own task group wrapped, where it is a single error."""
    inner: Sequence[Exception] = getattr(error, "exceptions", ())
    return _unwrapped(inner[0]) if len(inner) == 1 else error


def _error_result(tool: str, error: Exception) -> ToolResult:
    error = _unwrapped(error)
    if isinstance(error, PortError):
        error = tool_error(error)
    if isinstance(error, ToolError):
        return _failure(error.code, error.message, error.details)
    report = f"Internal error in {tool}: {type(error).__name__}: {error}. This is a defect; please report it."
    return _failure("internal", report)


# ------------------------------------------------------------------ schemas


def describe(tools: Iterable[Tool[Any]], format: SchemaFormat = "jsonschema") -> list[dict[str, Any]]:  # noqa: A002
    """Return what a model provider needs to offer these tools, in one of four formats."""
    shape = _SHAPES[format]
    return [shape(tool, json_schema(tool.parameters)) for tool in tools]


def _json_schema_shape(tool: Tool[Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool.name, "title": tool.label, "description": tool.description, "parameters": schema}


def _anthropic_shape(tool: Tool[Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _openai_shape(tool: Tool[Any], schema: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def _mcp_shape(tool: Tool[Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": tool.name, "title": tool.label, "description": tool.description, "inputSchema": schema}


_SHAPES: Final[dict[SchemaFormat, Callable[[Tool[Any], dict[str, Any]], dict[str, Any]]]] = {
    "jsonschema": _json_schema_shape,
    "anthropic": _anthropic_shape,
    "openai": _openai_shape,
    "mcp": _mcp_shape,
}
