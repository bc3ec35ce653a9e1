"""Several processes change one file; some are killed in the middle: contract sections 6, 12 and 13."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_TESTS: Final = Path(__file__).resolve().parents[1]

KILLS: Final = int(os.environ.get("HANDRAIL_KILL_ROUNDS", "5"))
"""How many writers are killed; more find rarer moments."""

SIZE: Final = 2_000_000


@contextmanager
def writer(*arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    """A process of ``integration.writers`` that is ready to start; killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "integration.writers", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")])},
        text=True,
    )
    with process:
        try:
            assert next(lines(process)) == "ready"
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str]) -> Generator[str, None, None]:
    """What a process prints."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line.rstrip("\n")


def start(process: subprocess.Popen[str]) -> None:
    """Let a ready process go."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_edits_of_four_processes_are_applied_or_reported_as_conflicts(tmp_path: Path) -> None:
    shared = tmp_path / "shared.txt"
    shared.write_text("".join(f"line {number:03}.\n" for number in range(40)))
    outcomes: dict[int, tuple[str | None, str]] = {}
    with (
        writer("edit", str(tmp_path), "0", "10") as one,
        writer("edit", str(tmp_path), "10", "20") as two,
        writer("edit", str(tmp_path), "20", "30") as three,
        writer("edit", str(tmp_path), "30", "40") as four,
    ):
        processes = (one, two, three, four)
        for process in processes:
            start(process)
        for process in processes:
            for line in lines(process):
                number, code, text = json.loads(line)
                outcomes[number] = (code, text)
    assert set(outcomes) == set(range(40))
    assert {code for code, _ in outcomes.values()} <= {None, "conflict"}, outcomes
    applied = {number for number, (code, _) in outcomes.items() if code is None}
    wanted = [f"{'LINE' if number in applied else 'line'} {number:03}." for number in range(40)]
    assert shared.read_text().splitlines() == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["shared.txt"]
    assert applied


@pytest.mark.parametrize("round_number", range(KILLS))
def test_a_killed_writer_leaves_the_old_or_the_new_content(tmp_path: Path, round_number: int) -> None:
    whole = tmp_path / "whole.txt"
    whole.write_text("a" * SIZE)
    whole.chmod(0o640)
    chance = random.Random(round_number)
    with writer("write", str(tmp_path), str(SIZE)) as process:
        start(process)
        said = lines(process)
        letters = ["a", *(json.loads(next(said))[0] for _ in range(chance.randint(0, 6)))]
        burn(chance.randint(0, 40_000))
        process.kill()
        process.wait()
    content = whole.read_text()
    assert len(content) == SIZE
    assert len(set(content)) == 1
    assert content[0] in "ab", letters
    assert whole.stat().st_mode & 0o777 == 0o640


def burn(steps: int) -> None:
    """Let a moment pass that depends on chance; how long it is does not matter."""
    for _ in range(steps):
        pass
