"""What a command printed, boiled down while it prints: bytes in, a snapshot out.

Theory of operation. Bytes pass four stages, each indifferent to how the stream was divided:

    bytes ─ decode ─► characters ─ sanitise ─► text ─ fold ─► lines ─ keep both ends ─► snapshot

Decoding is incremental, so a character split between two reads is whole; what is not valid becomes U+FFFD and
a byte order mark at the start goes. Sanitising is ``core.sanitizing``. Folding: a line that a program rewrote
many times with carriage returns is a progress bar, and only its last state is kept. Of the result the first
and the last bytes are kept, and exact totals. Plain ASCII takes a short cut through the first two stages.

No clock, no file, no command here: who feeds it decides when to look and where the raw bytes go.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Final

from attrs import define, evolve, field, frozen

from handrail.core.sanitizing import Sanitizer
from handrail.core.truncation import MAX_BYTES, MAX_LINES, Truncation, join_ends, truncate_tail

__all__ = ["OutputAccumulator", "SecretMask", "Snapshot"]

_KEPT_BYTES: Final = 1024 * 1024
_PIECE_BYTES: Final = 128 * 1024
"""What is worked on in one step: large against the cost of a step, small against the processor's cache."""

_MAX_REWRITES: Final = 10
"""A line rewritten more often than this is a progress bar."""

_CONTROLS: Final = [bytes([code]) for code in (*range(0x20), 0x7F) if code not in b"\t\n\r"]

_UTF16_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@frozen
class Snapshot:
    """The output so far.

    Attributes:
        truncation: The end of the text within the limits, with the totals of all of it.
        last_line_bytes: Size of the last line, its newline not counted.
        folded: Whether a progress bar was reduced to its last state.
    """

    truncation: Truncation
    last_line_bytes: int
    folded: bool


