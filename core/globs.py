"""Glob patterns: from text to a matcher that walks a tree one name at a time.

``*`` and ``?`` match within a name, ``[…]`` one character of a set, ``{a,b}`` either text, ``**`` any number of
directories, a backslash takes the next character literally. A pattern without ``/`` matches at any depth.

A matcher is a small automaton over path segments, so a walk knows which directories can still hold a match, and
matching takes time proportional to pattern times name: no pattern can hang it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from attrs import frozen

__all__ = ["Glob", "GlobError", "Segment", "State", "parse_glob", "segment_regex"]

_MAX_ALTERNATIVES: Final = 1000
"""How many patterns the braces of one pattern may stand for."""

_MAX_LENGTH: Final = 4096
_MAX_BRACES: Final = 200

State = tuple[int, ...]
"""Where a matcher is inside a pattern after some directories; empty when nothing below can match."""


class GlobError(ValueError):
    """A pattern that is not a glob.

    Attributes:
        position: Characters before the fault.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@frozen
class Segment:
    """One name of a pattern, or ``**``."""

    matches: Callable[[str], object]
    is_any_depth: bool = False
    suffix: str | None = None
    """Set when the segment is ``*`` and this text: such segments are tested together."""


class Glob:
    """A compiled pattern.

    Attributes:
        negated: The pattern started with ``!``: it says what to leave out.
        directory_only: The pattern ended in ``/``: only directories match.
        names_git: The pattern names ``.git``, so that directory is meant to be looked at.
    """

    def __init__(
        self, alternatives: Sequence[Sequence[Segment]], *, negated: bool, directory_only: bool, names_git: bool
    ) -> None:
        self.negated = negated
        self.directory_only = directory_only
        self.names_git = names_git
        # All alternatives one after another, with None behind each.
        self._segments: list[Segment | None] = []
        start: set[int] = set()
        for alternative in alternatives:
            first = len(self._segments)
            self._segments += [*alternative, None]
            start.update(self._closure(first))
        self._start: State = tuple(sorted(start))
        # The whole matcher, where the pattern speaks of names at any depth only.
        names = [parts[1] for parts in alternatives if len(parts) == 2 and parts[0].is_any_depth]
        self._name = _any_name(names) if names and len(names) == len(alternatives) else None

    def start(self) -> State:
        """The state at the top of the tree."""
        return self._start

    def enter(self, state: State, directory: str) -> State:
        """The state inside a directory, given the state in its parent."""
        if self._name is not None:
            return state
        entered: set[int] = set()
        for position in state:
            segment = self._segments[position]
            assert segment is not None
            if segment.is_any_depth:
                entered.update(self._closure(position))
            elif segment.matches(directory):
                entered.update(self._closure(position + 1))
        return tuple(sorted(entered))

    def matches(self, state: State, name: str) -> bool:
        """Whether a name in a directory with this state is a match."""
        if self._name is not None:
            return bool(self._name(name))
        for position in state:
            segment = self._segments[position]
            if segment is not None and self._segments[position + 1] is None and segment.matches(name):
                return True
        return False

    def test(self, state: State) -> Callable[[str], object]:
        """The test of names in a directory with this state."""
        return self._name if self._name is not None else lambda name: self.matches(state, name)

    def matches_path(self, path: str) -> bool:
        """Whether a relative path with ``/`` is a match."""
        *directories, name = path.split("/")
        state = self._start
        for directory in directories:
            state = self.enter(state, directory)
        return self.matches(state, name)

    def _closure(self, position: int) -> Iterator[int]:
        """The position, and those behind ``**`` segments that may stand for no directory at all."""
        segment = self._segments[position]
        while segment is not None:
            yield position
            if not segment.is_any_depth:
                return
            position += 1
            segment = self._segments[position]


def parse_glob(text: str, *, ignore_case: bool = False, negatable: bool = False) -> Glob:
    """Compile a pattern.

    Args:
        text: The pattern. ``./`` in front, doubled slashes and ``.`` segments mean nothing; a slash in front
            anchors a pattern of one name.
        ignore_case: Match letters of either case.
        negatable: A leading ``!`` negates instead of being a character.

    Raises:
        GlobError: Unclosed ``[`` or ``{``, a trailing backslash, too many alternatives, or ``..`` in front.
    """
    if len(text) > _MAX_LENGTH or text.count("{") > _MAX_BRACES:
        raise GlobError(f"it is longer than {_MAX_LENGTH} characters, or has more than {_MAX_BRACES} braces", 0)
    negated = negatable and len(text) > 1 and text.startswith("!")
    body = text[1:] if negated else text
    compiled: list[list[Segment]] = []
    names_git = False
    alternatives = _expand_braces(body, offset=len(text) - len(body))
    for alternative in alternatives:
        parts, anchored = _split(alternative)
        if parts[:1] == [".."]:
            raise GlobError("`..` leads out of the directory that is searched; give that directory as `path`", 0)
        names_git = names_git or ".git" in parts
        if len(parts) == 1 and not anchored and not _is_any_depth(parts[0]):
            parts = ["**", *parts]
        compiled.append([_segment(part, ignore_case) for part in parts])
    directory_only = bool(body.strip("/")) and all(alternative.endswith("/") for alternative in alternatives)
    return Glob(compiled, negated=negated, directory_only=directory_only, names_git=names_git)


