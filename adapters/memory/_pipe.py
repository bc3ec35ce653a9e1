"""The one pipe of a command, and the time between the end of its program and the end of its output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from handrail.adapters.memory.process import Job
from handrail.ports.clock import ClockPort
from handrail.ports.commands import OutputSink

__all__ = ["Pipe"]

_IDLE_SECONDS: Final = 0.1


class Pipe:
    """Takes what all processes of a command write and hands it on.

    Args:
        sink: Where it goes.
        scope: What ends when the sink or a background job fails, whatever the processes make of it.

    Attributes:
        failure: What the sink or a job raised.
    """

    def __init__(self, sink: OutputSink, scope: anyio.CancelScope) -> None:
        self.failure: Exception | None = None
        self._sink = sink
        self._scope = scope
        self._activity = anyio.Event()
        self._writers = 0

    async def write(self, data: bytes) -> None:
        """Hand bytes on; waits while the sink does."""
        self._writers += 1
        try:
            await self._sink(data)
        except Exception as error:
            self._fail(error)
            raise
        finally:
            self._writers -= 1
            self._activity.set()

    async def drain(self, jobs: Sequence[Job], clock: ClockPort) -> None:
        """Let background jobs write until they are done or have been silent for a while; then stop them."""
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(self._work, job)
            while not all(job.done or job.work is None for job in jobs):
                self._activity = anyio.Event()
                with clock.move_on_after(_IDLE_SECONDS) as idle:
                    await self._activity.wait()
                if idle.expired and not self._writers:
                    break
            group.cancel_scope.cancel()

    async def _work(self, job: Job) -> None:
        if job.work is None or job.done:
            return
        try:
            await job.work()
        except Exception as error:
            self._fail(error)
        job.done = True
        self._activity.set()

    def _fail(self, error: Exception) -> None:
        self.failure = self.failure or error
        self._scope.cancel()
