"""Which lines of a text match, and what is shown of them: matches, context, long lines cut around the match.

Pure: bytes of whole lines go in, lines to show come out. The matching engine is RE2 where it is installed and otherwise
the automaton of ``core.automata``; both take linear time and agree.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from attrs import define, field, frozen

from handrail.core.automata import LineAutomaton
from handrail.core.regexes import Node
from handrail.core.spelling import has_word_boundary, required_text, to_re2
from handrail.core.text import Binary, decode, visible
from handrail.core.truncation import MAX_LINE_CHARACTERS, truncate_line

__all__ = [
    "FileScan",
    "LineMatcher",
    "Searchable",
    "ShownLine",
    "cut_around",
    "is_plain",
    "lines_of_binary",
    "searchable",
]


@cache
def _load_re2() -> Any:
    """RE2's module, loaded with the first search; ``None`` where there is no wheel for the platform."""
    try:
        return import_module("re2")
    except ImportError:
        return None


# ------------------------------------------------------------------ text


@frozen
class Searchable:
    """The content of a file, ready to be searched."""

    data: bytes = field(repr=False)
    """UTF-8, without a byte order mark; of a binary file, its bytes in lines that end at a NUL too."""
    is_binary: bool = False


def searchable(data: bytes) -> Searchable:
    """Return the text of a whole file as UTF-8, whatever its encoding.

    A NUL makes a file binary; so are UTF-32 and UTF-16 without a mark.
    """
    if data.startswith(codecs.BOM_UTF8):
        data = data[3:]
    elif data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not data.startswith(codecs.BOM_UTF32_LE):
        return _decoded(data)
    if b"\0" in data:
        return Searchable(lines_of_binary(data), is_binary=True)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _decoded(data)
    return Searchable(data)


def _decoded(data: bytes) -> Searchable:
    document = decode(data)
    text = data if isinstance(document, Binary) else visible(document.text).encode("utf-8")
    is_binary = isinstance(document, Binary) or b"\0" in text
    return Searchable(lines_of_binary(text) if is_binary else text, is_binary)


def is_plain(data: bytes) -> bool:
    """Whether text is searched as it is: UTF-8 without NUL and, of files that are joined, without any mark."""
    if b"\0" in data or codecs.BOM_UTF8 in data:
        return False
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def lines_of_binary(data: bytes) -> bytes:
    """End a line at each NUL. A run of them at the start or the end, as in a sparse file, counts as one."""
    inside = data.strip(b"\0")
    if len(inside) == len(data):
        return data.replace(b"\0", b"\n")
    before = b"\n" if data.startswith(b"\0") else b""
    after = b"\n" if data.endswith(b"\0") else b""
    return before + inside.replace(b"\0", b"\n") + after


# ------------------------------------------------------------------ matching


_CARRIAGE_RETURN: Final = 13


