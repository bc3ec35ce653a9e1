"""Running the vectors of the tools: a request through a Toolbox, and the answer in the form of the vectors."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

import anyio
from PIL import Image

from conformance.reference import Vector, vectorlib
from conformance.worlds import World
from handrail.core.events import CallEnded
from handrail.core.results import ImageContent, ToolResult
from handrail.core.tool import Tool
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import BashOptions
from handrail.core.tools.read import ReadOptions
from handrail.core.toolsets import all_tools

__all__ = ["EXTRA_DETAILS", "answer_to", "differences"]

EXTRA_DETAILS: Final = {
    "read": {"encoding"},
    "write": {"created", "bytes", "patch"},
    "edit": {"match", "tolerated", "exactPatch"},
    "bash": {"background"},
    "grep": {"unreadable", "ignored", "timeLimitReached"},
    "find": {"unreadable", "ignored", "timeLimitReached"},
    "ls": set[str](),
}
"""What our details tell beyond the reference's; left out of the comparison."""

_PROSE: Final = {"write": {"content"}, "edit": {"content", "structuredContent"}}
"""What the vectors leave out because it is the reference's own prose."""


async def answer_to(vector: Vector, world: World) -> dict[str, Any]:
    """Run a vector and return our answer to it."""
    if vector["tool"] in ("parallel", "sequence"):
        return await _answer_to_several(vector, world)
    toolbox = Toolbox(world.env, tools_for(vector))
    arguments = _put_in(vectorlib().expand(vector["args"]), world.tokens)
    options = vector.get("options", {})
    if "abortAfterMs" in options:
        result = await _aborted(toolbox, vector["tool"], arguments, options["abortAfterMs"] / 1000)
    else:
        result = await toolbox.call(vector["tool"], arguments)
    answer = {**_wire(vector["tool"], result, world), **_after(vector, world)}
    if "imageSize" in vector["expect"]:
        answer["imageSize"] = _image_size(result)
    return answer


def differences(vector: Vector, answer: Mapping[str, Any]) -> list[str]:
    """Where our answer is not the one of the vector."""
    found: list[str] = vectorlib().compare(vector, answer)
    return found


def tools_for(vector: Vector) -> dict[str, Tool[Any]]:
    """The tools, with the options of a vector."""
    options = vector.get("options", {})
    given, model = options.get("toolOptions", {}), options.get("context", {}).get("model", {})
    return all_tools(
        bash=BashOptions(command_prefix=given.get("commandPrefix")),
        read=ReadOptions(
            auto_resize_images=given.get("autoResizeImages", True),
            model_sees_images="image" in model.get("input", ["image"]),
        ),
    )


# ------------------------------------------------------------------ calls


async def _answer_to_several(vector: Vector, world: World) -> dict[str, Any]:
    calls = _put_in(vector["args"]["calls"], world.tokens)
    toolbox = Toolbox(world.env, all_tools())
    if vector["tool"] == "parallel":
        results = await toolbox.run([(call["tool"], call["args"]) for call in calls])
    else:
        results = [await toolbox.call(call["tool"], call["args"]) for call in calls]
    answers = [_wire(call["tool"], result, world) for call, result in zip(calls, results, strict=True)]
    return {"ok": True, "isError": False, "results": answers, **_after(vector, world)}


async def _aborted(toolbox: Toolbox, tool: str, arguments: Any, seconds: float) -> ToolResult:
    """Call a tool and cancel it: before it starts, or this long after its first output."""
    stream = toolbox.events()
    if not seconds:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await toolbox.call(tool, arguments)
    else:
        has_output = anyio.Event()

        async def cancel() -> None:
            await has_output.wait()
            await anyio.sleep(seconds)
            toolbox.cancel("it")

        def listen(result: ToolResult) -> None:
            if result.text:
                has_output.set()

        async with anyio.create_task_group() as group:
            group.start_soon(cancel)
            await toolbox.call(tool, arguments, call_id="it", on_update=listen)
    stream.close()
    return next(event.result for event in [event async for event in stream] if isinstance(event, CallEnded))


# ------------------------------------------------------------------ answers


def _put_in(value: Any, tokens: Mapping[str, str]) -> Any:
    """Replace tokens by paths."""
    match value:
        case str():
            for token, path in tokens.items():
                value = value.replace(token, path)
            return value
        case list():
            items: list[Any] = [*value]
            return [_put_in(item, tokens) for item in items]
        case dict():
            pairs: dict[str, Any] = {**value}
            return {key: _put_in(item, tokens) for key, item in pairs.items()}
        case _:
            return value


def _take_out(value: Any, tokens: Mapping[str, str]) -> Any:
    """Replace paths by tokens."""
    return _put_in(value, {path: token for token, path in tokens.items()})


def _wire(tool: str, result: ToolResult, world: World) -> dict[str, Any]:
    wire = result.to_dict()
    failed = result.is_error and result.error_code != "exit_code"
    details = {k: v for k, v in wire.get("details", {}).items() if k not in EXTRA_DETAILS[tool]}
    answer: dict[str, Any] = {
        "ok": not failed,
        "isError": result.is_error,
        "errorKind": result.error_code,
        "errorText": result.text if result.is_error else None,
        "content": wire["content"],
        "details": details or None,
        "structuredContent": wire.get("structuredContent"),
    }
    for part in _PROSE.get(tool, ()):
        del answer[part]
    tokens = world.tokens
    saved = details.get("fullOutputPath")
    if saved:
        answer["outputFiles"] = {"$TMP": world.saved(saved)}
        tokens = {"$TMP": saved, **tokens}
    if isinstance(answer.get("structuredContent"), dict) and "wall_time_seconds" in answer["structuredContent"]:
        answer["structuredContent"] = {**answer["structuredContent"], "wall_time_seconds": "$TIME"}
    taken: dict[str, Any] = _take_out(answer, tokens)
    return taken


def _image_size(result: ToolResult) -> dict[str, Any] | None:
    data = next((block.data for block in result.content if isinstance(block, ImageContent)), None)
    if data is None:
        return None
    with Image.open(BytesIO(base64.b64decode(data))) as image:
        return {"format": (image.format or "").lower(), "width": image.width, "height": image.height}


def _after(vector: Vector, world: World) -> dict[str, Any]:
    """The trees afterwards, where the vector describes them."""
    expected = vector["expect"]
    after: dict[str, Any] = {}
    if "after" in expected:
        after["after"] = world.after()
    if "afterHome" in expected:
        after["afterHome"] = world.after_home()
    return after
