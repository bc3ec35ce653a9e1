"""``handrail audit``: look at a log, verify it, replay it, count what is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import anyio
from attrs import define, field, frozen

from handrail.adapters.cli import terminal
from handrail.adapters.cli.errors import UsageError
from handrail.adapters.cli.timeline import Filter, line_of
from handrail.adapters.recording import (
    LogError,
    RecordedToolCall,
    RecordingError,
    Redaction,
    ed25519_verifier,
    verify_log,
)
from handrail.adapters.recording import replay as replay_log
from handrail.adapters.recording.chain import Line
from handrail.adapters.recording.json_values import is_list, is_object
from handrail.adapters.recording.reading import read_log
from handrail.core.toolbox import Call, Toolbox
from handrail.core.toolsets import all_tools

__all__ = ["replay", "show", "stats", "verify"]


# ------------------------------------------------------------------ show


def show(log: str, wanted: Filter, *, as_json: bool) -> int:
    """Print the entries that a filter lets through; 1 when some lines could not be read.

    Raises:
        UsageError: There is no log.
    """
    damaged: list[str] = []
    for line in _entries(log, damaged):
        if wanted.lets_through(line.entry):
            text = json.dumps({**line.entry, "hash": line.hash}) if as_json else line_of(line.entry)
            terminal.say(text)
    for word in damaged:
        terminal.say(f"handrail audit: {log}, {word}. 'handrail audit verify' tells more.", error=True)
    return 1 if damaged else 0


def _entries(log: str, damaged: list[str]) -> Iterator[Line]:
    try:
        yield from read_log(log, damaged=damaged)
    except LogError as error:
        raise UsageError(str(error)) from error


# ------------------------------------------------------------------ verify


def verify(log: str, *, head: str | None, key: str | None, contents: bool) -> int:
    """Print whether a log is as it was written; 1 when it is not.

    Raises:
        UsageError: The log, the head or the key cannot be read.
    """
    try:
        found = verify_log(log, head=head, verifier=ed25519_verifier(key) if key else None, contents=contents)
    except RecordingError as error:
        raise UsageError(str(error)) from error
    if found.problem is not None:
        problem = found.problem
        terminal.say(f"{log}: BAD at entry {problem.seq} (line {problem.line}, {problem.kind}): {problem.message}")
        terminal.say(f"{found.entries} entries before it are good.")
        return 1
    last = found.head.seq if found.head is not None else None
    terminal.say(f"{log}: intact, {found.entries} entries, the last is {last}.")
    notes = {
        f"The last {found.torn_bytes} bytes are half an entry: the writer was interrupted.": found.torn_bytes,
        "The recorder has not ended in order; it runs still, or was killed.": not found.complete,
        f"{found.lost} entries were refused by the sink when they were written.": found.lost,
        "Recorded with redaction: markers stand where secrets were.": found.redacted,
        f"Signed up to entry {found.signed_up_to}.": found.signed_up_to is not None,
        "Without --head or --key, missing entries at the end cannot be noticed.": head is None and key is None,
    }
    for note, holds in notes.items():
        if holds:
            terminal.say(note)
    return 0


# ------------------------------------------------------------------ replay


@frozen
class _Compared:
    call: RecordedToolCall
    now: Mapping[str, Any] | None

    @property
    def same(self) -> bool:
        return self.now is not None and self.now == self.call.result


def replay(log: str, *, lenient: bool, as_json: bool) -> int:
    """Make the recorded tool calls again, with the log in place of the world; 1 when something differs.

    Raises:
        UsageError: The log cannot be read, or has not kept what is needed.
    """
    try:
        compared, differences, redacted = anyio.run(partial(_replay, log, lenient))
    except RecordingError as error:
        raise UsageError(str(error)) from error
    if as_json:
        calls = [{"id": each.call.call_id, "tool": each.call.tool, "same": each.same} for each in compared]
        terminal.say(json.dumps({"calls": calls, "differences": differences, "redacted": redacted}, indent=2))
    else:
        for each in compared:
            terminal.say(f"{'same   ' if each.same else 'DIFFERS'} {each.call.call_id} {each.call.tool}")
        for text in differences:
            terminal.say(f"difference: {text}")
        same = sum(each.same for each in compared)
        terminal.say(f"{same} of {len(compared)} calls gave the recorded result.")
        if redacted:
            terminal.say("Recorded with redaction: what was replayed has markers where secrets were.")
    return 0 if not differences and all(each.same for each in compared) else 1


async def _replay(log: str, lenient: bool) -> tuple[list[_Compared], list[str], bool]:
    probe = replay_log(log)
    env = replay_log(log, "lenient" if lenient else "strict", redact=Redaction() if probe.redacted else None)
    compared: list[_Compared] = []
    async with env, Toolbox(env, all_tools()) as toolbox:
        for batch in _batches(env.calls()):
            asked = [Call(call.tool, call.arguments, call.call_id) for call in batch]
            results = await toolbox.run(asked)
            # An unfinished call has no result to compare with.
            compared += [
                _Compared(call, result.to_dict())
                for call, result in zip(batch, results, strict=True)
                if call.result is not None
            ]
    return compared, list(env.differences), env.redacted


def _batches(calls: Sequence[RecordedToolCall]) -> Iterator[list[RecordedToolCall]]:
    """Group calls that ran at the same time."""
    batch: list[RecordedToolCall] = []
    end = -1
    for call in calls:
        if batch and call.began > end:
            yield batch
            batch, end = [], -1
        batch.append(call)
        end = max(end, call.ended if call.ended is not None else call.began)
    if batch:
        yield batch


# ------------------------------------------------------------------ stats


@define
class _Tool:
    calls: int = 0
    failures: int = 0
    seconds: float = 0.0


@define
class _Stats:
    entries: int = 0
    port_calls: int = 0
    refused: int = 0
    commands: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_printed: int = 0
    tools: dict[str, _Tool] = field(factory=dict[str, _Tool])
    _began: dict[int, float] = field(factory=dict[int, float])
    _methods: dict[int, str] = field(factory=dict[int, str])

    def take(self, entry: Mapping[str, Any]) -> None:
        self.entries += 1
        match entry["kind"]:
            case "call":
                self._began[entry["seq"]] = entry["at"]
            case "result":
                tool = self.tools.setdefault(entry["tool"], _Tool())
                tool.calls += 1
                tool.failures += bool(entry["result"].get("isError"))
                tool.seconds += entry["at"] - self._began.pop(entry["within"], entry["at"])
            case "start" if entry["method"] in ("write", "append"):
                self.bytes_written += entry["arguments"]["data"]["size"]
            case "port" if entry["port"] in ("files", "commands"):
                self._take_port_call(entry)
            case _:
                pass

    def _take_port_call(self, entry: Mapping[str, Any]) -> None:
        self.port_calls += 1
        self.refused += "error" in entry
        result = entry.get("result")
        if entry["method"] == "run":
            self.commands += 1
            self.bytes_printed += _size(result, "content")
        elif entry["method"] in _READS:
            for each in result if is_list(result) else [result]:
                self.bytes_read += _size(each, "data") + _size(each, "content")


_READS: Final = ("read", "read_many", "read_chunks", "scan")


def stats(log: str, *, as_json: bool) -> int:
    """Print what a log has in numbers; 1 when some lines could not be read.

    Raises:
        UsageError: There is no log.
    """
    damaged: list[str] = []
    counted = _Stats()
    for line in _entries(log, damaged):
        counted.take(line.entry)
    tools = {
        name: {"calls": tool.calls, "failures": tool.failures, "seconds": round(tool.seconds, 3)}
        for name, tool in sorted(counted.tools.items())
    }
    totals = {
        "entries": counted.entries,
        "calls": sum(tool.calls for tool in counted.tools.values()),
        "failures": sum(tool.failures for tool in counted.tools.values()),
        "portCalls": counted.port_calls,
        "refusedPortCalls": counted.refused,
        "commands": counted.commands,
        "bytesRead": counted.bytes_read,
        "bytesWritten": counted.bytes_written,
        "bytesPrinted": counted.bytes_printed,
    }
    if as_json:
        terminal.say(json.dumps({**totals, "tools": tools}, indent=2))
    else:
        for name, value in totals.items():
            terminal.say(f"{_words(name):<20}{value:>14,}")
        for name, tool in tools.items():
            terminal.say(f"{name:<20}{tool['calls']:>8} calls {tool['failures']:>6} failed {tool['seconds']:>10.3f} s")
    for word in damaged:
        terminal.say(f"handrail audit: {log}, {word}.", error=True)
    return 1 if damaged else 0


def _size(value: Any, key: str) -> int:
    described = value.get(key) if is_object(value) else None
    return int(described["size"]) if is_object(described) else 0


def _words(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
