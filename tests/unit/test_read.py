"""The read tool on text: lines, limits, notices, encodings; the large-file path gives the same answers."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.adapters.memory import Directory, MemoryEnvironment, Special, Symlink, memory_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools import read as read_module
from handrail.core.tools.read import ReadDetails, ReadOptions, read_tool
from samples import ENCODINGS, EncodingSample, layout

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


@pytest.fixture(params=["whole", "in parts"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether files are small enough to be read whole."""
    if request.param == "in parts":
        monkeypatch.setattr(read_module, "_FIRST_BYTES", 40)
    return str(request.param)


async def read(env: MemoryEnvironment, options: ReadOptions | None = None, **arguments: Any) -> ToolResult:
    async with Toolbox(env, [read_tool(options or ReadOptions())]) as toolbox:
        return await toolbox.call("read", arguments)


async def text(content: str | bytes, **arguments: Any) -> str:
    result = await read(memory_environment({"f.txt": content}), path="f.txt", **arguments)
    assert result.structured_content == result.text or result.is_error
    return result.text


TEN = "".join(f"line {n} of ten\n" for n in range(1, 11))


async def test_a_text_within_the_limits_comes_back_unchanged(way: str) -> None:
    for content in ("", "a", "a\n", "\n", "a\r\nb\n\n", "\t \f\u2028x\n", TEN, TEN + "end"):
        assert await text(content) == content


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"offset": 10}, "line 10 of ten\n"),
        ({"offset": 9, "limit": 2}, "line 9 of ten\nline 10 of ten\n"),
        ({"offset": 9, "limit": 1}, "line 9 of ten\n\n[1 more lines in file. Use offset=10 to continue.]"),
        ({"limit": 1}, "line 1 of ten\n\n[9 more lines in file. Use offset=2 to continue.]"),
        ({"offset": 0, "limit": 1}, "line 1 of ten\n\n[9 more lines in file. Use offset=2 to continue.]"),
        ({"limit": 10}, TEN),
        ({"limit": 5000}, TEN),
        ({"offset": 11}, "Offset 11 is beyond end of file (10 lines total)"),
        ({"offset": 99, "limit": 3}, "Offset 99 is beyond end of file (10 lines total)"),
    ],
)
async def test_offset_and_limit_count_lines(way: str, arguments: dict[str, int], shown: str) -> None:
    assert await text(TEN, **arguments) == shown


async def test_an_offset_into_an_empty_file_is_out_of_range(way: str) -> None:
    assert await text("", offset=1) == ""
    result = await read(memory_environment({"f.txt": ""}), path="f.txt", offset=2)
    assert (result.error_code, result.text) == ("out_of_range_offset", "Offset 2 is beyond end of file (0 lines total)")


@pytest.mark.parametrize("arguments", [{"offset": -1}, {"limit": -1}, {"limit": 0}, {"offset": 1.5}, {"limit": 2.5}])
async def test_offset_and_limit_are_whole_numbers(arguments: dict[str, Any]) -> None:
    result = await read(memory_environment({"f.txt": TEN}), path="f.txt", **arguments)
    assert result.error_code == "invalid_arguments"
    assert next(iter(arguments)) in result.text


async def test_the_line_limit_says_how_to_go_on(way: str) -> None:
    content = "".join(f"{n}\n" for n in range(1, 2502))
    shown = await text(content)
    assert shown.endswith("\n2000\n\n[Showing lines 1-2000 of 2501. Use offset=2001 to continue.]")
    assert await text(content, offset=2001) == "".join(f"{n}\n" for n in range(2001, 2502))


async def test_the_byte_limit_says_how_to_go_on(way: str) -> None:
    content = "".join(f"{n:04}" + "\u00e9" * 50 + "\n" for n in range(1, 1001))  # 105 bytes a line
    shown = await text(content, offset=2)
    assert shown.endswith("\n\n[Showing lines 2-488 of 1000 (50.0KB limit). Use offset=489 to continue.]")
    result = await read(memory_environment({"f.txt": content}), path="f.txt")
    truncation = result.details.truncation
    assert (truncation.truncated_by, truncation.output_lines) == ("bytes", 487)
    assert (truncation.total_lines, truncation.total_bytes) == (1000, len(content.encode()))


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32", "utf-16-le", "utf-32-be"])
async def test_wide_text_fills_the_limit_with_whole_lines(way: str, codec: str) -> None:
    content = "".join(f"{n:04} {'x' * 44}\n" for n in range(1, 3001))  # 50 bytes of UTF-8 a line
    for start in (1, 1500):
        shown = (await text(content.encode(codec), offset=start)).partition("\n\n[Showing")[0]
        lines = shown.split("\n")
        assert len(lines) == 1024
        assert lines == content.split("\n")[start - 1 : start + 1023]


