"""Scripted commands: handlers, what they see, and how they end."""

from __future__ import annotations

import re

import anyio
import pytest
from attrs import define, field

from handrail.adapters.memory import File, MemoryEnvironment, Process, memory_environment, prints
from handrail.ports.commands import Command, Exit
from handrail.ports.errors import PortError

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


@define
class Output:
    """A sink that keeps what it got."""

    pieces: list[bytes] = field(factory=lambda: list[bytes]())

    async def __call__(self, data: bytes) -> None:
        self.pieces.append(data)

    @property
    def text(self) -> str:
        return b"".join(self.pieces).decode()


async def run(env: MemoryEnvironment, *argv: str) -> tuple[Exit, str]:
    output = Output()
    return await env.commands.run(Command(argv, env.cwd), output), output.text


async def shell(env: MemoryEnvironment, script: str) -> tuple[Exit, str]:
    return await run(env, "bash", "-c", script)


async def echo_arguments(process: Process) -> int:
    await process.write(f"{list(process.argv)}\n")
    return 0


# -------------------------------------------------------------------- which handler plays


async def test_a_program_is_played_by_its_name() -> None:
    env = memory_environment(commands={"git": echo_arguments})
    assert await run(env, "git", "status") == (Exit(0), "['git', 'status']\n")
    assert await run(env, "/usr/bin/git") == (Exit(0), "['/usr/bin/git']\n")
    assert await shell(env, "git log -1 && git diff") == (Exit(0), "['git', 'log', '-1']\n['git', 'diff']\n")
    assert await env.commands.find_program("git") == "/usr/bin/git"


async def test_a_text_plays_whole_scripts_and_simple_commands() -> None:
    env = memory_environment(commands={"npm test": "all passed\n", "make && make install": "installed\n"})
    assert (await shell(env, "npm test"))[1] == "all passed\n"
    assert (await shell(env, "cd /tmp && npm test | wc -l"))[1] == "1\n"
    assert (await run(env, "npm", "test"))[1] == "all passed\n"
    assert (await shell(env, "make && make install"))[1] == "installed\n"
    assert (await shell(env, "npm install"))[0].code == 127


async def test_a_pattern_must_match_the_whole_text() -> None:
    env = memory_environment()
    env.commands.on(re.compile(r"pytest( -\w+)*"), prints("collected\n"))
    assert (await shell(env, "pytest -x -q"))[1] == "collected\n"
    assert (await shell(env, "pytest tests"))[0].code == 127


async def test_a_longer_beginning_of_the_arguments_may_be_asked_for() -> None:
    env = memory_environment(commands={"git": prints("any\n")})
    env.commands.on(("git", "push"), prints("denied\n", exit_code=1))
    assert await shell(env, "git push origin main") == (Exit(1), "denied\n")
    assert await shell(env, "git pull") == (Exit(0), "any\n")
    assert await shell(env, "git") == (Exit(0), "any\n")


async def test_the_handler_added_last_plays() -> None:
    env = memory_environment(commands={"ls": "scripted\n"})
    assert (await shell(env, "ls"))[1] == "scripted\n"
    env.commands.on(("ls",), prints("newer\n"))
    assert (await shell(env, "ls"))[1] == "newer\n"


async def test_without_builtins_there_is_not_even_a_shell() -> None:
    env = memory_environment(commands={"only": "this\n"}, builtins=False)
    assert (await run(env, "only"))[1] == "this\n"
    assert await env.commands.find_program("bash") is None
    with pytest.raises(PortError) as caught:
        await shell(env, "only")
    assert (caught.value.code, caught.value.path) == ("program_not_found", "bash")


# -------------------------------------------------------------------- what a handler sees


async def test_a_handler_sees_its_world() -> None:
    async def look(process: Process) -> None:
        text = (await process.files.read(process.path("notes.txt"))).data.decode()
        await process.sleep(30)
        await process.write(
            f"{process.name} {process.arguments} {process.cwd} {process.env['MODE']} {process.stdin!r} "
            f"{text} {process.clock.monotonic()}"
        )

    env = memory_environment({"sub/notes.txt": "noted"}, commands={"look": look})
    output = Output()
    command = Command(("look", "-v"), "/project/sub", {"MODE": "fast"}, stdin=b"input")
    await env.commands.run(command, output)
    assert output.text == "look ['-v'] /project/sub fast b'input' noted 30.0".replace("['-v']", "('-v',)")
    assert (await shell(env, "cd sub; echo piped | MODE=slow look"))[1].startswith(
        "look [] /project/sub slow b'piped\\n' noted"
    )


