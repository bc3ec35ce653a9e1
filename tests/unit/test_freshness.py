"""require_fresh: no edit or write of what the session has not read, judged by content."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.adapters.memory import Directory, MemoryEnvironment, Symlink, memory_environment
from handrail.core.errors import ToolError
from handrail.core.freshness import Freshness
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.edit import EditOptions, edit_tool
from handrail.core.tools.read import ReadOptions, read_tool
from handrail.core.tools.write import WriteOptions, write_tool

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

PATH = "/project/f.txt"


class Session:
    """A toolbox that insists on fresh knowledge."""

    def __init__(self, env: MemoryEnvironment) -> None:
        self.toolbox = Toolbox(
            env,
            [
                read_tool(ReadOptions(remember=True)),
                edit_tool(EditOptions(require_fresh=True)),
                write_tool(WriteOptions(require_fresh=True)),
            ],
        )

    async def read(self, path: str = "f.txt", **more: Any) -> ToolResult:
        return await self.toolbox.call("read", {"path": path, **more})

    async def edit(self, old: str, new: str, path: str = "f.txt") -> ToolResult:
        return await self.toolbox.call("edit", {"path": path, "edits": [{"oldText": old, "newText": new}]})

    async def write(self, content: str, path: str = "f.txt") -> ToolResult:
        return await self.toolbox.call("write", {"path": path, "content": content})


async def test_a_file_that_was_not_read_is_refused() -> None:
    env = memory_environment({"f.txt": "one\n"})
    session = Session(env)
    for result in (await session.edit("one", "1"), await session.write("new")):
        assert result.error_code == "stale"
        assert "has not been read in this session" in result.text
    assert env.files.read_text(PATH) == "one\n"


async def test_a_file_that_was_read_may_be_changed_again_and_again() -> None:
    env = memory_environment({"f.txt": "one\n"})
    session = Session(env)
    await session.read()
    assert not (await session.edit("one", "two")).is_error
    assert not (await session.edit("two", "three")).is_error
    assert not (await session.write("four\n")).is_error
    assert not (await session.edit("four", "five")).is_error
    assert env.files.read_text(PATH) == "five\n"


async def test_a_new_file_may_be_written_and_then_changed() -> None:
    env = memory_environment({})
    session = Session(env)
    assert not (await session.write("one\n", "new/f.txt")).is_error
    assert not (await session.edit("one", "two", "new/f.txt")).is_error


async def test_a_file_that_changed_since_is_refused_with_what_changed() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})
    session = Session(env)
    await session.read()
    env.files[PATH] = "one\nTWO\n"
    for result in (await session.edit("one", "1"), await session.write("new")):
        assert result.error_code == "stale"
        assert "-2 two\n+2 TWO" in result.text
    assert env.files.read_text(PATH) == "one\nTWO\n"
    await session.read()
    assert not (await session.edit("one", "1")).is_error


async def test_touching_a_file_is_no_change() -> None:
    env = memory_environment({"f.txt": "one\n"})
    session = Session(env)
    await session.read()
    env.files[PATH] = "other\n"
    env.files[PATH] = "one\n"
    env.files.set_mtime(PATH, 12345)
    assert not (await session.edit("one", "1")).is_error
    env.files.set_mtime(PATH, 54321)
    assert not (await session.write("new")).is_error


async def test_one_file_is_one_file_under_all_its_names() -> None:
    env = memory_environment({"f.txt": "one\n", "link": Symlink("f.txt")})
    session = Session(env)
    await session.read("link")
    assert not (await session.edit("one", "1", "./sub/../f.txt")).is_error


async def test_a_partial_read_counts() -> None:
    env = memory_environment({"f.txt": "one\ntwo\nthree\n"})
    session = Session(env)
    await session.read(limit=1)
    assert not (await session.edit("three", "3")).is_error


async def test_a_change_between_the_check_and_the_write_is_not_rebased_on() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})
    session = Session(env)
    await session.read()

    async def change() -> None:
        env.files[PATH] = "zero\none\ntwo\n"

    env.files.faults.before(change, operation="write", path=PATH)
    result = await session.edit("one", "1")
    assert result.error_code == "conflict"
    assert env.files.read_text(PATH) == "zero\none\ntwo\n"


async def test_a_file_that_appears_before_the_write_is_not_overwritten() -> None:
    env = memory_environment({})
    session = Session(env)

    async def create() -> None:
        env.files[PATH] = "theirs\n"

    env.files.faults.before(create, operation="write", path=PATH)
    assert (await session.write("mine\n")).error_code == "conflict"
    assert env.files.read_text(PATH) == "theirs\n"


async def test_a_large_file_is_remembered_without_its_content() -> None:
    content = "line\n" * 400_000
    env = memory_environment({"f.txt": content + "one\n"})
    session = Session(env)
    await session.read(limit=1)
    assert not (await session.edit("one", "two")).is_error
    env.files[PATH] = content + "three\n"
    result = await session.edit("three", "3")
    assert result.error_code == "stale"
    assert "What changed" not in result.text


async def test_a_large_file_that_changes_while_it_is_read_is_not_known() -> None:
    env = memory_environment({"f.txt": "line\n" * 400_000 + "one\n"})
    session = Session(env)

    async def change() -> None:
        env.files[PATH] = "line\n" * 400_000 + "two\n"

    env.files.faults.before(change, operation="scan", path=PATH)
    await session.read(limit=1)
    assert (await session.edit("two", "2")).error_code == "stale"


async def test_what_cannot_be_read_is_told_as_ever() -> None:
    env = memory_environment({"dir": Directory()})
    session = Session(env)
    assert (await session.write("x", "dir")).error_code == "is_a_directory"
    assert (await session.edit("x", "y", "dir")).error_code == "is_a_directory"


async def test_without_the_option_nothing_is_asked() -> None:
    env = memory_environment({"f.txt": "one\n"})
    async with Toolbox(env, [edit_tool()]) as toolbox:
        result = await toolbox.call("edit", {"path": "f.txt", "edits": [{"oldText": "one", "newText": "1"}]})
    assert not result.is_error


async def test_what_changed_is_shown_of_the_latest_files_only() -> None:
    seen = Freshness()
    content = b"x\n" * (128 * 1024)
    for number in range(200):
        seen.note(f"/{number}", content)
    texts: list[str] = []
    for path in ("/0", "/199"):
        with pytest.raises(ToolError) as refused:
            seen.check(path, b"y\n", path)
        texts.append(refused.value.message)
    assert [("What changed" in text) for text in texts] == [False, True]
    seen.check("/0", content, "/0")