@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("more", [0, 1, 2, 3])
async def test_the_byte_limit_is_met_exactly(way: str, codec: str, more: int) -> None:
    # 1998 lines and the breaks between them are 51200 bytes; what follows does not fit any more.
    content = "x" * (51200 - 3995) + "a\n" * 1998
    shown = await text((content + "a\n" * more).encode(codec))
    kept, _, notice = shown.removesuffix("]").partition("\n\n[")
    assert kept == content[:-1]
    expected = f"Showing lines 1-1998 of {1998 + more} (50.0KB limit). Use offset=1999 to continue." if more else ""
    assert notice.partition("]")[0].removeprefix("Encoding: UTF-16 LE").removeprefix("Encoding: UTF-32 LE") == expected


@pytest.mark.parametrize(
    ("path", "shown"),
    [("f.txt", "f.txt"), ("a b.txt", "'a b.txt'"), ("it's", "'it'\"'\"'s'"), ("-n", "./-n"), ("$x", "'$x'")],
)
async def test_a_line_that_is_too_long_names_its_own_size(way: str, path: str, shown: str) -> None:
    env = memory_environment({path: "first\n" + "x" * 60_000 + "\n" + "more\n" * 30_000})
    result = await read(env, path=path, offset=2)
    assert result.text == (f"[Line 2 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '2p' {shown} | head -c 51200]")
    assert result.details.truncation.first_line_exceeds_limit
    assert result.details.truncation.total_lines == 30_001
    assert result.details.truncation.total_bytes == 60_001 + 150_000


async def test_a_last_line_that_is_too_long_names_its_own_size(way: str) -> None:
    assert (await text("first\n" + "x" * 60_000, offset=2)).startswith("[Line 2 is 58.6KB, ")
    assert (await text("x" * 12_400_000)).startswith("[Line 1 is 11.8MB, ")


# ------------------------------------------------------------------ encodings


@pytest.mark.parametrize("sample", ENCODINGS.values(), ids=ENCODINGS)
async def test_text_of_every_encoding_is_shown_and_named(way: str, sample: EncodingSample) -> None:
    content = layout(sample.prose, "lf", "target", sample.codec)
    result = await read(
        memory_environment({"f.txt": sample.mark + content.encode(sample.codec)}), path="f.txt", limit=2
    )
    shown, _, notice = result.text.partition("\n\n[Encoding: ")
    assert shown == "\n".join(content.split("\n")[:2]) + "\n\n[1 more lines in file. Use offset=3 to continue.]"
    if sample.codec == "utf-8":
        assert (notice, result.details) == ("", None)
    else:
        assert notice.endswith("]")
        assert result.details == ReadDetails(encoding=notice[:-1])


async def test_the_callers_codec_goes_before_the_projects_and_both_before_detection(way: str) -> None:
    content = "\u0434\u0430\n" * 30
    env = memory_environment({"f.txt": content.encode("koi8-r"), ".editorconfig": "[*.txt]\ncharset = koi8-r\n"})
    assert (await read(env, path="f.txt")).text.startswith(content)
    env.files["/project/f.txt"] = content.encode("cp866")
    assert (await read(env, ReadOptions(encoding="cp866"), path="f.txt")).text.startswith(content)


async def test_stray_bytes_are_shown_as_replacement_characters(way: str) -> None:
    shown = await text("\u65e5\u672c\u8a9e\u30c6\n".encode() + b"\xff\n" + b"x\n" * 30)
    assert shown.startswith("\u65e5\u672c\u8a9e\u30c6\n\ufffd\nx\n")
    assert shown.endswith("\n\n[Encoding: UTF-8 with bytes that are not valid]")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x01\0" + bytes(60), "ELF program or library"),
        (b"PK\x03\x04\x14\0\0\0" + b"\xff" * 60, "zip archive"),
        (b"SQLite format 3\0" + bytes(60), "SQLite database"),
        (bytes(range(256)), "of unknown type"),
        (b"plain text\0with a NUL, but not wide at all, and longer than one look\n", "of unknown type"),
    ],
)
async def test_binary_data_is_described(way: str, data: bytes, kind: str) -> None:
    shown = await text(data)
    assert shown.startswith(f"[Binary file: f.txt, {len(data)}B, {kind}")


