"""The data: deterministic, made once, kept outside the repository."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Final

from attrs import frozen

__all__ = ["Corpus", "make_corpus"]

_WORDS: Final = [
    *("value", "index", "result", "buffer", "handle", "stream", "parse", "token", "cache", "query", "state", "event"),
    *("error", "level", "field", "record", "client", "server", "request", "response", "config", "module", "import"),
    *("return", "define", "class", "method", "object", "string", "number", "list", "table", "row", "column"),
]
_VERSION: Final = "3"
_MAX_DEPTH: Final = 8


@frozen
class Corpus:
    """Where the data is."""

    root: Path
    large_tree: Path
    """Source-like files in nested directories with ignore files."""
    middle_tree: Path
    small_tree: Path
    wide_directory: Path
    """One directory with many entries."""
    large_text: Path
    long_line: Path
    source: Path
    """One source file of 5 MB."""
    scratch: Path
    """For what workloads write; emptied at the start of a run."""


def make_corpus(scale: float, where: Path | None = None) -> Corpus:
    """Return the corpus of a size, made now or found from an earlier run.

    Args:
        scale: 1 for the full size (about 1.6 GB), less for a quick run.
        where: The directory to keep it in; by default one in the system's cache place.
    """
    base = where or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "handrail-benchmarks"
    root = base / f"corpus-{_VERSION}-{scale:g}"
    corpus = Corpus(
        root,
        root / "large",
        root / "middle",
        root / "small",
        root / "wide",
        root / "large.txt",
        root / "line.txt",
        root / "source.py",
        root / "scratch",
    )
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _fill(corpus, scale)
        (root / "complete").touch()
    shutil.rmtree(corpus.scratch, ignore_errors=True)
    corpus.scratch.mkdir()
    return corpus


def make_tree(root: Path, files: int, mean_size: int, seed: int = 1) -> None:
    """Make a tree of source-like files, about 25 to a directory, 8 levels deep, with ignore files here and there."""
    rng = random.Random(seed)
    block = _source(rng, 400_000)
    directories = [root]
    for number in range(files):
        if number % 25 == 0:
            parent = rng.choice(directories[-40:])
            if len(parent.relative_to(root).parts) >= _MAX_DEPTH:
                parent = rng.choice(directories[:40])
            directory = parent / f"{rng.choice(_WORDS)}{number // 25}"
            directory.mkdir(parents=True, exist_ok=True)
            directories.append(directory)
            if number % 500 == 0:
                (directory / ".gitignore").write_text("*.tmp\nbuild/\n!keep.tmp\n")
        size = max(64, int(rng.expovariate(1 / mean_size)))
        start = rng.randrange(0, max(1, len(block) - size))
        suffix = rng.choice((".py", ".py", ".ts", ".md", ".c"))
        text = block[start : start + size]
        if number % 5000 == 4999:
            text += "\nrare_needle_here = True\n"
        (directories[-1] / f"{rng.choice(_WORDS)}_{number}{suffix}").write_text(text)


def _fill(corpus: Corpus, scale: float) -> None:
    make_tree(corpus.large_tree, int(50_000 * scale), 8_000)
    make_tree(corpus.middle_tree, int(2_000 * scale) or 100, 4_000, seed=2)
    make_tree(corpus.small_tree, 100, 4_000, seed=3)
    corpus.wide_directory.mkdir()
    for number in range(int(10_000 * scale) or 100):
        (corpus.wide_directory / f"Entry_{number:05d}.txt").touch()
    _large_text(corpus.large_text, int(1_000_000_000 * scale))
    corpus.long_line.write_bytes(b"word " * int(2_000_000 * scale))
    corpus.source.write_text("".join(f"line {n} of some source file with text\n" for n in range(130_000)))


def _large_text(path: Path, size: int) -> None:
    block = b"".join(b"line %d of a big file with some words in it\n" % n for n in range(20_000))
    with path.open("wb") as stream:
        while stream.tell() < size:
            stream.write(block)


def _source(rng: random.Random, size: int) -> str:
    lines: list[str] = []
    length = 0
    while length < size:
        line = " " * (4 * rng.randrange(4)) + " ".join(rng.choices(_WORDS, k=rng.randrange(1, 9)))
        if rng.random() < 0.1:
            line = f"def {rng.choice(_WORDS)}_{rng.randrange(10_000)}(self):"
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)
