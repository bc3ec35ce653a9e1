"""The reference's pure functions against our equivalents."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from conformance.calls import differences
from conformance.deliberate import DELIBERATE
from conformance.reference import MISSING, Vector, vectorlib, vectors
from conformance.worlds import LocalWorld, MemoryWorld, World
from handrail.core.errors import ToolError
from handrail.core.images import detect_image_type
from handrail.core.output import OutputAccumulator
from handrail.core.paths import expand, resolve_existing
from handrail.core.replacement import LfText
from handrail.core.results import to_wire
from handrail.core.tolerance import normalize
from handrail.core.truncation import (
    MAX_BYTES,
    MAX_LINE_CHARACTERS,
    MAX_LINES,
    format_size,
    truncate_head,
    truncate_line,
    truncate_tail,
)

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]


def _limits(args: Mapping[str, Any]) -> dict[str, int]:
    options: dict[str, Any] = args.get("options") or {}
    return {"max_lines": options.get("maxLines", MAX_LINES), "max_bytes": options.get("maxBytes", MAX_BYTES)}


def _truncated_line(args: Mapping[str, Any]) -> dict[str, Any]:
    text, was_cut = truncate_line(args["line"], args.get("maxChars", MAX_LINE_CHARACTERS))
    return {"text": text, "wasTruncated": was_cut}


def _expanded(args: Mapping[str, Any]) -> str:
    path = expand(args["path"], cwd=args.get("cwd", "/the-root/work"), home="/the-home")
    return path.replace("/the-root/work", "$CWD").replace("/the-root", "$ROOT").replace("/the-home", "$HOME")


EQUIVALENTS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "truncateHead": lambda args: to_wire(truncate_head(args["content"], **_limits(args))),
    "truncateTail": lambda args: to_wire(truncate_tail(args["content"], **_limits(args))),
    "truncateLine": _truncated_line,
    "formatSize": lambda args: format_size(args["bytes"]),
    "resolveToCwd": _expanded,
    "normalizeForFuzzyMatch": lambda args: normalize(args["text"]),
    "normalizeToLF": lambda args: LfText(args["text"]).text,
    "detectImageMimeType": lambda args: detect_image_type(base64.b64decode(args["b64"])),
}


def _id(vector: Vector) -> str:
    identifier: str = vector["id"]
    return identifier


def _of(*tools: str, groups: tuple[str, ...]) -> list[Vector]:
    return [vector for vector in vectors(*groups) if vector["tool"] in tools and vector["id"] not in DELIBERATE]


@pytest.mark.parametrize(
    "vector",
    [v for v in _of(*EQUIVALENTS, groups=("truncation", "paths", "normalize", "mime")) if "differs" not in v],
    ids=_id,
)
def test_pure(vector: Vector) -> None:
    arguments = vectorlib().expand(vector["args"])
    answer: dict[str, Any]
    try:
        answer = {"ok": True, "isError": False, "value": EQUIVALENTS[vector["tool"]](arguments)}
    except ToolError as error:
        answer = {"ok": False, "isError": True, "errorKind": error.code}
    assert differences(vector, answer) == []


# The reference resolves existing files in two functions, for synchronous and for asynchronous callers; ours is one.
EXISTING: Final = _of("resolveReadPathAsync", "resolveReadPath", groups=("paths",))


async def _resolved(vector: Vector, world: World) -> dict[str, Any]:
    path = vector["args"]["path"].replace("$CWD", world.tokens["$CWD"])
    found = await resolve_existing(path, world.env)
    for token, place in world.tokens.items():
        found = found.replace(place, token)
    return {"ok": True, "isError": False, "value": found}


@pytest.mark.parametrize("vector", EXISTING, ids=_id)
async def test_existing_files_on_disk(vector: Vector, tmp_path: Path) -> None:
    world = LocalWorld.build(vector, tmp_path)
    async with world.env:
        assert differences(vector, await _resolved(vector, world)) == []


@pytest.mark.parametrize("vector", EXISTING, ids=_id)
async def test_existing_files_in_memory(vector: Vector) -> None:
    world = MemoryWorld.build(vector)
    async with world.env:
        assert differences(vector, await _resolved(vector, world)) == []


@pytest.mark.parametrize("vector", _of("accumulate", groups=("accumulator",)), ids=_id)
def test_accumulated_output(vector: Vector) -> None:
    limits = _limits(vector["args"])
    output = OutputAccumulator(max_lines=limits["max_lines"], max_bytes=limits["max_bytes"])
    data = b"".join(_chunks(vector["args"]["chunks"]))
    for chunk in _chunks(vector["args"]["chunks"]):
        output.feed(chunk)
    output.finish()
    snapshot = output.snapshot()
    value = {"content": snapshot.truncation.content, "truncation": to_wire(snapshot.truncation)}
    expected = {key: vector["expect"]["value"][key] for key in value}
    wanted = {**vector, "expect": {"ok": True, "isError": False, "value": expected}}
    assert differences(wanted, {"ok": True, "isError": False, "value": value}) == []
    # The reference counts the empty piece after a final newline as the last line; ours is the line that it ended.
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    assert snapshot.last_line_bytes == len(text.removesuffix("\n").rpartition("\n")[2].encode())


def _chunks(described: list[Any]) -> list[bytes]:
    """The chunks of a vector: base64, or base64 and how often it comes."""
    chunks: list[bytes] = []
    for item in described:
        text, times = (item, 1) if isinstance(item, str) else item
        chunks += [base64.b64decode(text)] * times
    return chunks
