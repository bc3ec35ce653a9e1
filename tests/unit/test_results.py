"""Results and their form on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import field, frozen

from handrail.core.results import ImageContent, TextContent, ToolResult, camel_case, text_result, to_wire


@frozen
class Inner:
    line_count: int
    note: str | None = None
    truncated_by: str | None = field(default=None, metadata={"keep_none": True})


@frozen
class Outer:
    first_changed_line: int | None = None
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()


def test_a_plain_text_result() -> None:
    result = text_result("hello")
    assert result.text == "hello"
    assert result.to_dict() == {"content": [{"type": "text", "text": "hello"}], "isError": False}


def test_everything_there_is_goes_on_the_wire() -> None:
    result = ToolResult(
        (TextContent("a"), ImageContent("AAAA", "image/png"), TextContent("b")),
        details=Outer(3, Inner(1)),
        structured_content={"exit_code": 1},
        is_error=True,
        error_code="exit_code",
    )
    assert result.text == "a\nb"
    assert result.to_dict() == {
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "text", "text": "b"},
        ],
        "isError": True,
        "details": {"firstChangedLine": 3, "inner": {"lineCount": 1, "truncatedBy": None}, "many": []},
        "structuredContent": {"exit_code": 1},
        "errorCode": "exit_code",
    }


@pytest.mark.parametrize("value", ["", 0, False, [], {}])
def test_an_empty_structured_value_is_still_a_value(value: Any) -> None:
    assert text_result("x", structured_content=value).to_dict()["structuredContent"] == value


def test_absent_details_are_left_out_unless_the_field_says_otherwise() -> None:
    assert to_wire(Outer()) == {"many": []}
    assert to_wire(Inner(0)) == {"lineCount": 0, "truncatedBy": None}


def test_keys_of_a_mapping_are_the_tools_own() -> None:
    assert to_wire({"snake_key": Inner(1), 5: (1, 2)}) == {
        "snake_key": {"lineCount": 1, "truncatedBy": None},
        "5": [1, 2],
    }


def test_a_wire_form_is_json() -> None:
    details = Outer(1, Inner(2, "n"), (Inner(3),))
    wire = ToolResult((TextContent("x"),), details).to_dict()
    assert json.loads(json.dumps(wire)) == wire


@pytest.mark.parametrize(
    "name, wire", [("path", "path"), ("first_changed_line", "firstChangedLine"), ("old_text", "oldText")]
)
def test_wire_names_are_camel_case(name: str, wire: str) -> None:
    assert camel_case(name) == wire


def test_results_are_values() -> None:
    assert text_result("x", details={"a": 1}) == text_result("x", details={"a": 1})
    assert text_result("x") != text_result("y")
