"""The grammar of the small shell: text in, a list of pipelines out.

Understood: words with quotes and backslashes, ``$NAME ${NAME} ${NAME:-word} $? $$ $! $1 $@ $#``, ``;`` and line
ends, ``&& || | &``, redirections ``< > >> 2> 2>> &> 2>&1 >&2``, comments. Anything else of a real shell is
refused by name rather than misunderstood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from attrs import frozen

__all__ = [
    "Command",
    "Pipeline",
    "Redirect",
    "Statement",
    "Step",
    "SyntaxProblem",
    "Text",
    "Variable",
    "Word",
    "parse",
]


class SyntaxProblem(Exception):
    """The text is no script that this shell understands; the message says why."""


@frozen
class Text:
    """Characters as they are; only unquoted ones are patterns for file names."""

    text: str
    quoted: bool


@frozen
class Variable:
    """A value to be filled in; an unquoted one is split at blanks."""

    name: str
    default: str
    quoted: bool


Word = tuple[Text | Variable, ...]


@frozen
class Redirect:
    """Where a stream of a command goes."""

    stream: str
    """``0``, ``1``, ``2``, or ``&`` for both 1 and 2."""
    operator: str
    """``< > >> >&``"""
    target: Word


@frozen
class Command:
    """A simple command."""

    assignments: Sequence[tuple[str, Word]]
    words: Sequence[Word]
    redirects: Sequence[Redirect]


Pipeline = tuple[Command, ...]


@frozen
class Step:
    """A pipeline and when it runs: after success, after failure, or always."""

    condition: Literal["&&", "||", ""]
    pipeline: Pipeline


@frozen
class Statement:
    """Steps up to a ``;``, a line end or a ``&``."""

    steps: tuple[Step, ...]
    background: bool
    source: str
    """The text it was written as."""


_OPERATOR: Final = re.compile(r"&&|\|\||&(?!>)|[;|\n]")
_REDIRECTION: Final = re.compile(r"(&(?=>)|[0-2]?)(>>|>&|>|<(?!<))")
_UNSUPPORTED: Final = re.compile(r"<<|[()`]|\$\(|;;")
_BRACES: Final = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}?")
_BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)+")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_EXPANSION: Final = re.compile(r"\$(?:\{(\w+|[?$!@#*])(?::-([^}]*))?\}|([A-Za-z_]\w*|[0-9?$!@#*]))", re.ASCII)
_PLAIN: Final = re.compile(r"[^\s'\"\\$;|&<>()`]+")
_RESERVED: Final = re.compile(r"if|then|else|elif|fi|for|while|until|do|done|case|esac|function|select|\{|\}|\[\[|!")


def parse(text: str) -> list[Statement]:
    """Return the statements of a script.

    Raises:
        SyntaxProblem: It is not a script, or uses what this shell does not know.
    """
    return _Parser(text).statements()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        while self._skip_empty():
            found.append(self._statement())
        return found

    def _statement(self) -> Statement:
        start = self._position
        steps = [Step("", self._pipeline())]
        while True:
            end = self._position
            match self._operator(("&&", "||", ";", "&", "\n")):
                case "&&" | "||" as condition:
                    self._skip_lines()
                    steps.append(Step(condition, self._pipeline()))
                case ended:
                    source = self._text[start:end].strip()
                    return Statement(tuple(steps), background=ended == "&", source=source)

    def _pipeline(self) -> Pipeline:
        commands = [self._command()]
        while self._operator(("|",)):
            self._skip_lines()
            commands.append(self._command())
        return tuple(commands)

    def _command(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            if redirection := _REDIRECTION.match(self._text, self._position):
                redirects.append(self._redirect(redirection))
            elif not words and (assignment := _ASSIGNMENT.match(self._text, self._position)):
                self._position = assignment.end()
                assignments.append((assignment[1], self._word()))
            elif word := self._word():
                self._refuse_reserved(word, words)
                words.append(word)
            elif assignments or words or redirects:
                return Command(assignments, words, redirects)
            else:
                raise SyntaxProblem(f"syntax error near unexpected token `{self._here()}'")

    def _redirect(self, found: re.Match[str]) -> Redirect:
        self._position = found.end()
        self._skip_blanks()
        target = self._word()
        if not target:
            raise SyntaxProblem(f"syntax error near unexpected token `{self._here()}'")
        return Redirect(found[1] or ("0" if found[2] == "<" else "1"), found[2], target)

    def _word(self) -> Word:
        pieces: list[Text | Variable] = []
        while self._position < len(self._text):
            self._refuse_unsupported()
            character = self._text[self._position]
            if plain := _PLAIN.match(self._text, self._position):
                self._position = plain.end()
                self._refuse(_BRACES.search(plain[0]))
                pieces.append(Text(plain[0], quoted=False))
            elif character == "'":
                pieces.append(Text(self._until_quote(), quoted=True))
            elif character == '"':
                pieces += self._double_quoted()
            elif character == "\\":
                pieces += self._escaped()
            elif character == "$":
                pieces.append(self._expansion(quoted=False))
            else:
                break
        return tuple(pieces)

    def _until_quote(self) -> str:
        end = self._text.find("'", self._position + 1)
        if end < 0:
            raise SyntaxProblem("unexpected EOF while looking for matching `''")
        quoted = self._text[self._position + 1 : end]
        self._position = end + 1
        return quoted

    def _double_quoted(self) -> list[Text | Variable]:
        pieces: list[Text | Variable] = [Text("", quoted=True)]  # "" is a word too
        self._position += 1
        while (character := self._text[self._position : self._position + 1]) != '"':
            if not character:
                raise SyntaxProblem("unexpected EOF while looking for matching `\"'")
            if character == "`" or self._text.startswith("$(", self._position):
                raise SyntaxProblem("command substitution is not supported in this shell")
            if character == "$":
                pieces.append(self._expansion(quoted=True))
                continue
            following = self._text[self._position + 1 : self._position + 2]
            if character == "\\" and following and following in '$`"\\\n':
                pieces.append(Text(following.strip("\n"), quoted=True))
                self._position += 2
                continue
            pieces.append(Text(character, quoted=True))
            self._position += 1
        self._position += 1
        return pieces

    def _escaped(self) -> list[Text | Variable]:
        character = self._text[self._position + 1 : self._position + 2]
        self._position += 2
        return [] if character == "\n" else [Text(character or "\\", quoted=True)]

    def _expansion(self, *, quoted: bool) -> Text | Variable:
        found = _EXPANSION.match(self._text, self._position)
        if found is None:
            if self._text.startswith("${", self._position):
                raise SyntaxProblem("this form of ${...} is not supported in this shell")
            self._position += 1
            return Text("$", quoted=True)
        self._position = found.end()
        return Variable(found[1] or found[3], found[2] or "", quoted)

    # ---------------------------------------------------------------- what is ahead

    def _operator(self, wanted: tuple[str, ...]) -> str:
        """Take one of these operators if it comes next; at the end of the text none comes."""
        self._skip_blanks()
        found = _OPERATOR.match(self._text, self._position)
        if found and found[0] in wanted:
            self._position = found.end()
            return found[0]
        return ""

    def _skip_blanks(self) -> None:
        if blanks := _BLANKS.match(self._text, self._position):
            self._position = blanks.end()
        if self._text.startswith("#", self._position):
            end = self._text.find("\n", self._position)
            self._position = len(self._text) if end < 0 else end

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self._text.startswith("\n", self._position):
            self._position += 1
            self._skip_blanks()

    def _skip_empty(self) -> bool:
        """Skip to the next statement; returns whether there is one."""
        self._skip_lines()
        return self._position < len(self._text)

    def _here(self) -> str:
        found = _OPERATOR.match(self._text, self._position)
        return found[0].replace("\n", "newline") if found else "newline"

    def _refuse_unsupported(self) -> None:
        self._refuse(_UNSUPPORTED.match(self._text, self._position))

    def _refuse(self, found: re.Match[str] | None) -> None:
        if found:
            raise SyntaxProblem(f"`{found[0]}' is not supported in this shell")

    def _refuse_reserved(self, word: Word, before: Sequence[Word]) -> None:
        if not before and len(word) == 1 and isinstance(word[0], Text) and not word[0].quoted:
            self._refuse(_RESERVED.fullmatch(word[0].text))
