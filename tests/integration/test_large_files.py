"""Large files on the real disk: constant memory, lines counted once, one read and one write an edit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import pytest
from attrs import evolve

from handrail.adapters.local.environment import local_environment
from handrail.core.toolbox import Toolbox
from handrail.core.tools.edit import edit_tool
from handrail.core.tools.read import read_tool
from handrail.core.tools.write import write_tool
from handrail.ports.environment import Environment
from handrail.ports.files import DirEntry, FileContent, FilePort, FileStat, Version, WriteReceipt

pytestmark = pytest.mark.anyio

MEGABYTE: Final = 1024 * 1024
MEASURED: Final = """
import resource, sys
import anyio
from handrail.adapters.local.environment import local_environment
from handrail.core.tools.read import read_tool
from handrail.core.toolbox import Toolbox

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main():
    async with local_environment(sys.argv[1]) as env, Toolbox(env, [read_tool()]) as toolbox:
        await toolbox.call("read", {"path": "small.txt"})  # everything is imported and every thread started
        before = peak()
        result = await toolbox.call("read", {"path": "large.txt", "offset": int(sys.argv[2]), "limit": 2000})
        assert not result.is_error, result.text
        assert result.text.startswith(sys.argv[3]), result.text[:100]
        assert len(result.text.split("\\n")) > 2000
        print(peak() - before)

