"""A log in a SQLite database, indexed by time, tool, call and path, for queries.

The table ``entries`` has the whole line of each entry in ``line``; the other columns repeat parts of it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import anyio.to_thread

from handrail.adapters.recording.chain import Head, Line
from handrail.adapters.recording.contents import ContentStore, DirectoryStore
from handrail.adapters.recording.errors import LogError
from handrail.adapters.recording.format import check_header
from handrail.adapters.recording.json_values import is_object
from handrail.adapters.recording.sinks.base import Opened

__all__ = ["SqliteSink", "is_sqlite", "lines_of"]

_MAGIC: Final = b"SQLite format 3\0"

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, call TEXT, tool TEXT,
    port TEXT, method TEXT, path TEXT, error TEXT, hash TEXT NOT NULL, line BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_time ON entries (time);
CREATE INDEX IF NOT EXISTS entries_by_tool ON entries (tool);
CREATE INDEX IF NOT EXISTS entries_by_call ON entries (call);
CREATE INDEX IF NOT EXISTS entries_by_path ON entries (path);
"""

_INSERT: Final = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SqliteSink:
    """Adds to a database, one transaction for what comes together. Contents go to ``PATH.contents``.

    Args:
        path: The database; continued where it exists.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def open(self) -> Opened:
        connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")  # taken and kept: one recorder a log
            _refuse_foreign(connection, self.path)
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute("COMMIT")
            head = _find_end(connection, self.path)
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" in str(error):
                raise LogError(f"{self.path} is being written by another recorder.") from error
            raise LogError(f"{self.path} cannot be used as a log: {error}") from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise LogError(f"{self.path} is not a SQLite database.") from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return Opened(head)

    async def write(self, lines: Sequence[Line]) -> None:
        await anyio.to_thread.run_sync(self._write, lines)

    async def aclose(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def default_store(self) -> ContentStore | None:
        return DirectoryStore(f"{self.path}.contents")

    def _write(self, lines: Sequence[Line]) -> None:
        with self._lock:
            assert self._connection is not None
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(_INSERT, [_row(line) for line in lines])
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise


def is_sqlite(path: str) -> bool:
    """Whether a file is a SQLite database."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def lines_of(path: str) -> Iterator[bytes]:
    """Yield the lines of a log in a database, in the order of ``seq``.

    Raises:
        LogError: It is no log, or it is damaged.
    """
    connection = sqlite3.connect(path, timeout=1)
    try:
        connection.execute("PRAGMA query_only=1")
        for (line,) in connection.execute("SELECT line FROM entries ORDER BY seq"):
            # A column of SQLite holds any type; only what a sink wrote is bytes.
            yield line if isinstance(line, bytes) else str(line).encode("utf-8", "surrogatepass") + b"\n"
    except sqlite3.DatabaseError as error:
        raise LogError(f"{path} cannot be read as a log: {error}") from error
    finally:
        connection.close()


def _refuse_foreign(connection: sqlite3.Connection, path: str) -> None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if tables and "entries" not in tables:
        raise LogError(f"{path} is a database of something else. Name a new file.")


def _find_end(connection: sqlite3.Connection, path: str) -> Head | None:
    first = connection.execute("SELECT line FROM entries ORDER BY seq LIMIT 1").fetchone()
    if first is None:
        return None
    check_header(bytes(first[0]), path)
    seq, digest = connection.execute("SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(seq, digest)


def _row(line: Line) -> tuple[Any, ...]:
    entry = line.entry
    error: Mapping[str, Any] = entry.get("error") or {}
    result: Mapping[str, Any] = entry["result"] if entry["kind"] == "result" else {}
    return (
        entry["seq"],
        entry["time"],
        entry["kind"],
        _storable(entry.get("call")),
        _storable(entry.get("tool")),
        entry.get("port"),
        entry.get("method"),
        _storable(_path_of(entry)),
        error.get("code") or result.get("errorCode"),
        line.hash,
        line.raw,
    )


def _path_of(entry: Mapping[str, Any]) -> str | None:
    """The path, or working directory, that an entry is about."""
    arguments: Any = entry.get("arguments")
    if is_object(arguments):
        for key in ("path", "source", "cwd"):
            if isinstance(arguments.get(key), str):
                return str(arguments[key])
    return None


def _storable(text: str | None) -> str | None:
    """SQLite takes no lone surrogates."""
    return text if text is None else text.encode("utf-8", "backslashreplace").decode()
