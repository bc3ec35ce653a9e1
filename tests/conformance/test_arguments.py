"""Raw arguments of the built-in tools: the reference's judgement, and ours where the contract is stricter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import attrs
import pytest

from conformance.reference import MISSING, Vector, vectors
from handrail.core.arguments import structure
from handrail.core.errors import ToolError
from handrail.core.results import camel_case, to_wire
from handrail.core.toolsets import all_tools

pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

REFUSED: Final = {
    "arguments-5c146e9936": "a boolean is not a number",
    "arguments-9f914d0a99": "a boolean is not a number",
    "arguments-8397585aca": "a boolean is not a string",
    "arguments-94bd51d807": "null is not a string",
    "arguments-c4fabe8967": "null is not a string",
    "arguments-bb2290ee0a": "a hexadecimal text is not a number",
    "arguments-dbde55d7ad": "an empty text is not a number",
}
"""What the reference takes and we refuse, because the intent is not plain."""


def _id(vector: Vector) -> str:
    identifier: str = vector["id"]
    return identifier


@pytest.mark.parametrize("vector", vectors("arguments"), ids=_id)
def test_arguments_are_judged_by_the_contract(vector: Vector) -> None:
    tool = all_tools()[vector["args"]["tool"]]
    raw = vector["args"]["args"]

    def structured() -> Any:
        prepared = tool.prepare(cast(Any, raw)) if tool.prepare is not None and isinstance(raw, Mapping) else raw
        return structure(tool.name, prepared, tool.parameters)

    if vector["expect"]["ok"] and vector["id"] not in REFUSED:
        assert _given(to_wire(structured())) == _known(vector["expect"]["value"], tool.parameters)
        return
    with pytest.raises(ToolError) as caught:
        structured()
    assert caught.value.code == "invalid_arguments"


def _given(wire: dict[str, Any]) -> dict[str, Any]:
    """Without the defaults that a tool's parameters have beside ``None``."""
    return {key: value for key, value in wire.items() if value is not False}


def _known(value: dict[str, Any], parameters: type[Any]) -> dict[str, Any]:
    """What a vector says, without keys that are no parameters (the reference lets them pass) and defaults."""
    names = {camel_case(attribute.name) for attribute in attrs.fields(parameters)}
    known = {key: item for key, item in value.items() if key in names and item is not False}
    if "edits" in known:
        known["edits"] = [{"oldText": edit["oldText"], "newText": edit["newText"]} for edit in known["edits"]]
    return known
