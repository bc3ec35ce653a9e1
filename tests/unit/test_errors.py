"""What a port refuses becomes what a model reads."""

from __future__ import annotations

from typing import get_args

import pytest

from handrail.core.errors import ToolError, tool_error
from handrail.ports.errors import PortError, PortErrorCode

CODES: tuple[PortErrorCode, ...] = get_args(PortErrorCode)

# Contract section 14, the codes that an environment can cause.
STABLE = {
    "closed",
    "conflict",
    "exists",
    "internal",
    "is_a_directory",
    "link_loop",
    "missing_file",
    "name_too_long",
    "no_space",
    "not_a_directory",
    "not_a_regular_file",
    "nul_in_argument",
    "outside_workspace",
    "permission",
    "read_only",
    "resource_limit",
    "spawn_failed",
}


@pytest.mark.parametrize("code", CODES)
def test_every_port_code_has_a_stable_code_and_a_text(code: PortErrorCode) -> None:
    error = tool_error(PortError(code, "/project/a.txt", "what the adapter says"))
    assert error.code in STABLE
    assert error.message
    assert str(error) == error.message
    assert "{" not in error.message


def test_every_code_that_an_environment_can_cause_is_used() -> None:
    assert {tool_error(PortError(code, "/x", "y")).code for code in CODES} == STABLE


@pytest.mark.parametrize("code", sorted(set(CODES) - {"io_error", "spawn_failed", "not_supported"}))
def test_no_text_of_an_adapter_reaches_a_model(code: PortErrorCode) -> None:
    assert "adapter" not in tool_error(PortError(code, "/project/a.txt", "adapter text")).message


@pytest.mark.parametrize("code", ["io_error", "spawn_failed", "not_supported"])
def test_what_only_the_adapter_knows_is_told(code: PortErrorCode) -> None:
    assert "bad sector" in tool_error(PortError(code, "/project/a.txt", "bad sector")).message


def test_the_path_is_shown_as_the_model_wrote_it() -> None:
    error = PortError("permission_denied", "/project/src/a.txt")
    assert "/project/src/a.txt" in tool_error(error).message
    assert tool_error(error, "src/a.txt").message.startswith("Permission denied: src/a.txt")


def test_a_path_with_braces_is_shown_as_it_is() -> None:
    assert "{cookie}/{{x}}" in tool_error(PortError("not_found", "{cookie}/{{x}}")).message


def test_a_tool_error_carries_its_facts() -> None:
    error = ToolError("overlap", "They overlap.", {"edits": [0, 1]})
    assert (error.code, error.message, error.details) == ("overlap", "They overlap.", {"edits": [0, 1]})
    assert str(error) == "They overlap."


def test_a_port_error_says_code_path_and_detail() -> None:
    assert str(PortError("not_found", "/a", "gone")) == "not_found: /a: gone"
    assert str(PortError("closed")) == "closed"
