"""The write tool: whole files, parents, receipts, patches; nothing is left of a write that fails."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.adapters.memory import Directory, File, MemoryEnvironment, Special, Symlink, memory_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.write import WriteDetails, write_tool
from patching import apply_unified

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


async def write(env: MemoryEnvironment, path: str, content: Any) -> ToolResult:
    async with Toolbox(env, [write_tool()]) as toolbox:
        return await toolbox.call("write", {"path": path, "content": content})


async def test_a_new_file_and_its_parents_are_created() -> None:
    env = memory_environment({})
    result = await write(env, "a/b/c.txt", "caf\u00e9\r\n")
    assert result.text == "Created a/b/c.txt (7 bytes)."
    assert result.details == WriteDetails(created=True, bytes=7)
    assert result.to_dict()["details"] == {"created": True, "bytes": 7}
    assert env.files.read_bytes("/project/a/b/c.txt") == "caf\u00e9\r\n".encode()
    assert env.files.mode("/project/a/b/c.txt") == 0o644


async def test_an_existing_file_is_replaced_and_keeps_its_mode() -> None:
    env = memory_environment({"run.sh": File("old\n", 0o755)})
    result = await write(env, "run.sh", "new\n")
    assert result.text == "Wrote 4 bytes to run.sh."
    assert result.details == WriteDetails(False, 4, "--- run.sh\n+++ run.sh\n@@ -1,1 +1,1 @@\n-old\n+new\n")
    assert env.files.mode("/project/run.sh") == 0o755


async def test_the_content_is_written_to_the_byte() -> None:
    env = memory_environment({})
    for content in ("", "\ufeffa", "a\rb\r\nc\n\0", "\U0001f600", "no newline"):
        await write(env, "f", content)
        assert env.files.read_bytes("/project/f") == content.encode()


async def test_links_are_written_through_and_stay() -> None:
    env = memory_environment({"real": "old", "link": Symlink("real"), "new": Symlink("created")})
    await write(env, "link", "one")
    await write(env, "new", "two")
    assert env.files["/project/link"] == Symlink("real")
    assert env.files["/project/new"] == Symlink("created")
    assert (env.files.read_text("/project/real"), env.files.read_text("/project/created")) == ("one", "two")


async def test_a_link_into_a_missing_directory_is_a_missing_file() -> None:
    env = memory_environment({"link": Symlink("gone/target")})
    assert (await write(env, "link", "x")).error_code == "missing_file"
    assert env.files.tree("/project") == {"/project/link": Symlink("gone/target")}


async def test_all_names_of_a_hard_linked_file_show_the_new_content() -> None:
    env = memory_environment({"a": "old"})
    env.files.make_hard_link("/project/a", "/project/b")
    await write(env, "a", "new")
    assert env.files.read_text("/project/b") == "new"


async def test_the_receipt_names_the_file_that_was_really_written() -> None:
    env = memory_environment({})
    assert (await write(env, "~/f.txt", "x")).text == "Created /home/user/f.txt (1 bytes)."
    assert (await write(env, "@f.txt", "x")).text == "Created /project/f.txt (1 bytes)."
    assert (await write(env, "/project/g.txt", "x")).text == "Created /project/g.txt (1 bytes)."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\r\nb\r\n", "a\r\nB\r\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\rb\r", "a\rB\r"),
        ("a\nb", "a\nb\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("\ufeffa\nb\n", "a\nb\n"),
        ("\ufeffa\nb\n", "\ufeffA\nb\n"),
        ("\u2028\f\n", "\u2028\n"),
    ],
)
async def test_the_patch_leads_from_the_old_content_to_the_new_to_the_byte(old: str, new: str) -> None:
    env = memory_environment({"f": old})
    result = await write(env, "f", new)
    assert apply_unified(old, result.details.patch) == new


async def test_there_is_no_patch_without_two_texts_of_moderate_size() -> None:
    env = memory_environment({"binary": b"\0\xff\x01\x02", "large": "x\n" * 600_000, "same": "x\n"})
    assert (await write(env, "binary", "text")).details.patch is None
    assert (await write(env, "large", "text")).details.patch is None
    assert (await write(env, "same", "x\n" * 600_000)).details.patch is None
    env.files["/project/same"] = "x\n"
    assert (await write(env, "same", "x\n")).details.patch == ""


async def test_a_long_patch_is_cut() -> None:
    env = memory_environment({"f": "x\n" * 5000})
    assert (await write(env, "f", "y\n" * 5000)).details.patch.endswith("lines shown]")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("dir", "is_a_directory"),
        ("pipe", "not_a_regular_file"),
        ("f/x", "exists"),
        ("f/x/y/z", "not_a_directory"),
        ("locked", "permission"),
        ("loop", "link_loop"),
        ("n" * 300, "name_too_long"),
        ("new/" + "n" * 300, "name_too_long"),
        ("a\0b", "nul_in_argument"),
        ("read-only/new/f", "read_only"),
    ],
)
async def test_what_cannot_be_written_leaves_everything_as_it_was(path: str, code: str) -> None:
    env = memory_environment(
        {
            "dir/f": "",
            "pipe": Special("fifo"),
            "f": "",
            "locked": File("old", 0o444),
            "loop": Symlink("loop"),
            "read-only": Directory(),
        }
    )
    env.files.mount_read_only("/project/read-only")
    before = env.files.tree()
    result = await write(env, path, "new")
    assert result.is_error
    assert result.error_code == code
    assert env.files.tree() == before


async def test_a_full_disk_removes_the_parents_it_made() -> None:
    env = memory_environment({"f": "old content"})
    env.files.limit_space(5)
    before = env.files.tree()
    for path in ("a/b/c.txt", "f"):
        result = await write(env, path, "longer than the space that is left")
        assert result.error_code == "no_space"
        assert "the old content is whole" in result.text
    assert env.files.tree() == before


async def test_parents_that_somebody_uses_by_now_stay() -> None:
    env = memory_environment({})

    async def use() -> None:
        env.files["/project/a/theirs"] = "x"

    # The first write finds no directory, the second fails.
    env.files.faults.before(use, operation="write", nth=2)
    env.files.faults.fail("no_space", operation="write", nth=2)
    assert (await write(env, "a/b/c.txt", "x")).error_code == "no_space"
    assert env.files.tree("/project") == {"/project/a/theirs": "x"}


@pytest.mark.parametrize("content", [None, True, "half \ud83d pair"])
async def test_what_is_no_text_is_refused(content: object) -> None:
    env = memory_environment({"f": "old"})
    assert (await write(env, "f", content)).error_code == "invalid_arguments"
    assert env.files.read_text("/project/f") == "old"
