"""The small shell in memory: what it refuses, what is its own way, and faults below it.

That it does as bash does is shown beside the real one, in the integration tests.
"""

from __future__ import annotations

import pytest

from handrail.adapters.memory import MemoryEnvironment, memory_environment
from handrail.ports.commands import Command, Exit

pytestmark = pytest.mark.anyio


async def shell(env: MemoryEnvironment, script: str) -> tuple[Exit, str]:
    output = bytearray()

    async def sink(data: bytes) -> None:
        output.extend(data)

    ended = await env.commands.run(Command(("bash", "-c", script), env.cwd), sink)
    return ended, output.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("script", "construct"),
    [
        ("for x in a b; do echo $x; done", "for"),
        ("if true; then echo x; fi", "if"),
        ("while true; do :; done", "while"),
        ("case x in x) ;; esac", "case"),
        ("f() { echo x; }", "("),
        ("(echo x)", "("),
        ("{ echo x; }", "{"),
        ("[[ a == a ]]", "[["),
        ("! true", "!"),
        ("echo $(date)", "$("),
        ('echo "$(date)"', "command substitution"),
        ("echo `date`", "`"),
        ("cat << END\nx\nEND", "<<"),
        ("diff <(echo a) b", "("),
        ("mkdir {a,b}", "{a,b}"),
        ("touch file{1..3}", "{1..3}"),
        ("echo ${X%.*}", "${...}"),
        ("set -x", "-x"),
        ("set -o vi", "vi"),
        ("echo */a", "pattern"),
    ],
)
async def test_what_is_not_understood_is_refused_by_name(script: str, construct: str) -> None:
    env = memory_environment({"d/a": "x"})
    before = env.files.tree()
    ended, output = await shell(env, f"{script}\n")
    assert ended.code == 2
    assert construct in output
    assert "not supported" in output
    assert env.files.tree() == before


async def test_a_script_with_a_mistake_does_not_run_at_all() -> None:
    env = memory_environment()
    ended, output = await shell(env, "echo first > f; echo 'open")
    assert ended.code == 2
    assert "unexpected EOF" in output
    assert "/project/f" not in env.files


async def test_an_unknown_command_exits_as_in_a_shell() -> None:
    assert await shell(memory_environment(), "frobnicate --all") == (
        Exit(127),
        "bash: line 1: frobnicate: command not found\n",
    )


async def test_sleeping_takes_time_of_the_clock() -> None:
    env = memory_environment()
    await shell(env, "sleep 1.5; sleep 2m; sleep 1h 1s")
    assert env.clock.monotonic() == 1.5 + 120 + 3601


async def test_an_endless_sleep_can_be_limited() -> None:
    env = memory_environment()
    with env.clock.move_on_after(10) as deadline:
        await shell(env, "sleep infinity")
    assert deadline.expired


async def test_programs_meet_the_faults_of_the_files() -> None:
    env = memory_environment({"a": "x", "locked/b": "y"})
    env.files.faults.deny("/project/locked")
    env.files.faults.fail("no_space", operation="append", path="/project/log")
    assert await shell(env, "cat locked/b") == (Exit(1), "cat: locked/b: Permission denied\n")
    assert await shell(env, "cat a > log") == (Exit(1), "cat: write error: No space left on device\n")
    env.files.faults.fail("read_only", operation="remove")
    assert await shell(env, "rm a") == (Exit(1), "rm: cannot remove 'a': Read-only file system\n")


async def test_names_that_are_not_utf_8_pass_through() -> None:
    env = memory_environment({"caf\udce9": "x"})
    assert await shell(env, "ls; cat caf*") == (Exit(0), "caf\udce9\nx")


async def test_a_long_listing_shows_kind_mode_and_size() -> None:
    env = memory_environment({"a.py": "12345"})
    await shell(env, "mkdir d")
    assert (await shell(env, "ls -l"))[1] == "-rw-r--r--        5 a.py\ndrwxr-xr-x        0 d\n"


async def test_background_jobs_know_their_numbers() -> None:
    env = memory_environment()
    ended, output = await shell(env, "sleep 100 & echo $!")
    assert [f"{process.pid}\n" for process in ended.background] == [output]