async def test_a_handler_may_run_other_programs() -> None:
    async def wrapper(process: Process) -> Exit:
        await process.write("[")
        ended = await process.run(["bash", "-c", "cat; exit 4"], stdin=b"inner")
        await process.write("]")
        return ended

    env = memory_environment(commands={"wrapper": wrapper})
    assert await shell(env, "wrapper") == (Exit(4), "[inner]")


async def test_a_handler_may_write_to_both_streams() -> None:
    async def noisy(process: Process) -> int:
        await process.write("out\n")
        await process.write_error(b"err\n")
        return await process.fail("bad input", 3)

    env = memory_environment(commands={"noisy": noisy})
    assert await shell(env, "noisy") == (Exit(3), "out\nerr\nnoisy: bad input\n")
    assert await shell(env, "noisy 2> log | cat; cat log") == (Exit(0), "out\nerr\nnoisy: bad input\n")


async def test_output_may_stream_over_time() -> None:
    env = memory_environment(commands={"build": prints("one\n", "two\n", "three\n", every=60, exit_code=2)})
    arrivals: list[tuple[float, bytes]] = []

    async def sink(data: bytes) -> None:
        arrivals.append((env.clock.monotonic(), data))

    ended = await env.commands.run(Command(("build",), env.cwd), sink)
    assert ended == Exit(2)
    assert arrivals == [(60, b"one\n"), (120, b"two\n"), (180, b"three\n")]


async def test_nothing_is_written_for_nothing() -> None:
    env = memory_environment(commands={"quiet": prints("", b"")})
    assert await run(env, "quiet") == (Exit(0), "")


async def test_a_defect_of_a_handler_comes_out() -> None:
    async def broken(process: Process) -> None:
        raise ZeroDivisionError

    env = memory_environment(commands={"broken": broken})
    with pytest.raises(ZeroDivisionError):
        await shell(env, "echo a; broken")
    assert env.commands.running == []


# -------------------------------------------------------------------- how it ends


async def test_a_handler_may_end_by_a_signal() -> None:
    async def crash(process: Process) -> Exit:
        return Exit(None, signal=11)

    env = memory_environment(commands={"crash": crash})
    assert await run(env, "crash") == (Exit(None, 11), "")
    assert await shell(env, "crash") == (Exit(None, 11), "")
    assert await shell(env, "crash; echo $?") == (Exit(0), "139\n")


async def test_a_hanging_handler_is_seen_and_ended_by_cancellation() -> None:
    cleaned: list[str] = []

    async def server(process: Process) -> None:
        await process.write("listening\n")
        try:
            await process.hang()
        finally:
            cleaned.append("closed")

    env = memory_environment(commands={"server": server})
    started = anyio.Event()

    async def sink(data: bytes) -> None:
        started.set()

    async with anyio.create_task_group() as group:
        group.start_soon(env.commands.run, Command(("server", "-p", "80"), env.cwd), sink)
        await started.wait()
        assert [process.command_line for process in env.commands.running] == ["server -p 80"]
        group.cancel_scope.cancel()
    assert cleaned == ["closed"]
    assert env.commands.running == []


async def test_a_long_limit_of_time_costs_nothing() -> None:
    async def forever(process: Process) -> None:
        await process.hang()

    env = memory_environment(commands={"forever": forever})
    with env.clock.move_on_after(3600) as deadline:
        await shell(env, "echo start; forever")
    assert deadline.expired
    assert env.clock.monotonic() == 3600


# -------------------------------------------------------------------- what is left behind


async def test_a_handler_may_leave_a_process_behind() -> None:
    async def daemon(process: Process) -> None:
        process.leave_running("daemon --serve")

    env = memory_environment(commands={"daemon": daemon})
    ended, _ = await shell(env, "daemon && echo up")
    assert [process.command_line for process in ended.background] == ["daemon --serve"]
    assert list(env.commands.running) == list(ended.background)
    assert env.clock.monotonic() == 0  # it holds no pipe
    pid = ended.background[0].pid
    assert (await shell(env, f"kill {pid}; kill {pid}"))[1] == f"bash: line 1: kill: ({pid}) - No such process\n"
    assert env.commands.running == []


