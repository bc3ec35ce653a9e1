"""verify_log: is a log as it was written? Linear time, constant memory."""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as Base64Error
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Literal

from attrs import define, evolve, field, frozen

from handrail.adapters.recording.anchors import read_head
from handrail.adapters.recording.chain import GENESIS, Head, Line, parse_line
from handrail.adapters.recording.contents import ContentStore
from handrail.adapters.recording.errors import ContentError, LogError
from handrail.adapters.recording.format import check_header
from handrail.adapters.recording.json_values import is_list, is_object
from handrail.adapters.recording.reading import LogSource, content_store, name_of, raw_lines
from handrail.adapters.recording.signing import Verifier, signed_bytes

__all__ = ["Problem", "ProblemKind", "Verification", "verify_log"]

ProblemKind = Literal[
    "header",  # the first entry is not the beginning of a log that this program knows
    "edited",  # a line does not fit its own hash
    "removed",  # entries are missing before this one
    "inserted",  # this entry is not part of the chain
    "reordered",  # this entry belongs further on
    "forked",  # two recorders wrote this log at once
    "truncated",  # entries are missing at the end
    "signature",  # a checkpoint was not signed by the key
    "content",  # a content is missing or was altered
]

_REMEMBERED: Final = 1024


@frozen
class Problem:
    """The first thing that is wrong.

    Attributes:
        kind: What it is.
        seq: The entry concerned, as far as it can be told: the ``seq`` that should stand there.
        line: Its line, from 1.
        message: What to tell a person.
    """

    kind: ProblemKind
    seq: int
    line: int
    message: str


@frozen
class Verification:
    """What was found.

    Attributes:
        problem: The first thing that is wrong; ``None`` when the log is as it was written.
        entries: Good entries before it.
        head: The last of them.
        torn_bytes: Length of an incomplete last line: the writer was interrupted, which is no manipulation.
        complete: Whether the last recorder ended in order.
        signed_up_to: ``seq`` of the last genuine checkpoint; ``None`` without any, or when no key was given.
        lost: Entries that a sink refused, as the log itself says.
        redacted: Whether a recorder of this log redacted.
    """

    problem: Problem | None
    entries: int
    head: Head | None
    torn_bytes: int
    complete: bool
    signed_up_to: int | None
    lost: int
    redacted: bool

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def verify_log(
    source: LogSource,
    *,
    head: Head | str | os.PathLike[str] | None = None,
    verifier: Verifier | None = None,
    contents: bool = False,
    store: ContentStore | None = None,
) -> Verification:
    """Check a log and name the first bad entry.

    Without ``head`` and ``verifier``, missing entries at the end cannot be noticed, and somebody who writes the whole
    rest of the log anew is not found out.

    Args:
        source: The log.
        head: The head that an anchor kept, or the file it is in: the log must have this entry.
        verifier: The key that checkpoints must be signed by.
        contents: Check the kept contents too.
        store: Where they are; by default beside the log.

    Raises:
        LogError: The log or the anchor cannot be read.
    """
    anchored = read_head(head) if isinstance(head, str | os.PathLike) else head
    check = _Check(anchored, verifier, (store or content_store(source)) if contents else None)
    check.run(raw_lines(source), name_of(source))
    return check.verification()


