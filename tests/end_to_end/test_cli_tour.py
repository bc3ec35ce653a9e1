"""``handrail tour``: the newcomer's first command."""

from __future__ import annotations

import os
import re
from pathlib import Path

from end_to_end.program import handrail


def test_the_tour_holds_and_leaves_nothing(tmp_path: Path) -> None:
    done = handrail("tour", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"\nAll \d+ checks held\.", done.stdout)
    assert "FAILED" not in done.stdout
    for tool in ("read", "bash", "powershell", "edit", "write", "grep", "find", "ls"):
        assert re.search(rf"^{tool} \(.*\): \{{", done.stdout, re.MULTILINE)
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_does_not_hold_is_said_and_decides_the_exit_status(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "seq").write_text("#!/bin/sh\nPATH=${PATH#*:} exec seq 1 59999\n")
    (programs / "seq").chmod(0o755)
    done = handrail("tour", env={"PATH": f"{programs}:{os.environ['PATH']}"})
    assert (done.returncode, done.stderr) == (1, "")
    failed = [line for line in done.stdout.splitlines() if line.startswith("  FAILED")]
    assert [line.split("(")[0] for line in failed] == [
        "  FAILED the answer is short ",
        "  FAILED that file is complete ",
    ]
    assert re.search(r"\n2 of \d+ checks failed\.", done.stdout)