async def test_wide_text_with_a_long_first_line_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_module, "_FIRST_BYTES", 101)
    for codec in ("utf-16", "utf-16-be", "utf-32"):
        mark = b"\xfe\xff" if codec == "utf-16-be" else b""
        content = "\u65e5\u672c\u8a9e\U0001f600" * 40 + "\nsecond\n"
        result = await read(memory_environment({"f.txt": mark + content.encode(codec)}), path="f.txt", offset=2)
        assert result.text.startswith("second\n")


# ------------------------------------------------------------------ what is not a readable file


async def test_missing_files_name_their_neighbours() -> None:
    env = memory_environment({"src/utils.py": "", "src/main.py": "", "README.md": ""})
    result = await read(env, path="src/util.py")
    assert result.error_code == "missing_file"
    assert result.text == "File not found: src/util.py. Similar names in src: utils.py."
    assert (
        "There is no scr in the working directory. Similar names in the working directory: src."
        in (await read(env, path="scr/main.py")).text
    )
    assert "README.md" in (await read(env, path="readme.txt")).text
    assert "ls or find shows" in (await read(env, path="zzz")).text


async def test_a_missing_file_is_told_also_where_nothing_can_be_listed() -> None:
    env = memory_environment({"README.md": ""})
    env.files.faults.fail("permission_denied", operation="list_dir", times=None)
    result = await read(env, path="README")
    assert (result.error_code, result.text) == ("missing_file", "File not found: README.")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("dir", "is_a_directory"),
        ("pipe", "not_a_regular_file"),
        ("loop", "link_loop"),
        ("f.txt/x", "not_a_directory"),
        ("a\0b", "nul_in_argument"),
        ("n" * 300, "name_too_long"),
        ("broken", "missing_file"),
    ],
)
async def test_what_cannot_be_read_says_so_at_once(path: str, code: str) -> None:
    env = memory_environment(
        {"dir": Directory(), "pipe": Special("fifo"), "loop": Symlink("loop"), "f.txt": "", "broken": Symlink("gone")}
    )
    assert (await read(env, path=path)).error_code == code


async def test_names_are_found_in_the_spelling_that_exists() -> None:
    env = memory_environment({"Shot 9.10\u202fAM.txt": "a", "it\u2019s.txt": "b", "cafe\u0301.txt": "c"})
    for path, content in (("Shot 9.10 AM.txt", "a"), ("it's.txt", "b"), ("caf\u00e9.txt", "c")):
        assert (await read(env, path=path)).text == content


# ------------------------------------------------------------------ work


class Counting:
    """Counts the operations of a file port in memory."""

    def __init__(self, env: MemoryEnvironment) -> None:
        self.counts: dict[str, int] = {}
        for operation in ("stat", "read", "scan", "read_chunks", "list_dir", "write"):
            self._watch(env, operation)

    def _watch(self, env: MemoryEnvironment, operation: Any) -> None:
        async def count() -> None:
            self.counts[operation] = self.counts.get(operation, 0) + 1

        for nth in range(1, 20):
            env.files.faults.before(count, operation=operation, nth=nth)


async def test_the_lines_of_a_large_file_are_counted_once() -> None:
    content = "".join(f"line {n}\n" for n in range(400_000))
    env = memory_environment({"f.txt": content})
    counting = Counting(env)
    async with Toolbox(env, [read_tool()]) as toolbox:
        for offset in (300_000, 350_000, 5):
            result = await toolbox.call("read", {"path": "f.txt", "offset": offset, "limit": 1})
            assert result.text.startswith(f"line {offset - 1}\n")
        assert counting.counts["scan"] == 1
        env.files["/project/f.txt"] = "new\n" + content
        result = await toolbox.call("read", {"path": "f.txt", "offset": 300_000, "limit": 1})
        assert result.text.startswith("line 299998\n")
        assert counting.counts["scan"] == 2


async def test_indexes_of_only_the_last_files_are_kept() -> None:
    env = memory_environment({f"{n}.txt": "line\n" * 300_000 for n in range(18)})
    counting = Counting(env)
    async with Toolbox(env, [read_tool()]) as toolbox:
        for n in [*range(18), 17, 0]:
            await toolbox.call("read", {"path": f"{n}.txt", "limit": 1})
    assert counting.counts["scan"] == 19


async def test_a_small_file_is_one_read() -> None:
    env = memory_environment({"f.txt": TEN})
    counting = Counting(env)
    await read(env, path="f.txt")
    assert counting.counts == {"read": 1}
