"""Prints our answers to the vectors of a user without rights, as JSON by vector id; run by ``run_unprivileged``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import anyio

from conformance.calls import answer_to
from conformance.reference import vectors
from conformance.unprivileged import drop_rights
from conformance.worlds import LocalWorld


async def main() -> None:
    answers: dict[str, Any] = {}
    drop_rights()
    for vector in [vector for vector in vectors("permissions") if vector.get("user") == "unprivileged"]:
        with tempfile.TemporaryDirectory(prefix="conformance-") as place:
            world = LocalWorld.build(vector, Path(place))
            async with world.env:
                answers[vector["id"]] = await answer_to(vector, world)
            _open_directories(Path(place))
    print(json.dumps(answers))


def _open_directories(top: Path) -> None:
    """Give ourselves back the right to remove what is in closed directories."""
    for path in top.rglob("*"):
        if not path.is_symlink() and path.is_dir():
            path.chmod(0o700)


if __name__ == "__main__":
    vectors("permissions")
    anyio.run(main)
