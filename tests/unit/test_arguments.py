"""Raw arguments become typed ones: lenient where the intent is plain, strict where it is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest
from attrs import frozen

from handrail.core.arguments import json_schema, parameter, structure
from handrail.core.errors import ToolError
from handrail.core.tool import Tool
from handrail.core.toolsets import all_tools
from json_schemas import accepts, check_schema


@frozen
class Entry:
    old_text: str = parameter("Old.")
    new_text: str = parameter("New.")


@frozen
class Everything:
    name: str = parameter("A name.")
    whole: int = parameter("A whole number.", default=1, minimum=1, maximum=9)
    number: float | None = parameter("A number.", default=None)
    flag: bool = parameter("A flag.", default=False)
    kind: Literal["a", "b"] = parameter("A choice.", default="a")
    entries: Sequence[Entry] = parameter("A list.", default=())
    labels: Mapping[str, str] | None = parameter("A mapping.", default=None)


def everything(**raw: Any) -> Everything:
    return structure("sample", {"name": "n", **raw}, Everything)


def refusal(raw: Any, into: type[Any] = Everything) -> str:
    """The text of the refusal."""
    with pytest.raises(ToolError) as caught:
        structure("sample", raw, into)
    assert caught.value.code == "invalid_arguments"
    return caught.value.message


# ------------------------------------------------------------------ lenient


@pytest.mark.parametrize(
    "raw, value", [("text", "text"), ("", ""), (5, "5"), (-2.0, "-2"), (2.5, "2.5"), (10**20, "100000000000000000000")]
)
def test_a_string_may_come_as_a_number(raw: Any, value: str) -> None:
    assert everything(name=raw).name == value


@pytest.mark.parametrize("raw, value", [(3, 3), ("10", 10), (" 7 ", 7), (3.0, 3), ("3.0", 3), ("1e3", 1000), (-4, -4)])
def test_a_whole_number_may_come_as_text(raw: Any, value: int) -> None:
    got = everything(whole=raw).whole
    assert got == value
    assert type(got) is int


@pytest.mark.parametrize("raw, value", [(0.5, 0.5), ("0.5", 0.5), (".5", 0.5), ("-2", -2.0), (3, 3.0)])
def test_a_number_may_come_as_text(raw: Any, value: float) -> None:
    assert everything(number=raw).number == value


@pytest.mark.parametrize("raw, value", [(True, True), ("true", True), ("False", False), (1, True), (0, False)])
def test_a_flag_may_come_as_text_or_as_one_and_zero(raw: Any, value: bool) -> None:
    assert everything(flag=raw).flag is value


def test_null_for_an_optional_is_its_default() -> None:
    optional = dict.fromkeys(("whole", "number", "flag", "kind", "entries", "labels"))
    assert everything(**optional) == Everything("n")


def test_unknown_keys_are_left_out_at_every_depth() -> None:
    got = everything(extra=1, entries=[{"oldText": "a", "newText": "b", "note": 1}])
    assert got.entries == (Entry("a", "b"),)


def test_a_list_becomes_an_immutable_sequence() -> None:
    assert everything(entries=[{"oldText": "a", "newText": "b"}] * 2).entries == (Entry("a", "b"),) * 2


# ------------------------------------------------------------------ strict


@pytest.mark.parametrize(
    "raw, kind",
    [
        (None, "null"),
        (True, "the boolean true"),
        (False, "the boolean false"),
        (["a"], "a list"),
        ({"a": 1}, "an object"),
        (math.nan, "the number nan"),
        (math.inf, "the number inf"),
    ],
)
def test_what_is_no_string_is_refused_by_name_and_kind(raw: Any, kind: str) -> None:
    assert f"- name must be a string, not {kind}" in refusal({"name": raw})


@pytest.mark.parametrize("raw", [2.5, "2.5", "ten", "", "0x10", "1_000", True, [3], {}, math.nan, math.inf, "inf"])
def test_what_is_no_whole_number_is_refused(raw: Any) -> None:
    assert "- whole must be a whole number, not " in refusal({"name": "n", "whole": raw})


@pytest.mark.parametrize("raw", ["many", "", "5s", False, [1], math.inf, "1e999", pytest.param(10**400, id="huge")])
def test_what_is_no_finite_number_is_refused(raw: Any) -> None:
    assert "- number must be a" in refusal({"name": "n", "number": raw})


@pytest.mark.parametrize("raw", [2, "", "yes", [], 0.5])
def test_what_is_no_flag_is_refused(raw: Any) -> None:
    assert "- flag must be true or false, not " in refusal({"name": "n", "flag": raw})


@pytest.mark.parametrize("raw", ["ab", {"oldText": "a"}, 3, True])
def test_what_is_no_list_is_refused(raw: Any) -> None:
    assert "- entries must be a list, not " in refusal({"name": "n", "entries": raw})


def test_a_choice_outside_the_listed_ones_is_refused() -> None:
    assert "kind" in refusal({"name": "n", "kind": "c"})


@pytest.mark.parametrize("text, position", [("\ud800", 0), ("ab\udc00c", 2), ("\U0001f600\udfff", 1)])
def test_half_a_surrogate_pair_is_refused_with_its_position(text: str, position: int) -> None:
    message = refusal({"name": text})
    assert f"name has half of a surrogate pair (U+{ord(text[position]):04X}) at position {position}" in message


@pytest.mark.parametrize("raw", ["text", None, 3, ["name"], True])
def test_arguments_that_are_no_object_are_refused(raw: Any) -> None:
    assert refusal(raw).startswith("Arguments of sample must be an object")


def test_a_missing_field_is_named_with_what_is_expected() -> None:
    message = refusal({})
    assert message.startswith("Invalid arguments for sample:\n- name is required")
    assert message.endswith("Expected: {name, whole?, number?, flag?, kind?, entries?, labels?}")


def test_every_problem_is_listed_with_its_place() -> None:
    message = refusal({"name": None, "whole": "x", "entries": [{"oldText": "a", "newText": "b"}, {"newText": None}]})
    assert len(message.splitlines()) == 6
    for problem in (
        "- name must be a string, not null",
        "- whole must be a whole number, not the string 'x'",
        "- entries[1].oldText is required",
        "- entries[1].newText must be a string, not null",
    ):
        assert problem in message.splitlines()


def test_a_long_value_is_described_and_not_repeated() -> None:
    message = refusal({"name": "n", "whole": "x" * 10_000})
    assert "a string of 10000 characters" in message
    assert len(message) < 300


def test_a_value_that_holds_the_separator_of_places_is_told_whole() -> None:
    assert "the string 'a @ $.b'" in refusal({"name": "n", "whole": "a @ $.b"})


# ------------------------------------------------------------------ schemas


def test_the_schema_says_everything_a_field_says() -> None:
    assert json_schema(Everything) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "A name."},
            "whole": {"type": "integer", "description": "A whole number.", "minimum": 1, "maximum": 9},
            "number": {"type": "number", "description": "A number."},
            "flag": {"type": "boolean", "description": "A flag."},
            "kind": {"type": "string", "enum": ["a", "b"], "description": "A choice."},
            "entries": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "oldText": {"type": "string", "description": "Old."},
                        "newText": {"type": "string", "description": "New."},
                    },
                    "required": ["oldText", "newText"],
                },
                "description": "A list.",
            },
            "labels": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "A mapping.",
            },
        },
        "required": ["name"],
    }


SAMPLES: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt", "offset": 2, "limit": 3},
    "write": {"path": "a.txt", "content": ""},
    "edit": {"path": "a.txt", "edits": [{"oldText": "a", "newText": ""}]},
    "bash": {"command": "true", "timeout": 0.5},
    "powershell": {"command": "exit", "timeout": 1},
    "grep": {"pattern": "a", "path": ".", "glob": "*", "ignoreCase": True, "literal": False, "context": 1, "limit": 5},
    "find": {"pattern": "*", "path": ".", "limit": 10},
    "ls": {"path": ".", "limit": 10},
}


@pytest.mark.parametrize("tool", all_tools().values(), ids=lambda tool: tool.name)
def test_the_schema_of_a_built_in_tool_takes_its_arguments_and_no_others(tool: Tool[Any]) -> None:
    schema = json_schema(tool.parameters)
    check_schema(schema)
    sample = SAMPLES[tool.name]
    assert accepts(schema, sample)
    structure(tool.name, sample, tool.parameters)
    assert set(schema["properties"]) == set(sample)
    for name in schema["required"]:
        assert not accepts(schema, {key: value for key, value in sample.items() if key != name})
    for name in sample:
        assert not accepts(schema, {**sample, name: {"an": "object"}})
    assert all(part["description"] for part in schema["properties"].values())