class OutputAccumulator:
    """Takes the output of one command in pieces.

    Args:
        max_lines: Most lines that a snapshot shows.
        max_bytes: Most bytes that a snapshot shows.
        utf16: Take a byte order mark of UTF-16 at the start for what it says, as PowerShell writes it.

    Attributes:
        raw_bytes: How many bytes came in.
    """

    def __init__(self, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES, utf16: bool = False) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self.raw_bytes = 0
        self._pending = bytearray()
        self._decoder = _Decoder(utf16)
        self._sanitizer = Sanitizer()
        self._lines = _Lines(max_bytes + 16)

    @property
    def exceeds_limits(self) -> bool:
        """Whether a snapshot cannot show everything as it came in."""
        if self.raw_bytes > self._max_bytes:
            return True
        self._digest()
        lines = self._lines
        return lines.size > self._max_bytes or lines.count > self._max_lines or lines.folded

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.raw_bytes += len(data)
        if len(self._pending) + len(data) < _PIECE_BYTES:
            self._pending += data
            return
        self._digest()
        for start in range(0, len(data), _PIECE_BYTES):
            self._take(data[start : start + _PIECE_BYTES])

    def finish(self) -> None:
        """Take note that nothing follows; an incomplete character at the end is an invalid one."""
        self._digest()
        self._lines.feed(self._sanitizer.feed(self._decoder.finish()).encode())
        self._lines.finish()

    def snapshot(self) -> Snapshot:
        """Return the end of the text so far."""
        self._digest()
        lines = self._lines
        text = _decode_tail(lines.tail(self._max_bytes + 16), cut=lines.size > self._max_bytes + 16)
        shown = truncate_tail(text, max_lines=self._max_lines, max_bytes=self._max_bytes)
        totals = evolve(shown, total_lines=lines.count, total_bytes=lines.size)
        return Snapshot(totals, lines.last_line_bytes, lines.folded)

    def text(self) -> tuple[str, bool]:
        """Return the text so far, the middle left out where it is over 1 MiB, and whether it was."""
        self._digest()
        lines = self._lines
        if lines.size <= _KEPT_BYTES:
            return lines.whole().decode(), False
        head = lines.head(_KEPT_BYTES // 2).decode("utf-8", "ignore")
        head_bytes = head.encode()
        tail = _decode_tail(lines.tail(_KEPT_BYTES - len(head_bytes)), cut=True)
        omitted = lines.size - len(head_bytes) - len(tail.encode())
        newlines = lines.newlines - head.count("\n") - tail.count("\n")
        return join_ends(head, tail, omitted_bytes=omitted, omitted_newlines=newlines), True

    def _digest(self) -> None:
        """Pass on what waits. Pieces are large, so that small reads cost little."""
        if self._pending:
            data = bytes(self._pending)
            self._pending.clear()
            self._take(data)

    def _take(self, data: bytes) -> None:
        if self._decoder.at_rest and self._sanitizer.at_rest and _is_plain(data):
            self._lines.feed(data)
        else:
            self._lines.feed(self._sanitizer.feed(self._decoder.feed(data)).encode())


def _is_plain(data: bytes) -> bool:
    """Whether the bytes are ASCII without control characters; a search for each is faster than one table."""
    return data.isascii() and not any(control in data for control in _CONTROLS)


class _Decoder:
    """Bytes to characters, in pieces."""

    def __init__(self, utf16: bool) -> None:
        self._utf16 = utf16
        self._start: bytearray | None = bytearray()
        self._inner: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def at_rest(self) -> bool:
        """Whether plain ASCII may pass without decoding."""
        return self._start is None and not self._inner.getstate()[0] and not self._utf16

    def feed(self, data: bytes) -> str:
        if self._start is None:
            return self._inner.decode(data)
        self._start += data
        if codecs.BOM_UTF8.startswith(self._start) or (self._utf16 and len(self._start) < 2):
            return ""  # a byte order mark may still become complete
        return self._begin()

    def finish(self) -> str:
        return (self._begin() if self._start is not None else "") + self._inner.decode(b"", True)

    def _begin(self) -> str:
        start, self._start = bytes(self._start or b""), None
        encoding = _UTF16_MARKS.get(start[:2]) if self._utf16 else None
        if encoding is not None:
            self._inner = codecs.getincrementaldecoder(encoding)("replace")
            return self._inner.decode(start[2:])
        self._utf16 = False
        return self._inner.decode(start.removeprefix(codecs.BOM_UTF8))


@define(eq=False)
class _Ends:
    """The first and the last bytes of something that grows, and its size."""

    keep: int
    """How many bytes of each end are kept at least."""
    first: bytearray = field(factory=bytearray)
    last: bytearray = field(factory=bytearray)
    size: int = 0

    def append(self, data: bytes | bytearray | memoryview) -> None:
        room = self.keep - len(self.first)
        if room > 0:
            self.first += data[:room]
        self.last += data[-self.keep :]
        if len(self.last) > 2 * self.keep:
            del self.last[: -self.keep]
        self.size += len(data)

    def extend(self, other: _Ends) -> None:
        if other.size <= len(other.last):
            self.append(other.last)
            return
        self.first += other.first[: max(self.keep - len(self.first), 0)]
        self.last[:] = other.last
        self.size += other.size

    def is_blank(self) -> bool:
        return not self.last.strip()


class _Lines:
    """Clean text as lines: progress bars folded, both ends kept, totals counted.

    Complete lines and the current one are kept apart, because folding changes the current line only.
    """

    def __init__(self, least_kept: int) -> None:
        self._keep = max(least_kept, _KEPT_BYTES // 2 + 16)
        self._done = _Ends(self._keep)
        self._current = _Ends(self._keep)
        self._rewrites = 0
        self._state = _Ends(self._keep)
        """The current line since its last carriage return; of use once there was one."""
        self._last_shown = _Ends(self._keep)
        """Its last state before that, unless blank."""
        self._held = b""
        """A carriage return at the very end: of a line ending, if a newline follows."""
        self._last_done_bytes = 0
        self._has_folded = False
        self.newlines = 0

    @property
    def size(self) -> int:
        return self._done.size + self._line.size

    @property
    def count(self) -> int:
        return self.newlines + (1 if self._line.size else 0)

    @property
    def last_line_bytes(self) -> int:
        return self._line.size or self._last_done_bytes

    @property
    def folded(self) -> bool:
        return self._has_folded or self._rewrites > _MAX_REWRITES

    @property
    def _line(self) -> _Ends:
        """The current line as it is shown."""
        if self._rewrites <= _MAX_REWRITES:
            return self._current
        return self._last_shown if self._state.is_blank() else self._state

    def head(self, size: int) -> bytes:
        """The first bytes, at most ``size``."""
        first = self._done.first[:size]
        return bytes(first + self._line.first[: size - len(first)])

    def tail(self, size: int) -> bytes:
        """The last bytes, at most ``size``."""
        last = self._line.last[-size:]
        if self._line.size < size:
            last = self._done.last[-(size - len(last)) :] + last
        return bytes(last)

    def whole(self) -> bytes:
        """All of it; only while it is not larger than both ends together."""
        tail = self.tail(self._keep)
        return self.head(self.size - len(tail)) + tail

    def feed(self, data: bytes) -> None:
        data = self._held + data
        self._held = data[-1:] if data.endswith(b"\r") else b""
        if self._held:
            data = data[:-1]
        at = 0
        while at < len(data):
            if not self._rewrites:
                at = self._feed_plain(data, at)
            if at < len(data):
                at = self._feed_rewritten(data, at)

    def finish(self) -> None:
        """Take note that nothing follows."""
        held, self._held = self._held, b""
        self._rewrite(held)

    def _feed_plain(self, data: bytes, at: int) -> int:
        """Take lines up to the next one that is rewritten; return where that one starts."""
        rewrite = _REWRITE.search(data, at) if b"\r" in data else None
        stop = len(data) if rewrite is None else data.rfind(b"\n", at, rewrite.start()) + 1 or at
        end = data.rfind(b"\n", at, stop)
        if end >= 0:
            before = data.rfind(b"\n", at, end)
            self._last_done_bytes = end - before - 1 if before >= 0 else self._current.size + end - at
            self.newlines += data.count(b"\n", at, stop)
            if self._current.size:
                self._done.extend(self._current)
                self._current = _Ends(self._keep)
            self._done.append(memoryview(data)[at : end + 1])
            at = end + 1
        self._current.append(memoryview(data)[at:stop])
        return stop

    def _feed_rewritten(self, data: bytes, at: int) -> int:
        """Take the rest of a line that is rewritten; return where the next one starts."""
        end = data.find(b"\n", at)
        if end < 0:
            self._rewrite(data[at:])
            return len(data)
        line = data[at:end]
        self._rewrite(line.removesuffix(b"\r"))
        self._end_line(b"\r\n" if line.endswith(b"\r") else b"\n")
        return end + 1

    def _rewrite(self, data: bytes) -> None:
        """Take a piece of the current line."""
        first, *states = data.split(b"\r")
        if self._rewrites <= _MAX_REWRITES:
            self._current.append(data)
        if self._rewrites:
            self._state.append(first)
        if not states:
            return
        self._rewrites += len(states)
        last, shown = states.pop(), next((state for state in reversed(states) if state.strip()), None)
        if shown is not None:
            self._last_shown = _Ends(self._keep)
            self._last_shown.append(shown)
        elif not self._state.is_blank():
            self._last_shown = self._state
        self._state = _Ends(self._keep)
        self._state.append(last)

    def _end_line(self, ending: bytes) -> None:
        line = self._line
        self._last_done_bytes = line.size + len(ending) - 1
        self.newlines += 1
        self._has_folded = self.folded
        self._done.extend(line)
        self._done.append(ending)
        self._current, self._state, self._last_shown = (_Ends(self._keep) for _ in range(3))
        self._rewrites = 0


_REWRITE: Final = re.compile(rb"\r(?!\n)")


class SecretMask:
    """Replaces secret values in a stream of bytes, also where a value is split between pieces.

    Args:
        values: What must not be seen. Empty values are ignored.
    """

    def __init__(self, values: Iterable[str]) -> None:
        # Longest first: of two values that start alike, the longer one is masked whole.
        self._values = sorted((value.encode() for value in values if value), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._values))) if self._values else None
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return what may be shown; the end is held back while it may be the start of a value."""
        if self._pattern is None:
            return data
        data = self._held + data
        shown: list[bytes] = []
        at = 0
        open_end = self._open_end(data, at)
        while (match := self._pattern.search(data, at)) and match.start() < open_end:
            shown += (data[at : match.start()], _MASK)
            at = match.end()
            open_end = max(open_end, self._open_end(data, at))
        self._held = data[open_end:]
        return b"".join((*shown, data[at:open_end]))

    def finish(self) -> bytes:
        """Return what was held back."""
        held, self._held = self._held, b""
        return self._pattern.sub(_MASK, held) if self._pattern else held

    def text(self, text: str) -> str:
        """Return a whole text with the values replaced."""
        if self._pattern is None:
            return text
        return self._pattern.sub(_MASK, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def _open_end(self, data: bytes, at: int) -> int:
        """Where, from ``at`` on, the first value may start that is not complete yet."""
        return min(len(data) - _overlap(data, value, len(data) - at) for value in self._values)


_MASK: Final = b"***"


def _overlap(data: bytes, value: bytes, most: int) -> int:
    """How many bytes at the end of the data start the value without completing it."""
    longest = min(len(value) - 1, most)
    return next((size for size in range(longest, 0, -1) if data.endswith(value[:size])), 0)


def _decode_tail(data: bytes, *, cut: bool) -> str:
    """Decode the end of a text; where it was cut, the rest of a divided character at the start goes."""
    return (data.lstrip(_CONTINUATION) if cut else data).decode()


_CONTINUATION: Final = bytes(range(0x80, 0xC0))
