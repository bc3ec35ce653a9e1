"""Takes the output of a running command: masks it, boils it down, saves it whole where it is too long to show.

Large output goes through in large pieces. Each is digested off the event loop and written to the file at the
same time, while the command already prints the next one; no more than one piece waits, so a command never
runs ahead of what memory and disk take.
"""

from __future__ import annotations

from typing import Final

import anyio
import anyio.abc

from handrail.core.output import OutputAccumulator, SecretMask, Snapshot
from handrail.core.tools._output_file import OutputFile
from handrail.ports.environment import Environment

__all__ = ["Capture"]

_PIECE_BYTES: Final = 512 * 1024


class Capture:
    """The output of one command.

    Args:
        env: The environment of the command.
        output: What it is boiled down to.
        file: Where it is saved.
        mask: What must not be seen.

    Attributes:
        taken_bytes: How many bytes came in.
        file: As given.
    """

    def __init__(self, env: Environment, output: OutputAccumulator, file: OutputFile, mask: SecretMask) -> None:
        self._env = env
        self._output = output
        self._mask = mask
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._at_work: anyio.Event | None = None
        self.file = file
        self.taken_bytes = 0

    async def take(self, data: bytes, group: anyio.abc.TaskGroup) -> None:
        """Take the next output; returns when there is room for more.

        Args:
            data: The bytes.
            group: Where the work on full pieces goes on.
        """
        self.taken_bytes += len(data)
        self._wait_for_more(self._mask.feed(data))
        if self._waiting_bytes >= _PIECE_BYTES:
            await self._settled()
            self._at_work = anyio.Event()
            group.start_soon(self._work, self._all_waiting(), self._at_work)

    async def snapshot(self) -> Snapshot:
        """Return the output so far."""
        await self._settled()
        self._digest(self._all_waiting())
        return self._output.snapshot()

    async def finish(self) -> Snapshot:
        """Take note that nothing follows; return the whole output, saved where it has to be."""
        self._wait_for_more(self._mask.finish())
        await self._settled()
        self._digest(self._all_waiting())
        self._output.finish()
        self.file.wanted = self.file.wanted or self._output.exceeds_limits
        await self.file.write()
        return self._output.snapshot()

    def text(self) -> tuple[str, bool]:
        """Return the finished output, its middle left out if it is very long, and whether it was."""
        return self._output.text()

    def _wait_for_more(self, data: bytes) -> None:
        self._waiting.append(data)
        self._waiting_bytes += len(data)

    def _all_waiting(self) -> bytes:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        return data

    def _digest(self, data: bytes) -> None:
        """Work on a small piece at once."""
        self._output.feed(data)
        self.file.add(data)

    async def _work(self, data: bytes, done: anyio.Event) -> None:
        """Work on a full piece. Not to be cut short: nothing of what a command printed may be lost."""
        with anyio.CancelScope(shield=True):
            self.file.wanted = True
            self.file.add(data)
            async with anyio.create_task_group() as group:
                group.start_soon(self.file.write)
                await self._env.offload(lambda: self._output.feed(data))
        done.set()

    async def _settled(self) -> None:
        while self._at_work is not None and not self._at_work.is_set():
            await self._at_work.wait()
