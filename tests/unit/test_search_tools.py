"""grep, find and ls in memory: notices, limits, unreadable places, time budget, cancellation, ripgrep's failures."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from handrail.adapters.memory import Directory, Entry, Special, Symlink, memory_environment
from handrail.adapters.memory.process import Process
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.find import FindOptions, find_tool
from handrail.core.tools.grep import GrepOptions, grep_tool
from handrail.core.tools.ls import ls_tool
from handrail.ports.environment import Environment

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


def toolbox(env: Environment, **grep: Any) -> Toolbox:
    return Toolbox(env, [grep_tool(GrepOptions(**grep)), find_tool(), ls_tool()])


async def call(env: Environment, tool: str, arguments: dict[str, Any], **grep: Any) -> ToolResult:
    return await toolbox(env, **grep).call(tool, arguments)


async def test_ignored_files_are_told_when_nothing_was_found() -> None:
    async with memory_environment({".gitignore": "*.log\nout/\n", "a.log": "hit", "out/x": "hit", "b": "miss"}) as env:
        result = await call(env, "grep", {"pattern": "hit"})
        assert result.text.startswith("No matches found\n\n[1 file and 1 directory left out by ignore rules")
        assert result.to_dict()["details"] == {"ignored": 2}
        assert (await call(env, "grep", {"pattern": "miss"})).text == "b:1: miss"
        found = await call(env, "find", {"pattern": "*.log"})
        assert found.text.startswith("No files found matching pattern\n\n[1 match left out by ignore rules")
        assert (await call(env, "grep", {"pattern": "hit", "path": "out"})).text == "x:1: hit"
        assert (await call(env, "grep", {"pattern": "hit", "path": "a.log"})).text == "a.log:1: hit"


async def test_what_cannot_be_read_is_counted_and_the_rest_stands() -> None:
    async with memory_environment({"a": "hit", "secret": "hit", "shut/x": "hit"}) as env:
        env.files.faults.deny("/project/secret")
        env.files.faults.deny("/project/shut")
        result = await call(env, "grep", {"pattern": "hit"})
        assert result.text == "a:1: hit\n\n[2 paths could not be read]"
        assert not result.is_error
        found = await call(env, "find", {"pattern": "x"})
        assert found.text == "No files found matching pattern\n\n[1 directory could not be read]"
        alone = await call(env, "grep", {"pattern": "hit", "path": "secret"})
        assert alone.error_code == "permission"


async def test_binary_files_are_said_to_match() -> None:
    async with memory_environment({"b.bin": b"foo\n\0\nfoo\n", "c.bin": b"\0bar", "t": "foo"}) as env:
        result = await call(env, "grep", {"pattern": "foo"})
        assert result.text == "Binary file b.bin matches\nt:1: foo"
        cut = await call(env, "grep", {"pattern": "foo", "limit": 1})
        assert cut.text == (
            "Binary file b.bin matches\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]"
        )


async def test_a_nul_ends_a_line_of_a_binary_file() -> None:
    files: dict[str, Entry] = {
        "strings": b"\0\0\0one\0two\0\0",
        "split": b"on\0e",
        "wide": "on\0e\0one\n".encode("utf-16"),
        "text": "one\n",
    }
    async with memory_environment(files) as env:
        for use_re2 in (True, False):
            result = await call(env, "grep", {"pattern": "^one$"}, use_re2=use_re2)
            assert result.text == "Binary file strings matches\ntext:1: one\nBinary file wide matches"
            assert (await call(env, "grep", {"pattern": "on.e"}, use_re2=use_re2)).text == "No matches found"


async def test_a_mark_or_an_encoding_among_plain_files_is_not_passed_over() -> None:
    files: dict[str, Entry] = {
        "a": "miss",
        "marked": b"\xef\xbb\xbfhit\n",
        "wide": "hit\n".encode("utf-16"),
        "z": "miss\n",
    }
    async with memory_environment(files) as env:
        assert (await call(env, "grep", {"pattern": "^hit$"})).text == "marked:1: hit\nwide:1: hit"
        assert (await call(env, "grep", {"pattern": "miss$"})).text == "a:1: miss\nz:1: miss"


async def test_a_large_binary_file_is_searched_block_by_block() -> None:
    nuls = b"\0" * (17 * 1024 * 1024)
    async with memory_environment({"sparse": nuls + b"one\0" + nuls, "late": b"one\n" * 5_000_000 + b"\0"}) as env:
        result = await call(env, "grep", {"pattern": "^one$"})
        assert result.text.startswith("late:1: one\n")
        found = await call(env, "grep", {"pattern": "^one$", "path": "sparse"})
        assert found.text == "Binary file sparse matches"
        assert (await call(env, "grep", {"pattern": "two", "path": "sparse"})).text == "No matches found"


async def test_a_long_line_is_cut_around_its_match() -> None:
    async with memory_environment({"min.js": "x" * 5000 + "needle" + "y" * 5000}) as env:
        for use_re2 in (True, False):
            result = await call(env, "grep", {"pattern": "needle"}, use_re2=use_re2)
            line = result.text.split("\n")[0]
            assert line.startswith("min.js:1: [truncated] ...x")
            assert "needle" in line
            assert line.endswith("y... [truncated]")
            assert result.to_dict()["details"] == {"linesTruncated": True}


async def test_pipes_and_links_are_listed_and_never_opened() -> None:
    files: dict[str, Entry] = {
        "d/x": "hit",
        "pipe": Special("fifo"),
        "loop": Symlink("."),
        "gone": Symlink("nowhere"),
        "up": Symlink("d/x"),
    }
    async with memory_environment(files) as env:
        assert (await call(env, "grep", {"pattern": "hit"})).text == "d/x:1: hit"
        assert (await call(env, "find", {"pattern": "*"})).text == "d/\nd/x\ngone\nloop\npipe\nup"
        assert (await call(env, "ls", {})).text == "d/\ngone (broken link)\nloop/\npipe\nup"
        assert (await call(env, "grep", {"pattern": "hit", "path": "up"})).text == "up:1: hit"
        assert (await call(env, "grep", {"pattern": "hit", "path": "pipe"})).error_code == "not_a_regular_file"


async def test_odd_names_are_shown_escaped_and_taken_back() -> None:
    async with memory_environment({"new\nline": "hit", "bad\udcff": "hit", "tab\there/x": "hit"}) as env:
        result = await call(env, "grep", {"pattern": "hit"})
        assert result.text == "bad\\xff:1: hit\nnew\\x0aline:1: hit\ntab\\x09here/x:1: hit"
        for shown in ("bad\\xff", "new\\x0aline", "tab\\x09here"):
            assert not (await call(env, "grep", {"pattern": "hit", "path": shown})).is_error
            assert (await call(env, "find", {"pattern": shown})).text.removesuffix("/") == shown


async def test_git_directories_are_looked_at_only_by_name() -> None:
    async with memory_environment({".git/HEAD": "hit", "a": "hit"}) as env:
        assert (await call(env, "grep", {"pattern": "hit"})).text == "a:1: hit"
        assert (await call(env, "grep", {"pattern": "hit", "path": ".git"})).text == "HEAD:1: hit"
        assert (await call(env, "grep", {"pattern": "hit", "glob": ".git/**"})).text == ".git/HEAD:1: hit"
        assert (await call(env, "find", {"pattern": ".git"})).text == ".git/"


async def test_rules_end_at_a_repository_and_exclude_belongs_to_it() -> None:
    files = {
        ".git/HEAD": "x",
        ".gitignore": "*.log\n",
        ".git/info/exclude": "private\n",
        "private": "hit",
        "a.log": "hit",
        "inner/.git": "gitdir: ../.git/worktrees/inner\n",
        ".git/worktrees/inner/commondir": "../..\n",
        "inner/private": "hit",
        "inner/b.log": "hit",
        "sub/private": "hit",
        "sub/c": "hit",
    }
    async with memory_environment(files) as env:
        assert (await call(env, "grep", {"pattern": "hit"})).text == "inner/b.log:1: hit\nsub/c:1: hit"
        assert (await call(env, "grep", {"pattern": "hit", "path": "sub"})).text == "c:1: hit"


async def test_ignore_files_of_tools_are_stronger_than_gits() -> None:
    files = {
        ".gitignore": "*.log\n",
        ".ignore": "!a.log\nb\n",
        ".rgignore": "c\n",
        "a.log": "hit",
        "b": "hit",
        "c": "hit",
    }
    async with memory_environment(files) as env:
        assert (await call(env, "grep", {"pattern": "hit"})).text == "a.log:1: hit"


async def test_a_search_ends_with_its_time_budget_and_keeps_what_it_has() -> None:
    files = {"a": "hit", **{f"slow/{n}": "hit" for n in range(200)}}
    async with memory_environment(files) as env:
        env.files.faults.delay(40.0, operation="read", path="/project/slow/150")
        result = await call(env, "grep", {"pattern": "hit", "limit": 1000}, time_budget_seconds=5)
        assert result.text.startswith("a:1: hit\n")
        assert "[Search cut after 5 seconds; give a narrower `path` or `glob`]" in result.text
        assert result.to_dict()["details"] == {"timeLimitReached": 5}
        env.files.faults.delay(40.0, operation="list_dir", path="/project/slow")
        found = await Toolbox(env, [find_tool(FindOptions(time_budget_seconds=5))]).call("find", {"pattern": "a"})
        assert "Search cut after 5 seconds" in found.text


async def test_cancelling_ends_ripgrep_at_once() -> None:
    async with memory_environment({f"d{n}/f": "x" for n in range(50)}) as env:
        started = anyio.Event()

        async def rg(process: Process) -> int:
            if "--version" in process.arguments:
                await process.write("ripgrep 14.1.0\n")
                return 0
            started.set()
            return await process.hang()

        env.commands.on(("rg",), rg)
        box = toolbox(env, engine="ripgrep")
        results: list[ToolResult] = []

        async def search() -> None:
            results.append(await box.call("grep", {"pattern": "x"}, call_id="it"))

        async with anyio.create_task_group() as group:
            group.start_soon(search)
            await started.wait()
            assert box.cancel("it")
        assert results[0].error_code == "aborted"
        assert not env.commands.running


@pytest.mark.parametrize("output", ["regex parse error:\n", "./a\0rg: died", ""])
async def test_where_ripgrep_fails_the_scan_does_its_work(output: str) -> None:
    async with memory_environment({"a": "hit", "b": "hit", "secret": "hit"}) as env:
        env.files.faults.deny("/project/secret")

        async def rg(process: Process) -> int:
            if "--version" in process.arguments:
                await process.write("ripgrep 13.0.0\n")
                return 0
            await process.write(output)
            return 2

        env.commands.on(("rg",), rg)
        result = await call(env, "grep", {"pattern": "hit"}, engine="ripgrep")
        lines = "a:1: hit\nb:1: hit\n" if output else "No matches found\n"
        assert result.text == f"{lines}\n[1 path could not be read]"


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({f"f{number}": "miss\n" for number in range(100)}, 0),
        ({f"f{number}": "miss\n" for number in range(200)}, 2),
        ({f"f{number}": "miss\n" * 1_000_000 for number in range(4)}, 2),
    ],
    ids=["few", "many", "large"],
)
async def test_ripgrep_is_asked_only_where_there_is_much_to_search(files: dict[str, Entry], asked: int) -> None:
    async with memory_environment(files) as env:
        runs: list[bool] = []

        async def rg(process: Process) -> int:
            runs.append("--version" in process.arguments)
            if not runs[-1]:
                return 1
            await process.write("ripgrep 15.1.0\n")
            return 0

        env.commands.on(("rg",), rg)
        box = toolbox(env)
        assert (await box.call("grep", {"pattern": "hit"})).text == "No matches found"
        assert len(runs) == asked
        await box.call("grep", {"pattern": "hit", "path": "f1"})
        assert runs == [True, False][:asked]


@pytest.mark.parametrize("version", ["ripgrep 12.1.1\n", "something else\n"])
async def test_an_old_ripgrep_is_not_used(version: str) -> None:
    async with memory_environment({"a": "hit"}) as env:

        async def rg(process: Process) -> int:
            await process.write(version)
            return 0

        env.commands.on(("rg",), rg)
        assert (await call(env, "grep", {"pattern": "hit"})).text == "a:1: hit"
        assert (await call(env, "grep", {"pattern": "hit"}, engine="ripgrep")).error_code == "spawn_failed"


async def test_places_that_cannot_be_searched_are_told_apart() -> None:
    async with memory_environment({"f": "x", "shut/x": "", "empty": Directory()}) as env:
        env.files.faults.deny("/project/shut")
        expected = {
            ("ls", "none"): "missing_file",
            ("ls", "f"): "not_a_directory",
            ("ls", "f/x"): "missing_file",
            ("ls", "shut"): "permission",
            ("find", "none"): "missing_file",
            ("find", "f"): "not_a_directory",
            ("find", "shut"): "permission",
            ("grep", "none"): "missing_file",
            ("grep", "f/x"): "missing_file",
            ("grep", "shut"): "permission",
        }
        for (tool, path), code in expected.items():
            result = await call(env, tool, {"path": path} | ({} if tool == "ls" else {"pattern": "x"}))
            assert (tool, path, result.error_code) == (tool, path, code)
        assert (await call(env, "ls", {"path": "empty"})).text == "(empty directory)"


async def test_bad_patterns_are_errors_with_the_next_step() -> None:
    async with memory_environment({"f": "x"}) as env:
        look_ahead = await call(env, "grep", {"pattern": "a(?=b)"})
        assert look_ahead.error_code == "bad_regex"
        assert look_ahead.text.startswith("Not a valid regular expression: `(?=` at position 2 is look-ahead")
        for tool, arguments in (("find", {"pattern": "../*"}), ("grep", {"pattern": "x", "glob": "[a"})):
            assert (await call(env, tool, arguments)).error_code == "bad_glob"


async def test_find_takes_patterns_below_the_searched_directory_as_relative() -> None:
    async with memory_environment({"src/a.ts": "", "b.ts": ""}) as env:
        assert (await call(env, "find", {"pattern": "/project/src/*.ts"})).text == "src/a.ts"
        assert (await call(env, "find", {"pattern": "/elsewhere/*.ts"})).text == "No files found matching pattern"


async def test_large_files_are_searched_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.core.grepping._SMALL_FILE_BYTES", 2048)
    monkeypatch.setattr("handrail.core.grepping._WHOLE_FILE_BYTES", 4096)
    monkeypatch.setattr("handrail.core.grepping._INLINE_BYTES", 16)
    text = "".join(f"line {n}: déjà l'été était très élégant à l'école\n" for n in range(200)) + "hit\nafter"
    files: dict[str, Entry] = {
        "utf8": text,
        "mark": b"\xef\xbb\xbf" + text.encode(),
        "wide": text.encode("utf-16"),
        "latin": text.encode("latin-1"),
        "binary": text.encode() + b"\0",
        "middle": "x\n" * 1500 + "hit\nafter",
    }
    async with memory_environment(files) as env:
        result = await call(env, "grep", {"pattern": "^hit$", "context": 1})
        expected = ["Binary file binary matches"]
        for name in ("latin", "mark", "middle", "utf8", "wide"):
            number, before = (
                (1501, "x") if name == "middle" else (201, "line 199: déjà l'été était très élégant à l'école")
            )
            expected += [f"{name}-{number - 1}- {before}", f"{name}:{number}: hit", f"{name}-{number + 1}- after"]
        assert result.text.split("\n") == expected
        limited = await call(env, "grep", {"pattern": "line", "path": "utf8", "limit": 2})
        assert limited.text.startswith(
            "utf8:1: line 0: déjà l'été était très élégant à l'école\n"
            "utf8:2: line 1: déjà l'été était très élégant à l'école\n\n[2 matches limit reached"
        )
