"""Texts for people: what is safe to send to a terminal, tool shapes, the lines of a running call. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

__all__ = ["Json", "duration", "first_sentence", "live_lines", "outline", "printable", "shape"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"

# Control characters but tab and newline; a carriage return only as part of CRLF. Lone surrogates cannot be
# encoded; marks that reorder text would show something else than what is there.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    "|\r(?!\n)"
)


def printable(text: str) -> str:
    r"""Return a text that cannot drive a terminal: unsafe characters are shown as ``\xHH`` or ``\uHHHH``."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8 (PEP 383)
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a description."""
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]


def duration(seconds: float) -> str:
    """Return an elapsed time for people: ``3.2 s``, ``2 min 05 s``, ``1 h 02 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def shape(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema in short: ``{path: string, offset?: integer}``."""
    match schema.get("type"):
        case "object" if "properties" in schema:
            required: Sequence[str] = schema.get("required", ())
            fields = (
                f"{name}{'' if name in required else '?'}: {shape(of)}" for name, of in schema["properties"].items()
            )
            return "{" + ", ".join(fields) + "}"
        case "object":
            return f"{{string: {shape(schema.get('additionalProperties', {}))}}}"
        case "array":
            return f"[{shape(schema.get('items', {}))}, …]"
        case "string" if "const" in schema or "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
        case str() as name:
            return name
        case _:
            return " | ".join(map(shape, schema["anyOf"])) if "anyOf" in schema else "any"


def outline(value: Json) -> str:
    """Return the structure of a JSON value; short values are shown, long strings only named.

    ``{content: [{type: "text", text: string}], isError: false}``
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {outline(of)}" for name, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dict.fromkeys(map(outline, value))) + "]"
    if isinstance(value, str) and not re.fullmatch(r"[\w/.-]{1,24}", value):
        return "string"
    return json.dumps(value)


def live_lines(text: str, status: str, *, columns: int, rows: int) -> list[str]:
    """Return what a terminal shows of a running call: the last lines of its output and a status line.

    Args:
        text: The output so far.
        status: The last line.
        columns: Width of the terminal; longer lines are cut.
        rows: Most lines to return.
    """
    output = printable(text).rstrip("\n").replace("\r\n", "\n").split("\n") if text.strip() else []
    shown = output[-(rows - 1) :] if rows > 1 else []
    return [line[:columns] for line in (*shown, status)]
