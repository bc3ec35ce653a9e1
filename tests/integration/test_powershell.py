"""powershell: argv, encodings and exit codes with a stand-in, and the same with a real one where there is one."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handrail.adapters.local.environment import local_environment
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.powershell import PowershellOptions, powershell_tool
from handrail.ports.environment import Environment

pytestmark = pytest.mark.anyio

# Takes the command line as PowerShell does, and writes down what it was given. The command text is between
# the two parts that the tool adds; here it is JSON that says what to print and how to end.
STAND_IN = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
flags = []
while arguments and arguments[0].lower() != "-command":
    flag = arguments.pop(0).lower()
    if flag not in ("-noprofile", "-noninteractive", "-executionpolicy"):
        sys.exit(f"The argument '{{flag}}' is not recognized")
    flags.append(flag)
    if flag == "-executionpolicy":
        flags.append(arguments.pop(0))
text = " ".join(arguments[1:])
if ". '" in text:
    path = text.partition(". '")[2].partition("'")[0]
    with open(path, encoding="utf-8") as script:
        assert script.read(1) == "\\ufeff"
        text = text.replace(f". '{{path}}'", script.read())
with open(os.path.join(os.path.dirname(__file__), "seen.json"), "w") as seen:
    json.dump({{"flags": flags, "text": text, "stdin": sys.stdin.read()}}, seen)
start = text.index("{{")
asked, _ = json.JSONDecoder().raw_decode(text[start:])
sys.stdout.buffer.write(asked["print"].encode(asked.get("encoding", "utf-8")))
sys.stdout.flush()
sys.exit(asked.get("exit", 0))
"""


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[Environment]:
    async with local_environment(tmp_path, temp_directory=tmp_path) as environment:
        yield environment


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if sys.platform == "win32":
        pytest.skip("the stand-in is a script with a shebang line")
    path = tmp_path / "bin" / "pwsh"
    path.parent.mkdir()
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


async def call(env: Environment, command: str, options: PowershellOptions | None = None) -> ToolResult:
    toolbox = Toolbox(env, [powershell_tool(options or PowershellOptions())])
    return await toolbox.call("powershell", {"command": command})


async def ask(env: Environment, **asked: object) -> ToolResult:
    return await call(env, json.dumps(asked))


async def test_pwsh_is_found_and_given_what_it_needs(env: Environment, stand_in: Path) -> None:
    result = await ask(env, print="hello 漢\n")
    assert result.text == "hello 漢\n"
    seen = json.loads((stand_in.parent / "seen.json").read_text())
    assert seen["flags"] == ["-noprofile", "-noninteractive", "-executionpolicy", "Bypass"]
    assert seen["stdin"] == ""
    before, command, after = seen["text"].partition('{"print": "hello \\u6f22\\n"}')
    assert command
    assert "[Console]::OutputEncoding" in before
    assert "UTF8Encoding" in before
    assert before.endswith("\n")
    assert "exit $LASTEXITCODE" in after


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
async def test_output_in_the_encodings_of_powershell(env: Environment, stand_in: Path, encoding: str) -> None:
    result = await ask(env, print="Grüße 漢😀\r\n", encoding=encoding)
    assert result.text == "Grüße 漢😀\r\n"


async def test_exit_codes_are_passed_on(env: Environment, stand_in: Path) -> None:
    result = await ask(env, print="", exit=7)
    assert (result.text, result.error_code) == ("(no output)\n\nCommand exited with code 7", "exit_code")


async def test_windows_powershell_is_the_fallback(env: Environment, stand_in: Path) -> None:
    os.rename(stand_in, stand_in.parent / "powershell")
    assert (await ask(env, print="from the fallback")).text == "from the fallback"


async def test_a_long_command_goes_through_a_script_with_a_mark(env: Environment, stand_in: Path) -> None:
    result = await ask(env, print="x" * 100_000 + "é")
    assert result.text.startswith("x" * 1000)
    assert "xé" in result.text
    assert not [name for name in os.listdir(env.cwd) if name.endswith(".ps1")]


async def test_where_there_is_none_the_error_says_how_to_get_one(
    env: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await call(env, "Get-Date")
    assert (result.error_code, "Install PowerShell" in result.text) == ("missing_shell", True)


@pytest.mark.skipif(
    not (shutil.which("pwsh") or shutil.which("powershell")), reason="no PowerShell is installed on this machine"
)
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("Write-Output 'Grüße 漢😀'", "Grüße 漢😀\n"),
        ("$x = 'a'; \"$x b\"", "a b\n"),
        ("exit 3", "(no output)\n\nCommand exited with code 3"),
        ("throw 'no'", "Command exited with code 1"),
        ("Get-Item ./no-such-item", "Command exited with code 1"),
        (f"& '{sys.executable}' -c 'import sys; sys.exit(5)'", "(no output)\n\nCommand exited with code 5"),
        (f"& '{sys.executable}' -c 'import sys; sys.exit(5)'; Write-Output after", "after\n"),
        (f"& '{sys.executable}' -c 'import sys; print(1, file=sys.stderr)' 2>&1 | Out-Null", "(no output)"),
        (f"& '{sys.executable}' -c 'import sys; print(len(sys.stdin.read()))'", "0\n"),
    ],
)
async def test_a_real_powershell(env: Environment, command: str, text: str) -> None:
    assert (await call(env, command)).text.replace("\r\n", "\n").endswith(text)
