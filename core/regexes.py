"""The one dialect of regular expressions: its syntax tree, and errors that say what to write instead.

It is the common ground of Rust's regex crate and RE2: no look-around, no back-references, nothing that cannot be
matched in linear time. docs/search.md describes it. A pattern is matched line by line, so ``^`` and ``\\A``, and
``$`` and ``\\z``, mean the same, and the newline cannot be written.

Greediness, captures and group names do not change which lines match or where a match starts; the tree leaves them out.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NoReturn

from attrs import define, evolve, frozen

from handrail.core.characters import CharacterSet, intersection, named_set, perl_set, posix_set, union

__all__ = [
    "Alternation",
    "Assertion",
    "AssertionKind",
    "Character",
    "Node",
    "RegexError",
    "Repetition",
    "Sequence",
    "parse_literal",
    "parse_regex",
    "size",
]

_MAX_REPEAT: Final = 1000
_MAX_LENGTH: Final = 10_000
_MAX_SIZE: Final = 20_000
_REPETITION_WEIGHT: Final = 4
"""What is repeated a number of times costs a matcher more with each line than what stands there once."""
"""Most characters a pattern may stand for once its counted repetitions are written out."""

_MAX_DEPTH: Final = 100
"""Most groups inside one another."""

AssertionKind = Literal["start", "end", "word_boundary", "not_word_boundary"]


class RegexError(ValueError):
    """A pattern outside the dialect.

    Attributes:
        construct: The piece of the pattern that is at fault.
        position: Where it starts, counted from 1.
    """

    def __init__(self, construct: str, position: int, problem: str) -> None:
        super().__init__(f"`{construct}` at position {position} {problem}")
        self.construct = construct
        self.position = position


@frozen
class Character:
    """One character of a set."""

    set: CharacterSet
    fold: bool = False
    """Whether case is ignored."""

    @property
    def literal(self) -> str | None:
        """The character where there is only one, case aside."""
        if len(self.set.ranges) == 1 and not self.set.categories and not self.set.negated:
            low, high = self.set.ranges[0]
            return chr(low) if low == high else None
        return None


@frozen
class Assertion:
    """A condition on a place between characters."""

    kind: AssertionKind


@frozen
class Sequence:
    """One after another; empty matches everywhere."""

    items: tuple[Node, ...] = ()


@frozen
class Alternation:
    """Any one of several."""

    choices: tuple[Node, ...]


@frozen
class Repetition:
    """A number of times; ``maximum`` is ``None`` for any number."""

    item: Node
    minimum: int
    maximum: int | None


Node = Character | Assertion | Sequence | Alternation | Repetition


def parse_literal(text: str, *, ignore_case: bool = False) -> Node:
    """Return the tree that matches a text as it is.

    Raises:
        RegexError: The text has a newline.
    """
    if len(text) > _MAX_LENGTH:
        raise RegexError(text[:40], 1, f"the text is longer than {_MAX_LENGTH} characters; search for less")
    at = text.find("\n")
    if at >= 0:
        raise RegexError("\\n", at + 1, _NEWLINE)
    return Sequence(tuple(_literal(character, ignore_case) for character in text))


def parse_regex(pattern: str, *, ignore_case: bool = False) -> Node:
    """Return the tree of a pattern.

    Raises:
        RegexError: With the construct, its position, and what to write instead.
    """
    if len(pattern) > _MAX_LENGTH:
        raise RegexError(pattern[:40], 1, f"the pattern is longer than {_MAX_LENGTH} characters; search for less")
    parser = _Parser(pattern, _Flags(ignore_case=ignore_case))
    node = parser.alternation(0)
    if not parser.at_end():
        parser.fail(")", parser.position, "closes no group; for the character itself write `\\)`, or set literal")
    if size(node) > _MAX_SIZE:
        raise RegexError(pattern[:40], 1, "is too large with its repetitions written out; repeat less often")
    return node


def size(node: Node) -> int:
    """How large a tree is with its counted repetitions written out; nested ones weigh more."""
    if isinstance(node, Sequence):
        return sum(map(size, node.items))
    if isinstance(node, Alternation):
        return sum(map(size, node.choices)) + len(node.choices)
    if isinstance(node, Repetition):
        times = node.maximum if node.maximum is not None else node.minimum + 1
        return max(1, size(node.item)) * (times * _REPETITION_WEIGHT if times > 1 else 1)
    return 1


_NEWLINE: Final = "can never match, for lines are searched one by one; search for one of the lines and set context"


def _literal(character: str, fold: bool) -> Character:
    code = ord(character)
    return Character(CharacterSet(((code, code),)), fold)


@frozen
class _Flags:
    ignore_case: bool = False
    verbose: bool = False


_ESCAPED_CHARACTERS: Final = {"t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "n": "\n"}
_ASSERTIONS: Final[dict[str, AssertionKind]] = {
    "A": "start",
    "z": "end",
    "b": "word_boundary",
    "B": "not_word_boundary",
}
_FOREIGN_ESCAPES: Final = {
    "Z": "is not in this dialect; write `$`",
    "G": "is not in this dialect; leave it out",
    "K": "is not in this dialect; leave it out, the whole line is shown anyway",
    "R": "is not in this dialect; lines are searched one by one, so leave it out",
    "h": "is not in this dialect; write `[ \\t]`",
    "H": "is not in this dialect; write `[^ \\t]`",
    "X": "is not in this dialect; write `.`",
    "C": "is not in this dialect; write `.`",
    "Q": "is not in this dialect; set literal to search for a text as it is",
    "E": "is not in this dialect; set literal to search for a text as it is",
    "k": "is a back-reference, which cannot be matched in linear time; write out what it stands for",
    "g": "is a back-reference, which cannot be matched in linear time; write out what it stands for",
    "<": "is not in this dialect; write `\\b` for the edge of a word, or `<` for the character",
    ">": "is not in this dialect; write `\\b` for the edge of a word, or `>` for the character",
}
_FOREIGN_GROUPS: Final = {
    "(?=": "is look-ahead, which is not in this dialect; search for what is left without it and read on from there",
    "(?!": "is look-ahead, which is not in this dialect; search without it, or use a set such as `[^x]`",
    "(?<=": "is look-behind, which is not in this dialect; put the text before the match into the pattern",
    "(?<!": "is look-behind, which is not in this dialect; search without it, or use `\\b` or `(?:^|[^x])`",
    "(?>": "is an atomic group, which is not in this dialect; write `(?:`, no pattern is slow here",
    "(?#": "is a comment, which is not in this dialect; leave it out",
    "(?P=": "is a back-reference, which cannot be matched in linear time; write out what it stands for",
    "(?P>": "is recursion, which is not in this dialect; write out what it stands for",
    "(?(": "is a condition, which is not in this dialect; use `|`",
    "(?|": "is a branch reset, which is not in this dialect; write `(?:`",
    "(?R": "is recursion, which is not in this dialect; write out what it stands for",
    "(?&": "is recursion, which is not in this dialect; write out what it stands for",
}
_GROUP_NAME: Final = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
_FLAG_GROUP: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_COUNT: Final = re.compile(r"\{\s*(\d+)\s*(,\s*(\d*)\s*)?\}")


@define
class _Parser:
    """A recursive descent over the pattern; ``position`` counts from 0."""

    pattern: str
    flags: _Flags
    position: int = 0

    def fail(self, construct: str, position: int, problem: str) -> NoReturn:
        raise RegexError(construct, position + 1, problem)

    def at_end(self) -> bool:
        return self.position >= len(self.pattern)

    def alternation(self, depth: int) -> Node:
        """Choices up to the end or a closing parenthesis. Flags set inside end with it."""
        outside = self.flags
        choices = [self.sequence(depth)]
        while self.pattern.startswith("|", self.position):
            self.position += 1
            choices.append(self.sequence(depth))
        self.flags = outside
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def sequence(self, depth: int) -> Node:
        items: list[Node] = []
        while True:
            self.skip_blanks()
            if self.at_end() or self.pattern[self.position] in "|)":
                return items[0] if len(items) == 1 else Sequence(tuple(items))
            item = self.atom(depth)
            if item is not None:
                items.append(self.repeated(item))

    def skip_blanks(self) -> None:
        """In verbose mode, blanks and comments mean nothing."""
        while self.flags.verbose and not self.at_end():
            if self.pattern[self.position] == "#":
                end = self.pattern.find("\n", self.position)
                self.position = len(self.pattern) if end < 0 else end + 1
            elif self.pattern[self.position].isspace():
                self.position += 1
            else:
                return

    def repeated(self, item: Node) -> Node:
        """The item with the repetition operators that follow it."""
        while True:
            self.skip_blanks()
            operator = self.pattern[self.position : self.position + 1]
            if operator and operator in "*+?":
                self.position += 1
                item = Repetition(item, int(operator == "+"), 1 if operator == "?" else None)
            elif operator == "{":
                item = self.counted(item)
            else:
                return item
            if self.pattern.startswith("?", self.position):
                self.position += 1  # lazy: the same lines

    def counted(self, item: Node) -> Node:
        match = _COUNT.match(self.pattern, self.position)
        if match is None:
            shown = self.pattern[self.position : self.position + 10]
            self.fail(shown, self.position, "is not a repetition such as `{2,5}`; for the character itself write `\\{`")
        minimum = int(match[1])
        maximum = minimum if match[2] is None else int(match[3]) if match[3] else None
        if maximum is not None and maximum < minimum:
            self.fail(match[0], self.position, "has its smaller number last; swap them")
        if max(minimum, maximum or 0) > _MAX_REPEAT:
            self.fail(match[0], self.position, f"repeats more than {_MAX_REPEAT} times; use `*` or a smaller number")
        self.position = match.end()
        return Repetition(item, minimum, maximum)

    def atom(self, depth: int) -> Node | None:
        start = self.position
        character = self.pattern[start]
        if character == "(":
            return self.group(depth)
        if character == "[":
            return Character(self.bracket(depth), self.flags.ignore_case)
        if character == "\\":
            found = self.escape()
            return _literal(found, self.flags.ignore_case) if isinstance(found, str) else found
        if character in "*+?":
            self.fail(
                character, start, f"has nothing before it to repeat; for the character itself write `\\{character}`"
            )
        if character == "{":
            self.fail(character, start, "has nothing before it to repeat; for the character itself write `\\{`")
        self.position += 1
        if character == "\n":
            self.fail("\\n", start, _NEWLINE)
        if character == ".":
            return Character(CharacterSet(negated=True))
        if character in "^$":
            return Assertion("start" if character == "^" else "end")
        return _literal(character, self.flags.ignore_case)

    # ---------------------------------------------------------------- groups

    def group(self, depth: int) -> Node | None:
        """A group, or ``None`` for flags that hold from here on."""
        start = self.position
        if depth >= _MAX_DEPTH:
            self.fail("(", start, f"opens more than {_MAX_DEPTH} groups inside one another; use fewer")
        outside = self.flags
        if self.pattern.startswith("(?", start):
            name, flags = _GROUP_NAME.match(self.pattern, start), _FLAG_GROUP.match(self.pattern, start)
            if name is not None:
                self.position = name.end()
            elif flags is not None:
                self.set_flags(flags)
                self.position = flags.end()
                if flags[3] == ")":
                    return None
            else:
                self.foreign_group(start)
        else:
            self.position += 1
        node = self.alternation(depth + 1)
        if self.at_end():
            self.fail("(", start, "is not closed; for the character itself write `\\(`, or set literal")
        self.position += 1
        self.flags = outside
        return node

    def set_flags(self, match: re.Match[str]) -> None:
        for letters, value in ((match[1], True), (match[2] or "", False)):
            for letter in letters:
                if letter == "i":
                    self.flags = evolve(self.flags, ignore_case=value)
                elif letter == "x":
                    self.flags = evolve(self.flags, verbose=value)
                elif letter == "u" and not value:
                    self.fail(match[0], match.start(), "turns Unicode off, which is not in this dialect; leave it out")
                elif letter not in "msUu":
                    self.fail(match[0], match.start(), f"sets the unknown flag {letter}; known are i, m, s, x, U")

    def foreign_group(self, start: int) -> NoReturn:
        for length in (4, 3):
            opening = self.pattern[start : start + length]
            if opening in _FOREIGN_GROUPS:
                self.fail(opening, start, _FOREIGN_GROUPS[opening])
        shown = self.pattern[start : start + 4]
        self.fail(shown, start, "is not a group of this dialect; write `(?:…)`, `(?P<name>…)` or `(?i:…)`")

    # ---------------------------------------------------------------- escapes

    def escape(self) -> str | Node:
        """A character, or a node for what is no single character."""
        start = self.position
        letter = self.pattern[start + 1 : start + 2]
        if letter in _ASSERTIONS:
            self.position += 2
            return Assertion(_ASSERTIONS[letter])
        found = self.escaped_member()
        if found == "\n":
            self.fail("\\n", start, _NEWLINE)
        return found if isinstance(found, str) else Character(found, self.flags.ignore_case)

    def escaped_member(self) -> str | CharacterSet:
        """What a backslash means inside and outside of brackets alike: a character or a set."""
        start = self.position
        letter = self.pattern[start + 1 : start + 2]
        self.position += 2
        if not letter:
            self.fail("\\", start, "has nothing after it; for a backslash write `\\\\`")
        if letter in "dDsSwW":
            return perl_set(letter)
        if letter in "pP":
            return self.property(start)
        if letter in "xuU":
            return self.code_point(start, letter)
        if letter in _ESCAPED_CHARACTERS:
            return _ESCAPED_CHARACTERS[letter]
        if letter in _FOREIGN_ESCAPES:
            self.fail("\\" + letter, start, _FOREIGN_ESCAPES[letter])
        if letter.isdigit():
            problem = "is a back-reference, which cannot be matched in linear time; write out what it stands for"
            self.fail("\\" + letter, start, problem)
        if letter.isascii() and letter.isalpha():
            self.fail("\\" + letter, start, f"is not in this dialect; for the character itself write `{letter}`")
        return letter

    def property(self, start: int) -> CharacterSet:
        match = re.compile(r"\{(\^?)([^{}]*)\}|([A-Za-z])").match(self.pattern, self.position)
        found = named_set(match[2] if match[3] is None else match[3]) if match is not None else None
        if match is None or found is None:
            shown = self.pattern[start : match.end() if match else start + 3]
            self.fail(
                shown,
                start,
                "is no known property; known are general categories such as L, Lu, Nd, P and scripts such as Greek",
            )
        self.position = match.end()
        return found.complement() if (self.pattern[start + 1] == "P") != bool(match[1]) else found

    def code_point(self, start: int, letter: str) -> str:
        width = {"x": 2, "u": 4, "U": 8}[letter]
        digits = rf"\{{\s*([0-9A-Fa-f]{{1,8}})\s*\}}|([0-9A-Fa-f]{{{width}}})"
        match = re.compile(digits).match(self.pattern, self.position)
        code = int(match[1] or match[2], 16) if match is not None else 0
        if match is None or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            shown = self.pattern[start : match.end() if match else start + 2]
            self.fail(
                shown, start, f"is no character; write `\\{letter}` and {width} hexadecimal digits, or `\\x{{…}}`"
            )
        self.position = match.end()
        return chr(code)

    # ---------------------------------------------------------------- brackets

    def bracket(self, depth: int) -> CharacterSet:
        """A set in brackets, with nested sets and the operators ``&&``, ``--`` and ``~~``."""
        start = self.position
        if depth >= _MAX_DEPTH:
            self.fail("[", start, f"opens more than {_MAX_DEPTH} sets inside one another; use fewer")
        self.position += 1
        negated = self.pattern.startswith("^", self.position)
        self.position += negated
        result: CharacterSet | None = None
        operator = ""
        members: list[CharacterSet] = []
        first = True
        while True:
            if self.at_end():
                self.fail("[", start, "is not closed; for the character itself write `\\[`, or set literal")
            ahead = self.pattern[self.position : self.position + 2]
            if ahead[0] == "]" and not first:
                break
            if ahead in ("&&", "--", "~~") and not first:
                result, operator, members = _combined(result, operator, members), ahead, []
                self.position += 2
                continue
            first = False
            members.append(self.member(depth))
        self.position += 1
        combined = _combined(result, operator, members)
        return combined.complement() if negated else combined

    def member(self, depth: int) -> CharacterSet:
        """One character, range or set inside brackets."""
        start = self.position
        if self.pattern.startswith("[", start):
            posix = re.compile(r"\[:(\^?)([a-z]+):\]").match(self.pattern, start)
            if posix is None:
                return self.bracket(depth + 1)
            found = posix_set(posix[2])
            if found is None:
                self.fail(posix[0], start, "is no known class; write `[:alpha:]`, `[:digit:]`, `[:space:]` or the like")
            self.position = posix.end()
            return found.complement() if posix[1] else found
        low = self.end_of_range()
        if isinstance(low, CharacterSet):
            return low
        if self.pattern[self.position : self.position + 1] != "-" or self.pattern[
            self.position + 1 : self.position + 2
        ] in ("]", "-", ""):
            return CharacterSet(((ord(low), ord(low)),))
        self.position += 1
        high = self.end_of_range()
        shown = self.pattern[start : self.position]
        if isinstance(high, CharacterSet):
            self.fail(shown, start, "is no range, for it ends in a set; put the `-` last or write `\\-`")
        if high < low:
            self.fail(shown, start, "is a range that ends before it starts; swap its ends")
        return CharacterSet(((ord(low), ord(high)),))

    def end_of_range(self) -> str | CharacterSet:
        start = self.position
        if self.pattern[start] != "\\":
            self.position += 1
            return self.pattern[start]
        if self.pattern[start + 1 : start + 2] in _ASSERTIONS:
            letter = self.pattern[start + 1]
            self.fail("\\" + letter, start, f"has no meaning in brackets; for the character itself write `{letter}`")
        return self.escaped_member()


def _combined(left: CharacterSet | None, operator: str, members: list[CharacterSet]) -> CharacterSet:
    right = union(members) if members else CharacterSet()
    if left is None:
        return right
    if operator == "&&":
        return intersection(left, right)
    if operator == "--":
        return intersection(left, right.complement())
    return intersection(union([left, right]), intersection(left, right).complement())
