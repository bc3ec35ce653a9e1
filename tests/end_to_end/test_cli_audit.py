"""``--record``, ``handrail audit`` and ``handrail undo`` as a person uses them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from end_to_end.program import handrail, rpc

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egpj.exe"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A log of three calls, and the directory they worked in."""
    root = tmp_path_factory.mktemp("audit")
    work, log = root / "work", root / "log.jsonl"
    work.mkdir()
    options = ["--cwd", str(work), "--record", str(log), "--root", str(work)]
    assert handrail("call", "write", "path=a.txt", "content=hello\n", *options).returncode == 0
    hostile = f"printf '%s' '{HOSTILE}' > \"x{HOSTILE[:6]}\"; cat x*; echo more >> a.txt"
    assert handrail("call", "bash", f"command={hostile}", *options).returncode == 0
    assert handrail("call", "read", "path=missing.txt", *options).returncode == 1
    return log, work


def test_the_timeline_tells_the_story_and_cannot_drive_a_terminal(recorded: tuple[Path, Path]) -> None:
    shown = handrail("audit", "show", str(recorded[0]))
    assert shown.returncode == 0
    assert "write ok: Created a.txt (6 bytes)." in shown.stdout
    assert "files.write" in shown.stdout
    assert "read failed (missing_file)" in shown.stdout
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown.stdout)


def test_filters_narrow_the_timeline(recorded: tuple[Path, Path]) -> None:
    def entries(*words: str) -> list[dict[str, object]]:
        shown = handrail("audit", "show", "--json", *words, str(recorded[0]))
        assert shown.returncode == 0, shown.stderr
        return [json.loads(line) for line in shown.stdout.splitlines()]

    assert {entry["tool"] for entry in entries("--tool", "bash")} == {"bash"}
    errors = entries("--errors")
    assert errors
    assert {entry["tool"] for entry in errors} == {"read"}
    assert all("a.txt" in json.dumps(entry) for entry in entries("--path", "*a.txt"))
    assert len(entries("--all")) > len(entries())
    assert entries("--since", "2999") == []
    assert entries("--until", "1999") == []


def test_verify_says_whether_it_is_intact(recorded: tuple[Path, Path], tmp_path: Path) -> None:
    good = handrail("audit", "verify", "--contents", str(recorded[0]))
    assert good.returncode == 0
    assert "intact" in good.stdout
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(recorded[0].read_bytes().replace(b'"hello', b'"jello').replace(b"a.txt", b"b.txt", 1))
    refused = handrail("audit", "verify", str(bad))
    assert refused.returncode == 1
    assert "BAD at entry 1 " in refused.stdout
    shown = handrail("audit", "show", str(bad))
    assert shown.returncode == 1
    assert "recorder ends" in shown.stdout
    assert "line 2" in shown.stderr


def test_replay_gives_the_recorded_results(recorded: tuple[Path, Path]) -> None:
    again = handrail("audit", "replay", "--json", str(recorded[0]))
    told = json.loads(again.stdout)
    assert again.returncode == 0, told
    assert [call["tool"] for call in told["calls"]] == ["write", "bash", "read"]
    assert all(call["same"] for call in told["calls"])
    lenient = json.loads(handrail("audit", "replay", "--lenient", "--json", str(recorded[0])).stdout)
    assert lenient["differences"] == []
    assert "3 of 3 calls" in handrail("audit", "replay", str(recorded[0])).stdout


def test_stats_count(recorded: tuple[Path, Path]) -> None:
    counted = json.loads(handrail("audit", "stats", "--json", str(recorded[0])).stdout)
    assert (counted["calls"], counted["failures"], counted["commands"]) == (3, 1, 1)
    assert counted["bytesWritten"] == 6
    assert counted["tools"]["read"]["failures"] == 1
    assert "bytes written" in handrail("audit", "stats", str(recorded[0])).stdout


def test_what_is_no_log_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello\n")
    for words in (["show"], ["replay"], ["stats"]):
        refused = handrail("audit", *words, str(tmp_path / "text"))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "not a log" in refused.stderr
    assert handrail("audit", "verify", str(tmp_path / "none")).returncode == 2
    refused = handrail("call", "ls", "--record", str(tmp_path / "text"), cwd=tmp_path)
    assert refused.returncode == 2
    assert (tmp_path / "text").read_text() == "hello\n"


def test_undo_takes_back_and_redo_brings_again(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    work = tmp_path / "work"
    work.mkdir()

    def undo(*words: str) -> tuple[int, str]:
        done = handrail("undo", str(log), *words)
        return done.returncode, done.stdout + done.stderr

    assert undo()[0] == 2
    options = ["--cwd", str(work), "--record", str(log), "--root", str(work)]
    handrail("call", "write", "path=a.txt", "content=one\n", *options)
    handrail("call", "bash", "command=echo two > a.txt; mkdir d", *options)
    status, listed = undo("--list")
    assert status == 0
    assert len(listed.splitlines()) == 3
    assert "+two" in undo("--diff")[1]
    assert undo()[0] == 0
    assert ((work / "a.txt").read_text(), (work / "d").exists()) == ("one\n", False)
    assert undo("--redo")[0] == 0
    assert (work / "a.txt").read_text() == "two\n"
    (work / "a.txt").write_text("theirs\n")
    status, told = undo()
    assert status == 1
    assert "-two\n+theirs\n" in told
    assert undo("--force")[0] == 0
    assert undo("--since", "0")[0] == 0
    assert list(work.iterdir()) == []
    assert "nothing" in undo()[1].lower()
    assert handrail("audit", "verify", "--contents", str(log)).returncode == 0


def test_a_server_records_too(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with rpc(tmp_path, "--record", str(log)) as server:
        server.send({"type": "call", "id": "one", "tool": "ls", "arguments": {}})
        server.answer("end", "one")
        server.close_input()
        assert server.exit_status() == 0
    assert '"one": ls ok' in handrail("audit", "show", str(log)).stdout
