"""Logs on disk: sinks, crashes, two writers, failures, and what is no log."""

from __future__ import annotations

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import memory_environment
from handrail.adapters.recording import (
    Head,
    LogError,
    MemoryLog,
    RecordingError,
    ed25519_signer,
    ed25519_verifier,
    record,
    replay,
    verify_log,
)
from handrail.adapters.recording.chain import Line, seal
from handrail.adapters.recording.reading import read_log
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import all_tools
from handrail.ports.environment import Environment

pytestmark = pytest.mark.anyio

FUTURE = seal({"seq": 0, "prev": "0" * 64, "kind": "log", "format": "handrail-audit", "version": 99})


async def use(env: Environment) -> list[dict[str, Any]]:
    async with env, Toolbox(env, all_tools()) as toolbox:
        results = [
            await toolbox.call("write", {"path": "a.txt", "content": "text\n"}),
            await toolbox.call("read", {"path": "a.txt"}),
            await toolbox.call("bash", {"command": "echo hi; exit 2"}),
        ]
    return [result.to_dict() for result in results]


async def test_the_log_reads_as_a_story() -> None:
    log = MemoryLog()
    await use(record(memory_environment(), log))
    entries = [line.entry for line in read_log(log)]
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert entries[0]["kind"] == "log"
    assert entries[-1]["kind"] == "end"
    calls = {entry["seq"]: entry for entry in entries if entry["kind"] == "call"}
    assert [entry["tool"] for entry in calls.values()] == ["write", "read", "bash"]
    for entry in entries[1:-1]:
        if entry["kind"] != "call":
            began = calls[entry["within"]]
            assert (entry["call"], entry["tool"]) == (began["call"], began["tool"])
    # Every change is announced before it happens.
    ended = [entry for entry in entries if entry["kind"] == "port" and entry["method"] in ("write", "run")]
    started = {entry["op"]: entry["seq"] for entry in entries if entry["kind"] == "start"}
    assert len(ended) == 2
    assert all(started[entry["op"]] < entry["seq"] for entry in ended)
    (output,) = [entry for entry in entries if entry["kind"] == "chunk"]
    assert output["content"]["size"] == 3
    assert entries[-2]["result"]["errorCode"] == "exit_code"


