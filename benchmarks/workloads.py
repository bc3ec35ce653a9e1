"""What is measured. A workload is data that every subject understands, whatever language it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import asdict, frozen

from benchmarks.corpus import Corpus

__all__ = ["Goal", "Workload", "workloads"]

ToolCall = tuple[str, dict[str, Any]]

_START: Final = ("start", ["-c", "pass"])


@frozen
class Goal:
    """What a workload should reach, as ratios within one run."""

    reference: float | None = None
    """At least so many times as fast as the reference."""
    limit: float | None = None
    """At most so many times the bare system work."""
    milliseconds: float | None = None
    """At most so much more than the bare system work, or in all where there is none to compare with."""


@frozen
class Workload:
    """One thing to time.

    Attributes:
        name: Its row in the table.
        cwd: Working directory of the tools.
        rounds: Variants of the calls; round ``n`` runs number ``n`` modulo their count, so that an edit can be
            undone by the next round.
        parallel: Whether the calls of a round run at the same time.
        repeat: How often the calls of a round run before the clock stops.
        per: What the time is divided by, besides ``repeat``: calls of a round, where the time of one is asked.
        files: Files to lay into the working directory first, by relative name.
        cancel_after: Cancel the call so many seconds after its start; the time is from there to its end.
        limit: Name of the bare system work to compare with, and its argument.
        fresh: Whether each round has a toolbox that has seen nothing yet.
        in_memory: Run on this tree, loaded into a memory environment; only handrail can.
        argv: Run this Python command line instead of calls; only handrail's.
    """

    name: str
    goal: Goal
    cwd: str
    rounds: Sequence[Sequence[ToolCall]] = ((),)
    parallel: bool = False
    repeat: int = 1
    per: int = 1
    files: dict[str, str] | None = None
    cancel_after: float | None = None
    limit: tuple[str, Any] | None = None
    fresh: bool = False
    in_memory: str | None = None
    argv: Sequence[str] | None = None

    @property
    def only_ours(self) -> bool:
        """Whether other systems have nothing of the kind."""
        return self.in_memory is not None or self.argv is not None

    def to_json(self) -> dict[str, Any]:
        """Return the form that goes to a subject."""
        return asdict(self)


def workloads(corpus: Corpus) -> list[Workload]:
    """Return all workloads on a corpus, in the order of the table."""
    root, scratch = str(corpus.root), str(corpus.scratch)
    large, middle, small = str(corpus.large_tree), str(corpus.middle_tree), str(corpus.small_tree)
    wide = str(corpus.wide_directory)
    deep = max(1, corpus.large_text.stat().st_size // 50)
    lines = {"edited.txt": "".join(f"n{n} = 0\n" for n in range(200))}
    many = {f"file{n}.txt": "a = 1\nb = 2\n" for n in range(1000)}
    source = corpus.source.read_text()
    return [
        Workload(
            "read a small file",
            Goal(reference=5),
            small,
            [[_read(_first_file(corpus))]],
            repeat=50,
            limit=("read", _first_file(corpus)),
        ),
        Workload(
            "read deep in a large file, first",
            Goal(3.5, 1.15),
            root,
            [[_read("large.txt", deep)]],
            fresh=True,
            limit=("count_lines", str(corpus.large_text)),
        ),
        Workload("read deep in a large file, again", Goal(milliseconds=5), root, [[_read("large.txt", deep)]]),
        Workload(
            "write a small file",
            Goal(reference=1.3),
            scratch,
            [[("write", {"path": "w.txt", "content": "hello\n"})]],
            repeat=50,
            limit=("write", "w.txt"),
        ),
        Workload(
            "edit a small file",
            Goal(reference=2.5),
            scratch,
            _toggle("small.txt", ["v = 0\n"]),
            repeat=1,
            files={"small.txt": "a\nb\nv = 0\nc\n"},
            limit=("write", "small.txt"),
        ),
        Workload(
            "edit 1 place in 5 MB",
            Goal(7, 1.5),
            scratch,
            _toggle("one.py", ["line 65000 of"]),
            files={"one.py": source},
            limit=("replace", "one.py"),
        ),
        Workload(
            "edit 20 places in 5 MB",
            Goal(30, 1.8),
            scratch,
            _toggle("twenty.py", [f"line {n}000 of" for n in range(1, 21)]),
            files={"twenty.py": source},
            limit=("replace20", "twenty.py"),
        ),
        Workload(
            "1000 edits of distinct files",
            Goal(reference=1.2),
            scratch,
            _spread([f"file{n}.txt" for n in range(1000)]),
            parallel=True,
            files=many,
        ),
        Workload(
            "200 edits of one file",
            Goal(reference=2),
            scratch,
            [[_edit("edited.txt", [(f"n{n} = {a}\n", f"n{n} = {1 - a}\n")]) for n in range(200)] for a in (0, 1)],
            parallel=True,
            files=lines,
        ),
        Workload("ls of 10 000 entries, 500 shown", Goal(3, 1.3), wide, [[("ls", {})]], limit=("list", wide)),
        Workload(
            "ls of 10 000 entries, all shown", Goal(17, 1.3), wide, [[("ls", {"limit": 20_000})]], limit=("list", wide)
        ),
        Workload(
            "find over 50 000 files, 1 000 shown",
            Goal(1.8, 1.2),
            large,
            [[("find", {"pattern": "**/*.py"})]],
            limit=("fd", "*.py"),
        ),
        Workload(
            "find over 50 000 files, all",
            Goal(2.2, 1.2),
            large,
            [[("find", {"pattern": "**/*.py", "limit": 100_000})]],
            limit=("fd", "*.py"),
        ),
        Workload(
            "grep over 50 000 files, rare",
            Goal(1.05, 1.1),
            large,
            [[("grep", {"pattern": "rare_needle_here"})]],
            limit=("rg", "rare_needle_here"),
        ),
        Workload(
            "grep over 50 000 files, none",
            Goal(1.05, 1.1),
            large,
            [[("grep", {"pattern": "never_to_be_found"})]],
            limit=("rg", "never_to_be_found"),
        ),
        Workload("grep over 50 000 files, common", Goal(reference=2), large, [[("grep", {"pattern": r"def \w+"})]]),
        Workload(
            "grep over 100 files",
            Goal(reference=8),
            small,
            [[("grep", {"pattern": "never_to_be_found"})]],
            limit=("rg", "never_to_be_found"),
        ),
        Workload(
            "find over 100 files", Goal(reference=25), small, [[("find", {"pattern": "*.py"})]], limit=("fd", "*.py")
        ),
        Workload(
            "grep over 2 000 files, none",
            Goal(),
            middle,
            [[("grep", {"pattern": "never_to_be_found"})]],
            limit=("rg", "never_to_be_found"),
        ),
        Workload(
            "find over 2 000 files",
            Goal(),
            middle,
            [[("find", {"pattern": "**/*.py", "limit": 100_000})]],
            limit=("fd", "*.py"),
        ),
        Workload(
            "grep over 10 000 files in memory, none",
            Goal(),
            large,
            [[("grep", {"pattern": "never_to_be_found"})]],
            in_memory=large,
        ),
        Workload(
            "find over 10 000 files in memory",
            Goal(),
            large,
            [[("find", {"pattern": "**/*.py", "limit": 100_000})]],
            in_memory=large,
        ),
        Workload(
            "bash true, one by one",
            Goal(4, 1.6),
            scratch,
            [[("bash", {"command": "true"})]],
            repeat=20,
            limit=("spawn", 1),
        ),
        Workload(
            "bash true, 16 at once",
            Goal(7, 1.6),
            scratch,
            [[("bash", {"command": "true"})] * 16],
            parallel=True,
            repeat=2,
            per=16,
            limit=("spawn", 16),
        ),
        Workload(
            "bash, 200 MB of output",
            Goal(6.5, 1.8),
            scratch,
            [[("bash", {"command": "head -c 200000000 /dev/zero | tr '\\0' 'x' | fold -w 99"})]],
            limit=("pipe", "head -c 200000000 /dev/zero | tr '\\0' 'x' | fold -w 99"),
        ),
        Workload(
            "cancel 200 processes",
            Goal(reference=3),
            scratch,
            [[("bash", {"command": "for i in $(seq 200); do sleep 1000 & done; wait"})]],
            cancel_after=1.0,
            limit=("kill", 200),
        ),
        Workload("import handrail", Goal(milliseconds=150), scratch, argv=["-c", "import handrail"], limit=_START),
        Workload(
            "handrail tools --json",
            Goal(milliseconds=250),
            scratch,
            argv=["-m", "handrail", "tools", "--json"],
            limit=_START,
        ),
    ]


def _first_file(corpus: Corpus) -> str:
    return str(next(path for path in sorted(corpus.small_tree.rglob("*.py"))).relative_to(corpus.small_tree))


def _read(path: str, offset: int | None = None) -> ToolCall:
    return "read", {"path": path} if offset is None else {"path": path, "offset": offset}


def _edit(path: str, pairs: Sequence[tuple[str, str]]) -> ToolCall:
    return "edit", {"path": path, "edits": [{"oldText": old, "newText": new} for old, new in pairs]}


def _toggle(path: str, texts: Sequence[str]) -> list[list[ToolCall]]:
    """Rounds that change some texts and then change them back."""
    there = [(text, text.replace(" ", "_", 1)) for text in texts]
    return [[_edit(path, there)], [_edit(path, [(new, old) for old, new in there])]]


def _spread(paths: Sequence[str]) -> list[list[ToolCall]]:
    return [[_edit(path, [(f"a = {a}\n", f"a = {3 - a}\n")]) for path in paths] for a in (1, 2)]
