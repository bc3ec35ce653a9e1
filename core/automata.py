"""A matcher of our own for one line: a non-deterministic automaton, made deterministic as far as the text asks for.

Time is proportional to pattern times line, whatever the pattern. It decides where RE2 is not installed, and for word
boundaries in text beyond ASCII, which RE2 does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from handrail.core.characters import CharacterSet, fold_variants, is_word
from handrail.core.regexes import Alternation, Assertion, AssertionKind, Character, Node, Repetition, Sequence

__all__ = ["Automaton", "LineAutomaton", "accepts"]

_MAX_STATES: Final = 2000
"""How many states are kept; beyond, the store starts anew. States cost memory, never correctness."""


@frozen
class _Split:
    """Goes on at each of several places without a character."""

    targets: tuple[int, ...]


@frozen
class _Check:
    """Goes on after an assertion that holds here."""

    kind: AssertionKind


@frozen
class _Accept:
    """The whole pattern has matched."""


_Instruction = _Split | _Check | Character | _Accept


@define(eq=False)
class _State:
    """A set of places in the program, and what came before."""

    places: frozenset[int]
    before: str
    """``""`` at the start of the line, else ``w`` after a word character or ``o`` after another one."""
    has_matched: bool
    """Whether a match ended before the last character."""
    next: dict[str, _State] = field(factory=dict[str, "_State"])


class Automaton:
    """A program for one pattern, run over lines from their start to their end.

    Args:
        node: The pattern.
        backwards: Match the mirrored pattern; the caller mirrors the line.
    """

    def __init__(self, node: Node, *, backwards: bool = False) -> None:
        self._program: list[_Instruction] = []
        self._backwards = backwards
        self._emit(node)
        self._program.append(_Accept())
        self._states: dict[tuple[frozenset[int], str, bool], _State] = {}

    def matches(self, line: str) -> bool:
        """Whether the pattern matches anywhere in a line."""
        state = self._start()
        for character in line:
            state = state.next.get(character) or self._step(state, character)
            if state.has_matched:
                return True
        return self._ends(state)

    def last_end(self, line: str) -> int | None:
        """Where the last match ends, counted from 0; ``None`` without a match."""
        found: int | None = None
        state = self._start()
        for index, character in enumerate(line):
            state = state.next.get(character) or self._step(state, character)
            if state.has_matched:
                found = index
        return len(line) if self._ends(state) else found

    # ---------------------------------------------------------------- running

    def _start(self) -> _State:
        return self._state(frozenset({0}), "", False)

    def _state(self, places: frozenset[int], before: str, has_matched: bool) -> _State:
        key = (places, before, has_matched)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MAX_STATES:
                self._states.clear()
            state = self._states[key] = _State(places, before, has_matched)
        return state

    def _step(self, state: _State, character: str) -> _State:
        """The state after a character; a match may begin at every place."""
        kind = "w" if is_word(character) else "o"
        active = self._closure(state.places, state.before, kind)
        reached = {0}
        matched = False
        for place in active:
            instruction = self._program[place]
            if isinstance(instruction, _Accept):
                matched = True
            elif isinstance(instruction, Character) and accepts(instruction, character):
                reached.add(place + 1)
        following = self._state(frozenset(reached), kind, matched)
        if len(state.next) > 1000:
            state.next.clear()
        state.next[character] = following
        return following

    def _ends(self, state: _State) -> bool:
        active = self._closure(state.places, state.before, "")
        return any(isinstance(self._program[place], _Accept) for place in active)

    def _closure(self, places: Iterable[int], before: str, after: str) -> set[int]:
        """All places that are reached without a character, between what came before and what comes next."""
        reached = set(places)
        waiting = list(reached)
        while waiting:
            place = waiting.pop()
            instruction = self._program[place]
            if isinstance(instruction, _Split):
                targets = instruction.targets
            elif isinstance(instruction, _Check) and self._holds(instruction.kind, before, after):
                targets = (place + 1,)
            else:
                continue
            for target in targets:
                if target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached

    def _holds(self, kind: AssertionKind, before: str, after: str) -> bool:
        if kind == "start":
            return not (after if self._backwards else before)
        if kind == "end":
            return not (before if self._backwards else after)
        return ((before == "w") != (after == "w")) == (kind == "word_boundary")

    # ---------------------------------------------------------------- building

    def _emit(self, node: Node) -> None:
        program = self._program
        if isinstance(node, Character):
            program.append(node)
        elif isinstance(node, Assertion):
            program.append(_Check(node.kind))
        elif isinstance(node, Sequence):
            for item in reversed(node.items) if self._backwards else node.items:
                self._emit(item)
        elif isinstance(node, Alternation):
            self._emit_choices(node)
        else:
            self._emit_repetition(node)

    def _emit_choices(self, node: Alternation) -> None:
        split = self._reserve()
        starts: list[int] = []
        ends: list[int] = []
        for choice in node.choices:
            starts.append(len(self._program))
            self._emit(choice)
            ends.append(self._reserve())
        self._program[split] = _Split(tuple(starts))
        for end in ends:
            self._program[end] = _Split((len(self._program),))

    def _emit_repetition(self, node: Repetition) -> None:
        for _ in range(node.minimum):
            self._emit(node.item)
        if node.maximum is None:
            split = self._reserve()
            self._emit(node.item)
            self._program.append(_Split((split,)))
            self._program[split] = _Split((split + 1, len(self._program)))
            return
        splits: list[int] = []
        for _ in range(node.maximum - node.minimum):
            splits.append(self._reserve())
            self._emit(node.item)
        for split in splits:
            self._program[split] = _Split((split + 1, len(self._program)))

    def _reserve(self) -> int:
        self._program.append(_Split(()))
        return len(self._program) - 1


@define(eq=False)
class LineAutomaton:
    """Both directions of a pattern: whether it matches a line, and where its first match starts."""

    node: Node
    _forwards: Automaton | None = None
    _backwards: Automaton | None = None

    def matches(self, line: str) -> bool:
        """Whether the pattern matches anywhere in a line."""
        if self._forwards is None:
            self._forwards = Automaton(self.node)
        return self._forwards.matches(line)

    def first_start(self, line: str) -> int:
        """Where the first match starts, counted from 0; 0 without a match.

        The last place where the mirrored pattern ends in the mirrored line.
        """
        if self._backwards is None:
            self._backwards = Automaton(self.node, backwards=True)
        end = self._backwards.last_end(line[::-1])
        return 0 if end is None else len(line) - end


def accepts(node: Character, character: str) -> bool:
    """Whether a character is in a set, case ignored where the node says so."""
    if not node.fold:
        return character in node.set
    positive = CharacterSet(node.set.ranges, node.set.categories)
    return any(variant in positive for variant in fold_variants(character)) != node.set.negated
