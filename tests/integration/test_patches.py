"""Patches in details are accepted by GNU patch and git apply, and lead to the same bytes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail.adapters.local.environment import local_environment
from handrail.core.planning import plan_replacements
from handrail.core.replacement import Replacement
from handrail.core.toolbox import Toolbox
from handrail.core.tools.edit import edit_tool
from handrail.core.tools.write import write_tool
from samples import ENCODINGS

pytestmark = pytest.mark.anyio

PROGRAMS = [
    pytest.param(
        ["patch", "--binary", "-p0", "--fuzz=0", "--quiet"],
        id="patch",
        marks=pytest.mark.skipif(not shutil.which("patch"), reason="GNU patch is not installed"),
    ),
    pytest.param(
        ["git", "-c", "core.autocrlf=false", "apply", "-p0", "--whitespace=nowarn"],
        id="git",
        marks=pytest.mark.skipif(not shutil.which("git"), reason="git is not installed"),
    ),
]

LINES = "".join(f"line {n}\n" for n in range(1, 41))


async def details_of(tmp_path: Path, name: str, before: bytes, tool: str, arguments: dict[str, Any]) -> Any:
    """The details of a call, with the old and the new file in directories beside one another."""
    for place in ("old", "new"):
        (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place / name).write_bytes(before)
    async with local_environment(tmp_path / "new") as env, Toolbox(env, [edit_tool(), write_tool()]) as toolbox:
        result = await toolbox.call(tool, {"path": name, **arguments})
    assert not result.is_error, result.text
    return result.details


def applied(tmp_path: Path, program: list[str], patch: str, name: str, *, codec: str = "utf-8") -> bytes:
    """The old file after a program has applied a patch to it."""
    old = tmp_path / "old"
    done = subprocess.run(
        program, cwd=old, input=patch.encode(codec, "surrogateescape"), capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode("utf-8", "replace")
    left = [str(path.relative_to(old)) for path in old.rglob("*") if path.is_file()]
    assert left in ([name], [])
    return (old / name).read_bytes() if left else b""


EDITS = {
    "in the middle": (LINES, [("line 20", "twenty")]),
    "first line": (LINES, [("line 1\n", "one\n")]),
    "first and last line": (LINES, [("line 1\n", ""), ("line 40\n", "forty\n")]),
    "several hunks": (LINES, [("line 5\n", "five\n"), ("line 14\n", "a\nb\n"), ("line 30\nline 31\n", "")]),
    "missing final newline stays missing": ("a\nb\nc", [("b", "B")]),
    "last line without newline": ("a\nb\nc", [("c", "C")]),
    "final newline added": ("a\nb\nc", [("c", "c\n")]),
    "final newline removed": ("a\nb\nc\n", [("c\n", "c")]),
    "one line without newline": ("a", [("a", "b")]),
    "everything but a newline": ("a\n", [("a", "")]),
    "everything": ("a\nb\n", [("a\nb\n", "")]),
    "crlf": (LINES.replace("\n", "\r\n"), [("line 20", "twenty\nand more")]),
    "crlf without final newline": ("a\r\nb", [("b", "B")]),
    "mixed endings": ("a\r\nb\nc\r\nd\n", [("b", "B\nB"), ("c", "C")]),
    "only carriage returns": ("a\rb\rc\r", [("b", "B\nB")]),
    "lone carriage return": ("a\rb\nc\n", [("c", "C")]),
    "byte order mark": ("\ufeffa\nb\n", [("a", "A")]),
    "byte order mark and crlf": ("\ufeffa\r\nb\r\n", [("a", "A")]),
    "separators in a line": ("a\fb\u2028c\u0085d\n\x0b\x1c\n", [("c", "C")]),
    "lines that look like a patch": ("--- a\n+++ b\n@@ -1,1 +1,1 @@\n-x\n\\ y\n", [("-x", "+x")]),
    "blank lines and blanks": ("\n\n \n\t\nx\n\n", [("x", "")]),
    "not ASCII": ("caf\u00e9 \u65e5\u672c\u8a9e \U0001f600\n", [("\u65e5\u672c\u8a9e", "\u4e2d\u6587")]),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("before", "edits"), EDITS.values(), ids=EDITS)
async def test_the_patch_of_an_edit_gives_the_same_bytes(
    tmp_path: Path, program: list[str], before: str, edits: list[tuple[str, str]]
) -> None:
    arguments = {"edits": [{"oldText": old, "newText": new} for old, new in edits]}
    details = await details_of(tmp_path, "f.txt", before.encode(), "edit", arguments)
    patch = details.patch if details.exact_patch is None else details.exact_patch
    assert applied(tmp_path, program, patch, "f.txt") == (tmp_path / "new" / "f.txt").read_bytes()


WRITES = {
    "from nothing": ("", "a\nb\n"),
    "from nothing, without newline": ("", "a"),
    "to nothing": ("a\nb\n", ""),
    "crlf to lf": ("a\r\nb\r\n", "a\nb\n"),
    "lf to crlf": (LINES, LINES.replace("\n", "\r\n")),
    "mark removed": ("\ufeffa\n", "a\n"),
    "much alike": (LINES, LINES.replace("line 7\n", "").replace("line 33\n", "33")),
    "nothing in common": (LINES, LINES.replace("line", "other")),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("before", "after"), WRITES.values(), ids=WRITES)
async def test_the_patch_of_a_write_gives_the_same_bytes(
    tmp_path: Path, program: list[str], before: str, after: str
) -> None:
    details = await details_of(tmp_path, "f.txt", before.encode(), "write", {"content": after})
    assert applied(tmp_path, program, details.patch, "f.txt") == after.encode()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "name",
    [
        "a b.txt",
        "  two  blanks ",
        "tab\there",
        'say "hi"',
        "it's",
        "back\\slash",
        "caf\u00e9-\u65e5\u672c.txt",
        "-dash",
        "line\nbreak",
        "undecodable-\udcff\udc80",
        'all "of\tit\\ \u00e9\udcfe',
        "deep/er/file name.txt",
        "+plus",
        "@at @@ -1 +1 @@",
        ".hidden",
    ],
)
async def test_odd_names_are_found_by_the_programs(tmp_path: Path, program: list[str], name: str) -> None:
    path = tmp_path / "old" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"one\ntwo\n")
    async with local_environment(tmp_path / "old") as env:
        plan = await plan_replacements(env, name, [Replacement("one", "1")])
    assert applied(tmp_path, program, plan.patch, name) == b"1\ntwo\n"


@pytest.mark.parametrize("codec", ["latin-1", "gbk", "shift_jis", "euc_kr", "koi8-r"])
@pytest.mark.parametrize("program", PROGRAMS)
async def test_in_the_files_encoding_the_patch_fits_other_encodings(
    tmp_path: Path, program: list[str], codec: str
) -> None:
    sample = next(sample for sample in ENCODINGS.values() if sample.codec == codec)
    before = "\n".join(sample.prose).encode(codec)
    arguments = {"edits": [{"oldText": sample.prose[1], "newText": sample.new_word}]}
    details = await details_of(tmp_path, "f.txt", before, "edit", arguments)
    assert applied(tmp_path, program, details.patch, "f.txt", codec=codec) == (tmp_path / "new" / "f.txt").read_bytes()
