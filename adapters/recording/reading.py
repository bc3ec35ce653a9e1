"""Reading a log: its raw lines, one after another, from wherever they are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from handrail.adapters.recording.chain import Line, parse_line, seal
from handrail.adapters.recording.contents import ContentStore, DirectoryStore
from handrail.adapters.recording.errors import LogError
from handrail.adapters.recording.format import check_header
from handrail.adapters.recording.sinks.memory import MemoryLog
from handrail.adapters.recording.sinks.sqlite import is_sqlite, lines_of

__all__ = ["LogSource", "content_store", "name_of", "raw_lines", "read_log"]

LogSource = str | os.PathLike[str] | MemoryLog | Iterable[Mapping[str, Any]]
"""A file of JSON lines, a SQLite database, a log in memory, or the entries that a list sink was given."""

_MAX_LINE: Final = 256 * 1024 * 1024


def raw_lines(source: LogSource) -> Iterator[bytes]:
    """Yield the lines of a log as they are; the last may lack its newline.

    Raises:
        LogError: It cannot be opened.
    """
    if isinstance(source, MemoryLog):
        yield from source.lines
    elif isinstance(source, str | os.PathLike):
        yield from _lines_of_file(os.fspath(source))
    else:
        for entry in source:
            yield seal({key: value for key, value in entry.items() if key != "hash"}).raw


def read_log(source: LogSource, *, damaged: list[str] | None = None) -> Iterator[Line]:
    """Yield the entries of a log whose own hash is right; the chain is not checked.

    Args:
        source: The log.
        damaged: Gets a word on each line that is left out.

    Raises:
        LogError: It is no log, or of an unknown version.
    """
    number = 0
    for number, raw in enumerate(raw_lines(source), 1):
        if number == 1:
            yield check_header(raw, name_of(source))
            continue
        try:
            yield parse_line(raw)
        except ValueError as error:
            if damaged is not None:
                torn = "" if raw.endswith(b"\n") else " (the writer was interrupted)"
                damaged.append(f"line {number}: {error}{torn}")
    if number == 0:
        raise LogError(f"{name_of(source)} is empty.")


def content_store(source: LogSource) -> ContentStore | None:
    """Return where the contents of a log are by default."""
    if isinstance(source, MemoryLog):
        return source.store
    if isinstance(source, str | os.PathLike):
        return DirectoryStore(f"{os.fspath(source)}.contents")
    return None


def name_of(source: LogSource) -> str:
    """Return what messages call a log."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else "The log"


def _lines_of_file(path: str) -> Iterator[bytes]:
    try:
        if is_sqlite(path):
            yield from lines_of(path)
            return
        with open(path, "rb") as file:
            while line := file.readline(_MAX_LINE):
                yield line
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}.") from error
