"""``handrail tools``: what there is to call."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from handrail.adapters.cli import terminal
from handrail.adapters.cli.rendering import first_sentence, shape
from handrail.core.arguments import json_schema
from handrail.core.tool import Tool
from handrail.core.toolbox import SchemaFormat, describe
from handrail.core.toolsets import all_tools

__all__ = ["describe_tool", "list_tools", "result_schema"]


_COLUMNS: Final = 100


def list_tools(*, as_json: bool, wire_format: SchemaFormat | None) -> int:
    """Print all tools and return the exit status.

    Args:
        as_json: Print everything that is known, as JSON.
        wire_format: Print what this provider or protocol wants, as JSON.
    """
    tools = list(all_tools().values())
    if wire_format is not None:
        terminal.say(json.dumps(describe(tools, wire_format), indent=2))
    elif as_json:
        terminal.say(json.dumps([describe_tool(tool) for tool in tools], indent=2))
    else:
        for tool in tools:
            terminal.say("\n".join(map(_fold, _lines(tool))) + "\n")
        terminal.say(_fold(f"Every result: {shape(result_schema())}"))
    return 0


def describe_tool(tool: Tool[Any]) -> dict[str, Any]:
    """Return everything that is known of a tool, JSON-compatible."""
    return {
        "name": tool.name,
        "label": tool.label,
        "description": tool.description,
        "parameters": json_schema(tool.parameters),
        "result": result_schema(tool),
    }


def result_schema(tool: Tool[Any] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of what a call answers, as ``ToolResult.to_dict`` writes it.

    Args:
        tool: Whose details to describe; without one they may be anything.
    """
    text = {"type": _constant("text"), "text": _STRING}
    image = {"type": _constant("image"), "data": _STRING, "mimeType": _STRING}
    properties: dict[str, Any] = {
        "content": {"type": "array", "items": {"anyOf": [_object(text), _object(image)]}},
        "isError": {"type": "boolean"},
        "errorCode": _STRING,
        "structuredContent": {},
        "details": json_schema(tool.details) if tool is not None and tool.details is not None else {},
    }
    return {"type": "object", "properties": properties, "required": ["content", "isError"]}


_STRING: Final[Mapping[str, Any]] = {"type": "string"}


def _constant(value: str) -> dict[str, Any]:
    return {"type": "string", "const": value}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _lines(tool: Tool[Any]) -> Iterator[str]:
    schema = json_schema(tool.parameters)
    yield tool.name if tool.label == tool.name else f"{tool.name} ({tool.label})"
    yield f"  {first_sentence(tool.description)}"
    yield f"  arguments: {shape(schema)}"
    for name, of in schema["properties"].items():
        yield f"    {name}: {of.get('description', '')}"
    if tool.details is not None:
        yield f"  details of the result: {shape(json_schema(tool.details))}"


def _fold(line: str) -> str:
    """Break a long line; what follows is indented below it."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.fill(line, _COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
