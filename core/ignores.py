"""Ignore files: what ``.gitignore`` and its kin leave out of a search, by git's own rules.

Here are the lines of a file (gitignore(5)), the matching of one pattern (git's wildmatch), and precedence. Reading
the files and walking the tree is the walk's work.

Git compares bytes. So patterns and names are handled as text with one character per byte of their UTF-8 form
(``byte_text``): ``?`` is one byte, and a name that is not UTF-8 is as good as any other. Patterns become segment
automata as in ``core.globs``; matching is linear, whatever an ignore file holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from attrs import define, frozen

from handrail.core.globs import segment_regex

__all__ = ["IGNORE_FILES", "IgnoreRules", "RuleFile", "byte_text", "parse_rules"]

IGNORE_FILES: Final = (".gitignore", ".ignore", ".rgignore")
"""Names of ignore files, weakest first. Only the first stops at the border of a repository."""

_Test = Callable[[str], object]


def byte_text(name: str) -> str:
    """Return a name with one character per byte of its UTF-8 form."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("latin-1")


@frozen
class _Pattern:
    """One line of an ignore file."""

    order: int
    """Place in the file; the last pattern that matches decides."""
    ignores: bool
    """False after ``!``."""
    directory_only: bool
    test: _Test | None = None
    """For a pattern without a slash: the test of a name at any depth."""
    prefix: str = ""
    """For a pattern with a slash: the text before its first wildcard, which must start the path."""
    segments: Sequence[_Test | None] = ()
    """What follows the prefix, name by name; ``None`` is ``**``."""


@frozen
class RuleFile:
    """The patterns of one ignore file, sorted for quick tests."""

    names: Sequence[_Pattern]
    """Patterns without a slash, last first."""
    paths: Sequence[_Pattern]
    """Patterns with a slash, last first."""
    literals: frozenset[str]
    """Names that some pattern of ``names`` spells out."""
    suffixes: tuple[str, ...]
    """Endings that some pattern of ``names`` asks for."""
    others: Sequence[_Test]
    """Tests of the rest of ``names``."""


@define
class _Level:
    """One rule file as seen from one directory."""

    file: RuleFile
    live: list[tuple[_Pattern, str, tuple[int, ...]]]
    """Patterns with a slash that can still match here: with the text of their prefix that is still to be
    met, and where in their segments they are."""

    def verdict(self, name: str, is_directory: bool) -> bool | None:
        """True: ignored; False: kept by ``!``; ``None``: no pattern matches."""
        best = next((p for p in self.file.names if _applies(p, name, is_directory)), None)
        order, ignores = (best.order, best.ignores) if best is not None else (-1, None)
        for pattern, rest, positions in self.live:
            speaks = pattern.order > order and (is_directory or not pattern.directory_only)
            if speaks and _ends(pattern, rest, positions, name):
                order, ignores = pattern.order, pattern.ignores
        return ignores

    def enter(self, name: str) -> _Level:
        """The same file as seen from a sub-directory."""
        return _Level(self.file, list(_advance(self.live, name))) if self.live else self


@frozen
class _Names:
    """The patterns without a slash of several files, for one quick test."""

    literals: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    others: tuple[_Test, ...] = ()

    @classmethod
    def of(cls, levels: Iterable[_Level]) -> _Names:
        """Join what some files say."""
        files = [level.file for level in levels]
        return cls(
            frozenset(name for file in files for name in file.literals),
            tuple({suffix for file in files for suffix in file.suffixes}),
            tuple(test for file in files for test in file.others),
        )


