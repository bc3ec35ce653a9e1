"""``handrail call``: what is printed where, and the exit status."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import psutil
import pytest
from PIL import Image

from end_to_end.program import handrail, pid_in


def test_a_file_is_printed_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = handrail("call", "read", "path=a.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\ntwo\n", "")


def test_an_empty_answer_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    done = handrail("call", "read", "path=empty.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_failure_goes_to_standard_error(tmp_path: Path) -> None:
    done = handrail("call", "read", "path=missing.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("File not found: missing.txt")


def test_a_failed_command_keeps_its_output_on_standard_output(tmp_path: Path) -> None:
    done = handrail("call", "bash", "command=echo out; echo err >&2; exit 3", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("out\nerr\n")
    assert done.stdout.endswith("Command exited with code 3\n")


def test_values_are_texts_that_validation_turns_into_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3\n4\n")
    done = handrail("call", "read", "path=a.txt", "offset=2", "limit=1", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["content"][0]["text"].startswith("2")


def test_a_value_may_contain_anything_but_comes_after_the_first_equals_sign(tmp_path: Path) -> None:
    done = handrail("call", "write", "path=a.txt", "content=--x=1\n$HOME := \u2603", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "a.txt").read_text("utf-8") == "--x=1\n$HOME := \u2603"


def test_json_values_and_options_may_stand_anywhere(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x = 1\n")
    edits = json.dumps([{"oldText": "1", "newText": "2"}])
    done = handrail("call", "--json", "edit", "path=a.txt", "--cwd", str(tmp_path), f"edits:={edits}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["details"]["firstChangedLine"] == 1
    assert (tmp_path / "a.txt").read_text() == "x = 2\n"


@pytest.mark.parametrize("from_stdin", [False, True])
def test_all_arguments_as_one_json_text(tmp_path: Path, from_stdin: bool) -> None:
    text = json.dumps({"path": "a.txt", "content": "\u00e9\n"}, ensure_ascii=False)
    done = handrail("call", "write", "--args", "-" if from_stdin else text, cwd=tmp_path, stdin=text.encode())
    assert done.returncode == 0
    assert (tmp_path / "a.txt").read_text("utf-8") == "\u00e9\n"


def test_json_is_the_whole_result_also_of_a_failure(tmp_path: Path) -> None:
    done = handrail("call", "nonsense", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "")
    assert (result["isError"], result["errorCode"]) == (True, "unknown_tool")
    assert result["content"][0]["text"].startswith("Tool nonsense not found")


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["path"], "'path' is not key=value"),
        (["=x"], "'=x' is not key=value"),
        (["path=a", "path=b"], "path is given twice"),
        (["edits:=[1,"], "edits: not valid JSON at line 1"),
        (["--args", "{"], "--args: not valid JSON at line 1"),
        (["--args", "{}", "path=a"], "not both"),
        (["--cwd", "/does/not/exist"], "--cwd /does/not/exist: not a directory"),
        (["--colour"], "--colour"),
        ([b"path=caf\xe9"], "write it as \\xe9"),
        (["--args", "-"], "--args: not valid JSON"),
    ],
    ids=str,
)
def test_words_that_make_no_request_are_usage_errors(tmp_path: Path, words: list[str | bytes], complaint: str) -> None:
    done = handrail("call", "read", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_gone_is_a_usage_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    command = f"rmdir '{gone}'; exec '{Path(sys.executable).with_name('handrail')}' call ls"
    gone.mkdir()
    done = handrail("call", "bash", f"command=cd '{gone}'; {command}", cwd=tmp_path)
    assert "The current directory does not exist any more" in done.stdout
    assert "Command exited with code 2" in done.stdout


def test_what_could_drive_the_terminal_is_shown_escaped(tmp_path: Path) -> None:
    text = "plain text " * 30 + "\x1b]0;title\x07 \x9b31m\rover\r\nplain\ttab\r\n"
    (tmp_path / "evil.txt").write_bytes(text.encode())
    (tmp_path / "a\x1b[2Jb\n.txt").touch()
    done = handrail("call", "read", "path=evil.txt", cwd=tmp_path)
    listing = handrail("call", "ls", cwd=tmp_path)
    assert done.returncode == listing.returncode == 0
    for text in (done.stdout, listing.stdout):
        assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]", text)
    assert "\\x1b]0;title\\x07" in done.stdout
    assert " \\x9b31m\\x0dover\r\nplain\ttab\r\n" in done.stdout
    assert "a\\x1b[2Jb\\x0a.txt" in listing.stdout


def test_an_escaped_name_can_be_given_back(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "wb") as file:
        file.write(b"found\n")
    listing = handrail("call", "ls", cwd=tmp_path)
    done = handrail("call", "read", f"path={listing.stdout.strip()}", cwd=tmp_path)
    assert done.stdout == "found\n"


@pytest.mark.parametrize("locale", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}])
def test_every_character_can_be_printed_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    (tmp_path / "a.txt").write_text("snow \u2603\n", "utf-8")
    done = handrail("call", "read", "path=a.txt", cwd=tmp_path, env=locale)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("snow \u2603\n", "snow \\u2603\n")


def test_an_image_is_saved_and_named(tmp_path: Path) -> None:
    Image.new("RGB", (3, 2), "red").save(tmp_path / "picture.dat", "PNG")
    done = handrail("call", "read", "path=picture.dat", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    assert "Read image file [image/png]" in done.stdout
    named = re.search(r"\[image/png saved to (.*\.png)\]", done.stdout)
    assert named
    with Image.open(named[1]) as saved:
        assert saved.size == (3, 2)


def test_the_file_with_the_full_output_is_still_there_afterwards(tmp_path: Path) -> None:
    done = handrail("call", "bash", "command=seq 1 30000", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    named = re.search(r"Full output: (.*)\]", done.stdout)
    assert named
    assert Path(named[1]).read_text() == "".join(f"{number}\n" for number in range(1, 30001))


def test_nothing_goes_on_when_the_program_has_ended(tmp_path: Path) -> None:
    command = "(echo $BASHPID > 1.pid; exec sleep 1000) & until [ -s 1.pid ]; do sleep 0.01; done; cp 1.pid 2.pid"
    done = handrail("call", "bash", f"command={command}", cwd=tmp_path)
    assert done.returncode == 0
    with pytest.raises(psutil.NoSuchProcess):
        pid_in(tmp_path / "2.pid")
