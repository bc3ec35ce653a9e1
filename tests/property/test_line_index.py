"""The line index against plain counting, for every encoding and any chunks an adapter may choose."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.memory import MemoryFiles, VirtualClock
from handrail.core.line_index import LineIndex
from handrail.ports.files import FileStat


class ChunkedFile(MemoryFiles):
    """A file in memory that is scanned in chunks of a given size."""

    def __init__(self, data: bytes, chunk: int) -> None:
        super().__init__(VirtualClock(), {"/f": data})
        self.chunk = chunk

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        data = self.read_bytes(path)[start:]
        for position in range(0, len(data), self.chunk):
            consume(data[position : position + self.chunk])
        return await self.stat(path)


# Characters whose bytes hold a line feed's byte at every place.
TEXTS = st.text(["a", "\n", "\r", "\u010a", "\u0a00", "\u0a0a", "\U0001f600", "\U0001000a", "\U000a000a"], max_size=40)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "gb18030"])
@given(text=TEXTS, chunk=st.sampled_from([1, 2, 3, 4, 5, 7, 64]))
def test_lines_are_counted_and_found(codec: str, text: str, chunk: int) -> None:
    files = ChunkedFile(text.encode(codec), chunk)
    lines = text.split("\n")
    total = len(lines) - (lines[-1] == "")
    starts = [len("".join(f"{line}\n" for line in lines[:n]).encode(codec)) for n in range(total)]

    files_size = len(text.encode(codec))

    async def check() -> None:
        index = await LineIndex.build(files, "/f", codec)
        assert (index.total_lines, index.size) == (total, files_size)
        assert [await index.offset(files, "/f", n) for n in range(total)] == starts
        assert await index.offset(files, "/f", total) == files_size
        feed = len("\n".encode(codec))
        assert [index.ends_with_feed(n) for n in range(total)] == [
            feed if n < text.count("\n") else 0 for n in range(total)
        ]

    anyio.run(check)


@pytest.mark.parametrize("left", [b"", b"a", b"a\nb"])
def test_a_file_that_shrinks_meanwhile_ends_there(left: bytes) -> None:
    files = ChunkedFile(b"a\nb\nc\nd\n", 4)

    async def check() -> None:
        index = await LineIndex.build(files, "/f", "utf-8")
        files["/f"] = left
        assert 0 <= await index.offset(files, "/f", 3) <= index.size

    anyio.run(check)
