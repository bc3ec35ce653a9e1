"""The journal on real and remembered disks: what comes back, what is refused, what is said not to be covered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attrs import evolve

from handrail.adapters.journal import JournaledEnvironment, JournalError, UndoConflict, journal
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import MemoryFiles, Symlink, memory_environment
from handrail.adapters.recording import MemoryLog, record, verify_log
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import coding_tools
from handrail.ports.files import FilePort

pytestmark = pytest.mark.anyio


async def run(env: JournaledEnvironment, *calls: tuple[str, dict[str, object]]) -> None:
    async with Toolbox(env, coding_tools()) as toolbox:
        for number, (tool, arguments) in enumerate(calls, 1):
            result = await toolbox.call(tool, arguments, call_id=f"c{number}")
            assert not result.is_error, result.text


async def test_each_call_can_be_undone_by_itself() -> None:
    async with memory_environment({"a.txt": "one\n"}) as inner:
        env = journal(inner)
        await run(
            env,
            ("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
            ("write", {"path": "new/deep/b.txt", "content": "b"}),
            ("bash", {"command": "rm a.txt; echo c > c.txt"}),
        )
        await env.history.undo("c2")
        assert inner.files.tree("/project").keys() == {"/project/c.txt"}
        await env.history.undo("c3")
        assert inner.files.tree("/project") == {"/project/a.txt": "two\n"}
        await env.history.undo()
        assert inner.files.tree("/project") == {"/project/a.txt": "one\n"}
        with pytest.raises(JournalError, match="Nothing"):
            await env.history.undo()
        for _ in range(3):
            await env.history.redo()
        assert (await inner.files.read("/project/new/deep/b.txt")).data == b"b"
        with pytest.raises(JournalError, match="redo"):
            await env.history.redo()


async def test_an_undo_over_a_later_call_is_refused_unless_forced() -> None:
    async with memory_environment({"a.txt": "one\n"}) as inner:
        env = journal(inner)
        await run(
            env, ("write", {"path": "a.txt", "content": "two\n"}), ("write", {"path": "a.txt", "content": "three\n"})
        )
        with pytest.raises(UndoConflict) as caught:
            await env.history.undo("c1")
        assert "-two\n+three\n" in caught.value.diff
        assert (await inner.files.read("/project/a.txt")).data == b"three\n"
        await env.history.undo("c1", force=True)
        assert (await inner.files.read("/project/a.txt")).data == b"one\n"


async def test_a_directory_that_somebody_uses_is_not_removed() -> None:
    async with memory_environment() as inner:
        env = journal(inner)
        await run(env, ("write", {"path": "new/a.txt", "content": "a"}))
        await inner.files.write("/project/new/theirs.txt", b"x")
        with pytest.raises(UndoConflict) as caught:
            await env.history.undo()
        assert caught.value.paths == ["/project/new/theirs.txt"]
        undone = await env.history.undo(force=True)
        assert undone.not_restored.keys() == {"/project/new"}
        assert inner.files.tree("/project") == {"/project/new/theirs.txt": "x"}


async def test_the_difference_since_a_point_is_shown() -> None:
    async with memory_environment({"a.txt": "one\n", "b.bin": b"\0"}) as inner:
        env = journal(inner)
        await run(env, ("write", {"path": "a.txt", "content": "two\n"}))
        point = env.history.point()
        await run(env, ("bash", {"command": "printf 'three' > a.txt; rm b.bin; mkdir d"}))
        difference = await env.history.diff(point)
        assert "-two\n+three\n\\ No newline at end of file\n" in difference
        assert "/project/b.bin: file of 1 bytes" in difference
        assert "/project/d: nothing -> a directory" in difference
        assert "-one\n" in await env.history.diff()
        await env.history.undo_since(0)
        assert await env.history.diff() == ""


async def test_another_process_can_undo(tmp_path: Path) -> None:
    work, store = tmp_path / "work", tmp_path / "journal"
    work.mkdir()
    (work / "run.sh").write_text("one\n")
    (work / "run.sh").chmod(0o755)
    (work / "binary").write_bytes(bytes(range(256)))
    async with journal(local_environment(work), store) as env:
        await run(
            env, ("write", {"path": "run.sh", "content": "two\n"}), ("bash", {"command": "rm binary; chmod 600 run.sh"})
        )
    assert store.stat().st_mode & 0o077 == 0
    async with journal(local_environment(work), store) as later:
        await later.history.undo_since(0)
        assert (work / "run.sh").read_text() == "one\n"
        assert (work / "run.sh").stat().st_mode & 0o777 == 0o755
        assert (work / "binary").read_bytes() == bytes(range(256))
    with (store / "changes.jsonl").open("ab") as file:
        file.write(b'{"half')  # as a crash leaves it
    async with journal(local_environment(work), store) as last:
        await last.history.redo()
        assert not (work / "binary").exists()


async def test_a_same_sized_change_right_after_a_write_is_seen(tmp_path: Path) -> None:
    async with journal(local_environment(tmp_path)) as env:
        await run(env, ("write", {"path": "a.txt", "content": "one"}), ("bash", {"command": "printf two > a.txt"}))
        await env.history.undo("c2")
        assert (tmp_path / "a.txt").read_text() == "one"


async def test_contents_are_kept_once(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for number in range(20):
        (tmp_path / "work" / f"{number}.txt").write_text("the same\n")
    async with journal(local_environment(tmp_path / "work"), tmp_path / "journal") as env:
        await run(env, ("bash", {"command": "rm *.txt"}))
        kept = [path for path in (tmp_path / "journal").rglob("*") if path.is_file()]
        assert len(kept) == 2  # one content, and the records
        await env.history.undo()
    assert len(list((tmp_path / "work").iterdir())) == 20


async def test_what_is_not_covered_is_said(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "large").write_bytes(b"x" * 2000)
    (work / "link").symlink_to("large")
    os.mkfifo(work / "pipe")
    outside = tmp_path / "outside.txt"
    outside.write_text("before")
    async with journal(local_environment(work), max_file_bytes=1000) as env:
        await run(env, ("bash", {"command": f"rm link large; echo after > {outside}; echo x > new"}))
        assert env.history.not_covered.keys() == {str(work / "pipe")}
        undone = await env.history.undo()
        assert undone.not_restored.keys() == {str(work / "large")}
        assert undone.paths == [str(work / "link"), str(work / "new")]
    assert outside.read_text() == "after\n"
    assert os.readlink(work / "link") == "large"
    assert not (work / "new").exists()


async def test_renames_and_removals_of_custom_tools_are_undone() -> None:
    async with memory_environment({"a/x.txt": "x", "a/deep/y.txt": "y", "z.txt": "z"}) as inner:
        env = journal(inner)
        before = inner.files.tree("/project")
        await env.files.rename("/project/a", "/project/b")
        await env.files.rename("/project/b/x.txt", "/project/z.txt")
        await env.files.append("/project/z.txt", b"more")
        await env.files.remove("/project/b/deep/y.txt")
        await env.files.remove("/project/b/deep")
        await env.history.undo_since(0)
        assert inner.files.tree("/project") == before


async def test_a_cancelled_command_can_be_undone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    async with journal(local_environment(tmp_path)) as env, Toolbox(env, coding_tools()) as toolbox:
        result = await toolbox.call("bash", {"command": "echo two > a.txt; sleep 30", "timeout": 0.3}, call_id="c")
        assert result.error_code == "timeout"
        assert (tmp_path / "a.txt").read_text() == "two\n"
        await env.history.undo("c")
    assert (tmp_path / "a.txt").read_text() == "one"


async def test_a_journal_may_be_recorded() -> None:
    log = MemoryLog()
    async with record(journal(memory_environment({"a.txt": "one"})), log) as env:
        await run(env, ("write", {"path": "a.txt", "content": "two"}))
        await env.history.undo("c1")
        assert (await env.files.read("/project/a.txt")).data == b"one"
    assert verify_log(log).intact


async def test_a_large_file_is_said_not_to_be_covered_at_every_look(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2000)
    os.utime(tmp_path / "large", (1, 1))
    async with journal(local_environment(tmp_path), max_file_bytes=1000) as env:
        for _ in range(3):
            await run(env, ("bash", {"command": "true"}))
            assert env.history.not_covered == {str(tmp_path / "large"): "larger than 1000 bytes"}


async def test_links_and_modes_of_a_command_are_undone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("a")
    (tmp_path / "old").symlink_to("d")
    (tmp_path / "gone").symlink_to("nowhere")
    async with journal(local_environment(tmp_path)) as env:
        command = "ln -sfn d/a.txt old; rm gone; ln -s old new; chmod 500 d; chmod 600 d/a.txt"
        await run(env, ("bash", {"command": command}))
        assert env.history.not_covered == {}
        difference = await env.history.diff()
        assert f"{tmp_path}/old: a link to d -> a link to d/a.txt\n" in difference
        assert f"{tmp_path}/gone: a link to nowhere -> nothing\n" in difference
        assert f"{tmp_path}/d: mode 0755 -> 0500\n" in difference
        for _ in range(2):
            assert (await env.history.undo()).not_restored == {}
            assert os.readlink(tmp_path / "old") == "d"
            assert os.readlink(tmp_path / "gone") == "nowhere"
            assert sorted(os.listdir(tmp_path)) == ["d", "gone", "old"]
            assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("d", "d/a.txt")] == [0o755, 0o644]
            await env.history.redo()
            assert os.readlink(tmp_path / "old") == "d/a.txt"
            assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("d", "d/a.txt")] == [0o500, 0o600]


async def test_what_a_command_closed_is_opened_to_undo_it() -> None:
    files = {"d/deep/a.txt": "a", "d/b.txt": "b", "e/c.txt": "c"}
    async with memory_environment(files) as inner:
        env = journal(inner)
        before = inner.files.tree("/project")
        command = (
            "rm d/b.txt; echo x > d/deep/a.txt; echo new > d/new; chmod 000 d/deep d/new; chmod 000 d; chmod 555 e"
        )
        await run(env, ("bash", {"command": command}), ("bash", {"command": "chmod 755 e; rm e/c.txt; chmod 555 e"}))
        assert env.history.not_covered == {}
        assert inner.files.mode("/project/d/deep") == inner.files.mode("/project/d") == 0
        after = inner.files.tree("/project")
        assert (await env.history.undo_since(0)).not_restored == {}
        assert inner.files.tree("/project") == before
        assert {inner.files.mode(f"/project/{name}") for name in ("d", "d/deep", "e")} == {0o755}
        await env.history.redo()
        assert inner.files.tree("/project") == after
        assert [inner.files.mode(f"/project/{name}") for name in ("d", "d/deep", "d/new", "e")] == [0, 0, 0, 0o555]


async def test_a_refused_undo_leaves_the_modes_of_directories() -> None:
    async with memory_environment({"d/a.txt": "a"}) as inner:
        env = journal(inner)
        await run(env, ("bash", {"command": "echo b > d/a.txt; chmod 500 d"}))
        inner.files["/project/d/a.txt"] = "somebody else's"
        with pytest.raises(UndoConflict):
            await env.history.undo()
        assert inner.files.mode("/project/d") == 0o500


async def test_an_undo_does_not_go_through_a_link_in_the_place_of_a_directory() -> None:
    async with memory_environment({"d/a.txt": "mine", "/elsewhere/b.txt": "theirs"}) as inner:
        env = journal(inner)
        await run(env, ("bash", {"command": "rm d/a.txt; rm -r d; ln -s /elsewhere d"}))
        await env.history.undo()
        assert inner.files.tree("/project") == {"/project/d/a.txt": "mine"}
        await env.files.remove("/project/d/a.txt")
        inner.files.delete("/project/d")
        await inner.files.make_link("/project/d", "/elsewhere")
        undone = await env.history.undo(force=True)
        assert undone.not_restored.keys() == {"/project/d/a.txt"}
        assert inner.files.tree("/elsewhere") == {"/elsewhere/b.txt": "theirs"}


class WithoutLinksAndModes(MemoryFiles):
    """Files of an adapter that need not write everything."""

    read_link = FilePort.read_link
    make_link = FilePort.make_link
    change_mode = FilePort.change_mode


async def test_where_links_and_modes_are_not_supported_that_is_said() -> None:
    inner = memory_environment()
    files = WithoutLinksAndModes(inner.clock, {"/project/link": Symlink("a"), "/project/d/a": "a", "/project/e/a": "a"})
    files.set_mode("/project/e", 0o000)
    env = journal(evolve(inner, files=files))
    await run(env, ("write", {"path": "a", "content": "a"}), ("bash", {"command": "true"}))
    assert env.history.not_covered.keys() == {"/project/link", "/project/e"}
    assert "not_supported" in env.history.not_covered["/project/link"]
    await env.history.undo()
    assert "/project/a" not in files
