"""Planted secrets appear nowhere: not in the log, not in the store, not as a hash."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import memory_environment
from handrail.adapters.recording import (
    DEFAULT_PATTERNS,
    MemoryLog,
    Pattern,
    Redaction,
    record,
    replay,
    verify_log,
)
from handrail.adapters.recording.reading import read_log
from handrail.adapters.recording.redaction import Redactor
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import BashOptions
from handrail.core.toolsets import all_tools
from handrail.ports.environment import Environment

pytestmark = pytest.mark.anyio

SECRET = 'hunter2-"é-correct/horse'
LINE = "b3BlbnNzaC1rZXktdjEAAAAA"
BODY = f"{LINE}\n" * 30
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}-----END OPENSSH PRIVATE KEY-----\n"
TOKEN = "ghp_" + "a1B2c3D4e5" * 4
REDACTION = Redaction(secrets={"PASSWORD": SECRET}, paths=(".env", "*/vault/*"))


def everything(tmp_path: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())


async def use(env: Environment) -> list[dict[str, Any]]:
    tools = all_tools(bash=BashOptions(secrets={"PASSWORD": SECRET}))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write", {"path": "a.txt", "content": f"the password is {SECRET}\n{KEY}{TOKEN}\n" + "filler\n" * 200}),
        ("read", {"path": "a.txt"}),
        ("grep", {"pattern": "password"}),
        ("edit", {"path": "a.txt", "edits": [{"oldText": f"is {SECRET}", "newText": f"was {SECRET}"}]}),
        ("bash", {"command": 'echo "$PASSWORD"; cat a.txt; cat a.txt >&2'}),
        ("write", {"path": f"{TOKEN}.txt", "content": SECRET}),
        ("ls", {}),
        ("write", {"path": ".env", "content": "plain=but-hidden-by-its-path"}),
        ("read", {"path": ".env"}),
        ("edit", {"path": ".env", "edits": [{"oldText": "plain", "newText": "other-hidden-text"}]}),
    ]
    async with env, Toolbox(env, tools) as toolbox:
        return [(await toolbox.call(name, arguments)).to_dict() for name, arguments in calls]


@pytest.mark.parametrize("where", ["memory", "local"])
async def test_planted_secrets_are_nowhere(tmp_path: Path, where: str) -> None:
    logs, work = tmp_path / "logs", tmp_path / "work"
    logs.mkdir()
    work.mkdir()
    env = memory_environment() if where == "memory" else local_environment(work)
    results = await use(record(env, logs / "log.jsonl", redact=REDACTION))
    assert not any(result["isError"] for result in results)
    assert SECRET in json.dumps(results, ensure_ascii=False).replace('\\"', '"')  # the tools still see it
    kept = everything(logs)
    raw = SECRET.encode()
    forms = [
        raw,
        json.dumps(SECRET)[1:-1].encode(),
        quote(raw).encode(),
        base64.b64encode(raw),
        TOKEN.encode(),
        LINE.encode(),
        b"hidden-by-its-path",
        b"other-hidden-text",
    ]
    assert [form for form in forms if form in kept] == []
    hashes = [hashlib.sha256(data).hexdigest().encode() for data in (raw, b"plain=but-hidden-by-its-path")]
    hashes += [hashlib.sha256(raw).hexdigest()[:32].encode()]  # as in version tokens
    assert [digest for digest in hashes if digest in kept] == []
    for marker in (b"secret:PASSWORD", b"pattern:private-key", b"pattern:github-token", b"[redacted:path]"):
        assert marker in kept
    found = verify_log(logs / "log.jsonl", contents=True)
    assert (found.intact, found.redacted) == (True, True)


async def test_the_replay_of_a_redacted_log_says_so_and_has_markers() -> None:
    log = MemoryLog()
    async with record(memory_environment(), log, redact=REDACTION) as env, Toolbox(env, all_tools()) as toolbox:
        await toolbox.call("bash", {"command": f"echo '{SECRET}'"})
    player = replay(log, redact=REDACTION)
    assert player.redacted
    async with Toolbox(player, all_tools()) as toolbox:
        result = await toolbox.call("bash", {"command": f"echo '{SECRET}'"})
    player.check()
    assert result.text == "[redacted:secret:PASSWORD]\n"
    assert not replay(await _plain_log()).redacted


async def _plain_log() -> MemoryLog:
    log = MemoryLog()
    async with record(memory_environment(), log) as env:
        env.clock.now()
    return log


async def test_a_call_that_sees_a_hidden_file_by_another_name_is_hidden_too(tmp_path: Path) -> None:
    (tmp_path / "work" / "vault").mkdir(parents=True)
    (tmp_path / "work" / "vault" / "key").write_text("nobody-may-know")
    (tmp_path / "work" / "link").symlink_to("vault/key")
    (tmp_path / "logs").mkdir()
    env = record(local_environment(tmp_path / "work"), tmp_path / "logs" / "log.jsonl", redact=REDACTION)
    async with env, Toolbox(env, all_tools()) as toolbox:
        result = await toolbox.call("read", {"path": "link"})
    assert result.text == "nobody-may-know"
    assert b"nobody-may-know" not in everything(tmp_path / "logs")


async def test_without_a_redaction_nothing_is_changed() -> None:
    log = MemoryLog()
    await use(record(memory_environment(), log))
    assert any(KEY.encode() in content for content in log.store.contents.values())
    assert not any("redacted" in json.dumps(line.entry.get("result")) for line in read_log(log))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("aws-key", "AKIAIOSFODNN7EXAMPLE"),
        ("api-key", "sk-ant-api03-" + "x" * 40),
        ("api-key", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"),
        ("github-token", "github_pat_" + "A" * 40),
        ("gitlab-token", "glpat-" + "x" * 20),
        ("slack-token", "xoxb-" + "1" * 20),
        ("google-key", "AIza" + "x" * 35),
        ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
        ("bearer-token", "Bearer abcdefghijklmnop"),
        ("url-password", "postgres://user:pass@host/db"),
        ("private-key", KEY),
        ("private-key", KEY[:200]),
    ],
)
def test_well_known_makes_are_recognised(name: str, text: str) -> None:
    clean, kinds = Redactor(Redaction()).data(f"before {text} after".encode())
    assert kinds == {f"pattern:{name}"}
    assert f"[redacted:pattern:{name}]".encode() in clean
    assert clean.startswith(b"before ")
    assert clean.endswith(b" after")


def test_plain_text_is_left_alone() -> None:
    text = b"task-list sk-8 the eyJ of the storm https://example.org/a@b PRIVATE KEY ghp_ AKIA xox\n" * 100
    assert Redactor(Redaction()).data(text) == (text, frozenset())


noise = st.text("ab \n-:/@.", max_size=30)
secret_parts = st.sampled_from([SECRET, TOKEN, KEY, "s3cr3t-99999", "https://me:pw@host/"])


@given(st.lists(st.one_of(noise, secret_parts), max_size=30), st.lists(st.integers(1, 9000), min_size=1, max_size=20))
def test_a_stream_in_any_pieces_is_redacted_as_a_whole(parts: list[str], sizes: list[int]) -> None:
    own = Pattern("own", re.compile(rb"s3cr3t-[0-9]{1,8}"))
    redactor = Redactor(Redaction({"P": SECRET}, (*DEFAULT_PATTERNS, own)))
    data = "".join(parts).encode() * 5
    stream, pieces, position = redactor.stream(), b"", 0
    for number in range(len(data)):
        if position >= len(data):
            break
        size = sizes[number % len(sizes)]
        pieces += stream.feed(data[position : position + size])
        position += size
    pieces += stream.finish()
    assert pieces == redactor.data(data)[0]