@define
class IgnoreRules:
    """The rules in force in one directory. Immutable: every change is a new object."""

    _tools: Sequence[_Level] = ()
    """From ``.ignore`` and ``.rgignore``: stronger than git's, and not stopped by repositories. Strongest first."""
    _git: Sequence[_Level] = ()
    """From ``.gitignore`` files, deepest first, and ``info/exclude`` of the repository."""
    _names: _Names = _Names()

    def with_files(self, *, git: RuleFile | None = None, tools: Sequence[RuleFile] = ()) -> IgnoreRules:
        """Add the files of this directory, ``tools`` weakest first."""
        return _rules(
            [*map(_level, reversed(tools)), *self._tools], self._git if git is None else [_level(git), *self._git]
        )

    def at_border(self, exclude: RuleFile | None) -> IgnoreRules:
        """Return the rules at the top of a repository: git's from outside end, its ``info/exclude`` begins."""
        return _rules(self._tools, [] if exclude is None else [_level(exclude)])

    def enter(self, directory: str) -> IgnoreRules:
        """Return the same rules as seen from a sub-directory, before its own files are added."""
        if not any(level.live for levels in (self._tools, self._git) for level in levels):
            return self
        name = byte_text(directory)
        return IgnoreRules(
            [level.enter(name) for level in self._tools], [level.enter(name) for level in self._git], self._names
        )

    def suspects(self, names: Sequence[str]) -> set[str]:
        """Return those of some names that a pattern may match; no rule speaks of the others."""
        if not self._tools and not self._git:
            return set()
        if any(level.live for levels in (self._tools, self._git) for level in levels):
            return set(names)
        literals, suffixes, others = self._names.literals, self._names.suffixes, self._names.others
        # Names beyond ASCII are rare: they are not worth a spelling in bytes here.
        found = {name for name in names if name.endswith(suffixes) or not name.isascii()}
        if others:
            found.update(name for name in names if any(test(name) for test in others))
        return found.union(literals.intersection(names))

    def ignores(self, name: str, is_directory: bool) -> bool:
        """Whether an entry of this directory is left out."""
        name = byte_text(name)
        for levels in (self._tools, self._git):
            for level in levels:
                verdict = level.verdict(name, is_directory)
                if verdict is not None:
                    return verdict
        return False


def _rules(tools: Sequence[_Level], git: Sequence[_Level]) -> IgnoreRules:
    return IgnoreRules(tools, git, _Names.of([*tools, *git]))


def _level(file: RuleFile) -> _Level:
    return _Level(file, [(pattern, pattern.prefix, _closure(pattern, 0)) for pattern in file.paths])


def parse_rules(data: bytes) -> RuleFile:
    """Return the patterns of an ignore file. Lines that git does not understand match nothing."""
    patterns = [p for order, line in enumerate(_lines(data)) if (p := _pattern(line, order)) is not None]
    patterns.reverse()
    names = [pattern for pattern in patterns if pattern.test is not None]
    literals = frozenset(p.test.text for p in names if isinstance(p.test, _Is))
    suffixes = tuple({p.test.text for p in names if isinstance(p.test, _EndsWith)})
    others = [p.test for p in names if p.test is not None and not isinstance(p.test, _Is | _EndsWith)]
    return RuleFile(names, [p for p in patterns if p.test is None], literals, suffixes, others)


# ------------------------------------------------------------------ lines


def _lines(data: bytes) -> Iterator[str]:
    for raw in data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        line = _without_trailing_spaces(raw.removesuffix("\r").partition("\0")[0])
        if line and not line.startswith("#"):
            yield line


def _without_trailing_spaces(line: str) -> str:
    """Drop spaces at the end, except one that a backslash protects (``trim_trailing_spaces`` of git)."""
    end = len(line.rstrip(" "))
    backslashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]


def _pattern(line: str, order: int) -> _Pattern | None:
    ignores = not line.startswith("!")
    text = line if ignores else line[1:]
    directory_only = text.endswith("/")
    text = text.removesuffix("/")
    if "/" not in text:
        return _Pattern(order, ignores, directory_only, test=_name_test(text))
    text = text.removeprefix("/")
    wildcard = re.search(r"[*?\[\\]", text)
    prefix = text[: wildcard.start()] if wildcard else text
    try:
        segments = [_segment_test(tokens) for tokens in _segments(text[len(prefix) :])] if wildcard else []
    except _BadPatternError:
        return None
    return _Pattern(order, ignores, directory_only, prefix=prefix, segments=segments)


@frozen
class _Is:
    text: str

    def __call__(self, name: str) -> bool:
        return name == self.text


@frozen
class _EndsWith:
    text: str

    def __call__(self, name: str) -> bool:
        return name.endswith(self.text)


def _never(name: str) -> bool:
    return False


def _name_test(text: str) -> _Test:
    if not re.search(r"[*?\[\\]", text):
        return _Is(text)
    if text.startswith("*") and not re.search(r"[*?\[\\]", text[1:]):
        return _EndsWith(text[1:])
    try:
        # Without a slash in the pattern git lets `*` match anything, which in a name is the same.
        return re.compile(segment_regex(list(_tokens(text))), re.DOTALL).match
    except _BadPatternError:
        return _never


def _segment_test(tokens: Sequence[str]) -> _Test | None:
    if len(tokens) > 1 and set(tokens) == {"*"}:
        return None
    return re.compile(segment_regex(tokens), re.DOTALL).match