async def test_closing_the_environment_ends_what_was_left_behind() -> None:
    env = memory_environment()
    async with env:
        await shell(env, "sleep 1000 &")
        assert [process.command_line for process in env.commands.running] == ["sleep 1000"]
    assert env.commands.running == []


async def test_late_output_is_taken_until_the_pipe_is_idle() -> None:
    async def chatty(process: Process) -> None:
        async def late() -> None:
            for number in (0.05, 0.09, 0.09, 0.2, 0.01):
                await process.sleep(number)
                await process.write(f"{number} ")

        process.leave_running("late", late)
        await process.write("main ")

    env = memory_environment(commands={"chatty": chatty})
    ended, output = await run(env, "chatty")
    assert output == "main 0.05 0.09 0.09 "
    assert [process.command_line for process in ended.background] == ["late"]


async def test_a_slow_reader_loses_no_late_output() -> None:
    async def chatty(process: Process) -> None:
        async def late() -> None:
            for number in range(3):
                await process.write(f"{number} ")

        process.leave_running("late", late)

    env = memory_environment(commands={"chatty": chatty})
    seen: list[bytes] = []

    async def slow(data: bytes) -> None:
        await env.clock.sleep(10)
        seen.append(data)

    ended = await env.commands.run(Command(("chatty",), env.cwd), slow)
    assert b"".join(seen) == b"0 1 2 "
    assert ended.background == ()


async def test_a_failing_reader_of_late_output_ends_the_call() -> None:
    env = memory_environment()

    async def sink(data: bytes) -> None:
        if data == b"late\n":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await env.commands.run(Command(("bash", "-c", "echo late & echo now"), env.cwd), sink)
    assert env.commands.running == []


async def test_a_failing_reader_ends_even_a_program_that_takes_no_notice() -> None:
    async def stubborn(process: Process) -> None:
        try:
            await process.write("output")
        except PortError:
            await process.hang()

    async def full(data: bytes) -> None:
        raise PortError("no_space", "/saved")

    env = memory_environment(commands={"stubborn": stubborn})
    with pytest.raises(PortError) as caught:
        await env.commands.run(Command(("bash", "-c", "stubborn; echo more"), env.cwd), full)
    assert (caught.value.code, caught.value.path) == ("no_space", "/saved")


async def test_a_job_that_was_killed_does_nothing() -> None:
    env = memory_environment()
    ended, output = await shell(env, "echo never & kill $!; echo done")
    assert (ended, output) == (Exit(0), "done\n")


# -------------------------------------------------------------------- files that are programs


async def test_a_script_with_another_interpreter_cannot_run() -> None:
    env = memory_environment({"tool": File("#!/usr/bin/env python3\nprint()\n", mode=0o755)})
    with pytest.raises(PortError) as caught:
        await run(env, "./tool")
    assert (caught.value.code, caught.value.path) == ("spawn_failed", "./tool")
    ended, output = await shell(env, "./tool")
    assert ended.code == 126
    assert "only shell scripts run in memory" in output


async def test_the_path_variable_is_searched_in_order() -> None:
    env = memory_environment(
        {"/opt/bin/tool": File("echo opt\n", mode=0o755), "/usr/bin/tool": File("echo usr\n", mode=0o755)},
        variables={"PATH": "/opt/bin:/usr/bin:/bin"},
    )
    assert (await shell(env, "tool"))[1] == "opt\n"
    assert (await shell(env, "PATH=/usr/bin; tool"))[1] == "usr\n"
    assert await env.commands.find_program("tool") == "/opt/bin/tool"
    assert (await shell(env, "PATH=/nowhere; cat"))[0].code == 127


async def test_one_argument_has_a_limit_and_a_file_or_standard_input_has_none() -> None:
    long = "true\n" * 30_000 + "echo done\n"
    env = memory_environment({"long.sh": long})
    with pytest.raises(PortError) as caught:
        await shell(env, long)
    assert (caught.value.code, caught.value.path) == ("spawn_failed", "bash")
    assert (await run(env, "bash", "long.sh"))[1] == "done\n"
    output = Output()
    await env.commands.run(Command(("bash",), env.cwd, stdin=long.encode()), output)
    assert output.text == "done\n"
