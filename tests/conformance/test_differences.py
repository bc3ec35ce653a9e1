"""Where the contract deliberately leaves the reference: the marked vectors, judged by our own rule for their kind."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from attrs import frozen

from conformance.calls import answer_to
from conformance.oracles import beyond_end, exact_occurrences, is_splice, shown_text
from conformance.reference import MISSING, Vector, vectorlib, vectors
from conformance.unprivileged import run_unprivileged
from conformance.worlds import LocalWorld, MemoryWorld, World

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

Answer = dict[str, Any]


@frozen
class Case:
    """A marked vector in one kind of world."""

    vector: Vector
    build: Callable[[Vector], World]

    @property
    def args(self) -> dict[str, Any]:
        expanded: dict[str, Any] = vectorlib().expand(self.vector["args"])
        return expanded

    def content(self, path: str) -> bytes:
        """What a file holds at first."""
        data: bytes = vectorlib().file_bytes(self.vector["files"][path])
        return data

    def text(self) -> str:
        """The text of the file that the call is about."""
        return self.content(self.args["path"]).decode("utf-8", "surrogateescape")

    async def answer(self, **changed: Any) -> Answer:
        """Our answer, with some arguments or other parts of the vector changed."""
        vector = {**self.vector, **changed}
        world = self.build(vector)
        async with world.env:
            return await answer_to(vector, world)

    async def refused(self, code: str, *words: str) -> None:
        """Check that the call fails with a code and words, and changes nothing."""
        answer = await self.answer()
        assert answer["errorKind"] == code
        for word in words:
            assert word in answer["errorText"]
        if "after" in answer:
            assert answer["after"] == self.build(self.vector).after()


def text_of(answer: Answer) -> str:
    """The first text block."""
    assert answer["ok"], answer["errorText"]
    text: str = answer["content"][0]["text"]
    return text


def lines_of(answer: Answer) -> set[str]:
    """The lines of a search, without its notice."""
    return set(vectorlib().split_notice(text_of(answer))[0].split("\n"))


def edited(answer: Answer, path: str) -> str:
    """The text of a file afterwards."""
    return base64.b64decode(answer["after"][path]["b64"]).decode("utf-8", "surrogateescape")


# ------------------------------------------------------------------ arguments


async def whole_numbers(case: Case) -> None:
    await case.refused("invalid_arguments", "whole number")


async def coerced(case: Case) -> None:
    plain = _plain_numbers(case.args)
    assert await case.answer() == await case.answer(args=plain)
    if (error := beyond_end(case.text(), plain.get("offset"))) is not None:
        await case.refused("out_of_range_offset", error)
    else:
        assert text_of(await case.answer()) == shown_text(case.text(), plain.get("offset"), plain.get("limit"))


def _plain_numbers(args: Mapping[str, Any]) -> dict[str, Any]:
    return {key: int(value) if key in ("offset", "limit") else value for key, value in args.items() if value}


async def null_is_no_string(case: Case) -> None:
    await case.refused("invalid_arguments", "must be a string, not null")


async def half_pairs(case: Case) -> None:
    await case.refused("invalid_arguments", "surrogate", "position")


async def broken_json(case: Case) -> None:
    await case.refused("invalid_arguments", "edits", "JSON")


# ------------------------------------------------------------------ read


async def final_newline(case: Case) -> None:
    args = _plain_numbers(case.args)
    error = beyond_end(case.text(), args.get("offset"))
    if error is not None:
        await case.refused("out_of_range_offset", error)
    else:
        assert text_of(await case.answer()) == shown_text(case.text(), args.get("offset"), args.get("limit"))


async def told_not_shown(case: Case) -> None:
    data = case.content(case.args["path"])
    text = text_of(await case.answer())
    if b"\0" in data:
        assert text.startswith("[Binary file")
        assert f"{len(data)}B" in text
    else:
        assert "[Encoding: " in text
        assert len(text.split("[Encoding: ")[0].rstrip("\n")) <= len(data)


async def literal_name(case: Case) -> None:
    answer, path = await case.answer(), case.args["path"]
    if case.vector["tool"] == "read":
        assert text_of(answer).encode() == case.content(path)
    else:
        assert edited(answer, path) == case.args["content"]


async def broken_image(case: Case) -> None:
    answer = await case.answer()
    assert [block["type"] for block in answer["content"]] == ["text"]
    assert "cannot be decoded" in text_of(answer)


# ------------------------------------------------------------------ edit


async def tolerant(case: Case) -> None:
    if all(not edit["oldText"].strip() for edit in case.args["edits"]):
        await case.refused("not_found")
        return
    answer = await case.answer()
    assert answer["ok"], answer["errorText"]
    assert is_splice(case.text(), edited(answer, case.args["path"]), case.args["edits"])


async def lone_cr(case: Case) -> None:
    answer = await case.answer()
    if answer["ok"]:
        assert is_splice(case.text(), edited(answer, case.args["path"]), case.args["edits"])
    else:
        # ``unencodable``: a lone CR and an LF would fuse into one line break.
        assert answer["errorKind"] in ("not_found", "not_unique", "no_change", "overlap", "unencodable")
        assert "\r" in case.text()
        await case.refused(answer["errorKind"])


async def exact_uniqueness(case: Case) -> None:
    counts = [exact_occurrences(case.text(), edit["oldText"]) for edit in case.args["edits"]]
    if max(counts) > 1:
        await case.refused("not_unique", f"Found {next(n for n in counts if n > 1)} occurrences")
        return
    answer = await case.answer()
    assert 0 not in counts
    if all(edit["oldText"] == edit["newText"] for edit in case.args["edits"]):
        await case.refused("no_change")
    else:
        assert is_splice(case.text(), edited(answer, case.args["path"]), case.args["edits"])


async def other_encodings(case: Case) -> None:
    data, edits = case.content(case.args["path"]), case.args["edits"]
    codec = "utf-16" if data.startswith(b"\xff\xfe") else "latin-1"
    old, new = (edits[0][key].replace("\n", "\r\n" if b"\r\n" in data else "\n") for key in ("oldText", "newText"))
    if "\ufffd" in old:
        await case.refused("not_found")
        return
    answer = await case.answer()
    assert answer["ok"], answer["errorText"]
    wanted = data.decode(codec).replace(old, new).encode(codec)
    assert base64.b64decode(answer["after"][case.args["path"]]["b64"]) == wanted


async def same_spellings(case: Case) -> None:
    path = case.args["path"].replace("'", "\u2019")
    assert case.args["path"] not in case.vector["files"]
    answer = await case.answer()
    assert answer["ok"], answer["errorText"]
    edit = case.args["edits"][0]
    assert edited(answer, path) == case.content(path).decode().replace(edit["oldText"], edit["newText"])


async def nothing_matches(case: Case) -> None:
    await case.refused("not_found", "edits[1]")


# ------------------------------------------------------------------ search


async def order(case: Case) -> None:
    shown = vectorlib().split_notice(text_of(await case.answer()))[0].split("\n")
    names = [line.removesuffix("/") for line in shown]
    assert names == sorted(names, key=lambda name: (name.casefold(), name))
    wanted = vectorlib().split_notice(case.vector["expect"]["content"][0]["text"])[0].split("\n")
    assert len(shown) == len(wanted)
    if "limit" not in case.args:
        assert set(shown) == set(wanted)


async def without_git(case: Case) -> None:
    expected = set(case.vector["expect"]["content"][0]["text"].split("\n"))
    if ".git" in case.args["pattern"]:
        assert lines_of(await case.answer()) == expected
    else:
        assert lines_of(await case.answer()) == {line for line in expected if ".git" not in line.split("/")}


async def normalised_patterns(case: Case) -> None:
    pattern = case.args["pattern"]
    plain = re.sub("/+", "/", pattern).replace("/./", "/")
    while plain.startswith("./"):
        plain = plain[2:]
    found = lines_of(await case.answer(args={**case.args, "pattern": plain.rstrip("/")}))
    if plain.endswith("/"):
        found = {line for line in found if line.endswith("/")} or {"No files found matching pattern"}
    assert lines_of(await case.answer()) == found


async def told_apart(case: Case) -> None:
    await case.refused("missing_file")


async def escaped_names(case: Case) -> None:
    shown = lines_of(await case.answer())
    undone = {re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), line) for line in shown}
    assert undone == set(case.vector["files"])
    assert all(line.isprintable() for line in shown)


async def narrowing_glob(case: Case) -> None:
    everything = lines_of(await case.answer(args={k: v for k, v in case.args.items() if k != "glob"}))
    assert lines_of(await case.answer()) <= everything | {"No matches found"}


async def binary_told(case: Case) -> None:
    shown = text_of(await case.answer()).split("\n")
    for name in case.vector["files"]:
        data = case.content(name)
        told = b"\0" in data and case.args["pattern"].encode() in data
        assert (f"Binary file {name} matches" in shown) == told
        assert not (told and any(line.startswith(f"{name}:") for line in shown))


async def ignored_everywhere(case: Case) -> None:
    in_repository = {**case.vector["files"], ".git/HEAD": {"text": "ref: refs/heads/main\n"}}
    assert text_of(await case.answer()) == text_of(await case.answer(files=in_repository))


async def characters(case: Case) -> None:
    ((path, spec),) = case.vector["files"].items()
    line = vectorlib().file_bytes(spec).decode().split("\n")[0]
    cut = line if len(line) <= 500 else f"{line[:500]}... [truncated]"
    assert f"{path}:1: {cut}" in text_of(await case.answer())


async def dangling(case: Case) -> None:
    files = case.vector["files"]
    links = {name for name, spec in files.items() if "symlink" in spec}
    if case.args.get("path") in links:
        await case.refused("missing_file")
        return
    present = {name.split("/")[0] for name in files}
    broken = {name for name in links if files[name]["symlink"] == name or files[name]["symlink"] not in present}
    shown = vectorlib().split_notice(text_of(await case.answer()))[0].split("\n")
    assert all((f"{name} (broken link)" in shown) == (name in broken) for name in present if _is_shown(name, shown))
    assert len(shown) == min(case.args.get("limit", len(present)), len(present))


def _is_shown(name: str, shown: list[str]) -> bool:
    return any(line.removesuffix(" (broken link)").removesuffix("/") == name for line in shown)


# ------------------------------------------------------------------ bash


async def sanitised(case: Case) -> None:
    text = text_of(await case.answer())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
    assert text == re.sub("\x1b\\[[0-9;]*m", "", case.vector["expect"]["content"][0]["text"])


async def one_pipe(case: Case) -> None:
    answer = await case.answer()
    assert answer["ok"], answer["errorText"]
    assert not answer["isError"]


# ------------------------------------------------------------------ several calls


async def several_calls(case: Case) -> None:
    answer = await case.answer()
    wanted = case.vector["expect"]
    for number, (mine, theirs) in enumerate(zip(answer["results"], wanted["results"], strict=True)):
        for part in ("ok", "isError", "errorKind", "details", "structuredContent"):
            if (part in theirs and part != "structuredContent") or (part == "structuredContent" and theirs.get(part)):
                assert vectorlib().differences(theirs[part], mine[part]) == [], f"call {number}, {part}"
    assert vectorlib().differences(wanted["after"], answer["after"]) == []


Rule = Callable[[Case], Awaitable[None]]

RULES: Final[Mapping[str, Rule]] = {
    ".git is left out": without_git,
    "500 characters, not UTF-16 units": characters,
    "a broken JSON string is an error": broken_json,
    "a final newline is not a line": final_newline,
    "a function or form that the contract does not have; use it as material": several_calls,
    "a glob only narrows": narrowing_glob,
    "a lone CR is a line ending only in a file without LF": lone_cr,
    "argument coercion; judge by contract": coerced,
    "binary and other encodings are told, not shown": told_not_shown,
    "binary files are told": binary_told,
    "broken images say the true reason": broken_image,
    "bytes that are not UTF-8 are kept": other_encodings,
    "dangling links are listed, marked": dangling,
    "edit resolves existing files as read does": same_spellings,
    "half surrogate pairs are refused": half_pairs,
    "ignore rules hold outside a repository too": ignored_everywhere,
    "missing and not a directory are told apart": told_apart,
    "null and booleans are not strings": null_is_no_string,
    "odd names are shown escaped": escaped_names,
    "offset and limit are whole numbers": whole_numbers,
    "one pipe; long commands run": one_pipe,
    "order: casefold, then code point": order,
    "output is sanitised": sanitised,
    "patterns are normalised": normalised_patterns,
    "text that normalises to nothing never matches": nothing_matches,
    "the literal name comes first": literal_name,
    "tolerant matches replace only what they cover": tolerant,
    "uniqueness is counted exactly for an exact match": exact_uniqueness,
}

_GROUPS: Final = ("read", "write", "edit", "find", "grep", "ls", "bash", "names")
_MARKED: Final = [vector for vector in vectors(*_GROUPS) if "differs" in vector]
_IN_MEMORY: Final = [vector for vector in _MARKED if vector["tool"] != "bash" and not vector["id"].startswith("names-")]


def _id(vector: Vector) -> str:
    identifier: str = vector["id"]
    return identifier


@pytest.mark.parametrize("vector", _MARKED, ids=_id)
async def test_on_disk(vector: Vector, tmp_path: Path) -> None:
    worlds = iter(range(10))
    case = Case(vector, lambda changed: LocalWorld.build(changed, tmp_path / str(next(worlds))))
    await RULES[vector["differs"]](case)


@pytest.mark.parametrize("vector", _IN_MEMORY, ids=_id)
async def test_in_memory(vector: Vector) -> None:
    await RULES[vector["differs"]](Case(vector, MemoryWorld.build))


@pytest.fixture(scope="module")
def unprivileged_answers() -> dict[str, Any]:
    """Our answers on disk to the vectors of a user without rights."""
    answers: dict[str, Any] = anyio.run(run_unprivileged, "conformance.permission_vectors")
    return answers


@pytest.mark.parametrize("vector", [v for v in vectors("permissions") if "differs" in v], ids=_id)
def test_hits_stand_beside_unreadable_files(vector: Vector, unprivileged_answers: dict[str, Any]) -> None:
    answer = unprivileged_answers[vector["id"]]
    readable = {name for name, spec in vector["files"].items() if "mode" not in spec and "/" not in name}
    if vector["args"].get("path") in (None, "."):
        text = text_of(answer)
        assert {f"{name}:1: hit" for name in readable} <= set(text.split("\n"))
        assert "could not be read" in text
    else:
        assert answer["errorKind"] == "permission"
