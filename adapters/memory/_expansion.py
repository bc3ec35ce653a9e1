"""What the words of the small shell become: variables filled in, values split, names of files found."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from typing import Final

from attrs import define, evolve

from handrail.adapters.memory._syntax import SyntaxProblem, Text, Variable, Word
from handrail.ports.errors import PortError
from handrail.ports.files import FilePort

__all__ = ["ShellState", "UnboundVariable", "fields_of", "value_of"]


_OPTIONS: Final = {"e": "errexit", "u": "nounset"}


class UnboundVariable(Exception):
    """A script uses a variable that was never set, and ``set -u`` is on."""


@define
class ShellState:
    """What a shell remembers between two commands."""

    cwd: str
    variables: dict[str, str]
    exported: set[str]
    arguments: Sequence[str]
    pid: int
    status: int = 0
    name: str = "bash"
    last_background: str = ""
    options: frozenset[str] = frozenset()
    """Of ``errexit``, ``nounset`` and ``pipefail``, those that are on."""

    def copy(self) -> ShellState:
        """Return what a subshell starts with."""
        return evolve(self, variables=dict(self.variables), exported=set(self.exported))

    def take_options(self, words: list[str]) -> str:
        """Take options from the start of a list of words, as ``set`` does; returns letters of other kinds.

        Raises:
            ValueError: A name of an option that this shell does not know.
        """
        others = ""
        while words and words[0][:1] in ("-", "+") and len(words[0]) > 1:
            word = words.pop(0)
            if word == "--":
                break
            for letter in "" if word.startswith("--") else word[1:]:
                name = (words.pop(0) if words else "") if letter == "o" else _OPTIONS.get(letter)
                if name is None:
                    others += letter
                elif name not in ("errexit", "nounset", "pipefail"):
                    raise ValueError(f"{name}: option not supported in this shell")
                else:
                    self.options = self.options | {name} if word[0] == "-" else self.options - {name}
        return others

    def variable(self, name: str, default: str = "") -> str:
        """Return the value of a variable or parameter, or the default where it has none.

        Raises:
            UnboundVariable: There is neither, and ``set -u`` forbids that.
        """
        if name.isdigit() and name != "0":
            return self._checked(f"${name}", dict(enumerate(self.arguments, start=1)).get(int(name)), default)
        special = {
            "?": str(self.status),
            "$": str(self.pid),
            "!": self.last_background,
            "#": str(len(self.arguments)),
            "0": self.name,
            "@": " ".join(self.arguments),
            "*": " ".join(self.arguments),
            "PWD": self.cwd,
        }
        return self._checked(name, special.get(name, self.variables.get(name)), default)

    def _checked(self, name: str, value: str | None, default: str) -> str:
        if value is None and not default and "nounset" in self.options:
            raise UnboundVariable(f"{name}: unbound variable")
        return value or default


def value_of(word: Word, state: ShellState) -> str:
    """Return a word in one piece, as in an assignment or a redirection."""
    return "".join(
        piece.text if isinstance(piece, Text) else state.variable(piece.name, piece.default)
        for piece in _with_home(word, state)
    )


async def fields_of(word: Word, state: ShellState, files: FilePort) -> list[str]:
    """Return the arguments that a word becomes.

    Raises:
        SyntaxProblem: A pattern that this shell does not know.
    """
    if not state.arguments and _is_all_arguments(word):
        return []
    fields = [_Field()]
    for piece in _with_home(word, state):
        if isinstance(piece, Text):
            fields[-1].add(piece.text, quoted=piece.quoted)
            continue
        for position, part in enumerate(_parts(piece, state)):
            if position:
                fields.append(_Field())
            fields[-1].add(part, quoted=piece.quoted)
    return [name for field in fields for name in await _names(field, state.cwd, files)]


@define
class _Field:
    """A word under construction: its characters, and which of them are a pattern."""

    text: str = ""
    pattern: str = ""
    quoted: bool = False
    magic: bool = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.text += text
        self.pattern += re.sub(r"([*?[])", r"[\1]", text) if quoted else text
        self.quoted = self.quoted or quoted
        self.magic = self.magic or (not quoted and bool(re.search(r"[*?]|\[.+\]", text)))


def _is_all_arguments(word: Word) -> bool:
    """Whether a word is ``"$@"`` and nothing else: without arguments, it is no word at all."""
    pieces = [piece for piece in word if piece != Text("", quoted=True)]
    return len(pieces) == 1 and isinstance(pieces[0], Variable) and pieces[0].name == "@" and pieces[0].quoted


def _parts(piece: Variable, state: ShellState) -> Sequence[str]:
    if piece.quoted and piece.name == "@":
        return state.arguments
    value = state.variable(piece.name, piece.default)
    return [value] if piece.quoted else re.split(r"[ \t\n]+", value)


def _with_home(word: Word, state: ShellState) -> Word:
    first = word[0] if word else None
    if isinstance(first, Text) and not first.quoted and re.match(r"~(/|$)", first.text):
        home = Text(state.variables.get("HOME", "~"), quoted=True)
        return (home, Text(first.text[1:], quoted=False), *word[1:])
    return word


async def _names(field: _Field, cwd: str, files: FilePort) -> list[str]:
    """Return the names that a pattern matches; without any, the pattern itself, as bash does."""
    if not field.magic:
        return [field.text] if field.text or field.quoted else []
    directory, slash, pattern = field.pattern.rpartition("/")
    if re.search(r"[*?]", re.sub(r"\[[*?[]\]", "", directory)):
        raise SyntaxProblem("a pattern in the name of a directory is not supported in this shell")
    prefix = field.text[: field.text.rfind("/") + 1] if slash else ""
    names = [prefix + name for name in await _visible(posixpath.join(cwd, prefix or "."), pattern, files)]
    return names or [field.text]


async def _visible(directory: str, pattern: str, files: FilePort) -> list[str]:
    try:
        names = sorted(entry.name for entry in await files.list_dir(directory))
    except PortError:
        return []
    return [name for name in fnmatch.filter(names, pattern) if pattern.startswith(".") or not name.startswith(".")]
