"""Every vector of the reference, through a Toolbox on the real disk and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from conformance.calls import answer_to, differences
from conformance.deliberate import DELIBERATE
from conformance.reference import MISSING, Vector, vectors
from conformance.unprivileged import run_unprivileged
from conformance.worlds import LocalWorld, MemoryWorld

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

_FILE_TOOLS = ("read", "write", "edit", "find", "grep", "ls")


def _expectations(*groups: str) -> list[Vector]:
    """The vectors that are expectations: those that the contract does not deliberately leave."""
    return [vector for vector in vectors(*groups) if "differs" not in vector and vector["id"] not in DELIBERATE]


def _id(vector: Vector) -> str:
    identifier: str = vector["id"]
    return identifier


@pytest.mark.parametrize("vector", _expectations(*_FILE_TOOLS, "bash"), ids=_id)
async def test_on_disk(vector: Vector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in vector.get("options", {}).get("env", {}).items():
        monkeypatch.setenv(name, value)
    world = LocalWorld.build(vector, tmp_path)
    async with world.env:
        answer = await answer_to(vector, world)
    assert differences(vector, answer) == [], f"{vector['note']}: {answer['errorText']}"


@pytest.mark.parametrize("vector", _expectations(*_FILE_TOOLS), ids=_id)
async def test_in_memory(vector: Vector) -> None:
    world = MemoryWorld.build(vector)
    async with world.env:
        answer = await answer_to(vector, world)
    assert differences(vector, answer) == [], f"{vector['note']}: {answer.get('errorText')}"


_RIGHTS = _expectations("permissions")


@pytest.fixture(scope="module")
def unprivileged_answers() -> dict[str, Any]:
    """Our answers on disk to the vectors of a user without rights, all from one child process."""
    answers: dict[str, Any] = anyio.run(run_unprivileged, "conformance.permission_vectors")
    return answers


@pytest.mark.parametrize("vector", _RIGHTS, ids=_id)
def test_without_rights_on_disk(vector: Vector, unprivileged_answers: dict[str, Any]) -> None:
    assert differences(vector, unprivileged_answers[vector["id"]]) == []


@pytest.mark.parametrize("vector", [v for v in _RIGHTS if v["tool"] in _FILE_TOOLS], ids=_id)
async def test_without_rights_in_memory(vector: Vector) -> None:
    world = MemoryWorld.build(vector)
    async with world.env:
        answer = await answer_to(vector, world)
    assert differences(vector, answer) == [], f"{vector['note']}: {answer.get('errorText')}"
