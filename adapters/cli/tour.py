"""``handrail tour``: all tools on real files and processes, each claim checked by other means than the tools."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import psutil
from attrs import define

from handrail.adapters.cli import terminal
from handrail.adapters.cli.composition import local_toolbox
from handrail.adapters.cli.rendering import outline, shape
from handrail.adapters.cli.signals import on_interruption
from handrail.core.arguments import json_schema
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.truncation import MAX_LINES

__all__ = ["take_tour"]

_START_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02


def take_tour() -> int:
    """Take the tour in a fresh temporary folder; return 0 when every check held, else 1."""
    return anyio.run(_take_tour)


async def _take_tour() -> int:
    with anyio.CancelScope() as scope, on_interruption(scope.cancel) as interruption:
        return await _walk()
    return interruption.exit_status(1)


async def _walk() -> int:
    with tempfile.TemporaryDirectory(prefix="handrail-tour-") as folder:
        terminal.say(f"A tour of handrail in {folder}, on real files and processes.")
        async with local_toolbox(folder) as toolbox:
            tour = _Tour(toolbox, Path(folder))
            for title, stop in _STOPS:
                terminal.say(f"\n== {title}")
                await stop(tour)
    failed = tour.failed
    total = f"{tour.checks} checks"
    terminal.say(f"\n{failed} of {total} failed." if failed else f"\nAll {total} held. The folder is removed again.")
    return 1 if failed else 0


@define
class _Tour:
    """The workspace, and what has been checked so far."""

    toolbox: Toolbox
    folder: Path
    checks: int = 0
    failed: int = 0

    def check(self, claim: str, held: bool) -> None:
        """Say what was checked and whether it held."""
        self.checks += 1
        self.failed += not held
        terminal.say(f"  {'ok    ' if held else 'FAILED'} {claim}")

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        """Call a tool and show the call."""
        terminal.say(f"  {tool} {json.dumps(arguments, ensure_ascii=False)}")
        return await self.toolbox.call(tool, arguments)


# ------------------------------------------------------------------ (a) every tool


async def _every_tool(tour: _Tour) -> None:
    (tour.folder / "src").mkdir()
    (tour.folder / "src" / "app.py").write_text("import sys\n\nprint('hello')\n")
    for name, tool in tour.toolbox.tools.items():
        terminal.say(f"{name} ({tool.label}): {shape(json_schema(tool.parameters))}")
        arguments, effect = _SAMPLES[name]
        result = await tour.call(name, **arguments)
        terminal.say(f"  -> {outline(result.to_dict())}")
        if name == "powershell" and result.error_code == "missing_shell":
            tour.check("no PowerShell is installed here, and the result says so", "PowerShell" in result.text)
        else:
            tour.check("the call succeeded and did what it should", not result.is_error and effect(tour, result))


_Effect = Callable[[_Tour, ToolResult], bool]


def _text_has(expected: str) -> _Effect:
    return lambda tour, result: expected in result.text


def _file_is(name: str, content: str) -> _Effect:
    return lambda tour, result: (tour.folder / name).read_bytes() == content.encode()


_SAMPLES: Final[Mapping[str, tuple[Mapping[str, Any], _Effect]]] = {
    "read": ({"path": "src/app.py"}, _text_has("print('hello')")),
    "bash": ({"command": "echo $((6 * 7)); pwd"}, _text_has("42\n")),
    "powershell": ({"command": "Write-Output (6 * 7)"}, _text_has("42")),
    "edit": (
        {"path": "src/app.py", "edits": [{"oldText": "hello", "newText": "good day"}]},
        _file_is("src/app.py", "import sys\n\nprint('good day')\n"),
    ),
    "write": ({"path": "docs/new/notes.md", "content": "naïve café\n"}, _file_is("docs/new/notes.md", "naïve café\n")),
    "grep": ({"pattern": r"print\(", "path": "."}, _text_has("src/app.py:3: print('good day')")),
    "find": ({"pattern": "*.md"}, _text_has("docs/new/notes.md")),
    "ls": ({}, _text_has("docs/\nsrc/")),
}

# ------------------------------------------------------------------ (b) bounded and complete


async def _bounded_read(tour: _Tour) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 5001))
    (tour.folder / "long.txt").write_text(content)
    result = await tour.call("read", path="long.txt")
    notice = result.text.rpartition("\n\n")[2]
    terminal.say(f"  -> … {notice}")
    tour.check(
        f"the first answer ends after line {MAX_LINES} and says how to go on", f"1-{MAX_LINES} of 5000" in notice
    )
    shown = [_without_notice(result.text)]
    while following := re.search(r"Use offset=(\d+) to continue\.\]$", result.text):
        result = await tour.call("read", path="long.txt", offset=int(following[1]))
        shown.append(_without_notice(result.text))
    tour.check(f"{len(shown)} answers together are the whole file, byte for byte", _joined(shown) == content)


def _without_notice(text: str) -> str:
    return re.sub(r"\n\n\[[^\n]*\]$", "", text)


def _joined(parts: list[str]) -> str:
    return "\n".join(part.removesuffix("\n") for part in parts) + "\n"


async def _bounded_output(tour: _Tour) -> None:
    result = await tour.call("bash", command="seq 1 60000")
    notice = result.text.rpartition("\n\n")[2]
    terminal.say(f"  -> … {notice}")
    details = result.to_dict().get("details", {})
    saved = details.get("fullOutputPath", "")
    tour.check(f"the answer is short ({len(result.text)} characters) and has the end", "\n60000\n" in result.text)
    tour.check("it names a file with the full output", bool(saved) and saved in notice)
    expected = "".join(f"{number}\n" for number in range(1, 60001)).encode()
    tour.check(f"that file is complete ({len(expected)} bytes)", bool(saved) and _bytes_of(saved) == expected)


def _bytes_of(path: str) -> bytes:
    return Path(path).read_bytes() if os.path.isfile(path) else b""


# ------------------------------------------------------------------ (c) cancelled means gone


_FAMILY: Final = (
    "echo $$ > 1.pid; bash -c 'echo $$ > 2.pid; bash -c \"echo \\$\\$ > 3.pid; exec sleep 600\" & wait' & wait"
)


async def _cancellation(tour: _Tour) -> None:
    results: list[ToolResult] = []
    family: list[psutil.Process] = []
    cancelled = 0.0

    async def run() -> None:
        results.append(await tour.toolbox.call("bash", {"command": _FAMILY}, call_id="family"))

    terminal.say(f"  bash {json.dumps({'command': _FAMILY})}")
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        family = await _started(tour.folder, results)
        parents = [process.ppid() for process in family[1:]]
        pids = [process.pid for process in family]
        tour.check(
            f"three generations run, each the parent of the next: {pids}", len(pids) == 3 and parents == pids[:2]
        )
        cancelled = anyio.current_time()
        tour.toolbox.cancel("family")
    terminal.say(f"  cancelled; the call ended after {(anyio.current_time() - cancelled) * 1000:.0f} ms")
    tour.check("the call answers that it was aborted", results[0].error_code == "aborted")
    # By process id and creation time, so that a stranger with a reused id is not taken for one of them.
    tour.check("no process of the tree exists any more", not any(process.is_running() for process in family))


async def _started(folder: Path, results: list[ToolResult]) -> list[psutil.Process]:
    """The three processes, as soon as each has written its id; fewer when they did not start in time."""
    found: list[psutil.Process] = []
    with anyio.move_on_after(_START_SECONDS):
        while len(found) < 3 and not results:
            written = _bytes_of(str(folder / f"{len(found) + 1}.pid"))
            if written.endswith(b"\n"):
                found.append(psutil.Process(int(written)))
            else:
                await anyio.sleep(_POLL_SECONDS)
    return found


# ------------------------------------------------------------------ (d) exact edits


async def _exact_edit(tour: _Tour) -> None:
    before = b"\xef\xbb\xbf" + "café\r\nsecond line\r\nlast line\r\n".encode()
    path = tour.folder / "windows.txt"
    path.write_bytes(before)
    edits = [{"oldText": "café\nsecond", "newText": "café\nnew line\nsecond"}]
    result = await tour.call("edit", path=path.name, edits=edits)
    for line in result.to_dict().get("details", {}).get("diff", result.text).splitlines():
        terminal.say(f"  | {line}")
    after = path.read_bytes()
    tour.check("the file still begins with its byte order mark", after.startswith(b"\xef\xbb\xbf"))
    tour.check("every line still ends in CRLF, the new one too", after.count(b"\r\n") == after.count(b"\n") == 4)
    tour.check("no other byte changed", after == before.replace(b"\r\nsecond", b"\r\nnew line\r\nsecond"))


_STOPS: Final[tuple[tuple[str, Callable[[_Tour], Awaitable[None]]], ...]] = (
    ("Every tool: name, arguments, a real call, the structure of its result", _every_tool),
    ("A long file is read in bounded pieces, to its end", _bounded_read),
    ("Long output is bounded, and complete in a file", _bounded_output),
    ("A cancelled command leaves no process", _cancellation),
    ("A file with CRLF and a byte order mark is edited exactly", _exact_edit),
)
