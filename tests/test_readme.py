"""The README's code runs as it stands there, and its shell commands name things that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(
    "code", blocks("python"), ids=lambda code: next(iter(re.findall(r"class (\w+)", code)), "plain")
)
def test_a_python_example_runs(code: str, tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line", [line for block in blocks("sh") for line in block.splitlines() if "handrail call" in line]
)
def test_a_shell_example_runs(line: str) -> None:
    words = shlex.split(line)
    command = [sys.executable, "-m", "handrail", *words[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_linked_pages_exist() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
