"""Standard input and output for a server: read and written in threads that nothing has to wait for.

A blocked read or write cannot be cancelled. In a daemon thread it does not keep the event loop from going
on, nor the program from ending; and it works for pipes, files, terminals and sockets alike.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import AsyncGenerator
from queue import SimpleQueue
from typing import Final

__all__ = ["LineWriter", "read_chunks", "reader_gone"]

_CHUNK_BYTES: Final = 64 * 1024


async def read_chunks(descriptor: int) -> AsyncGenerator[bytes, None]:
    """Yield what can be read, as it comes, to the end of the file. Reads at most two chunks ahead.

    What cannot be read (a terminal that hung up, a directory) counts as an end.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(2)

    def read() -> None:
        data = b"."
        while data:
            room.acquire()
            try:
                data = _read(descriptor)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, data)
            except RuntimeError:
                return  # the loop is gone: nobody listens

    threading.Thread(target=read, name="handrail-stdin", daemon=True).start()
    while data := await chunks.get():
        room.release()
        yield data


class LineWriter:
    """Writes whole lines, one after another, without ever blocking the event loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._work, name="handrail-stdout", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write a line; returns when the system has taken all of it.

        Raises:
            OSError: It cannot be written; BrokenPipeError when nobody reads any more.
        """
        done = self._loop.create_future()
        self._lines.put((line, done))
        await done

    def _work(self) -> None:
        while True:
            line, done = self._lines.get()
            error: OSError | None = None
            try:
                _write(self._descriptor, line)
            except OSError as failure:
                error = failure
            try:
                self._loop.call_soon_threadsafe(_settle, done, error)
            except RuntimeError:
                return  # the loop is gone: nobody writes


async def reader_gone(descriptor: int) -> None:
    """Wait until the other end of a pipe is closed. Of anything but a pipe this cannot be told: waits for ever."""
    gone = asyncio.Event()
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        # The writing end of a pipe is never readable; the system reports only that the reader has gone.
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(descriptor)
    await gone.wait()


def _settle(done: asyncio.Future[None], error: OSError | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:  # the parent made it non-blocking
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
