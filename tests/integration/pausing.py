"""Ports that stop at a chosen operation, so that a test acts exactly there; the real port does the work."""

from __future__ import annotations

from typing import Any, Final

import anyio
from attrs import define, evolve, field

from handrail.ports.environment import Environment

__all__ = ["EVERYTHING", "Pause", "paused"]

EVERYTHING: Final = frozenset({"list_dir", "list_dirs", "read", "read_many", "scan", "stat", "write", "run"})


@define
class Pause:
    """A stop before one operation of a port.

    Attributes:
        operations: The methods to stop at; the first call of one of them stops, later ones do not.
        uninterruptible: Whether a cancellation waits until the operation is done, as it does for a system call
            under way; otherwise the operation is cancelled while it stands still.
        reached: Set when a call stands still.
        released: Set by the test to let it go on.
    """

    operations: frozenset[str]
    uninterruptible: bool = False
    reached: anyio.Event = field(factory=anyio.Event)
    released: anyio.Event = field(factory=anyio.Event)

    async def wait(self) -> None:
        self.reached.set()
        await self.released.wait()


class _Paused:
    """A port in front of another one."""

    def __init__(self, inner: Any, pause: Pause) -> None:
        self._inner = inner
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in self._pause.operations:
            return method

        async def stopped(*args: Any, **named: Any) -> Any:
            if self._pause.reached.is_set():
                return await method(*args, **named)
            with anyio.CancelScope(shield=self._pause.uninterruptible):
                await self._pause.wait()
                return await method(*args, **named)

        return stopped


def paused(env: Environment, pause: Pause) -> Environment:
    """Return the environment with a stop in its files and commands."""
    files: Any = _Paused(env.files, pause)
    commands: Any = _Paused(env.commands, pause)
    return evolve(env, files=files, commands=commands)
