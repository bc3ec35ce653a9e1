"""Tool results: content for the model, details for programs, and their form on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
from attrs import frozen

__all__ = ["Content", "ImageContent", "TextContent", "ToolResult", "camel_case", "text_result", "to_wire"]


@frozen
class TextContent:
    """A text block."""

    text: str


@frozen
class ImageContent:
    """An image block."""

    data: str
    """Base64 (RFC 4648, with padding)."""
    mime_type: str


Content = TextContent | ImageContent


@frozen
class ToolResult:
    """What a tool call gives back.

    Attributes:
        content: What the model reads, in order.
        details: Structured facts for programs: an attrs object, a mapping, or ``None``.
        structured_content: The value for programmatic callers, JSON-compatible.
        is_error: Whether the call failed, or its command did.
        error_code: Stable code of the failure (contract section 14).
    """

    content: Sequence[Content]
    details: Any = None
    structured_content: Any = None
    is_error: bool = False
    error_code: str | None = None

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def to_dict(self) -> dict[str, Any]:
        """Return the result in its wire form: camelCase keys, JSON values, absent where there is nothing."""
        wire: dict[str, Any] = {
            "content": [_block_to_wire(block) for block in self.content],
            "isError": self.is_error,
        }
        if self.details is not None:
            wire["details"] = to_wire(self.details)
        if self.structured_content is not None:
            wire["structuredContent"] = self.structured_content
        if self.error_code is not None:
            wire["errorCode"] = self.error_code
        return wire


def text_result(text: str, *, details: Any = None, structured_content: Any = None) -> ToolResult:
    """Return a successful result with one text block."""
    return ToolResult((TextContent(text),), details, structured_content)


def camel_case(name: str) -> str:
    """Return the wire name of a Python attribute: ``first_changed_line`` is ``firstChangedLine``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def to_wire(value: Any) -> Any:
    """Turn attrs objects, mappings and sequences into JSON values.

    Attribute names become camelCase; mapping keys stay. Attributes that are ``None`` are left out unless
    their metadata says ``{"keep_none": True}``.
    """
    if _is_attrs(value):
        wire: dict[str, Any] = {}
        for attribute in attrs.fields(value.__class__):
            item = getattr(value, attribute.name)
            if item is not None or attribute.metadata.get("keep_none"):
                wire[camel_case(attribute.name)] = to_wire(item)
        return wire
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_wire(item) for item in cast("list[Any]", value)]
    return value


def _is_attrs(value: Any) -> bool:
    return attrs.has(value.__class__)


def _block_to_wire(block: Content) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image", "data": block.data, "mimeType": block.mime_type}
