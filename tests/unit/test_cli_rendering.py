"""Texts for people: safe for a terminal, short, and true."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.cli.rendering import Json, duration, first_sentence, live_lines, outline, printable, shape
from handrail.core.arguments import json_schema
from handrail.core.tools.edit import EditArguments


@given(st.text())
def test_printable_text_cannot_drive_a_terminal_and_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)", shown)
    shown.encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]) | st.sampled_from("\t\n")))
def test_harmless_text_is_not_changed(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "text, shown",
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\nb\rc", "a\r\nb\\x0dc"),
        ("\x9b1m\x7f\x00", "\\x9b1m\\x7f\\x00"),
        ("user\u202eexe.txt", "user\\u202eexe.txt"),
        ("caf\udce9 \ud800", "caf\\xe9 \\ud800"),
    ],
    ids=ascii,
)
def test_unsafe_characters_are_shown_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_schema_is_shown_in_short() -> None:
    assert shape(json_schema(EditArguments)) == "{path: string, edits: [{oldText: string, newText: string}, …]}"


@pytest.mark.parametrize(
    "schema, shown",
    [
        ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "string", "const": "text"}, '"text"'),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{string: integer}"),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, "{a?: boolean}"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string | number"),
        ({}, "any"),
    ],
    ids=str,
)
def test_each_form_of_schema_has_a_short_one(schema: dict[str, object], shown: str) -> None:
    assert shape(schema) == shown


@pytest.mark.parametrize(
    "value, shown",
    [
        ({"isError": False, "content": []}, "{isError: false, content: []}"),
        ({"type": "text", "text": "two words"}, '{type: "text", text: string}'),
        ([{"n": 1}, {"n": 1}, None], "[{n: 1}, null]"),
    ],
    ids=json.dumps,
)
def test_a_result_is_shown_by_its_structure(value: Json, shown: str) -> None:
    assert outline(value) == shown


@pytest.mark.parametrize(
    "seconds, shown",
    [(0.04, "0.0 s"), (3.21, "3.2 s"), (60, "1 min 00 s"), (125.9, "2 min 05 s"), (3720, "1 h 02 min")],
)
def test_durations_are_for_people(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    "text, shown",
    [("One. Two.", "One."), ("First line\nsecond", "First line"), ("At e.g.this. End", "At e.g.this."), ("", "")],
)
def test_the_first_sentence_stands_for_a_description(text: str, shown: str) -> None:
    assert first_sentence(text) == shown


@given(st.text(), st.integers(1, 80), st.integers(1, 30))
def test_live_lines_fit_the_terminal_and_end_in_the_status(text: str, columns: int, rows: int) -> None:
    lines = live_lines(text, "running", columns=columns, rows=rows)
    assert 1 <= len(lines) <= rows
    assert all(len(line) <= columns and "\n" not in line and "\r" not in line for line in lines)
    assert lines[-1] == "running"[:columns]


def test_live_lines_are_the_last_ones() -> None:
    assert live_lines("1\n2\r\n3\n", "status", columns=9, rows=3) == ["2", "3", "status"]
    assert live_lines("", "status", columns=9, rows=3) == ["status"]
    assert live_lines("1\n2\n", "status", columns=9, rows=1) == ["status"]
