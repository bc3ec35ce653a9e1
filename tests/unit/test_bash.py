"""bash in memory: texts, details, updates, time, what the host decides. Real processes are tested elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from attrs import evolve

from handrail.adapters.memory.environment import MemoryEnvironment, memory_environment
from handrail.adapters.memory.process import Process
from handrail.core.results import ToolResult
from handrail.core.toolbox import Toolbox
from handrail.core.tools.bash import BashOptions, bash_tool
from handrail.core.tools.powershell import powershell_tool
from handrail.ports.commands import (
    Command,
    CommandPort,
    Exit,
    ExitListener,
    Inheritance,
    OutputSink,
    ResourceLimits,
)
from handrail.ports.environment import Environment, Session
from handrail.ports.errors import PortError

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]


async def call(
    env: MemoryEnvironment, command: str, options: BashOptions | None = None, updates: Any = None, **arguments: Any
) -> ToolResult:
    toolbox = Toolbox(env, [bash_tool(options or BashOptions())])
    return await toolbox.call("bash", {"command": command, **arguments}, on_update=updates)


class WithLimits(CommandPort):
    """Commands in memory that take limits and do not enforce them."""

    def __init__(self, commands: CommandPort) -> None:
        self._commands = commands

    @property
    def may_survive(self) -> Sequence[str]:
        return self._commands.may_survive

    async def run(self, command: Command, on_output: OutputSink, on_exit: ExitListener | None = None) -> Exit:
        return await self._commands.run(evolve(command, limits=ResourceLimits()), on_output, on_exit)

    async def find_program(self, name: str) -> str | None:
        return await self._commands.find_program(name)


class WithoutPromise(WithLimits):
    """Commands in memory that say what may outlive them."""

    @property
    def may_survive(self) -> Sequence[str]:
        return ("a daemon",)


def evolve_environment(env: MemoryEnvironment) -> Environment:
    return Environment(env.files, WithLimits(env.commands), env.clock, env.cwd, env.home)


def prints(data: bytes, code: int = 0) -> Any:
    async def handler(process: Process) -> int:
        await process.write(data)
        return code

    return handler


def shows_environment(*names: str) -> Any:
    async def handler(process: Process) -> None:
        await process.write("".join(f"{name}={process.env.get(name)}\n" for name in names).encode())

    return handler


class TestResults:
    async def test_a_success(self) -> None:
        async with memory_environment() as env:
            result = await call(env, "echo hello")
        assert result.to_dict() == {
            "content": [{"type": "text", "text": "hello\n"}],
            "isError": False,
            "structuredContent": {
                "output": "hello\n",
                "truncated": False,
                "exit_code": 0,
                "wall_time_seconds": 0.0,
            },
        }

    async def test_no_output(self) -> None:
        async with memory_environment() as env:
            assert (await call(env, "true")).text == "(no output)"

    @pytest.mark.parametrize(
        ("exit", "text"),
        [
            (Exit(3), "out\n\n\nCommand exited with code 3"),
            (Exit(None, 11), "out\n\n\nCommand exited with code 139"),
            (Exit(None), "out\n\n\nCommand terminated without an exit code"),
        ],
    )
    async def test_a_failed_command_is_a_result(self, exit: Exit, text: str) -> None:  # noqa: A002
        async def fails(process: Process) -> Exit:
            await process.write(b"out\n")
            return exit

        async with memory_environment(commands={"tool": fails}) as env:
            env.commands.on("do it", fails)
            result = await call(env, "do it")
        assert (result.text, result.is_error, result.error_code) == (text, True, "exit_code")

    async def test_long_output_is_cut_and_saved_whole(self) -> None:
        data = b"".join(b"line %d\r\n" % number for number in range(3000)) + b"\x1b[1mend\n"
        async with memory_environment() as env:
            env.commands.on("long", prints(data, 1))
            result = await call(env, "long")
            path = result.details.full_output_path
            saved = await env.files.read(path)
            assert saved.data == data
            assert saved.stat.mode == 0o600
            assert result.text.startswith("line 1001\r\n")
            assert result.text.endswith(
                f"\nend\n\n[Showing lines 1002-3001 of 3001. Full output: {path}]\n\nCommand exited with code 1"
            )
            assert result.to_dict()["details"]["truncation"]["totalLines"] == 3001
        assert path not in env.files.tree()

    async def test_saved_output_may_be_kept(self) -> None:
        async with memory_environment() as env:
            env.commands.on("long", prints(b"\n" * 2001))
            result = await call(env, "long", BashOptions(keep_output_files=True))
        assert result.details.full_output_path in env.files.tree()

    async def test_output_that_cannot_be_saved_is_said_to_be_so(self) -> None:
        async with memory_environment() as env:
            before = set(env.files.tree())
            env.files.faults.fail("no_space", operation="append")
            env.commands.on("long", prints(b"x\n" * 3000))
            result = await call(env, "long")
            assert set(env.files.tree()) == before
        assert not result.is_error
        assert result.details.full_output_path is None
        assert "Full output could not be saved: No space left" in result.text

    @pytest.mark.parametrize("operation", ["create_temp_file", "append"])
    async def test_much_output_that_cannot_be_saved_is_still_shown(self, operation: Any) -> None:
        async with memory_environment() as env:
            before = set(env.files.tree())
            env.files.faults.fail("read_only", operation=operation)
            env.commands.on("long", prints(b"0123456\n" * 400_000))
            result = await call(env, "long")
            assert set(env.files.tree()) == before
        assert result.text.startswith("0123456\n")
        assert "Full output could not be saved: The file system" in result.text

    async def test_all_saved_outputs_go_with_the_environment(self) -> None:
        async with memory_environment() as env:
            before = set(env.files.tree())
            env.commands.on("long", prints(b"\n" * 2001))
            toolbox = Toolbox(env, [bash_tool()])
            paths = {(await toolbox.call("bash", {"command": "long"})).details.full_output_path for _ in range(3)}
            assert paths == set(env.files.tree()) - before
        assert set(env.files.tree()) == before

    async def test_progress_bars_are_folded_and_the_raw_output_is_saved(self) -> None:
        bar = b"".join(b"%d%%\r" % percent for percent in range(101)) + b"done\n"
        async with memory_environment() as env:
            env.commands.on("download", prints(bar))
            result = await call(env, "download")
            path = result.details.full_output_path
            assert (await env.files.read(path)).data == bar
        assert result.text == f"done\n\n\n[Progress lines are shown in their last state. Full output: {path}]"

    async def test_background_processes_are_listed(self) -> None:
        async with memory_environment() as env:
            result = await call(env, "sleep 100 & echo started")
        assert result.text == "started\n"
        (left,) = result.to_dict()["details"]["background"]
        assert left["commandLine"] == "sleep 100"

    async def test_a_very_long_output_is_cut_in_the_middle_for_programs(self) -> None:
        async with memory_environment() as env:

            async def long(process: Process) -> None:
                for _ in range(3):
                    await process.write(b"0123456\n" * 200_000)

            env.commands.on("long", long)
            result = await call(env, "long")
            structured = result.structured_content
            assert structured["truncated"]
            assert structured["full_output_path"] == result.details.full_output_path
            assert "omitted ...]" in structured["output"]
            assert (await env.files.stat(structured["full_output_path"])).size == 4_800_000


class TestTime:
    async def test_an_hour_passes_at_once(self) -> None:
        async with memory_environment() as env:
            result = await call(env, "echo before; sleep 7200; echo after", timeout=3600)
        assert result.text == "before\n\n\nCommand timed out after 3600 seconds"
        assert (result.is_error, result.error_code) == (True, "timeout")
        assert result.structured_content["wall_time_seconds"] == 3600

    async def test_a_timeout_after_the_end_of_the_shell_tells_both(self) -> None:
        async with memory_environment() as env:

            async def leaves_work(process: Process) -> int:
                async def tick() -> None:
                    while True:
                        await process.write(b"t\n")
                        await process.sleep(0.05)

                process.leave_running("ticker", tick)
                return 5

            env.commands.on("leave work", leaves_work)
            result = await call(env, "leave work", timeout=2)
        assert "Command timed out after 2 seconds" in result.text
        assert "exited with code 5" in result.text
        assert result.structured_content["exit_code"] == 5

    async def test_a_timed_out_call_keeps_its_details(self) -> None:
        async with memory_environment() as env:

            async def hangs(process: Process) -> None:
                await process.write(b"\n" * 3000)
                await anyio.sleep_forever()

            env.commands.on("hang", hangs)
            result = await call(env, "hang", timeout=0.5)
            assert (await env.files.read(result.details.full_output_path)).data == b"\n" * 3000
        assert result.details.truncation.total_lines == 3000
        assert result.text.endswith("Command timed out after 0.5 seconds")

    @pytest.mark.parametrize("seconds", [0, -1, 1e300, 2_147_483.648])
    async def test_a_timeout_out_of_range_is_refused(self, seconds: float) -> None:
        async with memory_environment() as env:
            result = await call(env, "echo x", timeout=seconds)
        assert result.error_code == "invalid_timeout"
        assert repr(seconds) in result.text

    async def test_the_largest_timeout_is_accepted(self) -> None:
        async with memory_environment() as env:
            assert (await call(env, "echo x", timeout=2_147_483.647)).text == "x\n"

    async def test_the_host_may_set_a_timeout(self) -> None:
        async with memory_environment() as env:
            options = BashOptions(default_timeout=5)
            assert (await call(env, "sleep 6", options)).text == "Command timed out after 5 seconds"
            assert (await call(env, "sleep 6", options, timeout=7)).text == "(no output)"

    async def test_updates_come_at_most_ten_times_a_second(self) -> None:
        updates: list[tuple[float, str]] = []
        async with memory_environment() as env:
            started = env.clock.monotonic()

            def note(result: ToolResult) -> None:
                updates.append((round(env.clock.monotonic() - started, 3), result.text))

            await call(env, "; ".join(f"echo {number}; sleep 0.04" for number in range(1, 7)), updates=note)
        assert updates == [(0, ""), (0.1, "1\n2\n3\n"), (0.2, "1\n2\n3\n4\n5\n6\n")]

    async def test_a_burst_is_shown_although_nothing_follows(self) -> None:
        updates: list[tuple[float, str]] = []
        async with memory_environment() as env:
            started = env.clock.monotonic()

            def note(result: ToolResult) -> None:
                updates.append((round(env.clock.monotonic() - started, 3), result.text))

            await call(env, "echo burst; sleep 60", updates=note)
        assert updates == [(0, ""), (0.1, "burst\n")]


class TestCancellation:
    async def test_what_was_printed_is_kept_with_its_details(self) -> None:
        async with memory_environment() as env:
            printed = anyio.Event()

            async def hangs(process: Process) -> None:
                await process.write(b"line\n" * 3000)
                printed.set()
                await anyio.sleep_forever()

            env.commands.on("hang", hangs)
            toolbox = Toolbox(env, [bash_tool()])
            results: list[ToolResult] = []

            async def run() -> None:
                results.append(await toolbox.call("bash", {"command": "hang"}, call_id="one"))

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await printed.wait()
                toolbox.cancel("one")
            (result,) = results
            assert (await env.files.read(result.details.full_output_path)).data == b"line\n" * 3000
        assert (result.is_error, result.error_code) == (True, "aborted")
        assert result.details.truncation.total_lines == 3000
        assert result.text.endswith("\n\nOperation aborted")

    async def test_output_over_the_cap_ends_the_command(self) -> None:
        async with memory_environment() as env:

            async def endless(process: Process) -> None:
                while True:
                    await process.write(b"0123456789" * 1000)

            env.commands.on("endless", endless)
            result = await call(env, "endless", BashOptions(max_output_bytes=123_456))
            saved = await env.files.read(result.details.full_output_path)
            assert len(saved.data) == 123_456
            assert not env.commands.running
        assert result.error_code == "output_limit"
        assert "it printed more than 120.6KB" in result.text

    async def test_output_just_under_the_cap_does_not(self) -> None:
        async with memory_environment() as env:
            assert (await call(env, "printf 123", BashOptions(max_output_bytes=3))).text == "123"


class TestWhatTheHostDecides:
    async def test_a_prefix_goes_before_the_command(self) -> None:
        async with memory_environment() as env:
            assert (await call(env, "echo $x", BashOptions(command_prefix="x=42"))).text == "42\n"

    async def test_commands_see_the_session(self) -> None:
        names = ("PI_SESSION_ID", "PI_MODEL", "PI_PROVIDER")
        host = {"PI_PROVIDER": "inherited", "PI_SESSION_ID": "inherited"}
        async with memory_environment(session=Session(id="s1", model="m1"), variables=host) as env:
            env.commands.on("show", shows_environment(*names))
            shown = await call(env, "show")
            hidden = await call(env, "show", BashOptions(expose_session_environment=False))
        assert shown.text == "PI_SESSION_ID=s1\nPI_MODEL=m1\nPI_PROVIDER=None\n"
        assert hidden.text == "PI_SESSION_ID=None\nPI_MODEL=None\nPI_PROVIDER=None\n"

    async def test_a_hook_changes_command_directory_and_variables(self) -> None:
        async with memory_environment(files={"/elsewhere/x": ""}) as env:
            options = BashOptions(
                spawn_hook=lambda request: evolve(
                    request, command=request.command + "; ls", cwd="/elsewhere", env={**request.env, "CI": "1"}
                )
            )
            assert (await call(env, "echo $CI; pwd", options)).text == "1\n/elsewhere\nx\n"

    async def test_variables_are_inherited_by_the_policy(self) -> None:
        async with memory_environment(variables={"TOKEN": "t", "LC_ALL": "C"}) as env:
            env.commands.on("show", shows_environment("TOKEN", "LC_ALL"))
            result = await call(env, "show", BashOptions(inherit=Inheritance("minimal")))
        assert result.text == "TOKEN=None\nLC_ALL=C\n"

    async def test_another_shell_may_be_named(self) -> None:
        async with memory_environment(commands={"zsh": "from zsh"}) as env:
            assert (await call(env, "x", BashOptions(shell_path="zsh"))).text == "from zsh"
            missing = await call(env, "x", BashOptions(shell_path="/no/shell"))
        assert (missing.error_code, "/no/shell" in missing.text) == ("missing_shell", True)


class TestSecrets:
    OPTIONS = BashOptions(secrets={"API_TOKEN": "s3cr3t", "OTHER": "hidden"})

    async def test_a_command_that_names_it_gets_it_and_nobody_sees_it(self) -> None:
        async with memory_environment() as env:
            updates: list[ToolResult] = []
            result = await call(
                env, "echo token $API_TOKEN $OTHERS; sleep 1; echo again $API_TOKEN", self.OPTIONS, updates.append
            )
        assert result.text == "token ***\nagain ***\n"
        assert "s3cr3t" not in str(result.to_dict()) + str([update.to_dict() for update in updates])

    async def test_other_commands_do_not_have_it_even_if_the_host_does(self) -> None:
        async with memory_environment(variables={"API_TOKEN": "of the host"}) as env:
            env.commands.on("show", shows_environment("API_TOKEN", "OTHER"))
            assert (await call(env, "show", self.OPTIONS)).text == "API_TOKEN=None\nOTHER=None\n"

    async def test_it_is_masked_across_pieces_and_in_the_saved_file(self) -> None:
        async with memory_environment() as env:

            async def halves(process: Process) -> None:
                for _ in range(3000):
                    await process.write(b"a s3c")
                    await process.write(b"r3t b\n")

            env.commands.on("halves API_TOKEN", halves)
            result = await call(env, "halves API_TOKEN", self.OPTIONS)
            saved = (await env.files.read(result.details.full_output_path)).data
        assert saved == b"a *** b\n" * 3000
        assert "s3cr3t" not in str(result.to_dict())

    async def test_it_is_masked_in_command_lines_of_background_processes(self) -> None:
        async with memory_environment() as env:

            async def serves(process: Process) -> None:
                process.leave_running(f"server --token {process.env['API_TOKEN']}")

            env.commands.on("serve API_TOKEN", serves)
            result = await call(env, "serve API_TOKEN", self.OPTIONS)
        assert result.details.background[0].command_line == "server --token ***"


class TestErrors:
    async def test_a_missing_directory_is_named(self) -> None:
        async with memory_environment() as env:
            await env.files.remove("/project")
            result = await call(env, "true")
        assert result.error_code == "missing_cwd"
        assert result.text == "The working directory /project does not exist. Create it, or work in another one."

    async def test_a_directory_that_is_a_file(self) -> None:
        async with memory_environment(files={"/project/file": ""}) as env:
            result = await call(
                env, "true", BashOptions(spawn_hook=lambda request: evolve(request, cwd="/project/file"))
            )
        assert (result.error_code, "/project/file is not a directory" in result.text) == ("missing_cwd", True)

    async def test_a_missing_shell_says_what_to_do(self) -> None:
        async with memory_environment(builtins=False) as env:
            bash = await call(env, "true")
            powershell = await Toolbox(env, [powershell_tool()]).call("powershell", {"command": "x"})
        assert (bash.error_code, "Install it" in bash.text) == ("missing_shell", True)
        assert (powershell.error_code, "aka.ms/install-powershell" in powershell.text) == ("missing_shell", True)

    async def test_a_nul_is_named_with_its_place(self) -> None:
        async with memory_environment() as env:
            result = await call(env, "echo a\0b")
        assert (result.error_code, "position 6" in result.text) == ("nul_in_argument", True)

    async def test_limits_that_the_environment_does_not_have(self) -> None:
        async with memory_environment() as env:
            result = await call(env, "true", BashOptions(limits=ResourceLimits(cpu_seconds=1)))
        assert result.is_error

    async def test_a_host_without_processes_left(self) -> None:
        async def exhausted(process: Process) -> None:
            raise PortError("resource_limit", process.argv[0])

        async with memory_environment() as env:
            env.commands.on("x", exhausted)
            assert (await call(env, "x")).error_code == "resource_limit"

    async def test_a_shell_that_cannot_be_executed(self) -> None:
        async def refuses(process: Process) -> None:
            raise PortError("permission_denied", process.argv[0])

        async with memory_environment() as env:
            env.commands.on("x", refuses)
            result = await call(env, "x")
        assert (result.error_code, "cannot be executed" in result.text) == ("missing_shell", True)

    @pytest.mark.parametrize(
        ("limits", "said", "code", "met"),
        [
            (ResourceLimits(cpu_seconds=5), b"", Exit(None, 24), "The limit of 5 s of CPU time was met."),
            (ResourceLimits(open_files=9), b"x: Too many open files\n", Exit(1), "The limit of 9 open files was met."),
            (ResourceLimits(processes=9), b"fork: Resource temporarily unavailable\n", Exit(254), "9 processes"),
            (ResourceLimits(cpu_seconds=5), b"x: Too many open files\n", Exit(1), None),
        ],
    )
    async def test_a_limit_that_was_met_is_named(
        self, limits: ResourceLimits, said: bytes, code: Exit, met: str | None
    ) -> None:
        async def meets_it(process: Process) -> Exit:
            await process.write(said)
            return code

        async with memory_environment() as env:
            env.commands.on("work", meets_it)
            limited = evolve_environment(env)
            result = await Toolbox(limited, [bash_tool(BashOptions(limits=limits))]).call("bash", {"command": "work"})
        assert result.error_code == ("exit_code" if met is None else "resource_limit")
        assert ("limit of" in result.text) == (met is not None)
        assert (met or "") in result.text

    async def test_a_closed_environment(self) -> None:
        env = memory_environment()
        await env.aclose()
        assert (await call(env, "true")).error_code == "closed"


async def test_a_very_long_command_runs_and_leaves_nothing() -> None:
    async with memory_environment() as env:
        before = set(env.files.tree())
        result = await call(env, f"echo start; : {'x' * 200_000}; echo end")
        assert result.text == "start\nend\n"
        assert set(env.files.tree()) == before


class TestMaySurvive:
    @pytest.mark.parametrize(("command", "more"), [("true", {}), ("exit 3", {}), ("sleep 9", {"timeout": 1})])
    async def test_details_name_what_may_outlive_a_kill(self, command: str, more: dict[str, Any]) -> None:
        async with memory_environment() as env:
            weak = evolve(evolve_environment(env), commands=WithoutPromise(env.commands))
            result = await Toolbox(weak, [bash_tool()]).call("bash", {"command": command, **more})
            assert result.to_dict()["details"] == {"maySurvive": ["a daemon"]}

    async def test_nothing_is_said_where_nothing_may(self) -> None:
        async with memory_environment() as env:
            assert (await call(env, "true")).details is None


async def test_limits_that_the_environment_has_not_are_told() -> None:
    async with memory_environment() as env:
        result = await call(env, "echo x", BashOptions(limits=ResourceLimits(open_files=20)))
        assert (result.error_code, "option limits" in result.text) == ("spawn_failed", True)
