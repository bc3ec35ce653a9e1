"""Whether a peer did what it was asked to do: an answer that lacks something, or a lost edit, is no success."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

__all__ = ["WrongResult", "all_ended", "check", "processes_in"]

_SHOWN_ENTRIES: Final = 500
_SHOWN_PATHS: Final = 1000
_SHOWN_MATCHES: Final = 100
_GRACE_SECONDS: Final = 2.0

ToolCall = tuple[str, dict[str, Any]]


class WrongResult(Exception):
    """A peer called something done that is not done."""


def check(cwd: str, calls: Sequence[ToolCall], answers: Sequence[str | BaseException]) -> None:
    """Check the answers of a round, and what it left on the disk.

    Raises:
        WrongResult: Edits are lost, or an answer lacks what was asked for.
        BaseException: The first error that a call ended with, where every call did or none was an edit.
    """
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    if not failures or len(failures) < len(calls):
        _check_edits(cwd, calls, failures)
    if failures:
        raise failures[0]
    for (tool, arguments), answer in zip(calls, answers, strict=True):
        assert isinstance(answer, str)
        _check_answer(cwd, tool, arguments, answer)


def processes_in(directory: str) -> list[int]:
    """Return the processes whose working directory this is (Linux; none elsewhere)."""
    return _of([int(path.name) for path in Path("/proc").glob("[0-9]*")], directory)


async def all_ended(processes: Sequence[int], directory: str) -> None:
    """Wait a moment until none of the processes works in the directory any more.

    Raises:
        WrongResult: Some go on; they are killed now.
    """
    until = time.monotonic() + _GRACE_SECONDS
    while left := _of(processes, directory):
        if time.monotonic() > until:
            for process in left:
                os.kill(process, signal.SIGKILL)
            raise WrongResult(f"left {len(left)} processes running")
        await asyncio.sleep(0.001)


def _check_edits(cwd: str, calls: Sequence[ToolCall], failures: Sequence[BaseException]) -> None:
    by_path: dict[str, list[dict[str, str]]] = {}
    for tool, arguments in calls:
        if tool == "edit":
            by_path.setdefault(arguments["path"], []).extend(arguments["edits"])
    kept = 0
    for path, edits in by_path.items():
        text = Path(cwd, path).read_text()
        kept += sum(edit["newText"] in text and edit["oldText"] not in text for edit in edits)
    if kept < (asked := sum(map(len, by_path.values()))):
        reported = f"; {len(failures)} calls said that they failed, first: {failures[0]}" if failures else ""
        raise WrongResult(f"kept {kept} of {asked} edits{reported}")


def _check_answer(cwd: str, tool: str, arguments: dict[str, Any], answer: str) -> None:
    match tool:
        case "read":
            if _first_line(os.path.join(cwd, arguments["path"]), arguments.get("offset", 1)) not in answer:
                raise WrongResult(f"the text asked for is not in the answer, which begins {answer[:100]!r}")
        case "write":
            if Path(cwd, arguments["path"]).read_text() != arguments["content"]:
                raise WrongResult("the file does not have the content that was written")
        case "ls":
            names = set(os.listdir(os.path.join(cwd, arguments.get("path", ""))))
            shown = len(names.intersection(re.split(r"[\s/]+", answer)))
            _expect(shown, len(names), arguments.get("limit", _SHOWN_ENTRIES))
        case "find":
            # Every pattern of a workload is a pattern of names, at any depth.
            name = PurePosixPath(arguments["pattern"]).name
            shown = sum(fnmatch(PurePosixPath(line.strip()).name, name) for line in answer.splitlines())
            _expect(shown, _count_files(cwd, name), arguments.get("limit", _SHOWN_PATHS))
        case "grep":
            shown = sum(bool(re.search(arguments["pattern"], line)) for line in answer.splitlines())
            _expect(shown, _count_matches(cwd, arguments["pattern"]), _SHOWN_MATCHES)


def _expect(shown: int, there: int, limit: int) -> None:
    wanted = min(there, limit)
    if shown < wanted:
        raise WrongResult(f"shows {shown} of {wanted}")


@functools.cache
def _first_line(path: str, offset: int) -> str:
    """The first line from an offset (counted from 1) that is not blank."""
    with open(path, encoding="utf-8") as stream:
        return next((line.strip() for line in islice(stream, offset - 1, None) if line.strip()), "")


@functools.cache
def _count_files(root: str, name: str) -> int:
    return sum(fnmatch(path.name, name) for path in _files(root))


@functools.cache
def _count_matches(root: str, pattern: str) -> int:
    """Count the matching lines of a tree, up to what an answer has to show."""
    search = re.compile(pattern.encode())
    lines = (line for path in _files(root) for line in _matching(search, path.read_bytes()))
    return sum(1 for _ in islice(lines, _SHOWN_MATCHES))


def _matching(search: re.Pattern[bytes], content: bytes) -> Iterator[bytes]:
    if search.search(content):
        yield from filter(search.search, content.split(b"\n"))


def _files(root: str) -> Iterator[Path]:
    for directory, _, names in os.walk(root):
        yield from (Path(directory, name) for name in names)


def _of(processes: Iterable[int], directory: str) -> list[int]:
    real = os.path.realpath(directory)
    return [process for process in processes if _working_directory(process) == real]


def _working_directory(process: int) -> str | None:
    try:
        return os.readlink(f"/proc/{process}/cwd")
    except OSError:
        return None  # ended, or not ours
