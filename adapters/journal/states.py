"""What was at a path: the states that a journal knows, and the changes between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

__all__ = ["ABSENT", "Change", "State", "StateKind"]

StateKind = Literal["absent", "file", "directory", "other"]


@frozen
class State:
    """What is at a path.

    Attributes:
        kind: ``other`` is what the ports cannot make again: links, pipes, sockets, devices.
        mode: Permission bits; 0 where there is nothing.
        size: Bytes of a file.
        digest: SHA-256 of a file's content, in hex; ``None`` for a file that is too large or cannot be read.
    """

    kind: StateKind
    mode: int = 0
    size: int = 0
    digest: str | None = None

    @property
    def can_be_restored(self) -> bool:
        """Whether the journal can make it again."""
        return self.kind in ("absent", "directory") or self.digest is not None

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"kind": self.kind, "mode": self.mode, "size": self.size, "digest": self.digest}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> State:
        """Return a state from its stored form."""
        return cls(value["kind"], value["mode"], value["size"], value["digest"])


ABSENT: Final = State("absent")


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
