"""The rings stay rings: what the core and the ports may import, and that they reach the world through ports only."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from io_guard import ForbiddenAccess, guarded

ROOT = Path(__file__).parent.parent
INNER = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "ports").rglob("*.py")])

OPERATING_SYSTEM = {
    *("aiofiles", "asyncio", "builtins", "concurrent", "ctypes", "fcntl", "fileinput", "glob", "http", "io"),
    *("mmap", "multiprocessing", "os", "platform", "psutil", "pwd", "random", "resource", "secrets"),
    *("select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading"),
    *("time", "trio", "urllib.request", "uuid", "zoneinfo"),
}
OPEN_NAMES = {"open", "exec", "eval", "input", "print", "__import__", "breakpoint"}
PURE_PATHS = {"PurePath", "PurePosixPath", "PureWindowsPath"}

# Of anyio: locks, task groups, cancel scopes, memory streams and what goes with them. No clock, file or thread.
ANYIO = {
    *("CancelScope", "CapacityLimiter", "Condition", "Event", "Lock", "Semaphore", "WouldBlock"),
    *("BrokenResourceError", "ClosedResourceError", "EndOfStream", "get_cancelled_exc_class"),
    *("abc", "create_memory_object_stream", "create_task_group", "lowlevel"),
}


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield each imported module, with the name taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def uses_of(name: str, tree: ast.AST) -> set[str]:
    """The attributes that are taken from a module."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


@pytest.mark.parametrize("path", INNER, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_inner_rings_import_no_operating_system(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    found = list(imports(tree))
    for module, name in found:
        package = module.partition(".")[0]
        assert not {package, module} & OPERATING_SYSTEM, f"{module} reaches the operating system"
        assert module != "pathlib" or name in PURE_PATHS, f"pathlib.{name} touches the disk"
        assert not module.startswith("handrail.adapters"), f"{module} is an outer ring"
        assert module != "anyio" or name is None or name in ANYIO, f"anyio.{name} reaches the operating system"
    assert uses_of("anyio", tree) <= ANYIO
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & OPEN_NAMES


def test_the_import_contracts_hold() -> None:
    # In a process of its own: it configures logging, which would disable the loggers that there are.
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", program, "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------ the guard of the unit tests


def run_as(module: str, source: str) -> None:
    """Run a text as if it stood in a module."""
    exec(compile(source, "<test>", "exec"), {"__name__": module})


INTRUSIONS = {
    "a file": "open('/dev/null')",
    "a directory": "import os; os.listdir('/')",
    "a process": "import subprocess; subprocess.run(['true'])",
    "a socket": "import socket; socket.socket().bind(('127.0.0.1', 0))",
}


@pytest.mark.parametrize("ring", ["handrail.core", "handrail.core.tools.new", "handrail.ports.new"])
@pytest.mark.parametrize("source", INTRUSIONS.values(), ids=INTRUSIONS)
def test_the_guard_sees_an_inner_ring_touch_the_system(ring: str, source: str) -> None:
    with pytest.raises(ForbiddenAccess, match=ring), guarded():
        run_as(ring, source)


def test_the_guard_remembers_what_a_tool_swallowed() -> None:
    with pytest.raises(ForbiddenAccess, match="/dev/null"), guarded():
        run_as("handrail.core", "try:\n    open('/dev/null')\nexcept Exception:\n    pass")


def test_the_guard_leaves_adapters_tests_and_imports_alone() -> None:
    with guarded():
        run_as("handrail.adapters.local.files", "open('/dev/null').close()")
        run_as("handrail.coredump", "open('/dev/null').close()")
        run_as("handrail.core", "import sys, colorsys; del sys.modules['colorsys']; import colorsys")
        subprocess.run(["true"], check=True)
        socket.socket().close()
