"""The edit tool: every encoding and line layout to the byte, refusals that leave the file alone, receipts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.adapters.memory import Directory, File, MemoryEnvironment, Special, Symlink, memory_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.edit import EditOptions, edit_tool
from samples import ENCODINGS, LAYOUTS, OLD_WORD, EncodingSample, layout

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

PATH = "/project/f.txt"


async def call(env: MemoryEnvironment, options: EditOptions | None = None, **arguments: Any) -> ToolResult:
    async with Toolbox(env, [edit_tool(options or EditOptions())]) as toolbox:
        return await toolbox.call("edit", arguments)


async def edit(env: MemoryEnvironment, *edits: tuple[str, str], path: str = "f.txt") -> ToolResult:
    return await call(env, path=path, edits=[{"oldText": old, "newText": new} for old, new in edits])


# ------------------------------------------------------------------ the byte table


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("sample", ENCODINGS.values(), ids=ENCODINGS)
async def test_a_one_word_edit_changes_one_word_to_the_byte(sample: EncodingSample, kind: str) -> None:
    before = sample.mark + layout(sample.prose, kind, OLD_WORD, sample.codec).encode(sample.codec)
    after = sample.mark + layout(sample.prose, kind, sample.new_word, sample.codec).encode(sample.codec)
    env = memory_environment({"f.txt": before})
    result = await edit(env, (OLD_WORD, sample.new_word))
    assert not result.is_error, result.text
    assert env.files.read_bytes(PATH) == after
    assert result.details.match == ["exact"]


@pytest.mark.parametrize("sample", ENCODINGS.values(), ids=ENCODINGS)
async def test_lines_with_characters_of_the_encoding_are_found_and_replaced(sample: EncodingSample) -> None:
    text = layout(sample.prose, "crlf", OLD_WORD, sample.codec)
    env = memory_environment({"f.txt": sample.mark + text.encode(sample.codec)})
    one, two, three = text.split("\r\n")[:3]
    assert not (await edit(env, (f"{one}\n{two}", f"{two}\n{one}\n{one}"))).is_error
    expected = "\r\n".join([two, one, one, three, ""])
    assert env.files.read_bytes(PATH) == sample.mark + expected.encode(sample.codec)


async def test_a_character_that_the_encoding_lacks_leaves_the_file_alone() -> None:
    data = "d\u00e9j\u00e0 vu\n".encode("latin-1")
    env = memory_environment({"f.txt": data})
    result = await edit(env, ("vu", "\u65e5\u672c"))
    assert result.error_code == "unencodable"
    assert "\u65e5 (U+65E5), \u672c (U+672C)" in result.text
    assert env.files.read_bytes(PATH) == data


@pytest.mark.parametrize("data", [b"\x7fELF\0\xff word", b"\xff\xfew\0o\0r\0d\0x", bytes(range(256)) + b"word"])
async def test_what_does_not_survive_decoding_is_refused(data: bytes) -> None:
    env = memory_environment({"f.txt": data})
    result = await edit(env, ("word", "x"))
    assert result.error_code == "undecodable"
    assert "binary file" in result.text
    assert env.files.read_bytes(PATH) == data


async def test_the_callers_codec_goes_before_the_projects() -> None:
    env = memory_environment({"f.txt": "\u0434\u0430 x\n".encode("cp866"), ".editorconfig": "[*]\ncharset = koi8-r\n"})
    edits = [{"oldText": "x", "newText": "\u043d\u0435\u0442"}]
    await call(env, EditOptions(encoding="cp866"), path="f.txt", edits=edits)
    assert env.files.read_bytes(PATH) == "\u0434\u0430 \u043d\u0435\u0442\n".encode("cp866")
    env.files[PATH] = "\u0434\u0430 x\n".encode("koi8-r")
    await call(env, path="f.txt", edits=edits)
    assert env.files.read_bytes(PATH) == "\u0434\u0430 \u043d\u0435\u0442\n".encode("koi8-r")


# ------------------------------------------------------------------ results


async def test_the_receipt_and_the_details() -> None:
    env = memory_environment({"f.txt": File("one\ntwo\nthree\n", 0o640)})
    result = await edit(env, ("three", "3"), ("one", "1"))
    assert result.text == "Edited f.txt: 2 replacements, first changed line 1."
    assert result.to_dict()["details"] == {
        "diff": "-1 one\n+1 1\n 2 two\n-3 three\n+3 3",
        "patch": "--- f.txt\n+++ f.txt\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n-three\n+3\n",
        "firstChangedLine": 1,
        "match": ["exact", "exact"],
    }
    assert env.files.mode(PATH) == 0o640


async def test_a_tolerant_match_is_told() -> None:
    env = memory_environment({"f.txt": "a = \u201cx\u201d  \nb\n"})
    result = await edit(env, ('a = "x"\nb', "c"))
    assert env.files.read_text(PATH) == "c\n"
    assert result.details.match == ["tolerant"]
    assert result.details.tolerated == [["trailing blanks", "quotes"]]
    assert result.text.endswith("Not found exactly; matched although these differ: quotes, trailing blanks.")


async def test_the_receipt_names_the_file_that_was_really_edited() -> None:
    env = memory_environment({"it\u2019s.txt": "one\n", "~/g": "x"})
    assert "Edited /project/it\u2019s.txt: " in (await edit(env, ("one", "1"), path="it's.txt")).text


async def test_a_change_during_the_edit_is_rebased_on_and_the_details_are_those_of_what_was_done() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})

    async def change() -> None:
        env.files[PATH] = "zero\none\ntwo\n"

    env.files.faults.before(change, operation="write", path=PATH)
    result = await edit(env, ("two", "2"))
    assert env.files.read_text(PATH) == "zero\none\n2\n"
    assert result.details.first_changed_line == 3
    assert result.details.diff == " 1 zero\n 2 one\n-3 two\n+3 2"


async def test_a_change_during_the_edit_is_a_conflict_where_the_host_wants_it() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})

    async def change() -> None:
        env.files[PATH] = "zero\none\ntwo\n"

    env.files.faults.before(change, operation="write", path=PATH)
    edits = [{"oldText": "two", "newText": "2"}]
    result = await call(env, EditOptions(rebase=False), path="f.txt", edits=edits)
    assert result.error_code == "conflict"
    assert "+1 zero" in result.text


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": [{"oldText": "one", "newText": "1"}]},
        {"edits": {"oldText": "one", "newText": "1"}},
        {"edits": '[{"oldText": "one", "newText": "1"}]'},
        {"edits": '{"oldText": "one", "newText": "1"}'},
        {"oldText": "one", "newText": "1"},
        {"edits": None, "oldText": "one", "newText": "1"},
        {"edits": [{"oldText": "one", "newText": "1", "why": "extra"}], "more": 1},
    ],
)
async def test_the_shapes_in_which_models_send_edits(arguments: dict[str, Any]) -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})
    result = await call(env, path="f.txt", **arguments)
    assert not result.is_error, result.text
    assert env.files.read_text(PATH) == "1\ntwo\n"


async def test_a_pair_beside_a_list_is_one_more_edit() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})
    await call(env, path="f.txt", edits=[{"oldText": "one", "newText": "1"}], oldText="two", newText="2")
    assert env.files.read_text(PATH) == "1\n2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": "[{", "oldText": "one", "newText": "1"},
        {"edits": "[" * 100_000},
        {"edits": 5},
        {"edits": [{"oldText": "one"}]},
        {"edits": [{"oldText": None, "newText": "1"}]},
        {"edits": [{"oldText": "one", "newText": "\ud800"}]},
        {"edits": json.dumps([{"oldText": "one", "newText": "\ud800"}])},
        {},
    ],
)
async def test_what_cannot_be_understood_is_refused(arguments: dict[str, Any]) -> None:
    env = memory_environment({"f.txt": "one\n"})
    assert (await call(env, path="f.txt", **arguments)).error_code == "invalid_arguments"
    assert env.files.read_text(PATH) == "one\n"


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("edits", "code", "said"),
    [
        ([("four", "4")], "not_found", "Could not find the exact text in f.txt"),
        ([("Two", "2")], "not_found", "The closest place is line 2 (similarity "),
        ([("e", "E")], "not_unique", "Found 3 occurrences of the text in f.txt"),
        ([("", "x")], "empty_old_text", "oldText is empty"),
        ([], "no_edits", "No edits for f.txt"),
        ([("one", "one")], "no_change", "change nothing"),
        ([("one", "1"), ("one\ntwo", "2")], "overlap", "edits[0] and edits[1] overlap"),
        ([("one", "1"), ("four", "4")], "not_found", "edits[1]"),
    ],
)
async def test_any_edit_that_fails_leaves_the_file_untouched(
    edits: list[tuple[str, str]], code: str, said: str
) -> None:
    env = memory_environment({"f.txt": "one\ntwo\nthree\n"})
    version = (await env.files.stat(PATH)).version
    result = await edit(env, *edits)
    assert result.error_code == code
    assert said in result.text
    assert (await env.files.stat(PATH)).version == version


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing.txt", "missing_file"),
        ("dir", "is_a_directory"),
        ("pipe", "not_a_regular_file"),
        ("locked", "permission"),
        ("loop", "link_loop"),
        ("f.txt/x", "not_a_directory"),
        ("a\0b", "nul_in_argument"),
    ],
)
async def test_what_cannot_be_edited_says_so(path: str, code: str) -> None:
    env = memory_environment(
        {
            "f.txt": "word",
            "missing.md": "",
            "dir": Directory(),
            "pipe": Special("fifo"),
            "locked": File("word", 0o444),
            "loop": Symlink("loop"),
        }
    )
    result = await edit(env, ("word", "x"), path=path)
    assert result.error_code == code
    if code == "missing_file":
        assert "missing.md" in result.text


async def test_a_full_disk_leaves_the_old_content() -> None:
    env = memory_environment({"f.txt": "one\n"})
    env.files.limit_space(2)
    assert (await edit(env, ("one", "longer"))).error_code == "no_space"
    assert env.files.read_text(PATH) == "one\n"