# ------------------------------------------------------------------ wildmatch


class _BadPatternError(ValueError):
    """A pattern that git's wildmatch gives up on: it matches nothing."""


def _segments(text: str) -> Iterator[list[str]]:
    """The tokens of a pattern, segment by segment."""
    segment: list[str] = []
    for token in _tokens(text):
        if token == "/":
            yield segment
            segment = []
        else:
            segment.append(token)
    yield segment


def _tokens(text: str) -> Iterator[str]:
    """``*``, ``/``, or an expression for one character, in turn."""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "[":
            expression, position = _class(text, position + 1)
            yield expression
            continue
        if character == "\\":
            position += 1
            if position == len(text):
                raise _BadPatternError
            yield "/" if text[position] == "/" else re.escape(text[position])
        else:
            yield "." if character == "?" else character if character in "*/" else re.escape(character)
        position += 1


_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def _class(text: str, position: int) -> tuple[str, int]:
    """The expression of a set whose inside starts at ``position``, and the position after its ``]``."""
    negated = text[position : position + 1] in ("!", "^")
    position += negated
    parts: list[str] = []
    previous = ""
    first = True
    while first or text[position : position + 1] != "]":
        first = False
        if position >= len(text):
            raise _BadPatternError
        if text.startswith("[:", position):
            end = text.find("]", position + 2)
            if end < 0:
                raise _BadPatternError
            if text[end - 1] == ":" and end > position + 2:
                name = text[position + 2 : end - 1]
                if name not in _POSIX:
                    raise _BadPatternError
                parts.append(_POSIX[name])
                previous, position = "", end + 1
                continue
        if text[position] == "-" and previous and text[position + 1 : position + 2] not in ("", "]"):
            high, position = _member(text, position + 1)
            if previous <= high:
                parts.append(f"{re.escape(previous)}-{re.escape(high)}")
            previous = ""
            continue
        previous, position = _member(text, position)
        parts.append(re.escape(previous))
    position += 1
    inside = "".join(parts)
    if negated:
        return (f"[^/{inside}]" if inside else "[^/]"), position
    return (f"(?!/)[{inside}]" if inside else "(?!)."), position


def _member(text: str, position: int) -> tuple[str, int]:
    if text[position] == "\\":
        position += 1
        if position >= len(text):
            raise _BadPatternError
    return text[position], position + 1


# ------------------------------------------------------------------ matching along a path


def _applies(pattern: _Pattern, name: str, is_directory: bool) -> bool:
    return (is_directory or not pattern.directory_only) and pattern.test is not None and bool(pattern.test(name))


def _closure(pattern: _Pattern, position: int) -> tuple[int, ...]:
    """The position in the segments, and those behind ``**`` that may stand for nothing."""
    positions = [position]
    while position < len(pattern.segments) - 1 and pattern.segments[position] is None:
        position += 1
        positions.append(position)
    return tuple(positions)


def _advance(
    live: Sequence[tuple[_Pattern, str, tuple[int, ...]]], name: str
) -> Iterator[tuple[_Pattern, str, tuple[int, ...]]]:
    """What is left of patterns with a slash inside a directory; those that cannot match any more drop out."""
    for pattern, rest, positions in live:
        if rest:
            path = name + "/"
            if rest.startswith(path):
                yield pattern, rest[len(path) :], positions
                continue
            if not name.startswith(rest) or not pattern.segments:
                continue
            moved = _step(pattern, positions, name[len(rest) :])
        else:
            moved = _step(pattern, positions, name)
        if moved:
            yield pattern, "", moved


def _step(pattern: _Pattern, positions: Sequence[int], name: str) -> tuple[int, ...]:
    reached: set[int] = set()
    for position in positions:
        test = pattern.segments[position]
        if test is None:
            reached.update(_closure(pattern, position))
        elif position + 1 < len(pattern.segments) and test(name):
            reached.update(_closure(pattern, position + 1))
    return tuple(sorted(reached))


def _ends(pattern: _Pattern, rest: str, positions: Sequence[int], name: str) -> bool:
    """Whether a pattern with a slash matches an entry of the directory it has come to."""
    if rest:
        if not pattern.segments:
            return name == rest
        if not name.startswith(rest):
            return False
        name = name[len(rest) :]
    elif not pattern.segments:
        return False
    last = len(pattern.segments) - 1
    return any(
        position == last and ((test := pattern.segments[position]) is None or bool(test(name)))
        for position in positions
    )
