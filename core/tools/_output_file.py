"""The complete raw output of a command, in a file of the environment, for what a result cannot show."""

from __future__ import annotations

from contextlib import suppress

import anyio
from attrs import Factory, define

from handrail.core.errors import tool_error
from handrail.core.tool import ToolContext
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["OutputFile"]


@define(eq=False)
class _SavedOutputs:
    """The files that go when the environment closes."""

    paths: list[str] = Factory(list[str])
    registered: bool = False

    def add(self, path: str, env: Environment) -> None:
        if not self.registered:
            self.registered = True

            async def remove_all() -> None:
                for each in self.paths:
                    await _remove(env, each)

            env.on_close.append(remove_all)
        self.paths.append(path)


class OutputFile:
    """Holds raw output back until it is wanted in a file, then writes it there.

    Args:
        env: Where the file is.
        context: The call; its toolbox remembers the file.
        name: Part of the file's name.
        keep: Leave the file when the environment closes.

    Attributes:
        wanted: Whether the output goes to a file; set by who knows the limits.
        path: The file, once there is one.
        problem: Why there is none although it was wanted.
    """

    def __init__(self, env: Environment, context: ToolContext, name: str, *, keep: bool) -> None:
        self._env = env
        self._context = context
        self._name = name
        self._keep = keep
        self._waiting: list[bytes] = []
        self.wanted = False
        self.path: str | None = None
        self.problem: str | None = None

    def add(self, data: bytes) -> None:
        """Take the next raw output."""
        if self.problem is None and data:
            self._waiting.append(data)

    async def write(self) -> None:
        """Write what waits, if the file is wanted. Not to be cut short: half a piece could not be completed."""
        if not self.wanted or not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting.clear()
        with anyio.CancelScope(shield=True):
            try:
                if self.path is None:
                    self.path = await self._create()
                await self._env.files.append(self.path, data)
            except PortError as error:
                await self._give_up(error)

    async def _create(self) -> str:
        path = await self._env.files.create_temp_file(prefix=f"handrail-{self._name}-", suffix=".log")
        if not self._keep:
            self._context.shared(_SavedOutputs).add(path, self._env)
        return path

    async def _give_up(self, error: PortError) -> None:
        """An incomplete file would pass for the full output, so none is left."""
        self.problem = tool_error(error).message
        path, self.path = self.path, None
        if path is not None:
            await _remove(self._env, path)


async def _remove(env: Environment, path: str) -> None:
    with suppress(PortError):  # someone else removed it, or it cannot be removed any more
        await env.files.remove(path)