async def test_a_sqlite_log_can_be_queried_verified_and_replayed(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    recorded = await use(record(memory_environment(), log))
    assert verify_log(log, contents=True).intact
    assert await use(replay(log)) == recorded
    with sqlite3.connect(log) as connection:
        paths = connection.execute("SELECT DISTINCT path FROM entries WHERE tool = 'read' AND kind = 'port'").fetchall()
        failed = connection.execute("SELECT tool FROM entries WHERE kind = 'result' AND error = 'exit_code'").fetchall()
        connection.execute("UPDATE entries SET line = replace(line, 'a.txt', 'b.txt') WHERE seq = 4")
    connection.close()
    assert ("/project/a.txt",) in paths
    assert failed == [("bash",)]
    problem = verify_log(log).problem
    assert problem is None or problem.seq == 4


async def test_a_list_and_a_function_get_every_entry() -> None:
    entries: list[Mapping[str, Any]] = []
    seen: list[Mapping[str, Any]] = []

    async def take(entry: Mapping[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(entry)

    await use(record(memory_environment(), entries))
    await use(record(memory_environment(), take))
    assert verify_log(entries).intact
    assert verify_log(seen).intact
    assert entries[0]["contents"] == "hashes"
    assert len(entries) == len(seen)


async def test_a_log_is_continued_by_the_next_recorder(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for _ in range(3):
        await use(record(memory_environment(), log))
    found = verify_log(log)
    assert found.intact
    assert sum(line.entry["kind"] == "log" for line in read_log(log)) == 3
    player = replay(log)
    assert len(player.calls()) == 9


async def test_the_log_is_private(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    await use(record(memory_environment(), log))
    assert log.stat().st_mode & 0o077 == 0
    assert (tmp_path / "log.jsonl.contents").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["log.jsonl", "log.sqlite"])
async def test_a_second_recorder_of_one_log_is_refused(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    async with record(memory_environment(), log) as env:
        with pytest.raises(LogError, match="another recorder"):
            record(memory_environment(), log)
        await env.files.write("/project/a.txt", b"text")
    assert verify_log(log).intact


async def test_a_log_that_two_recorders_wrote_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    await use(record(memory_environment(), log))
    common = log.read_bytes()
    tails: list[list[bytes]] = []
    for _ in range(2):
        log.write_bytes(common)
        await use(record(memory_environment(), log))
        tails.append(log.read_bytes()[len(common) :].splitlines(keepends=True))
    mixed = [line for pair in zip(*tails, strict=True) for line in pair]
    log.write_bytes(common + b"".join(mixed))
    problem = verify_log(log).problem
    assert problem is not None
    assert problem.kind == "forked"
    assert "two recorders" in problem.message


async def test_concurrent_calls_are_recorded_whole(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with record(local_environment(tmp_path), log) as env, Toolbox(env, all_tools()) as toolbox:
        await toolbox.run([("write", {"path": f"{n % 5}.txt", "content": "x" * 50_000}) for n in range(40)])
        await toolbox.run([("bash", {"command": "head -c 300000 /dev/zero"}) for _ in range(4)])
    found = verify_log(log, contents=True)
    assert found.intact
    assert sum(line.entry["kind"] == "result" for line in read_log(log)) == 44


# ------------------------------------------------------------------ crashes


def test_a_writer_that_is_killed_leaves_a_log_that_verifies(tmp_path: Path) -> None:
    program = (
        "import anyio, sys\n"
        "from handrail.adapters.local.environment import local_environment\n"
        "from handrail.adapters.recording import record\n"
        "async def main():\n"
        "    async with record(local_environment(sys.argv[1]), sys.argv[2]) as env:\n"
        "        print('on', flush=True)\n"
        "        for n in range(10**6):\n"
        "            await env.files.write(sys.argv[1] + '/a.txt', b'x' * (n % 5000))\n"
        "anyio.run(main)\n"
    )
    log = tmp_path / "log.jsonl"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", program, tmp_path, log], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        before = log.stat().st_size
        while log.stat().st_size < before + 20_000:
            assert writer.poll() is None
            time.sleep(0.001)  # until it is in the middle of it
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        found = verify_log(log, contents=True)
        assert found.intact
        assert not found.complete
    assert sum(line.entry["kind"] == "log" for line in read_log(log)) == 3


@pytest.mark.parametrize("cut", [1, 2, 40])
async def test_a_torn_last_line_is_reported_and_the_log_goes_on(tmp_path: Path, cut: int) -> None:
    log = tmp_path / "log.jsonl"
    await use(record(memory_environment(), log))
    whole = log.read_bytes()
    log.write_bytes(whole[:-cut])
    found = verify_log(log)
    assert found.intact
    assert found.torn_bytes == len(whole.splitlines()[-1]) + 1 - cut
    damaged: list[str] = []
    assert sum(1 for _ in read_log(log, damaged=damaged)) == whole.count(b"\n") - 1
    assert "interrupted" in damaged[0]
    await use(record(memory_environment(), log))
    found = verify_log(log)
    assert (found.intact, found.torn_bytes) == (True, 0)
    headers = [line.entry for line in read_log(log) if line.entry["kind"] == "log"]
    assert headers[1]["torn"]["size"] == len(whole.splitlines()[-1]) + 1 - cut


# ------------------------------------------------------------------ what is no log


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\nworld\n", "not a log"),
        (b'{"a": 1}\n', "not a log"),
        (b"\x00\xff\n", "not a log"),
        (
            seal({"seq": 0, "prev": "0" * 64, "kind": "log", "format": "handrail-audit", "version": 99}).raw,
            "version 99",
        ),
    ],
)
async def test_a_file_that_is_no_log_is_refused_by_everything(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for use_log in (lambda: record(memory_environment(), path), lambda: replay(path), lambda: list(read_log(path))):
        with pytest.raises(LogError, match=message):
            use_log()
    problem = verify_log(path).problem
    assert problem is not None
    assert message in problem.message
    assert path.read_bytes() == content


async def test_a_missing_log_and_an_empty_one_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(LogError, match="No such file"):
        replay(tmp_path / "missing")
    with pytest.raises(LogError, match="empty"):
        replay(tmp_path / "empty")
    with pytest.raises(LogError, match="no entry"):
        verify_log(tmp_path / "empty")


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(LogError, match="something else"):
        record(memory_environment(), path)
    with pytest.raises(LogError, match="cannot be read"):
        verify_log(path)


async def test_what_can_be_read_of_a_damaged_log_is_replayed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    await use(record(memory_environment(), log))
    lines = log.read_bytes().splitlines(keepends=True)
    lines[-1] = b"garbage\n"
    log.write_bytes(b"".join(lines))
    player = replay(log)
    assert len(player.damaged) == 1
    assert len(await use(player)) == 3
    player.check()


# ------------------------------------------------------------------ failing sinks


class FailingSink(MemoryLog):
    """Fails from some write on, for some writes."""

    def __init__(self, *, after: int, times: int = 10**9) -> None:
        super().__init__()
        self.countdown, self.times = after, times

    async def write(self, lines: Sequence[Line]) -> None:
        self.countdown -= 1
        if self.countdown < 0 and self.times > 0:
            self.times -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        await super().write(lines)


@pytest.mark.parametrize("after", range(5))
async def test_nothing_happens_unrecorded_when_the_sink_fails(after: int) -> None:
    env = memory_environment()
    sink = FailingSink(after=after)
    recorded = record(env, sink)
    async with Toolbox(recorded, all_tools()) as toolbox:
        results = [await toolbox.call("write", {"path": f"{n}.txt", "content": "text"}) for n in range(4)]
    failed = [result.is_error for result in results]
    assert failed == sorted(failed)  # once it fails, it stays so
    assert failed[-1]
    assert "recording failed" in results[-1].text
    announced = (
        {line.entry["arguments"]["path"] for line in read_log(sink) if line.entry["kind"] == "start"}
        if (sink.lines)
        else set[str]()
    )
    written = set(env.files.tree("/project"))
    assert written <= announced
    assert not sink.lines or verify_log(sink).intact
    await recorded.aclose()


async def test_a_host_that_only_wants_a_warning_goes_on_and_the_log_says_what_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = FailingSink(after=2, times=2)
    results = await use(record(memory_environment(), sink, on_failure="warn"))
    assert [result["isError"] for result in results] == [False, False, True]
    found = verify_log(sink)
    assert found.intact
    assert found.lost > 0
    assert any("could not be recorded" in message for message in caplog.messages)


async def test_a_full_store_is_a_failure_too(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl.contents").write_text("a file where a directory should be")
    env = memory_environment()
    recorded = record(env, tmp_path / "log.jsonl")
    async with Toolbox(recorded, all_tools()) as toolbox:
        result = await toolbox.call("write", {"path": "a.txt", "content": "text"})
    assert result.is_error
    assert env.files.tree("/project") == {}
    await recorded.aclose()


# ------------------------------------------------------------------ anchors and signatures


async def test_an_anchored_log_cannot_be_shortened(tmp_path: Path) -> None:
    log, anchor = tmp_path / "log.jsonl", tmp_path / "head.json"
    await use(record(memory_environment(), log, anchor=anchor))
    assert verify_log(log, head=anchor).intact
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-3]))
    assert verify_log(log).intact
    problem = verify_log(log, head=anchor).problem
    assert problem is not None
    assert (problem.kind, problem.seq) == ("truncated", len(lines) - 3)
    with pytest.raises(LogError, match="keeps no head"):
        verify_log(log, head=tmp_path / "missing")


async def test_a_function_gets_every_new_head() -> None:
    heads: list[Head] = []
    log = MemoryLog()
    await use(record(memory_environment(), log, anchor=heads.append))
    assert verify_log(log, head=heads[-1]).intact
    assert [head.seq for head in heads] == sorted(head.seq for head in heads)


async def test_checkpoints_are_signed_with_ed25519(tmp_path: Path) -> None:
    keys: list[tuple[Path, Path]] = []
    for name in ("mine", "other"):
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        _make_key(private, public)
        keys.append((private, public))
    (mine, mine_public), (_, other_public) = keys
    log = tmp_path / "log.jsonl"
    await use(record(memory_environment(), log, signer=ed25519_signer(mine), checkpoint_every=10))
    found = verify_log(log, verifier=ed25519_verifier(mine_public))
    assert found.intact
    assert found.head is not None
    assert found.signed_up_to == found.head.seq
    problem = verify_log(log, verifier=ed25519_verifier(other_public)).problem
    assert problem is not None
    assert problem.kind == "signature"
    with pytest.raises(RecordingError, match="private key"):
        ed25519_signer(mine_public)
    with pytest.raises(RecordingError, match="cannot be read"):
        ed25519_verifier(tmp_path / "missing.pem")


def _make_key(private: Path, public: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@pytest.mark.slow
def test_a_million_entries_verify_in_constant_memory(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    entry = {"at": 1.0, "kind": "port", "port": "files", "method": "stat", "op": 1, "begun": 1, "seconds": 0.001}
    header = {"seq": 0, "prev": "0" * 64, "kind": "log", "format": "handrail-audit", "version": 1, "contents": "off"}
    line = seal(header)
    with log.open("wb") as file:
        file.write(line.raw)
        for seq in range(1, 1_000_000):
            line = seal({**entry, "seq": seq, "prev": line.hash, "arguments": {"path": f"/project/{seq}"}})
            file.write(line.raw)
    check = (
        "import json, re, sys\n"
        "from handrail.adapters.recording import verify_log\n"
        "found = verify_log(sys.argv[1])\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        "print(json.dumps([found.intact, found.entries, int(peak)]))\n"
    )
    answer = subprocess.run([sys.executable, "-c", check, log], capture_output=True, check=True)
    intact, entries, peak_kib = json.loads(answer.stdout)
    assert (intact, entries) == (True, 1_000_000)
    assert peak_kib < 100 * 1024  # the log itself has more than 300 MB
