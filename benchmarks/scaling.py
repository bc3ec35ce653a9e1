"""``python -m benchmarks.scaling``: how time grows with size, as the exponent of a log-log fit.

Linear work has the exponent 1; more than 1.05 over the larger sizes would mean that something grows faster.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
from attrs import frozen

from benchmarks.corpus import make_tree
from handrail import Call, Toolbox, all_tools, local_environment

__all__ = ["exponent", "main"]

_ROUNDS: Final = 5


@frozen
class Series:
    """One kind of work at several sizes."""

    name: str
    sizes: Sequence[int]
    prepare: Callable[[Path, int], None]
    work: Callable[[Toolbox, int], Awaitable[object]]


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log time over log size (least squares)."""
    slope, _ = statistics.linear_regression([math.log(size) for size in sizes], [math.log(s) for s in seconds])
    return slope


def main() -> int:
    """Measure all series and print a line for each."""
    for series in _SERIES:
        seconds = [anyio.run(_measure, series, size) for size in series.sizes]
        half = len(series.sizes) // 2  # small sizes measure the fixed cost of a call
        slope = exponent(series.sizes[half:], seconds[half:])
        shown = ", ".join(f"{size:_}: {value * 1000:.1f} ms" for size, value in zip(series.sizes, seconds, strict=True))
        print(f"{series.name}: exponent {slope:.2f} ({shown})", flush=True)
    return 0


async def _measure(series: Series, size: int) -> float:
    with tempfile.TemporaryDirectory(prefix="handrail-scaling-") as directory:
        series.prepare(Path(directory), size)
        async with local_environment(directory) as env, Toolbox(env, all_tools()) as toolbox:
            taken: list[float] = []
            for _ in range(_ROUNDS):
                begun = time.perf_counter()
                await series.work(toolbox, size)
                taken.append(time.perf_counter() - begun)
    return min(taken)


def _file(directory: Path, size: int) -> None:
    line = b"some words in a line of text\n"
    with (directory / "file.txt").open("wb") as stream:
        for _ in range(size // (len(line) * 1000) + 1):
            stream.write(line * 1000)


def _tree(directory: Path, size: int) -> None:
    make_tree(directory, size, 500)


def _lines(directory: Path, size: int) -> None:
    (directory / "file.txt").write_text("".join(f"line {n} = 0;\n" for n in range(size)))


def _nothing(directory: Path, size: int) -> None:
    """The work needs no files."""


async def _read_deep(toolbox: Toolbox, size: int) -> object:
    # A toolbox of its own: the line index must not be known yet.
    fresh = Toolbox(toolbox.env, all_tools())
    return await fresh.call("read", {"path": "file.txt", "offset": max(1, size // 40)})


async def _find(toolbox: Toolbox, size: int) -> object:
    return await toolbox.call("find", {"pattern": "**/*.py", "limit": 1_000_000})


async def _grep(toolbox: Toolbox, size: int) -> object:
    return await toolbox.call("grep", {"pattern": "never_to_be_found"})


async def _edits(toolbox: Toolbox, size: int) -> object:
    edits = [{"oldText": f"line {n} = 0;", "newText": f"line {n} = 1;"} for n in range(size)]
    await toolbox.call("edit", {"path": "file.txt", "edits": edits})
    back = [{"oldText": edit["newText"], "newText": edit["oldText"]} for edit in edits]
    return await toolbox.call("edit", {"path": "file.txt", "edits": back})


async def _parallel(toolbox: Toolbox, size: int) -> object:
    return await toolbox.run([Call("write", {"path": f"f{n}.txt", "content": "x\n"}) for n in range(size)])


async def _output(toolbox: Toolbox, size: int) -> object:
    return await toolbox.call("bash", {"command": f"head -c {size} /dev/zero | tr '\\0' 'x' | fold -w 99"})


_SERIES: Final = (
    Series("read, file size in bytes", [10**n for n in range(3, 10)], _file, _read_deep),
    Series("find, files in the tree", [1_000, 5_000, 20_000, 50_000, 100_000, 200_000], _tree, _find),
    Series("grep, files in the tree", [1_000, 5_000, 20_000, 50_000, 100_000, 200_000], _tree, _grep),
    Series("edit, edits in a call", [1, 10, 100, 400, 1600], _lines, _edits),
    Series("write, calls in parallel", [1, 10, 100, 1000], _nothing, _parallel),
    Series("bash, bytes of output", [10**6, 10**7, 10**8, 10**9], _nothing, _output),
)


if __name__ == "__main__":
    sys.exit(main())