anyio.run(main)
"""


def make_large(path: Path, size: int, line: bytes = b"a line of 20 bytes.\n") -> int:
    """Fill a file with equal lines; returns how many."""
    block = line * (MEGABYTE // len(line))
    with path.open("wb") as stream:
        for _ in range(size // len(block)):
            stream.write(block)
    return size // len(block) * (MEGABYTE // len(line))


def growth(directory: Path, offset: int, start: str) -> int:
    """Bytes by which a process grows when it reads 2000 lines of ``large.txt``."""
    (directory / "small.txt").write_text("small\n")
    command = [sys.executable, "-c", MEASURED, str(directory), str(offset), start]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.parametrize(
    "size", [pytest.param(64 * MEGABYTE, id="64 MB"), pytest.param(1024 * MEGABYTE, id="1 GB", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, size: int, codec: str) -> None:
    lines = make_large(tmp_path / "large.txt", size, "a line of 20 bytes.\n".encode(codec))
    assert growth(tmp_path, lines - 2500, "a line of 20 bytes.\n") < 16 * MEGABYTE


def test_memory_does_not_grow_with_one_endless_line(tmp_path: Path) -> None:
    with (tmp_path / "large.txt").open("wb") as stream:
        stream.write(b"first\n" * 200_000)
        stream.truncate(64 * MEGABYTE)  # sparse: one line of zero bytes
        stream.seek(64 * MEGABYTE)
        stream.write(b"\n" + b"last\n" * 2500)
    # The start is text, so the file is; the long line is only counted.
    assert growth(tmp_path, 200_002, "last\n") < 16 * MEGABYTE


class CountingFiles(FilePort):
    """A file port that counts the operations of another one."""

    def __init__(self, files: FilePort) -> None:
        self._files = files
        self.counts: Counter[str] = Counter()

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        self.counts["stat"] += 1
        return await self._files.stat(path, follow_symlinks=follow_symlinks)

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        self.counts["list_dir"] += 1
        return await self._files.list_dir(path)

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        self.counts["read"] += 1
        return await self._files.read(path, max_bytes=max_bytes)

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        self.counts["read_chunks"] += 1
        async with aclosing(self._files.read_chunks(path, start=start, end=end)) as chunks:
            async for chunk in chunks:
                self.counts["chunked bytes"] += len(chunk)
                yield chunk

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        self.counts["scan"] += 1
        return await self._files.scan(path, consume, start=start)

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        self.counts["write"] += 1
        return await self._files.write(path, data, expect=expect, mode=mode, previous_limit=previous_limit)

    async def append(self, path: str, data: bytes) -> None:
        self.counts["append"] += 1
        await self._files.append(path, data)

    async def make_dirs(self, path: str) -> Sequence[str]:
        self.counts["make_dirs"] += 1
        return await self._files.make_dirs(path)

    async def remove(self, path: str) -> None:
        self.counts["remove"] += 1
        await self._files.remove(path)

    async def rename(self, source: str, target: str) -> None:
        self.counts["rename"] += 1
        await self._files.rename(source, target)

    async def canonical_path(self, path: str) -> str:
        return await self._files.canonical_path(path)

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        self.counts["create_temp_file"] += 1
        return await self._files.create_temp_file(prefix=prefix, suffix=suffix)


def counted(env: Environment) -> tuple[Environment, Counter[str]]:
    files = CountingFiles(env.files)
    return evolve(env, files=files), files.counts


async def test_a_second_deep_read_uses_the_index(tmp_path: Path) -> None:
    lines = make_large(tmp_path / "large.txt", 16 * MEGABYTE)
    async with local_environment(tmp_path) as real:
        env, counts = counted(real)
        async with Toolbox(env, [read_tool()]) as toolbox:
            first = await toolbox.call("read", {"path": "large.txt", "offset": lines - 100, "limit": 50})
            assert counts["scan"] == 1
            counts.clear()
            second = await toolbox.call("read", {"path": "large.txt", "offset": lines - 5000, "limit": 50})
            assert counts["scan"] == 0
            # The start of the file, the two places where the lines begin and end, and the lines.
            assert counts["read"] == 1
            assert counts["read_chunks"] <= 3
            assert counts["chunked bytes"] < MEGABYTE
            assert first.text.split("\n")[:50] == second.text.split("\n")[:50]


async def test_a_replaced_file_is_counted_anew(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    lines = make_large(path, 4 * MEGABYTE)
    async with local_environment(tmp_path) as env, Toolbox(env, [read_tool()]) as toolbox:
        result = await toolbox.call("read", {"path": "large.txt", "offset": lines})
        assert result.text == "a line of 20 bytes.\n"
        content = path.read_bytes()
        with path.open("r+b") as stream:  # in place, with the same size
            stream.write(b"\n" * 20)
        os.utime(path, ns=(1, 1))
        result = await toolbox.call("read", {"path": "large.txt", "offset": lines + 19})
        assert result.text == "a line of 20 bytes.\n"
        path.write_bytes(content)


async def test_an_edit_reads_once_and_writes_once(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    make_large(path, 5 * MEGABYTE)
    with path.open("ab") as stream:
        stream.write(b"the last line\n")
    async with local_environment(tmp_path) as real:
        env, counts = counted(real)
        async with Toolbox(env, [edit_tool()]) as toolbox:
            edits = [{"oldText": "the last", "newText": "the very last"}]
            result = await toolbox.call("edit", {"path": "large.txt", "edits": edits})
    assert not result.is_error
    assert (counts["read"], counts["write"]) == (1, 1)
    assert not counts["scan"] + counts["read_chunks"] + counts["list_dir"]
    assert path.read_bytes().endswith(b"bytes.\nthe very last line\n")


async def test_a_large_file_of_nuls_is_refused_by_its_start(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(64 * MEGABYTE)
    async with local_environment(tmp_path) as real:
        env, counts = counted(real)
        async with Toolbox(env, [edit_tool()]) as toolbox:
            edits = [{"oldText": "a", "newText": "b"}]
            result = await toolbox.call("edit", {"path": "sparse", "edits": edits})
    assert result.error_code == "undecodable"
    assert counts["read"] == 1  # of the start


async def test_a_large_text_with_a_stray_nul_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes(b"a\0\n" + b"a line of 20 bytes.\n" * 500_000 + b"the end\n")
    async with local_environment(tmp_path) as env, Toolbox(env, [edit_tool()]) as toolbox:
        result = await toolbox.call("edit", {"path": path.name, "edits": [{"oldText": "the end", "newText": "all"}]})
    assert not result.is_error, result.text
    assert path.read_bytes().endswith(b"bytes.\nall\n")


async def test_a_write_is_one_operation(tmp_path: Path) -> None:
    async with local_environment(tmp_path) as real:
        env, counts = counted(real)
        async with Toolbox(env, [write_tool()]) as toolbox:
            await toolbox.call("write", {"path": "f.txt", "content": "x" * 5 * MEGABYTE})
    del counts["stat"]
    assert counts == {"write": 1}