@define(eq=False)
class _Check:
    anchored: Head | None
    verifier: Verifier | None
    store: ContentStore | None
    problem: Problem | None = None
    entries: int = 0
    last: Line | None = None
    torn_bytes: int = 0
    signed_up_to: int | None = None
    lost: int = 0
    redacted: bool = False
    anchor_seen: bool = False
    keeps_contents: bool = False
    recent: deque[str] = field(factory=lambda: deque(maxlen=_REMEMBERED))

    def run(self, lines: Iterator[bytes], name: str) -> None:
        for number, raw in enumerate(lines, 1):
            if not raw.endswith(b"\n"):
                self.torn_bytes = len(raw)
                break
            if not self._take(raw, number, name):
                self._look_ahead(lines)
                return
        if self.last is None:
            raise LogError(f"{name} has no entry.")
        self._check_end()

    def _take(self, raw: bytes, number: int, name: str) -> bool:
        """Check one line; returns whether to go on."""
        expected = 0 if self.last is None else int(self.last.entry["seq"]) + 1
        try:
            line = check_header(raw, name) if number == 1 else parse_line(raw)
        except LogError as error:
            self.problem = Problem("header", 0, number, str(error))
            return False
        except ValueError as error:
            self.problem = Problem("edited", expected, number, f"Entry {expected} was edited: {error}.")
            return False
        self.problem = self._chain_problem(line, expected, number) or self._own_problem(line, number)
        if self.problem is not None:
            return False
        self.last = line
        self.entries += 1
        self.recent.append(line.hash)
        self.redacted = self.redacted or bool(line.entry.get("redacted"))
        if self.anchored is not None and line.entry["seq"] == self.anchored.seq:
            self.anchor_seen = True
        return True

    def _chain_problem(self, line: Line, expected: int, number: int) -> Problem | None:
        previous = GENESIS if self.last is None else self.last.hash
        seq = line.entry["seq"]
        if line.entry["prev"] == previous:
            if seq == expected:
                return None
            first = line.entry.get("first")
            if line.entry["kind"] == "lost" and first == expected and seq >= expected:
                self.lost += seq - expected + 1
                return None
            return Problem("inserted", expected, number, f"Entry {expected} says that it is entry {seq}.")
        if seq > expected:
            message = f"Entry {expected} is missing; entry {seq} follows."
            return Problem("removed", expected, number, message)
        if line.entry["prev"] in self.recent or (line.entry["prev"] == GENESIS and self.last is not None):
            message = (
                f"Another entry {seq} follows entry {expected - 1}: two recorders wrote this log at once, "
                "or an entry was put in or repeated."
            )
            return Problem("forked", expected, number, message)
        if seq == expected:
            message = f"Entry {seq} is not chained to the one before: it was put in, or the one before was replaced."
            return Problem("inserted", expected, number, message)
        return Problem("reordered", expected, number, f"Entry {seq} stands where entry {expected} should be.")

    def _look_ahead(self, lines: Iterator[bytes]) -> None:
        """Tell entries in the wrong order from missing ones."""
        problem = self.problem
        if problem is None or problem.kind != "removed":
            return
        for raw in islice(lines, _REMEMBERED):
            with suppress(ValueError):
                if parse_line(raw).entry["seq"] == problem.seq:
                    message = f"Entry {problem.seq} stands further on: the order was changed."
                    self.problem = evolve(problem, kind="reordered", message=message)
                    return

    def _own_problem(self, line: Line, number: int) -> Problem | None:
        """Check what an entry claims: a signature, contents."""
        entry = line.entry
        seq = int(entry["seq"])
        if self.anchored is not None and seq == self.anchored.seq and line.hash != self.anchored.hash:
            return Problem(
                "edited", seq, number, f"Entry {seq} is not the one that was anchored: the log was replaced."
            )
        if entry["kind"] == "checkpoint" and self.verifier is not None:
            if not self._is_genuine(entry, self.verifier):
                return Problem("signature", seq, number, f"Checkpoint {seq} was not signed by {self.verifier.key}.")
            self.signed_up_to = seq
        if entry["kind"] == "log":
            self.keeps_contents = entry.get("contents") == "full"
        if self.store is not None and self.keeps_contents and entry["kind"] != "chunk":
            for digest in _kept_contents(entry):
                try:
                    for _ in self.store.pieces(digest):
                        pass
                except ContentError as error:
                    return Problem("content", seq, number, f"Entry {seq}: {error}")
        return None

    def _is_genuine(self, entry: Any, verifier: Verifier) -> bool:
        try:
            signature = b64decode(str(entry["signature"]), validate=True)
        except (KeyError, Base64Error, ValueError):
            return False
        return verifier.check(signature, signed_bytes(entry))

    def _check_end(self) -> None:
        assert self.last is not None
        end = int(self.last.entry["seq"])
        if self.anchored is not None and not self.anchor_seen:
            message = f"Entries {end + 1} to {self.anchored.seq} are missing at the end; the anchor knows of them."
            self.problem = Problem("truncated", end + 1, self.entries + 1, message)
        elif self.verifier is not None and self.signed_up_to is None:
            message = f"There is no checkpoint signed by {self.verifier.key}; the log may have been written anew."
            self.problem = Problem("signature", end, self.entries, message)

    def verification(self) -> Verification:
        last = self.last
        return Verification(
            self.problem,
            self.entries,
            last.head if last is not None else None,
            self.torn_bytes,
            last is not None and last.entry["kind"] in ("end", "checkpoint") and not self.torn_bytes,
            self.signed_up_to,
            self.lost,
            self.redacted,
        )


def _kept_contents(value: Any) -> Iterable[str]:
    """Yield the hashes of the contents that an entry says are in the store."""
    if is_object(value):
        digest = value.get("sha256")
        if isinstance(digest, str) and "size" in value:
            if value.get("kept", True):
                yield digest
            return
        for item in value.values():
            yield from _kept_contents(item)
    elif is_list(value):
        for item in value:
            yield from _kept_contents(item)
