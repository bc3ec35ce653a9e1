"""bash on real processes and files, through the Toolbox."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.adapters.local.environment import local_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import BashOptions, bash_tool
from handrail.ports.commands import Inheritance, ResourceLimits
from handrail.ports.environment import Environment
from integration.processes import new_marker, processes_with

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="bash"),
]


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[Environment]:
    workspace, temporary = tmp_path / "ws", tmp_path / "tmp"
    workspace.mkdir()
    temporary.mkdir()
    async with local_environment(workspace, temp_directory=temporary) as environment:
        yield environment


async def call(env: Environment, command: str, options: BashOptions | None = None, **arguments: Any) -> ToolResult:
    return await Toolbox(env, [bash_tool(options or BashOptions())]).call("bash", {"command": command, **arguments})


def saved(path: str) -> bytes | None:
    """The content of a private file, if there is one."""
    if not os.path.exists(path):
        return None
    assert os.stat(path).st_mode & 0o777 == 0o600
    return Path(path).read_bytes()


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("cat <<'X'\nline 1\n$HOME\nX", "line 1\n$HOME\n"),
        ("printf '%s\\n' 'a \"b\" $c' \"d 'e' `echo f`\"", "a \"b\" $c\nd 'e' f\n"),
        ('cat; read x; echo "[$x]"', "[]\n"),
        ("echo out; echo err >&2; echo out", "out\nerr\nout\n"),
        ("printf '\\033[1;31m\\033[2Jart \\033[0m\\n'", "art \n"),
        ("printf '\\xe6\\xbc'; sleep 0.2; printf '\\xa2\\n'", "漢\n"),
        ("for i in {1..200}; do printf 'at %d%%\\r' $i; done; echo finished", "finished\n"),
        ("echo $0; echo $-", "/bin/bash\nhBc\n"),
        ("kill -SEGV $$", "(no output)\n\nCommand exited with code 139"),
        ("sleep 3 & echo done", "done\n"),
    ],
)
async def test_a_command_and_what_is_shown_of_it(env: Environment, command: str, text: str) -> None:
    shown = (await call(env, command)).text
    assert shown == text or shown.startswith(text + "\n\n[Progress lines are shown in their last state. Full output: ")


async def test_a_command_of_two_hundred_kilobytes(env: Environment, tmp_path: Path) -> None:
    result = await call(env, f"echo $0; cat <<'X' | wc -c\n{'y' * 200_000}\nX\nexit 3")
    assert result.text == "/bin/bash\n200001\n\n\nCommand exited with code 3"
    assert os.listdir(tmp_path / "tmp") == []


async def test_large_output_is_bounded_and_complete(env: Environment) -> None:
    result = await call(env, "seq 3000000; printf 'ends with \\377'")
    path = result.details.full_output_path
    assert saved(path) == b"".join(b"%d\n" % number for number in range(1, 3_000_001)) + b"ends with \xff"
    assert result.details.truncation.total_lines == 3_000_001
    assert result.text.endswith(f"ends with \ufffd\n\n[Showing lines 2998002-3000001 of 3000001. Full output: {path}]")
    await env.aclose()
    assert saved(path) is None


async def test_cancelling_keeps_the_output_and_kills_the_tree(env: Environment) -> None:
    marker = new_marker()
    toolbox = Toolbox(env, [bash_tool()])
    printed = anyio.Event()
    results: list[ToolResult] = []

    def note(update: ToolResult) -> None:
        if "3000" in update.text:
            printed.set()

    async def run() -> None:
        command = f"seq 3000; setsid sleep {marker} & sleep {marker}"
        results.append(await toolbox.call("bash", {"command": command}, call_id="one", on_update=note))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await printed.wait()
        toolbox.cancel("one")
    assert processes_with(marker) == []
    (result,) = results
    assert result.error_code == "aborted"
    assert result.text.endswith("\n\nOperation aborted")
    assert saved(result.details.full_output_path) == b"".join(b"%d\n" % number for number in range(1, 3001))


async def test_a_timeout_kills_the_tree(env: Environment) -> None:
    marker = new_marker()
    result = await call(env, f"trap '' TERM; setsid sleep {marker} & sleep {marker}", timeout=0.3)
    assert result.text == "Command timed out after 0.3 seconds"
    assert processes_with(marker) == []


async def test_background_processes_live_until_the_environment_closes(env: Environment) -> None:
    marker = new_marker()
    result = await call(env, f"sleep {marker} > /dev/null & echo started")
    (left,) = result.details.background
    assert (left.command_line, f"{left.pid} S sleep {marker}") == (f"sleep {marker}", processes_with(marker)[0].strip())
    await env.aclose()
    assert processes_with(marker) == []


async def test_a_deleted_working_directory_is_named(env: Environment) -> None:
    await call(env, 'rmdir "$PWD"')
    result = await call(env, "echo still here")
    assert (result.error_code, env.cwd in result.text) == ("missing_cwd", True)


async def test_a_shell_that_cannot_be_executed(env: Environment) -> None:
    result = await call(env, "true", BashOptions(shell_path="/etc/passwd"))
    assert (result.error_code, "/etc/passwd" in result.text) == ("missing_shell", True)


async def test_variables_of_the_host(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_MODEL", "leak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leak")
    text = 'echo "[${PI_MODEL-unset}][${AWS_SECRET_ACCESS_KEY-unset}][${PATH:+set}]"'
    assert (await call(env, text)).text == "[unset][leak][set]\n"
    assert (await call(env, text, BashOptions(inherit=Inheritance("minimal")))).text == "[unset][unset][set]\n"


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "command", "text"),
        [
            (ResourceLimits(cpu_seconds=1), "while :; do :; done", "The limit of 1 s of CPU time was met."),
            (
                ResourceLimits(file_size_bytes=4096),
                "head -c 9999 /dev/zero > f",
                "The limit of 4096 bytes of file size",
            ),
            (
                ResourceLimits(open_files=20),
                "exec {a}</ {b}</; for i in {1..30}; do exec {c}</ || exit; done",
                "20 open",
            ),
            (
                ResourceLimits(address_space_bytes=300_000_000),
                "python3 -c 'bytearray(10**9)'",
                "The limit of 300000000 bytes of address space was met.",
            ),
        ],
    )
    async def test_the_text_says_which_one_was_met(
        self, env: Environment, limits: ResourceLimits, command: str, text: str
    ) -> None:
        result = await call(env, command, BashOptions(limits=limits))
        assert (result.error_code, text in result.text) == ("resource_limit", True)
        assert "Command exited with code" in result.text

    async def test_another_failure_is_no_limit(self, env: Environment) -> None:
        result = await call(env, "exit 3", BashOptions(limits=ResourceLimits(cpu_seconds=100, open_files=50)))
        assert result.error_code == "exit_code"
