"""LocalCommands on real processes: what only the real system shows. The contract itself is tested elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import anyio
import pytest
from attrs import evolve

from handrail.adapters.confined import confine
from handrail.adapters.journal import journal
from handrail.adapters.local._variables import command_environment, inherited
from handrail.adapters.local.commands import LocalCommands
from handrail.adapters.local.environment import local_environment
from handrail.adapters.recording import MemoryLog, record, replay
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import bash_tool
from handrail.ports.commands import Command, Exit, Inheritance, OutputSink, ResourceLimits
from handrail.ports.errors import PortError
from integration.processes import children_of, new_marker, processes_with, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells and signals"),
]


@pytest.fixture
async def commands() -> AsyncIterator[LocalCommands]:
    local = LocalCommands()
    yield local
    await local.aclose()


class Collected:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def __call__(self, data: bytes) -> None:
        assert data
        self.pieces.append(data)

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


async def shell(commands: LocalCommands, text: str, sink: OutputSink | None = None, **changes: object) -> Exit:
    return await commands.run(Command(["/bin/bash", "-c", text], "/tmp", **changes), sink or Collected())  # type: ignore[arg-type]


async def test_output_comes_in_order_of_arrival(commands: LocalCommands) -> None:
    output = Collected()
    await shell(commands, "for i in 1 2 3; do echo out$i; echo err$i >&2; done", output)
    assert output.data == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n"


@pytest.mark.slow
async def test_a_gigabyte_comes_whole(commands: LocalCommands) -> None:
    size = 0

    async def count(data: bytes) -> None:
        nonlocal size
        size += len(data)

    assert (await shell(commands, "head -c 1000000000 /dev/zero", count)).code == 0
    assert size == 1_000_000_000


async def test_a_slow_sink_slows_the_program_and_not_the_memory(commands: LocalCommands) -> None:
    largest = 0
    async with anyio.create_task_group() as group:

        async def slow(data: bytes) -> None:
            nonlocal largest
            largest = max(largest, len(data))
            for _ in range(10):
                await anyio.lowlevel.checkpoint()

        group.start_soon(shell, commands, "head -c 20000000 /dev/zero", slow)
    assert 0 < largest <= 256 * 1024


async def test_an_endless_program_does_not_keep_other_tasks_waiting(commands: LocalCommands) -> None:
    async def sink(data: bytes) -> None:
        return None

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(shell, commands, "yes", sink)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught


async def test_a_hundred_commands_at_once(commands: LocalCommands) -> None:
    codes: list[int | None] = []

    async def one(number: int) -> None:
        output = Collected()
        codes.append((await shell(commands, f"echo {number}; exit {number}", output)).code)
        assert output.data == b"%d\n" % number

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(one, number)
    assert sorted(code for code in codes if code is not None) == list(range(100))


async def test_keepers_are_used_again(commands: LocalCommands) -> None:
    (parent,) = {(await _parent(commands)) for _ in range(5)}
    assert parent != str(os.getpid())


async def _parent(commands: LocalCommands) -> str:
    output = Collected()
    await shell(commands, "echo $PPID", output)
    return output.data.decode().strip()


async def test_commands_have_a_session_of_their_own_and_no_terminal(commands: LocalCommands) -> None:
    output = Collected()
    await shell(commands, "ps -o sid= -p $$; echo $$; tty < /dev/tty", output)
    session, shell_pid, *_ = output.data.split()
    assert session == shell_pid
    assert b"/dev/tty" in output.data  # cannot be opened


async def test_commands_get_no_descriptor_of_ours(commands: LocalCommands) -> None:
    output = Collected()
    left_open = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(left_open, True)
    await shell(commands, "ls /proc/self/fd", output)
    os.close(left_open)
    # The fourth is the directory that ls reads.
    assert output.data.split() == [b"0", b"1", b"2", b"3"]


async def test_commands_find_signals_in_their_default_state(commands: LocalCommands) -> None:
    output = Collected()
    await shell(commands, "grep -E 'Sig(Ign|Blk)' /proc/self/status", output)
    masks = [int(line.split()[1], 16) for line in output.data.decode().splitlines()]
    assert [mask & 0x7FFFFFFF for mask in masks] == [0, 0]
    assert (await shell(commands, "yes | head -1 > /dev/null; exit ${PIPESTATUS[0]}")).code == 141


async def test_the_shell_sees_the_end_of_its_input(commands: LocalCommands) -> None:
    output = Collected()
    await shell(commands, "cat; read -r x; echo \"[$x]\"; python3 -c 'import sys; print(sys.stdin.read())'", output)
    assert output.data == b"[]\n\n"


async def test_input_larger_than_a_pipe(commands: LocalCommands) -> None:
    output = Collected()
    await shell(commands, "sha256sum; wc -c", output, stdin=b"x" * 5_000_000)
    assert output.data.split()[-1] == b"0"
    assert (await shell(commands, "test $(wc -c) = 5000000", stdin=b"x" * 5_000_000)).code == 0


async def test_late_output_of_a_background_process_is_dropped_without_hurting_it(
    commands: LocalCommands, tmp_path: Path
) -> None:
    done, go = tmp_path / "done", tmp_path / "go"
    os.mkfifo(go)
    text = f"(read x < {go}; head -c 3000000 /dev/zero; echo late; echo ok > {done}) & echo now"
    output = Collected()
    ended = await shell(commands, text, output)
    assert output.data == b"now\n"
    assert len(ended.background) == 1
    await anyio.to_thread.run_sync(go.write_text, "go\n")
    assert await anyio.to_thread.run_sync(lambda: until(done.exists))


async def test_what_goes_on_is_listed_with_its_command_line(commands: LocalCommands) -> None:
    marker = new_marker()
    ended = await shell(commands, f"sleep {marker} & setsid sleep {marker} > /dev/null 2>&1 & true")
    assert [process.command_line for process in ended.background] == [f"sleep {marker}"] * 2
    assert {str(process.pid) for process in ended.background} == {line.split()[0] for line in processes_with(marker)}
    await commands.aclose()
    assert processes_with(marker) == []


async def test_a_background_process_that_ended_is_forgotten(commands: LocalCommands) -> None:
    before = children_of(os.getpid())
    ended = await shell(commands, f"sleep {new_marker()} &")
    os.kill(ended.background[0].pid, 9)
    (supervisor,) = set(children_of(os.getpid())) - set(before)
    assert await anyio.to_thread.run_sync(lambda: until(lambda: children_of(supervisor) == []))
    assert (await shell(commands, "exit 5")).code == 5


async def test_output_after_the_end_of_the_shell_is_not_lost(commands: LocalCommands, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    output = Collected()
    text = f"exec 3<>{tmp_path}/begun; (for i in {{1..30000}}; do echo $i; [ $i = 99 ] && echo >&3; done) & read x <&3"
    ended = await shell(commands, f"{text}; exit 7", output)
    assert output.data == b"".join(b"%d\n" % number for number in range(1, 30001))
    assert (ended.code, list(ended.background)) == (7, [])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what a process waits for is read from /proc")
async def test_output_after_a_silence_of_computing_is_not_lost(commands: LocalCommands) -> None:
    output = Collected()
    ended = await shell(commands, "(for i in {1..150000}; do :; done; echo late) & echo now; exit 7", output)
    assert (ended.code, output.data) == (7, b"now\nlate\n")


async def test_a_silent_process_that_computes_for_ever_does_not_hold_the_call(commands: LocalCommands) -> None:
    ended = await shell(commands, f"(while :; do :; done; : {new_marker()}) & echo now")
    assert (ended.code, len(ended.background)) == (0, 1)


async def test_the_listener_hears_of_the_end_while_output_goes_on(commands: LocalCommands, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    gate = os.open(go, os.O_RDWR)
    seen: list[object] = []

    def note(ended: Exit) -> None:
        seen.append(ended)
        os.write(gate, b"go\n")

    async def sink(data: bytes) -> None:
        seen.append(data)

    command = Command(["/bin/bash", "-c", f"exec 3<{go}; (read x <&3; echo late) & exit 3"], "/tmp")
    await commands.run(command, sink, note)
    os.close(gate)
    assert seen == [Exit(3), b"late\n"]


async def test_output_before_a_kill_is_handed_over(commands: LocalCommands) -> None:
    output = Collected()
    printed = anyio.Event()

    async def sink(data: bytes) -> None:
        await output(data)
        printed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(shell, commands, "echo first; exec sleep 1000", sink)
        await printed.wait()
        group.cancel_scope.cancel()
    assert output.data == b"first\n"


async def test_a_command_of_two_hundred_kilobytes_of_environment(commands: LocalCommands) -> None:
    values = {f"VALUE_{number}": "x" * 100_000 for number in range(8)}
    output = Collected()
    await shell(commands, "echo ${#VALUE_0} ${#VALUE_7}", output, env=values)
    assert output.data == b"100000 100000\n"


@pytest.mark.parametrize(
    ("command", "code", "path"),
    [
        (Command(["/bin/true"], "/no/such/place"), "not_found", "/no/such/place"),
        (Command(["/bin/true"], "/etc/passwd"), "not_a_directory", "/etc/passwd"),
        (Command(["/no/such/program"], "/"), "program_not_found", "/no/such/program"),
        (Command(["no-such-program"], "/"), "program_not_found", "no-such-program"),
        (Command(["/etc/passwd"], "/"), "permission_denied", "/etc/passwd"),
        (Command(["/bin/echo", "a\0b"], "/"), "invalid_path", "a\0b"),
        (Command(["/bin/true"], "/\0"), "invalid_path", "/\0"),
        (Command(["/bin/true"], "/", {"A=B": "1"}), "invalid_path", "A=B"),
        (Command(["/bin/true", "x" * 200_000], "/"), "spawn_failed", "/bin/true"),
    ],
)
async def test_what_cannot_start_is_told_apart(commands: LocalCommands, command: Command, code: str, path: str) -> None:
    for limits in (ResourceLimits(), ResourceLimits(open_files=100)):
        with pytest.raises(PortError) as caught:
            await commands.run(Command(command.argv, command.cwd, command.env, limits=limits), Collected())
        assert (caught.value.code, caught.value.path) == (code, path)
    assert (await shell(commands, "true")).code == 0


async def test_after_closing_nothing_starts() -> None:
    commands = LocalCommands()
    await commands.aclose()
    await commands.aclose()
    with pytest.raises(PortError) as caught:
        await shell(commands, "true")
    assert caught.value.code == "closed"


class TestResourceLimits:
    async def test_cpu_time_ends_with_the_signal_that_says_so(self, commands: LocalCommands) -> None:
        ended = await shell(commands, "while :; do :; done", limits=ResourceLimits(cpu_seconds=1))
        assert ended.signal == 24

    @pytest.mark.parametrize(
        ("limits", "option", "shown"),
        [
            (ResourceLimits(cpu_seconds=7), "-t", "7"),
            (ResourceLimits(address_space_bytes=512 * 1024 * 1024), "-v", "524288"),
            (ResourceLimits(file_size_bytes=2048), "-f", "2"),
            (ResourceLimits(processes=77), "-u", "77"),
            (ResourceLimits(open_files=50), "-n", "50"),
        ],
    )
    async def test_a_command_sees_its_limit(
        self, commands: LocalCommands, limits: ResourceLimits, option: str, shown: str
    ) -> None:
        output = Collected()
        await shell(commands, f"ulimit {option}", output, limits=limits)
        assert output.data.decode().strip() == shown

    async def test_a_limit_does_not_outlive_its_command(self, commands: LocalCommands) -> None:
        await shell(commands, "true", limits=ResourceLimits(open_files=50))
        output = Collected()
        await shell(commands, "ulimit -n", output)
        assert output.data.decode().strip() != "50"


class TestInheritance:
    HOST: Final = {"PATH": "/bin", "LC_TIME": "C", "AWS_KEY": "a", "AWS_SECRET": "b", "EDITOR": "vi"}

    @pytest.mark.parametrize(
        ("policy", "names"),
        [
            (Inheritance(), "PATH LC_TIME AWS_KEY AWS_SECRET EDITOR"),
            (Inheritance("minimal"), "PATH LC_TIME"),
            (Inheritance("minimal", allow=["EDITOR"]), "PATH LC_TIME EDITOR"),
            (Inheritance(deny=["AWS_*"]), "PATH LC_TIME EDITOR"),
            (Inheritance(deny=["*"], allow=["AWS_KEY"]), "AWS_KEY"),
            (Inheritance("minimal", deny=["LC_*"]), "PATH"),
        ],
    )
    def test_a_policy_lets_variables_through(self, policy: Inheritance, names: str) -> None:
        assert sorted(inherited(self.HOST, policy)) == sorted(names.split())

    def test_a_command_changes_what_it_inherits(self) -> None:
        command = Command(["x"], "/", {"PATH": None, "NEW": "1", "ABSENT": None})
        assert command_environment({"PATH": "/bin", "HOME": "/"}, command) == {"HOME": "/", "NEW": "1"}

    async def test_the_host_is_asked_at_each_command(
        self, commands: LocalCommands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for value in ("one", "two"):
            monkeypatch.setenv("HANDRAIL_TEST_VALUE", value)
            output = Collected()
            await shell(commands, "echo $HANDRAIL_TEST_VALUE", output)
            assert output.data.decode() == value + "\n"


class TestPortable:
    """The part for systems without subreapers, on this one."""

    @pytest.fixture
    async def commands(self) -> AsyncIterator[LocalCommands]:
        local = LocalCommands(portable=True)
        yield local
        await local.aclose()

    async def test_a_command_runs(self, commands: LocalCommands) -> None:
        output = Collected()
        assert (await shell(commands, "echo hi; exit 3", output)).code == 3
        assert output.data == b"hi\n"

    @pytest.mark.parametrize(
        "text",
        [
            "sleep {m} & echo ready; wait",
            "setsid sleep {m} & echo ready; sleep {m}",
            "(setsid sh -c '(echo ready; exec sleep {m}) &' &); sleep {m}",
            "sleep {m} & kill -STOP $!; echo ready; wait",
        ],
    )
    async def test_its_tree_is_killed(self, commands: LocalCommands, text: str) -> None:
        marker = new_marker()
        ready = anyio.Event()

        async def sink(data: bytes) -> None:
            if b"ready" in data:
                ready.set()

        async with anyio.create_task_group() as group:
            group.start_soon(shell, commands, text.format(m=marker), sink)
            await ready.wait()
            group.cancel_scope.cancel()
        # Orphans are collected by the system and not by us, so they may still be listed for a moment.
        assert await anyio.to_thread.run_sync(lambda: until(lambda: processes_with(marker) == []))

    async def test_what_may_survive_passes_through_every_wrapper(self, commands: LocalCommands, tmp_path: Path) -> None:
        named = ["a double fork with an empty environment"]
        async with local_environment(tmp_path) as env:
            weak = evolve(env, commands=commands)
            assert list(journal(confine(weak)).commands.may_survive) == named
            log = MemoryLog()
            async with record(weak, log) as recorded:
                assert list(recorded.commands.may_survive) == named
        assert list(replay(log).commands.may_survive) == named

    async def test_what_may_survive_is_in_the_details(self, commands: LocalCommands, tmp_path: Path) -> None:
        async with local_environment(tmp_path) as env:
            result = await Toolbox(evolve(env, commands=commands), [bash_tool()]).call("bash", {"command": "true"})
        assert result.to_dict()["details"] == {"maySurvive": ["a double fork with an empty environment"]}

    async def test_a_background_process_is_listed_and_lives_until_the_end(self, commands: LocalCommands) -> None:
        marker = new_marker()
        ended = await shell(commands, f"(setsid sleep {marker} > /dev/null 2>&1 &)")
        assert [process.command_line for process in ended.background] == [f"sleep {marker}"]
        assert processes_with(marker)
        await commands.aclose()
        assert await anyio.to_thread.run_sync(lambda: until(lambda: processes_with(marker) == []))


class TestWithoutInterpreter:
    """Where the interpreter cannot be executed, the supervisor is a copy of the host."""

    @pytest.fixture
    async def commands(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalCommands]:
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        local = LocalCommands()
        yield local
        await local.aclose()

    async def test_commands_run_and_trees_are_killed(self, commands: LocalCommands) -> None:
        marker = new_marker()
        assert (await shell(commands, f"sleep {marker} & exit 3")).code == 3
        with anyio.CancelScope() as scope:

            async def sink(data: bytes) -> None:
                scope.cancel()

            await shell(commands, f"(setsid sleep {marker} &); echo ready; sleep {marker}", sink)
        assert len(processes_with(marker)) == 1
        await commands.aclose()
        assert processes_with(marker) == []

    async def test_a_host_that_handles_signals_is_not_disturbed(self, commands: LocalCommands) -> None:
        heard: list[int] = []
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, heard.append, 1)
        try:
            output = Collected()
            assert (await shell(commands, "grep SigCgt /proc/self/status", output)).code == 0
            os.kill(os.getpid(), signal.SIGUSR1)
            assert (await shell(commands, "true")).code == 0
            assert heard == [1]
        finally:
            loop.remove_signal_handler(signal.SIGUSR1)


def test_an_event_loop_after_another_can_use_the_same_commands() -> None:
    commands = LocalCommands()
    for number in range(3):
        assert asyncio.run(shell(commands, f"exit {number}")).code == number
    asyncio.run(commands.aclose())


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_it_runs_on_trio(commands: LocalCommands) -> None:
    output = Collected()
    assert (await shell(commands, "echo hi; exit 3", output)).code == 3
    assert output.data == b"hi\n"
    marker = new_marker()
    with anyio.CancelScope() as scope:

        async def sink(data: bytes) -> None:
            scope.cancel()

        await shell(commands, f"setsid sleep {marker} & echo ready; wait", sink)
    assert processes_with(marker) == []
