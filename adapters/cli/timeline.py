"""The entries of a log as lines for people, and which of them somebody wants to see. Pure."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from handrail.adapters.recording.json_values import is_list, is_object

__all__ = ["Filter", "line_of"]

_MAX_SHOWN: Final = 160


@frozen
class Filter:
    """Which entries to show; all conditions must hold.

    Attributes:
        tool: Name of the tool.
        call: Name of the tool call.
        path: A pattern (``fnmatch``) of a path in the entry, or a part of one.
        since: First time, as a prefix of ISO 8601 in UTC.
        until: Last time.
        errors: Only what failed.
        everything: Also readings of the clock, pieces of output, and announcements.
    """

    tool: str | None = None
    call: str | None = None
    path: str | None = None
    since: str | None = None
    until: str | None = None
    errors: bool = False
    everything: bool = False

    def lets_through(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry is to be shown."""
        if not self.everything and (entry.get("port") in ("clock", "offload") or entry["kind"] in ("chunk", "exit")):
            return False
        return (
            self.tool in (None, entry.get("tool"))
            and self.call in (None, entry.get("call"))
            and (self.path is None or any(_fits(path, self.path) for path in _paths(entry)))
            and (self.since is None or entry["time"] >= self.since)
            and (self.until is None or entry["time"][: len(self.until)] <= self.until)
            and (not self.errors or _failed(entry))
        )


def line_of(entry: Mapping[str, Any]) -> str:
    """Return an entry as one line. It may hold anything that was recorded; whoever prints it escapes it."""
    clock = entry["time"][11:23]
    indent = "    " if entry["kind"] in ("start", "port", "chunk", "exit") and "call" in entry else ""
    return f"{entry['seq']:>6} {clock} {indent}{_said(entry)}"


def _said(entry: Mapping[str, Any]) -> str:
    match entry["kind"]:
        case "log":
            kept = f"contents {entry['contents']}{', redacted' if entry['redacted'] else ''}"
            return f"recorder {entry['recorder'][:8]} begins in {_short(entry['cwd'])} ({kept})"
        case "call":
            return f"{entry['call']}: {entry['tool']} {_short(entry['arguments'])}"
        case "result":
            result = entry["result"]
            outcome = f"failed ({result.get('errorCode', 'error')})" if result.get("isError") else "ok"
            return f"{entry['call']}: {entry['tool']} {outcome}: {_short(_text_of(result))}"
        case "start":
            return f"{entry['port']}.{entry['method']} {_short(entry['arguments'])} …"
        case "port":
            asked = _short(entry["arguments"]) if "arguments" in entry else f"(op {entry['op']})"
            return f"{entry['port']}.{entry['method']} {asked} -> {_outcome(entry)} ({entry['seconds'] * 1000:.1f} ms)"
        case "chunk":
            return f"output (op {entry['op']}): {entry['content']['size']} bytes"
        case "exit":
            return f"program ended (op {entry['op']}): {_short(entry['exit'])}"
        case "checkpoint":
            return f"checkpoint signed by {entry['key']}"
        case "lost":
            return f"entries {entry['first']} to {entry['seq']} were refused by the sink"
        case "end":
            return "recorder ends"
        case other:
            return str(other)


def _outcome(entry: Mapping[str, Any]) -> str:
    if "error" in entry:
        return f"refused: {entry['error']['code']}"
    if "raised" in entry:
        return f"raised {entry['raised']}"
    if entry.get("cancelled"):
        return "cancelled"
    return _short(entry["result"]) if "result" in entry else "done"


def _failed(entry: Mapping[str, Any]) -> bool:
    if entry["kind"] == "result":
        return bool(entry["result"].get("isError"))
    return entry["kind"] == "lost" or any(key in entry for key in ("error", "raised", "cancelled"))


def _paths(value: Any) -> Iterator[str]:
    """All texts in an entry's arguments and outcome that may be paths."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in ("arguments", "result", "error", "path", "paths", "source", "target", "cwd", "canonical_path"):
            if key in value:
                yield from _paths(value[key])
    elif is_list(value):
        for item in value:
            yield from _paths(item)


def _fits(path: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path, pattern) or pattern in path


def _text_of(result: Mapping[str, Any]) -> Any:
    content = result.get("content")
    first = content[0] if is_list(content) and content else None
    return first.get("text", "(image)") if is_object(first) else ""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(_described(value), ensure_ascii=False)
    text = text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _described(value: Any) -> Any:
    """A value with contents in words."""
    if is_object(value):
        inner = value.get("$text", value.get("$bytes", value))
        if is_object(inner) and "size" in inner and set(inner) <= {"size", "sha256", "kept", "redacted"}:
            redacted = f", redacted {', '.join(inner['redacted'])}" if "redacted" in inner else ""
            return f"<{inner['size']} bytes{redacted}>"
        return {key: _described(item) for key, item in value.items()}
    if is_list(value):
        return [_described(item) for item in value]
    return value
