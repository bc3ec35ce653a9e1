"""``handrail rpc``: a client that behaves, one that does not, and one that dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from end_to_end.program import PATIENCE_SECONDS, PROGRAM, interrupt, pid_in, rpc, started, wait_until

SLEEPER = "echo $$ > 1.pid; exec sleep 1000"


def test_a_call_is_answered_by_start_and_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    with rpc(tmp_path) as client:
        client.send({"id": 7, "tool": "read", "arguments": {"path": "a.txt"}})
        start, end = client.answer("start"), client.answer("end")
        client.close_input()
        assert client.exit_status() == 0
    assert start == {"type": "start", "id": 7, "tool": "read", "arguments": {"path": "a.txt"}}
    assert (end["id"], end["tool"], end["result"]["isError"]) == (7, "read", False)
    assert end["result"]["content"] == [{"type": "text", "text": "one\n"}]
    assert end["durationMs"] >= 0


def test_output_is_streamed_as_updates(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        client.send(
            {"id": "a", "tool": "bash", "arguments": {"command": "echo one; until [ -e go ]; do sleep 0.01; done"}}
        )
        text = ""
        while "one" not in text:
            text = client.answer("update", "a")["result"]["content"][0]["text"]
        (tmp_path / "go").touch()
        assert client.answer("end", "a")["result"]["isError"] is False


def test_several_calls_run_at_once(tmp_path: Path) -> None:
    waiting = "until [ -e go ]; do sleep 0.01; done"
    with rpc(tmp_path) as client:
        client.send(
            {"id": 1, "tool": "bash", "arguments": {"command": waiting}},
            {"id": "1", "tool": "write", "arguments": {"path": "go", "content": ""}},
        )
        ends = [client.answer("end")["id"] for _ in range(2)]
    assert ends == ["1", 1]


def test_a_cancelled_call_kills_its_command_and_says_so(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        client.send({"id": 1, "tool": "bash", "arguments": {"command": f"echo shown; {SLEEPER}"}})
        sleeper = pid_in(tmp_path / "1.pid")
        client.send({"id": 1, "cancel": True})
        result = client.answer("end", 1)["result"]
        assert not sleeper.is_running()
    assert result["errorCode"] == "aborted"
    assert result["content"][0]["text"].startswith("shown\n")


def test_a_call_cancelled_on_the_next_line_never_runs(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        client.send({"id": 1, "tool": "write", "arguments": {"path": "a", "content": ""}}, {"id": 1, "cancel": True})
        end = client.answer("end", 1)
    assert end["result"]["errorCode"] == "aborted"
    assert "durationMs" not in end
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "line, code",
    [
        (b"nonsense", "malformed_line"),
        (b"[1]", "malformed_line"),
        (b'"text"', "malformed_line"),
        (b"\xff\xfe{}", "malformed_line"),
        (b"[" * 100_000, "malformed_line"),
        (b'{"id":1,"tool":"ls","arguments":{"limit":NaN}}', "malformed_line"),
        (b'{"id":1,"tool":"ls","arguments":{"limit":1e999}}', "malformed_line"),
        (b"{}", "invalid_request"),
        (b'{"id":null,"tool":"ls"}', "invalid_request"),
        (b'{"id":true,"tool":"ls"}', "invalid_request"),
        (b'{"id":1}', "invalid_request"),
        (b'{"id":1,"tool":5}', "invalid_request"),
        (b'{"id":1,"cancel":false}', "invalid_request"),
        (b'{"id":1,"cancel":true}', "unknown_id"),
        (b"x" * (16 * 1024 * 1024 + 1), "line_too_long"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_line_is_answered_and_breaks_nothing(tmp_path: Path, line: bytes, code: str) -> None:
    with rpc(tmp_path) as client:
        client.send_raw(line + b'\n\n{"id":2,"tool":"ls"}\n')
        error = client.answer("error")
        end = client.answer("end", 2)
        client.close_input()
        assert client.exit_status() == 0
    assert error["errorCode"] == code
    assert error["message"]
    assert end["result"]["content"][0]["text"] == "(empty directory)"


def test_an_id_in_use_is_refused_and_its_call_goes_on(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        call = {"id": 1, "tool": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.01; done"}}
        client.send(call, call)
        error = client.answer("error")
        (tmp_path / "go").touch()
        end = client.answer("end")
        client.send({"id": 1, "tool": "ls"})
        again = client.answer("end")
    assert (error["id"], error["errorCode"]) == (1, "duplicate_id")
    assert (end["id"], end["tool"], end["result"]["isError"]) == (1, "bash", False)
    assert (again["id"], again["tool"]) == (1, "ls")


def test_what_a_tool_refuses_comes_as_an_end(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        client.send({"id": 1, "tool": "nonsense"}, {"id": 2, "tool": "read", "arguments": [1]})
        codes = {end["id"]: end["result"]["errorCode"] for end in (client.answer("end"), client.answer("end"))}
    assert codes == {1: "unknown_tool", 2: "invalid_arguments"}


def test_characters_survive_the_wire(tmp_path: Path) -> None:
    text = "snow \u2603 \U0001f40d \u2028 \x1b[31m"
    with rpc(tmp_path) as client:
        client.send({"id": "\u2603", "tool": "write", "arguments": {"path": "a", "content": text}})
        assert client.answer("end", "\u2603")["result"]["isError"] is False
    assert (tmp_path / "a").read_text("utf-8") == text


def test_calls_finish_when_the_input_ends(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        client.send(
            {"id": 1, "tool": "bash", "arguments": {"command": "until [ -e go ]; do sleep 0.01; done; echo done"}}
        )
        client.answer("start", 1)
        client.send_raw(b'{"id":2,"tool":"ls"}')  # no newline at the end
        client.close_input()
        assert client.answer("end", 2)["result"]["isError"] is False
        (tmp_path / "go").touch()
        assert client.answer("end", 1)["result"]["content"][0]["text"] == "done\n"
        assert client.exit_status() == 0


def test_requests_may_come_from_a_file(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    requests.write_text(
        "".join(json.dumps({"id": n, "tool": "ls", "arguments": {"limit": 1}}) + "\n" for n in range(1000))
    )
    with open(requests, "rb") as file:
        done = subprocess.run([PROGRAM, "rpc"], cwd=tmp_path, stdin=file, capture_output=True, timeout=PATIENCE_SECONDS)
    ends = [answer for answer in map(json.loads, done.stdout.splitlines()) if answer["type"] == "end"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(end["id"] for end in ends) == list(range(1000))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_kills_what_runs_and_is_answered(tmp_path: Path, number: signal.Signals) -> None:
    with rpc(tmp_path) as client:
        client.send({"id": 1, "tool": "bash", "arguments": {"command": SLEEPER}})
        sleeper = pid_in(tmp_path / "1.pid")
        assert interrupt(client.process, number) == 128 + number
        assert not sleeper.is_running()
        assert client.answer("end", 1)["result"]["errorCode"] == "aborted"
        assert client.process.stderr is not None
        assert client.process.stderr.read() == b""


def test_a_client_that_does_not_read_is_waited_for_and_loses_no_end(tmp_path: Path) -> None:
    calls = 400
    command = "head -c 30000 /dev/zero | tr '\\0' x"
    with rpc(tmp_path) as client:
        client.send(*({"id": n, "tool": "bash", "arguments": {"command": command}} for n in range(40)))
        client.send(*({"id": n, "tool": "ls"} for n in range(40, calls)))
        client.close_input()
        ends = [answer["id"] for answer in client.answers() if answer["type"] == "end"]
        assert client.exit_status() == 0
    assert sorted(ends) == list(range(calls))


def test_a_signal_does_not_wait_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    with rpc(tmp_path) as client:
        big = {"path": "big", "content": "x" * 1_000_000}
        client.send({"id": 0, "tool": "write", "arguments": big})  # its start alone is more than a pipe takes
        client.send({"id": 1, "tool": "bash", "arguments": {"command": SLEEPER}})
        sleeper = pid_in(tmp_path / "1.pid")
        assert interrupt(client.process, signal.SIGTERM) == 143
        assert not sleeper.is_running()


def test_a_client_that_died_leaves_nothing_running(tmp_path: Path) -> None:
    read, write = os.pipe()
    with started(["rpc"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=write) as process:
        os.close(write)
        assert process.stdin is not None
        process.stdin.write(json.dumps({"id": 1, "tool": "bash", "arguments": {"command": SLEEPER}}).encode() + b"\n")
        process.stdin.flush()
        sleeper = pid_in(tmp_path / "1.pid")
        os.close(read)  # stdin stays open, and nothing is being written: only the closed pipe tells
        assert process.wait(PATIENCE_SECONDS) == 1
        wait_until(lambda: not sleeper.is_running(), "the command is gone")
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