@define(eq=False)
class LineMatcher:
    """A compiled pattern, applied to whole lines.

    Args:
        node: The pattern.
        use_re2: False to do without RE2, also where it is installed.
    """

    node: Node
    use_re2: bool = True
    _automaton: LineAutomaton = field(init=False)
    _required: bytes = field(init=False)
    """Bytes that every matching line has; empty where none are known."""
    _re2: _Re2Patterns | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._automaton = LineAutomaton(self.node)
        self._required = required_text(self.node).encode("utf-8", "surrogatepass")
        self._re2 = _re2_patterns(self.node) if self.use_re2 else None

    def matches_in(self, data: bytes) -> bool:
        """Whether any line of UTF-8 text matches."""
        return next(self.matching_lines(data), None) is not None

    def matching_lines(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end (before ``\\n``) of each line of UTF-8 text that matches, in order."""
        if self._re2 is None:
            yield from self._by_automaton(data)
            return
        pattern, is_exact = self._re2.for_buffer(data)
        position, size = 0, len(data)
        while position < size:
            match = pattern.search(data, position)
            if match is None:
                return
            start = data.rfind(b"\n", position, match.start()) + 1 or position
            end = data.find(b"\n", start)
            end = size if end < 0 else end
            # An empty match at the very end lies behind the last newline, in no line.
            if start < size and ((is_exact and data[end - 1] != _CARRIAGE_RETURN) or self._is_match(data[start:end])):
                yield start, end
            position = end + 1

    def first_start(self, line: str) -> int:
        """Where the first match in a line starts, in characters."""
        encoded = line.encode("utf-8", "replace")
        if self._re2 is None or (self._re2.asks_for_words and not encoded.isascii()):
            return self._automaton.first_start(line)
        match = self._re2.line.search(encoded)
        return len(encoded[: match.start()].decode("utf-8", "replace")) if match is not None else 0

    def _is_match(self, line: bytes) -> bool:
        """Whether a line matches, without its carriage return and with Unicode's words."""
        assert self._re2 is not None
        line = line.removesuffix(b"\r")
        if self._re2.asks_for_words and not line.isascii():
            return self._automaton.matches(line.decode("utf-8", "replace"))
        return self._re2.line.search(line) is not None

    def _by_automaton(self, data: bytes) -> Iterator[tuple[int, int]]:
        position, size = 0, len(data)
        while position < size:
            if self._required:
                at = data.find(self._required, position)
                if at < 0:
                    return
                position = data.rfind(b"\n", position, at) + 1 or position
            end = data.find(b"\n", position)
            end = size if end < 0 else end
            if self._automaton.matches(data[position:end].removesuffix(b"\r").decode("utf-8", "replace")):
                yield position, end
            position = end + 1


@frozen
class _Re2Patterns:
    """One pattern, compiled for each of its uses."""

    buffer: Any
    """For text of many lines; exact but for carriage returns before a newline, where text is ASCII."""
    wide_buffer: Any
    """The same for text beyond ASCII: without word boundaries."""
    line: Any
    """For one line without its ending; exact, where text is ASCII or no word boundary is asked for."""
    asks_for_words: bool

    def for_buffer(self, data: bytes) -> tuple[Any, bool]:
        """The pattern that finds candidates in a text, and whether they are matches unless they end in CR."""
        return (self.wide_buffer, False) if self.asks_for_words and not data.isascii() else (self.buffer, True)


def _re2_patterns(node: Node) -> _Re2Patterns | None:
    """``None`` without RE2, and for a pattern that it refuses, e.g. as too large."""
    re2 = _load_re2()
    if re2 is None:
        return None
    options = re2.Options()
    options.log_errors = False
    words = has_word_boundary(node)
    try:
        buffer = re2.compile(f"(?m){to_re2(node, in_buffer=True)}".encode(), options)
        wide = re2.compile(f"(?m){to_re2(node, in_buffer=True, loose=True)}".encode(), options) if words else buffer
        return _Re2Patterns(buffer, wide, re2.compile(to_re2(node).encode(), options), words)
    except re2.error:
        return None


# ------------------------------------------------------------------ showing


@frozen
class ShownLine:
    """A line of the answer."""

    number: int
    """Counted from 1."""
    text: str
    is_match: bool
    was_cut: bool


@define(eq=False)
class FileScan:
    """Collects the matches of one file with their context; fed with blocks of whole lines.

    Attributes:
        matcher: The pattern.
        wanted: How many matches to show.
        context: Lines to show before and after each.
        lines: What to show, in order; windows that meet are one.
        matches: Matches found so far; one more than ``wanted`` tells that there are more.
    """

    matcher: LineMatcher
    wanted: int
    context: int
    lines: list[ShownLine] = field(factory=list[ShownLine])
    matches: int = 0
    _number: int = 1
    """Number of the first line of the next block."""
    _before: list[bytes] = field(factory=list[bytes])
    """The last lines of what came before, as many as are context."""
    _shown_up_to: int = 0
    _owed_up_to: int = 0
    """Number of the last line that is context of a match."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing that follows can change the answer."""
        return self.matches > self.wanted and self._shown_up_to >= self._owed_up_to

    def feed(self, block: bytes) -> None:
        """Take whole lines of UTF-8; only the last block may end without a newline."""
        if self.context:
            self._feed_with_context(block)
            return
        counted = 0
        for start, end in self.matcher.matching_lines(block):
            self.matches += 1
            if self.matches > self.wanted:
                return
            self._number += block.count(b"\n", counted, start)
            counted = start
            self._show(self._number, block[start:end], is_match=True)
        self._number += block.count(b"\n", counted)

    def _feed_with_context(self, block: bytes) -> None:
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        first = self._number - len(self._before)
        known = self._before + lines
        counted, number = 0, self._number
        for start, _ in self.matcher.matching_lines(block):
            number += block.count(b"\n", counted, start)
            counted = start
            self.matches += 1
            if self.matches > self.wanted:
                break
            self._show_context(known, first, min(self._owed_up_to, number - 1))
            self._shown_up_to = max(self._shown_up_to, number - 1 - self.context)
            self._show_context(known, first, number - 1)
            self._show(number, known[number - first], is_match=True)
            self._shown_up_to = number
            self._owed_up_to = number + self.context
        self._show_context(known, first, min(self._owed_up_to, first + len(known) - 1))
        self._number += block.count(b"\n")
        self._before = known[-self.context :]

    def _show_context(self, known: list[bytes], first: int, last: int) -> None:
        for number in range(max(self._shown_up_to + 1, first), last + 1):
            self._show(number, known[number - first], is_match=False)
            self._shown_up_to = number

    def _show(self, number: int, raw: bytes, *, is_match: bool) -> None:
        line = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if len(line) <= MAX_LINE_CHARACTERS:
            self.lines.append(ShownLine(number, line, is_match, False))
            return
        start = self.matcher.first_start(line) if is_match else 0
        self.lines.append(ShownLine(number, cut_around(line, start), is_match, True))


_LEAD: Final = 100
"""Characters shown before a match that is far inside a long line."""


def cut_around(line: str, start: int) -> str:
    """Return the part of a long line that its match starts in; the beginning, where that is enough.

    Args:
        line: The line, longer than the limit.
        start: Where the match starts, in characters.
    """
    if start < MAX_LINE_CHARACTERS - _LEAD:
        return truncate_line(line)[0]
    begin = min(start - _LEAD, len(line) - MAX_LINE_CHARACTERS)
    return f"[truncated] ...{truncate_line(line[begin:])[0]}"
