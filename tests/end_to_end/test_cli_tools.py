"""``handrail tools`` and the words that are no command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from end_to_end.program import PROGRAM, handrail

NAMES = ["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"]


def test_tools_are_listed_for_a_person() -> None:
    done = handrail("tools")
    assert (done.returncode, done.stderr) == (0, "")
    headings = [line.partition(" ")[0] for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert headings == [*NAMES, "Every"]
    assert "arguments: {path: string, offset?: integer, limit?: integer}" in done.stdout
    assert "Every result: {content: [" in done.stdout


def test_tools_as_json_have_schemas_and_result_shapes() -> None:
    tools = json.loads(handrail("tools", "--json").stdout)
    assert [tool["name"] for tool in tools] == NAMES
    for tool in tools:
        assert tool["label"]
        assert tool["description"]
        assert tool["parameters"]["type"] == "object"
        assert {"content", "isError", "details"} <= set(tool["result"]["properties"])
    bash = tools[NAMES.index("bash")]
    assert bash["parameters"]["required"] == ["command"]
    assert "fullOutputPath" in bash["result"]["properties"]["details"]["properties"]


@pytest.mark.parametrize(
    "wire_format, keys",
    [
        ("jsonschema", {"name", "title", "description", "parameters"}),
        ("anthropic", {"name", "description", "input_schema"}),
        ("openai", {"type", "function"}),
        ("mcp", {"name", "title", "description", "inputSchema"}),
    ],
)
def test_tools_come_in_the_form_of_each_provider(wire_format: str, keys: set[str]) -> None:
    tools: list[dict[str, Any]] = json.loads(handrail("tools", "--format", wire_format).stdout)
    assert len(tools) == len(NAMES)
    assert all(set(tool) == keys for tool in tools)


def test_the_version_is_that_of_the_package() -> None:
    done = handrail("--version")
    assert (done.returncode, done.stdout) == (0, "handrail 0.1.0\n")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["tools", "--format", "yaml"],
        ["tools", "extra"],
        ["call"],
        ["tour", "now"],
        ["rpc", "--cwd", "/does/not/exist"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_command_are_usage_errors(words: list[str]) -> None:
    done = handrail(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "handrail" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_complaint_cannot_drive_the_terminal() -> None:
    done = handrail("tools", "--\x1b[31mred")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "\\x1b[31mred" in done.stderr


def test_help_names_the_commands() -> None:
    done = handrail("--help")
    assert done.returncode == 0
    assert all(f"  {command} " in done.stdout for command in ("tools", "call", "rpc", "tour"))


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "handrail", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "handrail 0.1.0\n"


def test_a_reader_that_leaves_early_is_no_disaster() -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"'{PROGRAM}' tools --json | true"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_said_plainly() -> None:
    done = subprocess.run(["bash", "-c", f"'{PROGRAM}' tools > /dev/full"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("handrail: cannot write the output: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_disaster(closed: str, tmp_path: Path) -> None:
    command = f"'{PROGRAM}' call write path=a.txt content=x {closed}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.txt").read_text() == "x"


def test_listing_the_tools_loads_nothing_that_only_calls_need() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "handrail", "tools", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "cattrs" in loaded
    assert not loaded & {"PIL", "aiofiles", "asyncio", "chardet", "pathspec", "psutil", "pypdf"}


def test_importing_the_package_loads_nothing_at_all() -> None:
    code = "import sys, typing, importlib; before = set(sys.modules); import handrail; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'handrail'}\n"
