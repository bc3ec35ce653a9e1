"""How arguments and outcomes of port calls, and of tool calls, stand in an entry, and how they are read back.

JSON values stay what they are, with these exceptions: a long text is a content (``{"$text": …}``), bytes are one
(``{"$bytes": …}``), a float that is no number is ``{"$float": "nan"}``, what is no JSON value at all is
``{"$object": "its type"}``, and a key that begins with ``$`` gets one more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from handrail.adapters.recording.json_values import is_list, is_mapping, is_object, is_sequence
from handrail.adapters.recording.keeping import HIDDEN, ContentKeeper
from handrail.ports.commands import BackgroundProcess, Command, Exit, Inheritance
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FileStat, Version, WriteReceipt

__all__ = [
    "Encoder",
    "decode_content",
    "decode_error",
    "decode_exit",
    "decode_listing",
    "decode_receipt",
    "decode_stat",
    "decode_stat_or_error",
    "decode_value",
]

_MAX_TEXT: Final = 512
"""Characters of a text that stands in the entry itself; a longer one is a content."""

_Fetch = Callable[[Mapping[str, Any]], bytes]
"""Returns the content that an entry describes."""


class Encoder:
    """Turns values into JSON for one log.

    Args:
        keeper: Takes the contents.
    """

    def __init__(self, keeper: ContentKeeper) -> None:
        self._keeper = keeper

    def value(self, value: Any, *, max_text: int = _MAX_TEXT, hidden: bool = False) -> Any:
        """Return any value in its recorded form.

        Args:
            value: The value.
            max_text: Longest text that stays in the entry.
            hidden: Replace every text.
        """
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, str):
            return self._text(value, max_text, hidden)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, bytes | bytearray):
            return {"$bytes": self._keeper.describe(bytes(value), hidden=hidden)}
        if is_mapping(value):
            return {
                _escaped(self._keeper.text(str(key))): self.value(item)
                if key in _LABELS
                else self.value(item, max_text=max_text, hidden=hidden)
                for key, item in value.items()
            }
        if is_sequence(value):
            return [self.value(item, max_text=max_text, hidden=hidden) for item in value]
        return {"$object": type(cast(object, value)).__name__}

    def _text(self, text: str, max_text: int, hidden: bool) -> Any:
        if hidden:
            return HIDDEN
        if len(text) <= max_text:
            return self._keeper.text(text)
        return {"$text": self._keeper.describe(text.encode("utf-8", "surrogatepass"))}

    # -------------------------------------------------------------- ports

    def error(self, error: PortError) -> dict[str, Any]:
        """A refusal."""
        return {"code": error.code, "path": self._keeper.text(error.path), "detail": self._keeper.text(error.detail)}

    def stat(self, stat: FileStat) -> dict[str, Any]:
        """A stat."""
        return {
            "kind": stat.kind,
            "size": stat.size,
            "mode": stat.mode,
            "mtime_ns": stat.mtime_ns,
            "version": self._keeper.version(stat.version),
        }

    def stats(self, stats: Sequence[FileStat | PortError]) -> list[dict[str, Any]]:
        """Several stats."""
        return [self._error(stat) if isinstance(stat, PortError) else self.stat(stat) for stat in stats]

    def content(self, content: FileContent, *, hidden: bool = False) -> dict[str, Any]:
        """What was read."""
        return {
            "data": self._keeper.describe(content.data, hidden=hidden),
            "stat": self.stat(content.stat),
            "canonical_path": self._keeper.text(content.canonical_path),
        }

    def contents(self, contents: Sequence[FileContent | PortError], hidden: Sequence[bool]) -> list[Any]:
        """Several reads."""
        return [
            self._error(content) if isinstance(content, PortError) else self.content(content, hidden=hides)
            for content, hides in zip(contents, hidden, strict=True)
        ]

    def entries(self, entries: Sequence[DirEntry]) -> list[list[str]]:
        """A directory."""
        return [[self._keeper.text(entry.name), entry.kind] for entry in entries]

    def listings(self, listings: Sequence[DirListing]) -> list[dict[str, Any]]:
        """Several directories."""
        return [
            {"path": self._keeper.text(listing.path)}
            | ({"entries": self.entries(listing.entries)} if listing.error is None else self._error(listing.error))
            for listing in listings
        ]

    def receipt(self, receipt: WriteReceipt, *, hidden: bool = False) -> dict[str, Any]:
        """What a write did."""
        encoded: dict[str, Any] = {
            "stat": self.stat(receipt.stat),
            "created": receipt.created,
            "canonical_path": self._keeper.text(receipt.canonical_path),
        }
        if receipt.previous is not None:
            encoded["previous"] = self.content(receipt.previous, hidden=hidden)
        return encoded

    def command(self, command: Command) -> dict[str, Any]:
        """A command; what is as by default is left out."""
        encoded: dict[str, Any] = {"argv": self.value(command.argv), "cwd": self.value(command.cwd)}
        if command.env:
            encoded["env"] = self.value(command.env)
        if command.inherit != Inheritance():
            inherit = command.inherit
            encoded["inherit"] = {"base": inherit.base, "allow": list(inherit.allow), "deny": list(inherit.deny)}
        if command.stdin is not None:
            encoded["stdin"] = self.value(command.stdin)
        limits = {name: getattr(command.limits, name) for name in _LIMITS}
        if any(limit is not None for limit in limits.values()):
            encoded["limits"] = limits
        return encoded

    def exit(self, ended: Exit) -> dict[str, Any]:
        """How a command ended."""
        encoded: dict[str, Any] = {"code": ended.code}
        if ended.signal is not None:
            encoded["signal"] = ended.signal
        if ended.background:
            encoded["background"] = [[process.pid, self.value(process.command_line)] for process in ended.background]
        return encoded

    def _error(self, error: PortError) -> dict[str, Any]:
        return {"error": self.error(error)}


_LIMITS: Final = ("cpu_seconds", "address_space_bytes", "file_size_bytes", "processes", "open_files")


_LABELS: Final = ("type", "mimeType")
"""Say what a block of a result is, not what is in it."""


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


# ------------------------------------------------------------------ reading back


def decode_value(value: Any, fetch: _Fetch) -> Any:
    """Return a value from its recorded form."""
    if is_list(value):
        return [decode_value(item, fetch) for item in value]
    if not is_object(value):
        return value
    if len(value) == 1:
        (key, inner), *_ = value.items()
        if key == "$text":
            return fetch(inner).decode("utf-8", "surrogatepass")
        if key == "$bytes":
            return fetch(inner)
        if key == "$float":
            return float(inner)
        if key == "$object":
            return f"<{inner}>"
    return {key.removeprefix("$") if key.startswith("$$") else key: decode_value(value[key], fetch) for key in value}


def decode_error(value: Mapping[str, Any]) -> PortError:
    """Return a refusal."""
    return PortError(value["code"], value["path"], value["detail"])


def decode_stat(value: Mapping[str, Any]) -> FileStat:
    """Return a stat."""
    return FileStat(value["kind"], value["size"], value["mode"], value["mtime_ns"], Version(value["version"]))


def decode_stat_or_error(value: Mapping[str, Any]) -> FileStat | PortError:
    """Return a stat, or why there is none."""
    return decode_error(value["error"]) if "error" in value else decode_stat(value)


def decode_content(value: Mapping[str, Any], fetch: _Fetch) -> FileContent | PortError:
    """Return what was read, or why not."""
    if "error" in value:
        return decode_error(value["error"])
    return FileContent(fetch(value["data"]), decode_stat(value["stat"]), value["canonical_path"])


def decode_listing(value: Mapping[str, Any]) -> DirListing:
    """Return a directory, or why it could not be listed."""
    if "error" in value:
        return DirListing(value["path"], error=decode_error(value["error"]))
    return DirListing.of(value["path"], [DirEntry(name, kind) for name, kind in value["entries"]])


def decode_receipt(value: Mapping[str, Any], fetch: _Fetch) -> WriteReceipt:
    """Return what a write did."""
    previous = decode_content(value["previous"], fetch) if "previous" in value else None
    assert not isinstance(previous, PortError)
    return WriteReceipt(decode_stat(value["stat"]), value["created"], value["canonical_path"], previous)


def decode_exit(value: Mapping[str, Any], fetch: _Fetch) -> Exit:
    """Return how a command ended."""
    background = tuple(BackgroundProcess(pid, decode_value(line, fetch)) for pid, line in value.get("background", ()))
    return Exit(value["code"], value.get("signal"), background)
