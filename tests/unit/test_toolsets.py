"""The named sets: exactly eight tools."""

from __future__ import annotations

import pytest

from handrail.core.toolsets import all_tools, coding_tools, read_only_tools

EIGHT = ["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"]


def test_there_are_exactly_eight_tools() -> None:
    assert list(all_tools()) == EIGHT
    assert [tool.name for tool in all_tools().values()] == EIGHT


def test_the_sets_are_parts_of_it() -> None:
    assert [tool.name for tool in coding_tools()] == ["read", "bash", "edit", "write"]
    assert [tool.name for tool in read_only_tools()] == ["read", "grep", "find", "ls"]


@pytest.mark.parametrize("tool", all_tools().values(), ids=lambda tool: tool.name)
def test_every_tool_tells_people_and_models_what_it_is(tool: object) -> None:
    assert getattr(tool, "label", "")
    assert len(getattr(tool, "description", "")) > 20


def test_each_call_makes_new_tools() -> None:
    assert all_tools()["read"] is not all_tools()["read"]
