"""Text from a terminal program without what is meant for the terminal: a state machine over characters.

Theory of operation. Characters fall into classes (``_CLASSES``); a state and a class give the next state and
whether the character is kept (``_TRANSITIONS``, after ECMA-48 and the state machine that terminals share).
Most characters change nothing, so each state also names the stretch that it passes over at once (``_RUNS``):
text in the ground state, the body of a string in the string state. Nothing here reads or writes, decodes
bytes, or knows of lines.

A sequence never swallows a line break: where one turns up inside, the sequence is over. So a program that is
cut off in the middle of a sequence, or prints binary data, costs at most the rest of its line.
"""

from __future__ import annotations

import re
from typing import Final, Literal

__all__ = ["Sanitizer", "sanitize"]

_State = Literal["ground", "escape", "intermediate", "control", "string"]

# Character classes. C1 controls are the ones of Unicode, U+0080 to U+009F.
_CLASSES: Final[tuple[tuple[str, str], ...]] = (
    ("layout", "\t\n\r"),
    ("escape", "\x1b"),
    ("cancel", "\x18\x1a\x9c"),
    ("bell", "\x07"),
    ("csi", "\x9b"),
    ("string_start", "\x90\x98\x9d\x9e\x9f"),
    ("c0", "".join(map(chr, range(0x20))) + "\x7f"),
    ("c1", "".join(map(chr, range(0x80, 0xA0)))),
    ("intermediate", "".join(map(chr, range(0x20, 0x30)))),
    ("parameter", "".join(map(chr, range(0x30, 0x40)))),
    ("bracket", "["),
    ("string_bracket", "PX]^_"),
    ("final", "".join(map(chr, range(0x40, 0x7F)))),
)
_CLASS_OF: Final[dict[str, str]] = {
    character: name for name, characters in reversed(_CLASSES) for character in characters
}

# What holds in every state but where a row below says otherwise: class -> (next state, kept).
_ANYWHERE: Final[dict[str, tuple[_State, bool]]] = {
    "layout": ("ground", True),
    "escape": ("escape", False),
    "cancel": ("ground", False),
    "csi": ("control", False),
    "string_start": ("string", False),
    "c1": ("ground", False),
    "other": ("ground", True),
}
_TRANSITIONS: Final[dict[_State, dict[str, tuple[_State, bool]]]] = {
    "ground": {
        "bell": ("ground", False),
        "c0": ("ground", False),
        "intermediate": ("ground", True),
        "parameter": ("ground", True),
        "bracket": ("ground", True),
        "string_bracket": ("ground", True),
        "final": ("ground", True),
    },
    "escape": {
        "bell": ("escape", False),
        "c0": ("escape", False),
        "intermediate": ("intermediate", False),
        "parameter": ("ground", False),
        "bracket": ("control", False),
        "string_bracket": ("string", False),
        "final": ("ground", False),
    },
    "intermediate": {
        "bell": ("intermediate", False),
        "c0": ("intermediate", False),
        "intermediate": ("intermediate", False),
        "parameter": ("ground", False),
        "bracket": ("ground", False),
        "string_bracket": ("ground", False),
        "final": ("ground", False),
    },
    "control": {
        "bell": ("control", False),
        "c0": ("control", False),
        "intermediate": ("control", False),
        "parameter": ("control", False),
        "bracket": ("ground", False),
        "string_bracket": ("ground", False),
        "final": ("ground", False),
    },
    "string": {
        "layout": ("ground", True),
        "bell": ("ground", False),
        "c0": ("string", False),
        "c1": ("string", False),
        "intermediate": ("string", False),
        "parameter": ("string", False),
        "bracket": ("string", False),
        "string_bracket": ("string", False),
        "final": ("string", False),
        "other": ("string", False),
    },
}
_STEPS: Final = {state: {**_ANYWHERE, **row} for state, row in _TRANSITIONS.items()}

# The stretch that a state passes over at once, and whether it is kept.
_RUNS: Final[dict[_State, tuple[re.Pattern[str], bool]]] = {
    "ground": (re.compile("[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+"), True),
    "escape": (re.compile("(?!)"), False),
    "intermediate": (re.compile("[\x20-\x2f]+"), False),
    "control": (re.compile("[\x20-\x3f]+"), False),
    "string": (re.compile("[^\x00-\x1f\x7f-\x9f]+"), False),
}

# A short cut for the commonest case: colours. Valid where nothing else is in the text to be cleaned.
_COMPLETE_CONTROL: Final = re.compile("\x1b\\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]")


class Sanitizer:
    """Takes a text in pieces, gives it back without escape sequences and control characters.

    Tab, newline and carriage return stay. Any division into pieces gives the same text.
    """

    def __init__(self) -> None:
        self._state: _State = "ground"

    @property
    def at_rest(self) -> bool:
        """Whether the text so far does not end within a sequence."""
        return self._state == "ground"

    def feed(self, text: str) -> str:
        """Return what the next piece adds to the clean text."""
        if self._state == "ground":
            clean = _COMPLETE_CONTROL.sub("", text) if "\x1b" in text else text
            if _RUNS["ground"][0].fullmatch(clean):
                return clean
        kept: list[str] = []
        at = 0
        while at < len(text):
            run, keep = _RUNS[self._state]
            stretch = run.match(text, at)
            if stretch:
                if keep:
                    kept.append(stretch[0])
                at = stretch.end()
                continue
            character = text[at]
            self._state, keep = _STEPS[self._state][_CLASS_OF.get(character, "other")]
            if keep:
                kept.append(character)
            at += 1
        return "".join(kept)


def sanitize(text: str) -> str:
    """Return a whole text without escape sequences and control characters."""
    return Sanitizer().feed(text)
