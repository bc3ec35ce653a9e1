"""One writer a file: turns for operations that change files, in order of arrival.

The key is the canonical path, so different spellings of one file share a turn. Different files never wait
for each other, except for the moment in which arrivals find their key one after another.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from attrs import define, field

from handrail.ports.files import FilePort

__all__ = ["FileQueue"]


@define
class _Line:
    """The turn of one file and how many hold or await it."""

    lock: anyio.Lock = field(factory=lambda: anyio.Lock(fast_acquire=True))
    members: int = 0


class FileQueue:
    """Hands out turns, first come, first served, per file.

    A turn is held for as long as the ``async with`` block runs; a port operation that is cancelled has
    settled before it raises, so the next writer never meets a running one.
    """

    def __init__(self, files: FilePort) -> None:
        self._files = files
        self._arrivals = anyio.Lock(fast_acquire=True)
        self._lines: dict[str, _Line] = {}

    @property
    def busy_files(self) -> int:
        """How many files have a turn that is held or awaited."""
        return len(self._lines)

    @asynccontextmanager
    async def turn(self, path: str) -> AsyncGenerator[str]:
        """Wait for the turn of a file and hold it; yields the file's canonical path.

        Raises:
            PortError: What ``canonical_path`` raises.
        """
        async with self._arrivals:
            key = await self._files.canonical_path(path)
            line = self._lines.setdefault(key, _Line())
            line.members += 1
        try:
            async with line.lock:
                yield key
        finally:
            line.members -= 1
            if not line.members:
                self._lines.pop(key, None)
