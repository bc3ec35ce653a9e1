"""The server over a world in memory: every line has its answer, whatever the client does."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import define, field

from handrail import Toolbox, all_tools, memory_environment
from handrail.adapters.memory.clock import VirtualClock
from handrail.adapters.rpc.server import MAX_UNANSWERED, Server

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


@define(eq=False)
class Client:
    """The other side of a server: what it sends, what it got, and how well it reads."""

    answers: list[dict[str, Any]] = field(factory=list[dict[str, Any]])
    reads: anyio.Event = field(factory=anyio.Event)
    gone: bool = False
    _requests: deque[bytes] = field(factory=deque[bytes])
    _more: anyio.Event = field(factory=anyio.Event)
    _ended: bool = False
    taken: int = 0

    def send(self, *requests: Mapping[str, Any]) -> None:
        self._requests.extend(json.dumps(request).encode() + b"\n" for request in requests)
        self._more.set()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        while True:
            while self._requests:
                self.taken += 1
                yield self._requests.popleft()
            if self._ended:
                return
            self._more = anyio.Event()
            await self._more.wait()

    async def receive(self, line: bytes) -> None:
        if self.gone:
            raise BrokenPipeError
        await self.reads.wait()
        self.answers.append(json.loads(line))

    def kinds(self, request_id: int) -> list[str]:
        return [answer["type"] for answer in self.answers if answer.get("id") == request_id]

    def end_of(self, request_id: int) -> dict[str, Any]:
        [end] = [answer for answer in self.answers if (answer["type"], answer.get("id")) == ("end", request_id)]
        return end


@asynccontextmanager
async def served(client: Client, *, reads: bool = True, jumps: bool = True) -> AsyncGenerator[Server, None]:
    """Serve a client; the block ends when the server has left."""
    if reads:
        client.reads.set()
    async with (
        memory_environment({"a.txt": "one\n"}, clock=VirtualClock(autojump=jumps)) as env,
        Toolbox(env, all_tools()) as toolbox,
        anyio.create_task_group() as group,
    ):
        server = Server(toolbox, client.receive)
        group.start_soon(server.serve, client.stream())
        yield server


async def test_a_call_is_answered_by_start_updates_and_end() -> None:
    client = Client()
    async with served(client):
        client.send({"id": 1, "tool": "bash", "arguments": {"command": "echo one; sleep 1; echo two"}})
        client.end()
    kinds = client.kinds(1)
    assert (kinds[0], kinds[-1], set(kinds[1:-1])) == ("start", "end", {"update"})
    assert client.end_of(1)["result"]["content"] == [{"type": "text", "text": "one\ntwo\n"}]


async def test_a_cancel_ends_its_call_and_no_other() -> None:
    client = Client()
    async with served(client):
        client.send({"id": 1, "tool": "read", "arguments": {"path": "a.txt"}}, {"id": 1, "cancel": True})
        client.send({"id": 2, "tool": "read", "arguments": {"path": "a.txt"}})
        client.end()
    assert client.end_of(1)["result"]["errorCode"] == "aborted"
    assert client.end_of(2)["result"]["isError"] is False
    assert not [answer for answer in client.answers if answer["type"] == "error"]


async def test_an_id_is_free_again_after_its_end() -> None:
    client = Client()
    async with served(client):
        for count in (1, 2, 3):
            client.send({"id": 1, "tool": "ls"})
            while client.kinds(1).count("end") < count:
                await anyio.lowlevel.checkpoint()
        client.end()
    assert client.kinds(1) == ["start", "end"] * 3


async def test_a_client_that_does_not_read_is_read_no_further() -> None:
    client = Client()
    flood = MAX_UNANSWERED * 3
    async with served(client, reads=False):
        client.send(*({"id": number, "tool": "ls"} for number in range(flood)))
        client.end()
        await anyio.wait_all_tasks_blocked()
        assert MAX_UNANSWERED <= client.taken <= MAX_UNANSWERED + 1
        client.reads.set()
    assert client.taken == flood
    assert all(client.kinds(number) == ["start", "end"] for number in range(flood))


async def test_bad_lines_of_a_client_that_does_not_read_are_bounded_too() -> None:
    client = Client()
    async with served(client, reads=False):
        client.send(*({"id": number} for number in range(MAX_UNANSWERED * 2)))
        client.end()
        await anyio.wait_all_tasks_blocked()
        assert client.taken <= MAX_UNANSWERED + 1
        client.reads.set()
    assert [answer["errorCode"] for answer in client.answers] == ["invalid_request"] * MAX_UNANSWERED * 2


async def test_cancels_take_no_room() -> None:
    client = Client()
    async with served(client):
        client.send({"id": 0, "tool": "bash", "arguments": {"command": "sleep 1"}})
        client.send(*({"id": 0, "cancel": True} for _ in range(MAX_UNANSWERED * 2)))
        client.send({"id": 1, "tool": "ls"})
        client.end()
    assert client.kinds(1) == ["start", "end"]


async def test_nobody_reading_any_more_ends_the_server() -> None:
    client = Client(gone=True)
    async with served(client) as server:
        client.send({"id": 1, "tool": "ls"})
    assert server.reader_gone
    assert client.answers == []


async def test_a_stopped_server_answers_what_ran() -> None:
    client = Client()
    async with served(client, jumps=False) as server:
        client.send({"id": 1, "tool": "bash", "arguments": {"command": "echo shown; sleep 1000"}})
        await anyio.wait_all_tasks_blocked()  # it has printed, and its sleep waits for a clock that stands
        server.stop()
    result = client.end_of(1)["result"]
    assert result["errorCode"] == "aborted"
    assert result["content"][0]["text"].startswith("shown\n")


async def test_a_stopped_server_does_not_wait_for_a_client_that_does_not_read() -> None:
    client = Client()
    async with served(client, reads=False) as server:
        client.send({"id": 1, "tool": "ls"})
        client.end()
        await anyio.wait_all_tasks_blocked()  # the answers wait for the client, all calls have ended
        server.stop()
    assert client.answers == []
