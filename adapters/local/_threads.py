"""Blocking work in a worker thread, as quickly as this machine hands it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio.lowlevel
import anyio.to_thread

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """A few worker threads, started when first needed.

    On asyncio the loop's own hand-over to a pool takes about half the time of anyio's; elsewhere anyio does it.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(thread_name_prefix="handrail-files")

    async def run(self, work: Callable[[], T], *, abandon: bool = False) -> T:
        """Run work in a thread; a cancellation waits until it has settled, unless abandoned."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=abandon)
        await anyio.lowlevel.checkpoint_if_cancelled()
        future = loop.run_in_executor(self._pool, work)
        with anyio.CancelScope(shield=not abandon):
            return await future
        raise AssertionError("nobody cancels this scope itself")

    def close(self) -> None:
        """Let the threads end; work under way is finished."""
        self._pool.shutdown(wait=False)