def segment_regex(tokens: Sequence[str]) -> str:
    """Return a regular expression for one name.

    Args:
        tokens: ``*``, or an expression for exactly one character, each.

    Every ``*`` but the last takes the first place where what follows it fits, for good (an atomic group): with
    pieces of fixed length that never loses a match, and nothing is tried twice.
    """
    pieces: list[str] = [""]
    for token in tokens:
        if token != "*":
            pieces[-1] += token
        elif len(pieces) == 1 or pieces[-1]:
            pieces.append("")
    if len(pieces) == 1:
        return rf"{pieces[0]}\Z"
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    return rf"{pieces[0]}{middle}.*{pieces[-1]}\Z"


# ------------------------------------------------------------------ parts of a pattern


def _split(text: str) -> tuple[list[str], bool]:
    """The segments of a pattern, and whether a slash in front or between them ties it to the top."""
    raw: list[str] = [""]
    position = 0
    while position < len(text):
        if text[position] == "/":
            raw.append("")
            position += 1
            continue
        end = _class_end(text, position) if text[position] == "[" else position + 1 + (text[position] == "\\")
        raw[-1] += text[position:end]
        position = end
    parts = [part for part in raw if part not in ("", ".")]
    return parts, text.startswith("/") or len(parts) > 1


def _is_any_depth(text: str) -> bool:
    return len(text) > 1 and not text.strip("*")


def _segment(text: str, ignore_case: bool) -> Segment:
    if _is_any_depth(text):
        return Segment(matches=_always, is_any_depth=True)
    tokens = list(_tokens(text))
    literal = text.lstrip("*")
    if not ignore_case and text.startswith("*") and literal and not re.search(r"[*?\[\]\\]", literal):
        return Segment(matches=_ends_with(literal), suffix=literal)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return Segment(matches=re.compile(segment_regex(tokens), flags).match)


def _any_name(segments: Sequence[Segment]) -> Callable[[str], object]:
    """One test for several alternatives of names."""
    suffixes = tuple(segment.suffix for segment in segments if segment.suffix is not None)
    rest = [segment.matches for segment in segments if segment.suffix is None]
    if not rest:
        return _ends_with(suffixes)
    if len(rest) == 1 and not suffixes:
        return rest[0]
    tests = [_ends_with(suffixes), *rest] if suffixes else rest
    return lambda name: any(test(name) for test in tests)


def _always(name: str) -> object:
    return True


def _ends_with(suffix: str | tuple[str, ...]) -> Callable[[str], object]:
    return lambda name: name.endswith(suffix)


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        character = text[position]
        if character == "[":
            end = _class_end(text, position)
            yield _class_regex(text[position + 1 : end - 1])
            position = end
        elif character == "\\":
            yield re.escape(text[position + 1])
            position += 2
        else:
            yield "." if character == "?" else "*" if character == "*" else re.escape(character)
            position += 1


def _class_end(text: str, start: int) -> int:
    """The position after a ``[…]`` that opens at ``start``.

    Raises:
        GlobError: It does not close.
    """
    position = start + 1
    if text[position : position + 1] in ("!", "^"):
        position += 1
    if text[position : position + 1] == "]":
        position += 1
    while position < len(text):
        if text[position] == "]":
            return position + 1
        position += 1 + (text[position] == "\\")
    raise GlobError("`[` has no closing `]`; for the character itself write `\\[`", start)


def _class_regex(body: str) -> str:
    negated = body.startswith(("!", "^"))
    members = list(_class_members(body[1:] if negated else body))
    parts: list[str] = []
    position = 0
    while position < len(members):
        low, _ = members[position]
        if position + 2 < len(members) and members[position + 1] == ("-", False):
            high = members[position + 2][0]
            if low <= high:
                parts.append(f"{re.escape(low)}-{re.escape(high)}")
            position += 3
        else:
            parts.append(re.escape(low))
            position += 1
    if not parts:
        return "." if negated else r"(?!)."
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _class_members(body: str) -> Iterator[tuple[str, bool]]:
    """The characters of a set, and whether each was escaped."""
    position = 0
    while position < len(body):
        escaped = body[position] == "\\" and position + 1 < len(body)
        yield body[position + escaped], escaped
        position += 1 + escaped


# ------------------------------------------------------------------ braces


def _expand_braces(text: str, *, offset: int) -> list[str]:
    """Every pattern that the braces of a pattern stand for."""
    expanded, _ = _alternatives(text, 0, offset, nested=False)
    return expanded


def _alternatives(text: str, position: int, offset: int, *, nested: bool) -> tuple[list[str], int]:
    """Expand up to the closing brace (when nested) or the end; also return the position after it."""
    start = position
    done: list[str] = []
    current = [""]
    while position < len(text):
        character = text[position]
        if nested and character == "}":
            return done + current, position + 1
        if nested and character == ",":
            done += current
            current = [""]
            position += 1
        elif character == "{":
            inner, position = _alternatives(text, position + 1, offset, nested=True)
            current = [before + after for before in current for after in inner]
        else:
            end = _piece_end(text, position, offset)
            current = [before + text[position:end] for before in current]
            position = end
        if len(done) + len(current) > _MAX_ALTERNATIVES:
            raise GlobError(f"the braces stand for more than {_MAX_ALTERNATIVES} patterns; use fewer", start + offset)
    if nested:
        raise GlobError("`{` has no closing `}`; for the character itself write `\\{`", start - 1 + offset)
    return current, position


def _piece_end(text: str, position: int, offset: int) -> int:
    """The position after one character, escaped character or set."""
    if text[position] == "\\":
        if position + 1 == len(text):
            raise GlobError(
                "a backslash at the end stands for nothing; write `\\\\` for a backslash", position + offset
            )
        return position + 2
    if text[position] == "[":
        try:
            return _class_end(text, position)
        except GlobError as error:
            raise GlobError(str(error), position + offset) from None
    return position + 1
