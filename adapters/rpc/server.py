"""Serves a toolbox over lines of JSON; where the bytes come from and go to is the caller's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

import anyio
import anyio.abc

from handrail.adapters.rpc.outbox import Outbox
from handrail.adapters.rpc.protocol import (
    MAX_LINE_BYTES,
    CallRequest,
    CancelRequest,
    LineSplitter,
    RequestError,
    RequestId,
    call_id_of,
    encode_error,
    encode_event,
    parse_request,
)
from handrail.core.events import CallEnded
from handrail.core.toolbox import Toolbox

__all__ = ["MAX_UNANSWERED", "Server"]

MAX_UNANSWERED: Final = 256
"""While this many lines have no complete answer, no further line is read: a client that does not read its
answers is slowed down instead of filling the memory."""

_LAST_WORDS_SECONDS: Final = 1.0


class Server:
    """Answers the lines of one client. Calls run side by side; each is answered by start, updates and end.

    Args:
        toolbox: The tools; closed when serving ends.
        send: Writes one line whole. Raises OSError when nobody reads any more.
    """

    def __init__(self, toolbox: Toolbox, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._toolbox = toolbox
        self._send = send
        self._events = toolbox.events()
        self._outbox = Outbox()
        self._calls: dict[RequestId, anyio.CancelScope] = {}
        self._unanswered = anyio.Semaphore(MAX_UNANSWERED)
        self._serving = anyio.CancelScope()
        self._answering = anyio.CancelScope()
        self._stopped = False
        self._all_ended = False
        self.reader_gone = False

    async def serve(self, received: AsyncGenerator[bytes, None]) -> None:
        """Answer what comes in; returns when the input has ended and all its calls have.

        Args:
            received: The client's bytes, in chunks of any size; closed when serving ends.
        """
        with self._answering:
            async with anyio.create_task_group() as group:
                group.start_soon(self._collect_events)
                group.start_soon(self._write_answers)
                with self._serving:
                    await self._take_lines(received)
                await self._toolbox.aclose()
                self._all_ended = True
                self._limit_last_words()

    def stop(self) -> None:
        """Cancel what runs, answer that, and let ``serve`` return soon, whether or not the answers are read."""
        self._stopped = True
        self._serving.cancel()
        self._limit_last_words()

    def _limit_last_words(self) -> None:
        """An orderly end lets a slow reader take its time; one that was asked for does not wait for it."""
        if self._stopped and self._all_ended:
            self._answering.deadline = anyio.current_time() + _LAST_WORDS_SECONDS

    # -------------------------------------------------------------- requests

    async def _take_lines(self, received: AsyncGenerator[bytes, None]) -> None:
        splitter = LineSplitter()
        async with aclosing(received), anyio.create_task_group() as calls:
            async for data in received:
                for line in splitter.feed(data):
                    await self._take(line, calls)
            for line in splitter.finish():
                await self._take(line, calls)

    async def _take(self, line: bytes | None, calls: anyio.abc.TaskGroup) -> None:
        if line is not None and not line.strip():
            return
        await self._unanswered.acquire()
        try:
            if line is None:
                raise RequestError("line_too_long", f"The line is longer than {MAX_LINE_BYTES} bytes; it was skipped.")
            match parse_request(line):
                case CallRequest() as request:
                    self._start(request, calls)
                case CancelRequest(id=request_id):
                    self._cancel(request_id)
                    self._unanswered.release()  # the end of the call is the answer
        except RequestError as error:
            self._outbox.put(error)

    def _start(self, request: CallRequest, calls: anyio.abc.TaskGroup) -> None:
        if request.id in self._calls:
            raise RequestError("duplicate_id", "A call with this id has not ended; give each its own.", request.id)
        self._calls[request.id] = anyio.CancelScope()
        calls.start_soon(self._run, request)

    def _cancel(self, request_id: RequestId) -> None:
        if request_id not in self._calls:
            raise RequestError("unknown_id", "No call with this id is running; it may have ended.", request_id)
        self._calls[request_id].cancel()

    async def _run(self, request: CallRequest) -> None:
        try:
            with self._calls[request.id]:
                await self._toolbox.call(request.tool, request.arguments, call_id=call_id_of(request.id))
        finally:
            del self._calls[request.id]

    # --------------------------------------------------------------- answers

    async def _collect_events(self) -> None:
        async for event in self._events:
            self._outbox.put(event)
        self._outbox.close()

    async def _write_answers(self) -> None:
        while (message := await self._outbox.next()) is not None:
            line = encode_error(message) if isinstance(message, RequestError) else encode_event(message)
            if not self.reader_gone:
                await self._write(line)
            if isinstance(message, RequestError | CallEnded):
                self._unanswered.release()

    async def _write(self, line: bytes) -> None:
        try:
            await self._send(line)
        except OSError:
            self.reader_gone = True
            self.stop()
