"""CommandContract: every promise of CommandPort, as tests over any adapter with a POSIX shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import pytest
from attrs import define, evolve, field

from contract.host import Host
from handrail.ports.commands import Command, Exit, Inheritance, ResourceLimits
from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["CommandContract"]


@define
class Output:
    """A sink that keeps what it got, and tells when something has come."""

    pieces: list[bytes] = field(factory=lambda: list[bytes]())
    came: anyio.Event = field(factory=anyio.Event)

    async def __call__(self, data: bytes) -> None:
        self.pieces.append(data)
        self.came.set()

    @property
    def text(self) -> str:
        return b"".join(self.pieces).decode()


def script(host: Host, text: str) -> Command:
    return Command(("bash", "-c", text), host.root)


async def run(host: Host, text: str) -> tuple[Exit, str]:
    """Run a script; return its end and its output."""
    output = Output()
    return await host.env.commands.run(script(host, text), output), output.text


async def variables(host: Host, command: Command) -> Mapping[str, str]:
    """Return the variables that a command sees."""
    output = Output()
    await host.env.commands.run(evolve(command, argv=("env",)), output)
    pairs = (line.partition("=") for line in output.text.splitlines())
    return {name: value for name, _, value in pairs}


async def refused(host: Host, code: PortErrorCode, path: str, command: Command) -> None:
    output = Output()
    with pytest.raises(PortError) as caught:
        await host.env.commands.run(command, output)
    assert (caught.value.code, caught.value.path) == (code, path)
    assert output.pieces == []


class CommandContract:
    """Subclass it and give it a fixture ``host``."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture(autouse=True)
    def _requires_commands(self, host: Host) -> None:
        host.require(host.capabilities.commands, "commands")

    # ---------------------------------------------------------------- output and end

    async def test_a_program_runs_to_its_end(self, host: Host) -> None:
        assert await run(host, "echo one; echo two") == (Exit(0), "one\ntwo\n")

    @pytest.mark.parametrize("code", [1, 3, 127, 255])
    async def test_an_exit_code_is_told(self, host: Host, code: int) -> None:
        ended, _ = await run(host, f"exit {code}")
        assert (ended.code, ended.signal) == (code, None)

    @pytest.mark.parametrize("signal", [9, 15])
    async def test_an_end_by_signal_is_told(self, host: Host, signal: int) -> None:
        ended, output = await run(host, f"echo before; kill -{signal} $$; sleep 100")
        assert (ended.code, ended.signal) == (None, signal)
        assert output == "before\n"

    async def test_both_streams_share_one_pipe_in_order(self, host: Host) -> None:
        _, output = await run(host, "echo a; echo b >&2; echo c; echo d >&2")
        assert output == "a\nb\nc\nd\n"

    async def test_output_is_never_empty(self, host: Host) -> None:
        output = Output()
        await host.env.commands.run(script(host, "printf ''; echo x; true; printf ''"), output)
        assert b"" not in output.pieces
        assert output.text == "x\n"

    async def test_no_output_is_no_call(self, host: Host) -> None:
        output = Output()
        await host.env.commands.run(script(host, "true"), output)
        assert output.pieces == []

    async def test_output_is_bytes_as_they_are(self, host: Host) -> None:
        output = Output()
        await host.env.commands.run(script(host, r"printf '\377\000\r\n\303'"), output)
        assert b"".join(output.pieces) == b"\xff\x00\r\n\xc3"

    async def test_much_output_arrives_whole(self, host: Host) -> None:
        data = bytes(range(256)) * 8_000
        await host.write("data", data)
        output = Output()
        await host.env.commands.run(script(host, "cat data"), output)
        assert b"".join(output.pieces) == data

    async def test_the_sink_is_never_called_twice_at_once(self, host: Host) -> None:
        busy = False
        overlaps = 0
        received = 0

        async def slow(data: bytes) -> None:
            nonlocal busy, overlaps, received
            overlaps += busy
            busy = True
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            received += len(data)
            busy = False

        await host.write("data", b"x" * 1_000_000)
        await host.env.commands.run(script(host, "cat data data; cat data >&2"), slow)
        assert (overlaps, received) == (0, 3_000_000)

    async def test_a_waiting_sink_holds_the_program_up(self, host: Host) -> None:
        first, release = anyio.Event(), anyio.Event()

        async def sink(data: bytes) -> None:
            first.set()
            await release.wait()

        await host.write("data", b"x" * 4_000_000)
        async with anyio.create_task_group() as group:
            group.start_soon(host.env.commands.run, script(host, "cat data; echo done > marker"), sink)
            await first.wait()
            await host.env.clock.sleep(0.2)
            assert await host.names() == ["data"]
            release.set()
        assert await host.names() == ["data", "marker"]

    # ---------------------------------------------------------------- what a program gets

    async def test_arguments_arrive_as_they_are(self, host: Host) -> None:
        arguments = ["a b", "", "*", "$HOME", "'q'", '"', "\\", "ü", "-n", "line\nbreak"]
        output = Output()
        await host.env.commands.run(Command(("printf", "%s|", *arguments), host.root), output)
        assert output.text == "".join(f"{argument}|" for argument in arguments)

    async def test_a_program_may_be_a_path(self, host: Host) -> None:
        path = await host.env.commands.find_program("bash")
        assert path is not None
        output = Output()
        await host.env.commands.run(Command((path, "-c", "echo x"), host.root), output)
        assert output.text == "x\n"

    async def test_a_relative_path_starts_at_the_working_directory(self, host: Host) -> None:
        await host.env.files.write(host.path("tool"), b"#!/bin/sh\necho from tool\n", mode=0o755)
        output = Output()
        await host.env.commands.run(Command(("./tool",), host.root), output)
        assert output.text == "from tool\n"

    async def test_a_command_runs_in_its_directory(self, host: Host) -> None:
        path = await host.make_dirs("deep/directory")
        output = Output()
        await host.env.commands.run(Command(("pwd",), path), output)
        assert output.text == f"{path}\n"

    async def test_standard_input_can_be_given(self, host: Host) -> None:
        data = b"line\n\xff" + b"x" * 300_000
        output = Output()
        await host.env.commands.run(Command(("cat",), host.root, stdin=data), output)
        assert b"".join(output.pieces) == data

    async def test_standard_input_may_be_left_unread(self, host: Host) -> None:
        output = Output()
        command = evolve(script(host, "echo done"), stdin=b"x" * 1_000_000)
        assert await host.env.commands.run(command, output) == Exit(0)
        assert output.text == "done\n"

    @pytest.mark.parametrize("stdin", [None, b""])
    async def test_without_input_a_reader_meets_the_end_at_once(self, host: Host, stdin: bytes | None) -> None:
        output = Output()
        with anyio.fail_after(30):
            ended = await host.env.commands.run(Command(("cat",), host.root, stdin=stdin), output)
        assert (ended.code, output.pieces) == (0, [])

    # ---------------------------------------------------------------- variables

    async def test_variables_are_set_and_removed(self, host: Host) -> None:
        changes = {"ADDED": "a=b c", "VISIBLE": None, "SECRET": "changed", "NEVER_SET": None}
        seen = await variables(host, Command(("env",), host.root, changes))
        assert (seen["ADDED"], seen["SECRET"]) == ("a=b c", "changed")
        assert "VISIBLE" not in seen
        assert "NEVER_SET" not in seen

    async def test_all_variables_are_inherited_by_default(self, host: Host) -> None:
        seen = await variables(host, Command(("env",), host.root))
        assert {name: seen.get(name) for name in host.variables} == host.variables

    @pytest.mark.parametrize(
        ("policy", "inherited"),
        [
            (Inheritance("minimal"), {"PATH"}),
            (Inheritance("minimal", allow=["VIS*"]), {"PATH", "VISIBLE"}),
            (Inheritance("all", deny=["SEC*"]), {"PATH", "VISIBLE"}),
            (Inheritance("all", deny=["*"]), set[str]()),
            (Inheritance("all", deny=["*"], allow=["SECRET", "PATH"]), {"PATH", "SECRET"}),
            (Inheritance("minimal", deny=["PATH"], allow=["P?TH"]), {"PATH"}),
            (Inheritance("all", deny=["secret"]), {"PATH", "SECRET", "VISIBLE"}),
        ],
    )
    async def test_a_policy_decides_what_is_inherited(
        self, host: Host, policy: Inheritance, inherited: set[str]
    ) -> None:
        program = await host.env.commands.find_program("env")
        assert program is not None
        output = Output()
        await host.env.commands.run(Command((program,), host.root, inherit=policy), output)
        names = {line.partition("=")[0] for line in output.text.splitlines()}
        assert names & {"PATH", "SECRET", "VISIBLE"} == inherited

    async def test_changes_come_after_the_policy(self, host: Host) -> None:
        policy = Inheritance("all", deny=["SECRET"])
        seen = await variables(host, Command(("env",), host.root, {"SECRET": "mine"}, policy))
        assert seen["SECRET"] == "mine"

    # ---------------------------------------------------------------- background processes

    async def test_the_listener_hears_the_end_before_late_output(self, host: Host) -> None:
        events: list[str] = []

        async def sink(data: bytes) -> None:
            events.append(data.decode().strip())

        def on_exit(ended: Exit) -> None:
            events.append(f"exit {ended.code}")

        for _ in range(5):  # on a busy machine the child may be slower or faster than the shell
            events.clear()
            await host.env.commands.run(script(host, "sleep 0.05 && echo late & echo now; exit 3"), sink, on_exit)
            if events == ["now", "exit 3", "late"]:
                break
        assert events == ["now", "exit 3", "late"]

    async def test_the_listener_hears_once(self, host: Host) -> None:
        ends: list[Exit] = []
        ended = await host.env.commands.run(script(host, "echo x; exit 2"), Output(), ends.append)
        assert [(end.code, end.signal) for end in ends] == [(ended.code, ended.signal)] == [(2, None)]

    async def test_a_background_process_does_not_hold_the_call(self, host: Host) -> None:
        before = host.env.clock.monotonic()
        ended, output = await run(host, "sleep 300 & echo started")
        assert (ended.code, output) == (0, "started\n")
        assert [process.command_line for process in ended.background] == ["sleep 300"]
        assert all(process.pid > 0 for process in ended.background)
        assert host.env.clock.monotonic() - before < 200

    async def test_a_background_process_goes_on(self, host: Host) -> None:
        host.require(host.capabilities.background_work, "background processes that go on")
        await run(host, "{ sleep 0.3; echo done > marker; } > /dev/null 2>&1 &")
        with anyio.fail_after(30):
            while "marker" not in await host.names():
                await host.env.clock.sleep(0.05)

    async def test_closing_the_environment_ends_background_processes(self, host: Host) -> None:
        ended, _ = await run(host, "sleep 1 && echo done > marker & echo started")
        assert ended.background
        await host.env.aclose()
        await host.env.clock.sleep(1.2)
        assert await host.setup.names(host.root) == []

    # ---------------------------------------------------------------- cancellation

    async def test_a_cancelled_command_does_not_go_on(self, host: Host) -> None:
        output = Output()
        async with anyio.create_task_group() as group:
            group.start_soon(
                host.env.commands.run, script(host, "echo started; sleep 0.5; echo alive > marker"), output
            )
            await output.came.wait()
            group.cancel_scope.cancel()
        await host.env.clock.sleep(0.8)
        assert await host.names() == []
        assert output.text == "started\n"

    async def test_children_of_a_cancelled_command_do_not_go_on(self, host: Host) -> None:
        output = Output()
        child = "bash -c 'sleep 0.5 && echo alive > marker'"
        async with anyio.create_task_group() as group:
            group.start_soon(host.env.commands.run, script(host, f"{child} & echo started; sleep 100"), output)
            await output.came.wait()
            group.cancel_scope.cancel()
        await host.env.clock.sleep(0.8)
        assert await host.names() == []

    async def test_a_limit_of_time_ends_a_command(self, host: Host) -> None:
        output = Output()
        with host.env.clock.move_on_after(0.3) as deadline:
            await host.env.commands.run(script(host, "echo started; sleep 300"), output)
        assert deadline.expired
        assert output.text == "started\n"

    async def test_a_failing_sink_ends_the_command(self, host: Host) -> None:
        async def sink(data: bytes) -> None:
            raise ZeroDivisionError(data.decode())

        with pytest.raises(ZeroDivisionError, match="started"):
            await host.env.commands.run(script(host, "echo started; sleep 0.5; echo alive > marker"), sink)
        await host.env.clock.sleep(0.8)
        assert await host.names() == []

    async def test_closing_the_environment_ends_a_running_command(self, host: Host) -> None:
        output = Output()
        codes: list[str] = []

        async def call() -> None:
            try:
                await host.env.commands.run(script(host, "echo started; sleep 300"), output)
            except PortError as error:
                codes.append(error.code)

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await output.came.wait()
            await host.env.aclose()
        assert codes == ["closed"]

    async def test_what_a_kill_may_not_reach_is_named(self, host: Host) -> None:
        assert (list(host.env.commands.may_survive) == []) == host.capabilities.kills_everything
        assert "" not in host.env.commands.may_survive

    # ---------------------------------------------------------------- what cannot run

    async def test_the_working_directory_must_exist(self, host: Host) -> None:
        path = host.path("missing")
        await refused(host, "not_found", path, Command(("pwd",), path))

    async def test_the_working_directory_must_be_a_directory(self, host: Host) -> None:
        path = await host.write("file")
        await refused(host, "not_a_directory", path, Command(("pwd",), path))

    @pytest.mark.parametrize("name", ["no-such-program", "./no-such-program", "/no/such/program"])
    async def test_the_program_must_exist(self, host: Host, name: str) -> None:
        await refused(host, "program_not_found", name, Command((name, "argument"), host.root))

    async def test_the_program_must_be_executable(self, host: Host) -> None:
        host.require(host.capabilities.modes, "permission bits")
        path = host.path("tool")
        await host.env.files.write(path, b"#!/bin/sh\necho x\n", mode=0o644)
        await refused(host, "permission_denied", path, Command((path,), host.root))

    @pytest.mark.parametrize(
        ("argv", "env"),
        [(("echo", "a\0b"), {}), (("ec\0ho",), {}), (("echo",), {"NAME": "a\0b"}), (("echo",), {"NA\0ME": "value"})],
        ids=["argument", "program", "value", "name"],
    )
    async def test_a_nul_is_refused(self, host: Host, argv: Sequence[str], env: Mapping[str, str]) -> None:
        with pytest.raises(PortError) as caught:
            await host.env.commands.run(Command(argv, host.root, env), Output())
        assert caught.value.code == "invalid_path"

    async def test_a_nul_in_the_directory_is_refused(self, host: Host) -> None:
        path = host.path("a\0b")
        await refused(host, "invalid_path", path, Command(("pwd",), path))

    async def test_arguments_can_be_too_long(self, host: Host) -> None:
        with pytest.raises(PortError) as caught:
            await host.env.commands.run(Command(("echo", "x" * 8_000_000), host.root), Output())
        assert caught.value.code == "spawn_failed"

    async def test_limits_are_refused_where_there_are_none(self, host: Host) -> None:
        if host.capabilities.resource_limits:
            pytest.skip("this host has limits of resources")
        command = evolve(script(host, "true"), limits=ResourceLimits(open_files=20))
        await refused(host, "not_supported", "bash", command)

    async def test_a_limit_binds_a_command_and_its_children(self, host: Host) -> None:
        host.require(host.capabilities.resource_limits, "limits of resources")
        output = Output()
        command = evolve(script(host, "bash -c 'ulimit -n'"), limits=ResourceLimits(open_files=77))
        await host.env.commands.run(command, output)
        assert output.text == "77\n"

    async def test_a_closed_environment_runs_nothing(self, host: Host) -> None:
        await host.env.aclose()
        with pytest.raises(PortError) as caught:
            await host.env.commands.run(script(host, "echo x"), Output())
        assert caught.value.code == "closed"

    # ---------------------------------------------------------------- find_program

    async def test_a_program_is_found_on_the_path(self, host: Host) -> None:
        path = await host.env.commands.find_program("cat")
        assert path is not None
        assert path.endswith("/cat")
        assert await host.env.commands.find_program(path) == path

    async def test_an_unknown_program_is_not_found(self, host: Host) -> None:
        assert await host.env.commands.find_program("no-such-program") is None
        assert await host.env.commands.find_program("/no/such/program") is None

    async def test_a_file_that_cannot_run_is_no_program(self, host: Host) -> None:
        host.require(host.capabilities.modes, "permission bits")
        assert await host.env.commands.find_program(await host.write("file")) is None
        assert await host.env.commands.find_program(await host.make_dirs("directory")) is None

    async def test_a_file_that_can_run_is_a_program(self, host: Host) -> None:
        path = host.path("tool")
        await host.env.files.write(path, b"#!/bin/sh\necho x\n", mode=0o755)
        assert await host.env.commands.find_program(path) == path
