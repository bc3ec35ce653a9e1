"""What was at a path: the states that a journal knows, and the changes between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import evolve, frozen

__all__ = ["ABSENT", "Change", "Effect", "State", "StateKind"]

StateKind = Literal["absent", "file", "directory", "symlink", "other"]


@frozen
class State:
    """What is at a path.

    Attributes:
        kind: ``other`` is what cannot be made again: pipes, sockets, devices, and what cannot be looked at.
        mode: Permission bits of a file or directory, 0 for the rest; ``None`` where a change was interrupted before
            they were known.
        size: Bytes of a file.
        digest: SHA-256 of a file's content, in hex; ``None`` for a file that is too large or cannot be read.
        target: What a symbolic link says.
    """

    kind: StateKind
    mode: int | None = 0
    size: int = 0
    digest: str | None = None
    target: str | None = None

    @property
    def can_be_restored(self) -> bool:
        """Whether the journal can make it again."""
        return self.kind in ("absent", "directory", "symlink") or self.digest is not None

    def matches(self, now: State) -> bool:
        """Whether this is what is there now; what is not known of this one makes no difference."""
        if self.kind == now.kind == "other":
            return True
        known = now if self.mode is not None else evolve(now, mode=None)
        if self.kind == "file" and self.digest is None:
            return (self.kind, self.size) == (known.kind, known.size)
        return self == known

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        stored: dict[str, Any] = {"kind": self.kind, "mode": self.mode, "size": self.size, "digest": self.digest}
        return stored if self.target is None else {**stored, "target": self.target}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> State:
        """Return a state from its stored form."""
        return cls(value["kind"], value["mode"], value["size"], value["digest"], value.get("target"))


ABSENT: Final = State("absent")

Effect = Mapping[str, tuple[State, State]]
"""By path, the states before and after."""


@frozen
class Change:
    """One path, before and after; part of a group that is undone together.

    Attributes:
        number: Position in the journal, from 0.
        group: What it belongs to: one tool call, or one operation outside of any.
        call_id: The tool call's name; ``None`` outside of any.
        tool: The tool.
        path: Canonical path.
    """

    number: int
    group: str
    call_id: str | None
    tool: str | None
    path: str
    before: State
    after: State
