"""Cases made of public bug reports about tools like ours, run through their own runner."""

from __future__ import annotations

import json
from functools import cache
from types import ModuleType
from typing import Any, Final

import anyio
import pytest

from conformance.case_driver import factory
from conformance.reference import SHARED, load_module
from conformance.unprivileged import can_drop_rights, run_unprivileged

_FILE: Final = SHARED / "cases" / "cases.jsonl"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not _FILE.is_file(), reason="there is no ../shared/cases beside the repository"),
]


@cache
def _runner() -> ModuleType:
    return load_module(SHARED / "cases" / "run_cases.py")


def _cases() -> list[dict[str, Any]]:
    if not _FILE.is_file():
        return []
    return [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines() if line.strip()]


def _needs_no_root(case: dict[str, Any]) -> bool:
    return "nonroot" in case.get("needs", []) and can_drop_rights()


def _id(case: dict[str, Any]) -> str:
    return f"{case['id']}-{case['tool']}"


@pytest.mark.parametrize("case", [case for case in _cases() if not _needs_no_root(case)], ids=_id)
async def test_case(case: dict[str, Any]) -> None:
    try:
        problems = await _runner().run_case(factory, case)
    except _runner().Skip as reason:
        pytest.skip(str(reason))
    assert problems == [], case["why"]


@pytest.fixture(scope="module")
def unprivileged_problems() -> dict[str, list[str]]:
    """The problems of the cases that root cannot run, by id, from one child without rights."""
    identifiers = [case["id"] for case in _cases() if _needs_no_root(case)]
    problems: dict[str, list[str]] = anyio.run(run_unprivileged, "conformance.case_driver", *identifiers)
    return problems


@pytest.mark.parametrize("case", [case for case in _cases() if _needs_no_root(case)], ids=_id)
def test_case_without_rights(case: dict[str, Any], unprivileged_problems: dict[str, list[str]]) -> None:
    assert unprivileged_problems[case["id"]] == [], case["why"]
