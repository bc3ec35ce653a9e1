"""Blocking work in a worker thread, as quickly as this machine hands it over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import anyio.lowlevel
import anyio.to_thread
from attrs import define, field

from handrail.ports.errors import PortError

__all__ = ["Threads"]

T = TypeVar("T")

_HAND_OVER_SECONDS: Final = 0.005


class Threads:
    """A few worker threads, started when first needed.

    On asyncio the worker hands the result to the loop itself, which takes about a third of the time of anyio's
    hand-over and two thirds of ``run_in_executor``; elsewhere anyio does it.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(thread_name_prefix="handrail-files")
        self._batch: _Batch | None = None

    async def run(self, work: Callable[[], T], *, abandon: bool = False, brief: bool = False) -> T:
        """Run work in a thread; a cancellation waits until it has settled.

        Args:
            work: What to do.
            abandon: Whether a cancellation leaves the work alone instead.
            brief: Whether it takes less than a millisecond, as a rule. Brief work of tasks that are ready at the
                same time is done by one thread one after another: side by side, the threads and the loop would
                pass the interpreter's lock to and fro at every system call, at several times the cost of the work.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=abandon)
        await anyio.lowlevel.checkpoint_if_cancelled()
        future: asyncio.Future[T] = loop.create_future()
        if brief:
            self._batch_of(loop).jobs.append(_Job(work, future))
        else:
            self._pool.submit(_Batch(loop, [_Job(work, future)]).work_through)
        with anyio.CancelScope(shield=not abandon):
            return await future
        raise AssertionError("nobody cancels this scope itself")

    def close(self) -> None:
        """Let the threads end; work under way is finished."""
        self._pool.shutdown(wait=False)

    def _batch_of(self, loop: asyncio.AbstractEventLoop) -> _Batch:
        """Return the batch that is handed to a thread when all tasks that are ready now have run."""
        batch = self._batch
        if batch is None or batch.loop is not loop:
            batch = self._batch = _Batch(loop)
            loop.call_soon(self._submit, batch)
        return batch

    def _submit(self, batch: _Batch) -> None:
        if self._batch is batch:
            self._batch = None
        try:
            self._pool.submit(batch.work_through)
        except RuntimeError:  # closed since the work was asked for
            _settle([(job.future, partial(job.future.set_exception, PortError("closed"))) for job in batch.jobs])


@define
class _Job:
    work: Callable[[], Any]
    future: asyncio.Future[Any]

    def done(self) -> Callable[[], None]:
        """Do the work; returns how the loop learns of it."""
        try:
            return partial(self.future.set_result, self.work())
        except BaseException as error:
            return partial(self.future.set_exception, error)


@define
class _Batch:
    """Jobs for one thread."""

    loop: asyncio.AbstractEventLoop
    jobs: list[_Job] = field(factory=list[_Job])

    def work_through(self) -> None:
        """Do the jobs in a worker thread; the loop learns of them in groups."""
        done: list[tuple[asyncio.Future[Any], Callable[[], None]]] = []
        begun = time.monotonic()
        for job in self.jobs:
            done.append((job.future, job.done()))
            if time.monotonic() - begun > _HAND_OVER_SECONDS:
                self._hand_over(done)
                done, begun = [], time.monotonic()
        self._hand_over(done)

    def _hand_over(self, done: list[tuple[asyncio.Future[Any], Callable[[], None]]]) -> None:
        if done:
            with suppress(RuntimeError):  # the loop is gone, and whoever waited with it
                self.loop.call_soon_threadsafe(_settle, done)


def _settle(done: list[tuple[asyncio.Future[Any], Callable[[], None]]]) -> None:
    for future, settle in done:
        if not future.cancelled():
            settle()
