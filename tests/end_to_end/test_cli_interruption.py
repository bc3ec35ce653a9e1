"""Ctrl-C and other signals: what runs is killed, what it printed is kept, the terminal is left clean."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from end_to_end.program import PATIENCE_SECONDS, PROGRAM, interrupt, pid_in, started, wait_until

FAMILY = (
    "echo shown; (echo $BASHPID > child.pid; trap '' TERM INT; setsid bash -c 'echo $$ > apart.pid; exec sleep 1000')"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_kills_the_whole_tree_and_keeps_the_output(tmp_path: Path, number: signal.Signals) -> None:
    with started(["call", "bash", f"command={FAMILY}"], cwd=tmp_path) as process:
        family = [pid_in(tmp_path / name) for name in ("child.pid", "apart.pid")]
        assert interrupt(process, number) == 128 + number
        assert not any(member.is_running() for member in family)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read().startswith(b"shown\n")
        assert process.stderr.read() == b""


def test_a_killed_program_takes_its_commands_with_it(tmp_path: Path) -> None:
    with started(["call", "bash", f"command={FAMILY}"], cwd=tmp_path) as process:
        family = [pid_in(tmp_path / name) for name in ("child.pid", "apart.pid")]
        process.kill()
        wait_until(lambda: not any(member.is_running() for member in family), "the tree is gone")


def test_a_signal_that_the_parent_ignores_stays_ignored(tmp_path: Path) -> None:
    command = "echo $$ > 1.pid; until [ -e go ]; do sleep 0.01; done"
    words = ["env", "nohup", PROGRAM, "call", "bash", f"command={command}"]
    with subprocess.Popen(words, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1) as process:
        pid_in(tmp_path / "1.pid")
        process.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        assert process.wait(PATIENCE_SECONDS) == 0


def test_the_tour_can_be_left_and_leaves_nothing(tmp_path: Path) -> None:
    temporary, programs = tmp_path / "temporary", tmp_path / "programs"
    temporary.mkdir()
    programs.mkdir()
    # The tour runs seq: this one holds it up, so that there is time to leave.
    (programs / "seq").write_text(f"#!/bin/sh\necho $$ > '{tmp_path}/seq.pid'\nexec sleep 1000\n")
    (programs / "seq").chmod(0o755)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(temporary)}
    with started(["tour"], cwd=tmp_path, env=env) as process:
        held_up = pid_in(tmp_path / "seq.pid")
        assert interrupt(process) == 130
        assert not held_up.is_running()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert list(temporary.iterdir()) == []


# ------------------------------------------------------------------ on a terminal


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, arguments: list[str], cwd: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        self.modes = termios.tcgetattr(slave)
        self._slave = slave
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", PROGRAM, *arguments],
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm"},
        )
        self.output = b""

    def wait_for(self, pattern: bytes) -> None:
        """Read until the terminal got this."""
        while not re.search(pattern, self.output):
            readable, _, _ = select.select([self._master], [], [], PATIENCE_SECONDS)
            assert readable, f"waited in vain for {pattern!r} after {self.output!r}"
            self.output += os.read(self._master, 65536)

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def rest(self) -> bytes:
        """Wait for the end of the program and return all that the terminal got."""
        while self.process.poll() is None or select.select([self._master], [], [], 0)[0]:
            if select.select([self._master], [], [], 0.05)[0]:
                self.output += os.read(self._master, 65536)
        return self.output

    def modes_now(self) -> list[int | list[bytes | int]]:
        """The modes of the terminal."""
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        """Give the terminal up."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


def screen(output: bytes) -> list[str]:
    """What a terminal shows after the few control sequences that the program uses."""
    rows = [""]
    row = column = 0
    for part in re.split(rb"(\x1b\[[?0-9]*[A-Za-z]|\r|\n)", output):
        match part[:1], part[-1:]:
            case (b"", _):
                pass
            case (b"\r", _):
                column = 0
            case (b"\n", _):
                row += 1
                rows.extend([""] * (row + 1 - len(rows)))
            case (b"\x1b", b"A"):
                row -= int(part[2:-1])
            case (b"\x1b", b"J"):
                rows[row] = rows[row][:column]
                del rows[row + 1 :]
            case (b"\x1b", b"h" | b"l"):
                assert part in (b"\x1b[?7h", b"\x1b[?7l")
            case _:
                text = part.decode()
                rows[row] = rows[row][:column].ljust(column) + text
                column += len(text)
    return [line.rstrip() for line in rows]


def test_a_terminal_shows_live_output_and_elapsed_time_and_is_clean_after_ctrl_c(tmp_path: Path) -> None:
    command = "echo first; echo $$ > 1.pid; printf '\\033[31mcoloured\\n'; exec sleep 1000"
    terminal = Terminal(["call", "bash", f"command={command}"], tmp_path)
    try:
        terminal.wait_for(rb"coloured\r?\n\[running for \d+\.\d s; Ctrl-C stops it\]")
        sleeper = pid_in(tmp_path / "1.pid")
        terminal.type(b"\x03")
        shown = screen(terminal.rest())
        assert terminal.process.returncode == 130
        assert not sleeper.is_running()
        assert terminal.modes_now() == terminal.modes
        assert terminal.output.count(b"\x1b[?7l") == terminal.output.count(b"\x1b[?7h")
        assert b"\x1b[31m" not in terminal.output
        # The painted lines were taken back: what is left is the result, once.
        assert [line for line in shown if line][:2] == ["first", "coloured"]
        assert not any("running for" in line for line in shown)
        assert "Operation aborted" in shown[-2]
    finally:
        terminal.close()


def test_a_quick_call_on_a_terminal_prints_only_its_result(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    terminal = Terminal(["call", "read", "path=a.txt"], tmp_path)
    try:
        shown = screen(terminal.rest())
        assert terminal.process.returncode == 0
        assert shown == ["one", ""]
    finally:
        terminal.close()
