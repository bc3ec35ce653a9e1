"""The kill table: whatever a command starts and however it ends, nothing of it is left.

Each row is a shape of process tree, each column a way to end it. A tree prints ``ready`` from its last
process, and only then is it ended. ``HANDRAIL_KILL_ROUNDS`` sets how often each row runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from handrail.adapters.local.commands import LocalCommands
from handrail.ports.commands import Command, Exit
from handrail.ports.errors import PortError
from integration.processes import children_of, new_marker, parent_of, processes_with, until, zombies_below

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc"),
]

ROUNDS = int(os.environ.get("HANDRAIL_KILL_ROUNDS") or ("50" if os.environ.get("CI") else "4"))

# {s} is a process that sleeps for ever and carries the marker {m} in its command line.
ROWS = {
    "a plain child": "{s} & echo ready; wait",
    "grandchildren": "sh -c 'sh -c \"{s} & {s} & echo ready; wait\" & wait' & wait",
    "children that ignore signals": (
        "trap '' TERM HUP INT; sh -c 'trap \"\" TERM HUP INT; echo ready; while :; do sleep 0.2; done; : {m}'; wait"
    ),
    "a background child that goes on printing": "(echo ready; while echo tick; do sleep 0.01; done; : {m}) & exit 3",
    "setsid": "setsid sh -c 'echo ready; exec {s}' & wait",
    "a double fork": "(setsid sh -c '(echo ready; exec {s}) &' &); sleep {m}",
    "a double fork with a new session twice": "setsid sh -c 'setsid sh -c \"(echo ready; exec {s}) &\" &' & sleep {m}",
    "nohup": "nohup sh -c 'echo ready; exec {s}' & wait",
    "an empty environment": "(env -i setsid sh -c '(echo ready; exec {s}) &' &); sleep {m}",
    "a bounded fork bomb": (
        "f() {{ if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; exec {s}; }}; echo ready; f 5"
    ),
    "a bomb of sessions": (
        "echo ready; exec setsid python3 -c 'import os\n"
        'for _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\nos.execlp("sleep", "sleep", "{m}")\''
    ),
    "a stopped child": "{s} & kill -STOP $!; echo ready; kill -STOP $$",
    "two hundred processes": "for i in $(seq 200); do {s} & done; echo ready; wait",
    "closed pipes": "echo ready; exec <&- >&- 2>&-; {s} & wait",
    "a stopped keeper": "setsid {s} & {s} & kill -STOP $PPID; echo ready; wait",
    "a stopped supervisor": "setsid {s} & {s} & kill -STOP $(supervisor); echo ready; wait",
    "both stopped again and again": (
        "k=$PPID n=$(supervisor); setsid {s} & (while kill -STOP $k $n; do :; done; : {m}) & echo ready; {s}"
    ),
    "a killed supervisor": "setsid {s} & {s} & kill -KILL $(supervisor); echo ready; wait",
    "a shell in the background": "bash -c '{s} & {s} & disown -a; echo ready; exec {s}' & disown; wait; sleep {m}",
}

Ending = Callable[[LocalCommands, Command], Awaitable[None]]


class Ready:
    """A sink that notices the word ``ready``."""

    def __init__(self) -> None:
        self.event = anyio.Event()

    async def __call__(self, data: bytes) -> None:
        if b"ready" in data:
            self.event.set()


def row(shape: str, marker: str) -> Command:
    return turned(ROWS[shape], marker)


def turned(text: str, marker: str) -> Command:
    """A command that may know its keeper, which is its parent, and its supervisor, which is the keeper's."""
    text = text.format(s=f"sleep {marker}", m=marker)
    # Another command may have killed the supervisor: then the keeper's parent is somebody who must not be hit.
    find = "p=$(cut -d' ' -f4 /proc/$PPID/stat) && grep -q _supervisor /proc/$p/cmdline && echo $p"
    return Command(["/bin/bash", "-c", f"supervisor() {{ {find}; }} 2> /dev/null\n{text}"], "/tmp")


async def cancel(commands: LocalCommands, command: Command) -> None:
    ready = Ready()
    async with anyio.create_task_group() as group:
        group.start_soon(commands.run, command, ready)
        await ready.event.wait()
        group.cancel_scope.cancel()


async def cancel_natively(commands: LocalCommands, command: Command) -> None:
    ready = Ready()
    task = asyncio.ensure_future(commands.run(command, ready))
    await ready.event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def fail_in_the_sink(commands: LocalCommands, command: Command) -> None:
    async def sink(data: bytes) -> None:
        if b"ready" in data:
            raise LookupError

    with pytest.raises(LookupError):
        await commands.run(command, sink)


@pytest.mark.parametrize("end", [cancel, cancel_natively, fail_in_the_sink], ids=lambda end: str(end.__name__))
@pytest.mark.parametrize("shape", ROWS)
async def test_a_tree_dies_with_its_call(shape: str, end: Ending) -> None:
    markers: list[str] = []
    commands = LocalCommands()
    at_once = anyio.Semaphore(2 if "hundred" in shape else 8)

    async def one_round() -> None:
        async with at_once:
            marker = new_marker()
            markers.append(marker)
            await end(commands, row(shape, marker))
            assert processes_with(marker) == []

    try:
        async with anyio.create_task_group() as group:
            for _ in range(ROUNDS):
                group.start_soon(one_round)
        # A keeper leaves with its command; that it is collected can take its parent a moment.
        assert await anyio.to_thread.run_sync(lambda: until(lambda: zombies_below(os.getpid()) == []))
    finally:
        await commands.aclose()
    assert len(markers) == ROUNDS
    assert processes_with(markers[0][:-9]) == []


@pytest.mark.parametrize("shape", ROWS)
async def test_a_tree_dies_when_the_environment_closes(shape: str) -> None:
    for _ in range(max(ROUNDS // 8, 1)):
        commands = LocalCommands()
        marker = new_marker()
        ready = Ready()

        async def run() -> None:
            with pytest.raises(PortError) as caught:
                await commands.run(row(shape, marker), ready)  # noqa: B023 - awaited in this iteration
            assert caught.value.code == "closed"

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await ready.event.wait()
            await commands.aclose()
            assert processes_with(marker) == []
        assert zombies_below(os.getpid()) == []


async def test_another_command_is_not_hit() -> None:
    commands = LocalCommands()
    spared, doomed = new_marker(), new_marker()
    try:
        async with anyio.create_task_group() as group:
            ready = Ready()
            group.start_soon(commands.run, row("an empty environment", spared), ready)
            await ready.event.wait()
            await cancel(commands, row("an empty environment", doomed))
            assert processes_with(doomed) == []
            assert any("sleep" in line for line in processes_with(spared))
            group.cancel_scope.cancel()
        assert processes_with(spared) == []
    finally:
        await commands.aclose()


def sleeping(marker: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", marker], start_new_session=True)


async def test_a_child_of_the_application_is_not_hit_and_not_collected() -> None:
    marker = new_marker()
    with sleeping(marker) as own:
        commands = LocalCommands()
        await cancel(commands, row("a double fork", new_marker()))
        await commands.aclose()
        assert own.poll() is None
        own.kill()
    assert own.returncode == -signal.SIGKILL


async def test_a_second_cancellation_spares_nothing() -> None:
    commands = LocalCommands()
    marker = new_marker()
    ready = Ready()
    task = asyncio.ensure_future(commands.run(row("two hundred processes", marker), ready))
    await ready.event.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await commands.aclose()
    assert await anyio.to_thread.run_sync(lambda: until(lambda: processes_with(marker) == []))


async def test_after_closing_nothing_of_ours_runs() -> None:
    before = children_of(os.getpid())
    commands = LocalCommands()
    await commands.run(Command(["/bin/bash", "-c", f"sleep {new_marker()} & setsid sleep 9 & true"], "/"), Ready())
    assert len(children_of(os.getpid())) == len(before) + 1
    await commands.aclose()
    assert children_of(os.getpid()) == before


# ------------------------------------------------------------------ the host ends

HOST = """
import asyncio, os, signal, sys
from handrail.adapters.local.commands import LocalCommands
from handrail.ports.commands import Command, Exit

async def start(commands, text):
    ready = asyncio.Event()
    async def sink(data):
        if b"ready" in data:
            ready.set()
    task = asyncio.ensure_future(commands.run(Command(["/bin/bash", "-c", text], "/tmp"), sink))
    await ready.wait()
    return task

async def main():
    commands = LocalCommands()
    await (await start(commands, "echo ready; sleep {m} & setsid sleep {m} &"))
    tasks = await asyncio.gather(*(start(commands, text) for text in sys.argv[1:]))
    print("ready", flush=True)
    {end}

{run}
"""

ENDS = {
    "the interpreter exits": ("sys.exit()", "asyncio.run(main())", None),
    "it exits without cleaning up": ("os._exit(1)", "asyncio.run(main())", None),
    "the task is abandoned": ("", "loop = asyncio.new_event_loop(); loop.run_until_complete(main())", None),
    "an error": ("raise LookupError", "asyncio.run(main())", None),
    "SIGTERM": ("await tasks[0]", "asyncio.run(main())", signal.SIGTERM),
    "SIGHUP": ("await tasks[0]", "asyncio.run(main())", signal.SIGHUP),
    "SIGINT": ("await tasks[0]", "asyncio.run(main())", signal.SIGINT),
    "SIGKILL": ("await tasks[0]", "asyncio.run(main())", signal.SIGKILL),
}

# A tree that stops its keepers without a pause outlives a host that gets to do nothing more: nobody wakes them.
HELD = "both stopped again and again"
SUDDEN_ENDS = {"it exits without cleaning up", "the task is abandoned", "SIGTERM", "SIGHUP", "SIGKILL"}


@pytest.mark.parametrize(
    ("shape", "end"), [(shape, end) for shape in ROWS for end in ENDS if shape != HELD or end not in SUDDEN_ENDS]
)
def test_a_tree_dies_with_its_host(shape: str, end: str, tmp_path: Path) -> None:
    statement, run, number = ENDS[end]
    at_once = 2 if "hundred" in shape else 8
    for _ in range(max(ROUNDS // (len(ENDS) * at_once), 1)):
        marker = new_marker()
        script = tmp_path / "host.py"
        script.write_text(HOST.format(m=marker, end=statement, run=run))
        texts = [str(row(shape, marker).argv[2])] * at_once
        with subprocess.Popen(
            [sys.executable, str(script), *texts], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as host:
            assert host.stdout is not None
            assert host.stdout.readline() == b"ready\n"
            if number is not None:
                host.send_signal(number)
            host.wait(20)
        assert until(lambda: processes_with(marker) == []), processes_with(marker)  # noqa: B023 - called at once


def test_a_copy_of_the_host_keeps_nothing_alive(tmp_path: Path) -> None:
    marker, copy = new_marker(), new_marker()
    script = tmp_path / "host.py"
    fork = f'if os.fork() == 0:\n        os.execlp("sleep", "sleep", "{copy}")\n    os._exit(0)'
    script.write_text(HOST.format(m=marker, end=fork, run="asyncio.run(main())"))
    text = str(row("setsid", marker).argv[2])
    subprocess.run([sys.executable, str(script), text], stdout=subprocess.DEVNULL, check=True)
    try:
        assert until(lambda: processes_with(marker) == []), processes_with(marker)
    finally:
        for line in processes_with(copy):
            os.kill(int(line.split()[0]), signal.SIGKILL)


# What a command does to the processes that answer for it, ending with its own wait for ever.
KILLERS = {
    "the keeper": "setsid {s} & (env -i setsid {s} &) ; kill -KILL $PPID; {s}",
    "the keeper, in two steps": "setsid {s} & kill -STOP $PPID; kill -KILL $PPID; {s}",
    "the keeper, after the shell's end": "(while kill -0 $$; do :; done; kill -KILL $PPID; exec {s}) 2> /dev/null &",
    "the keeper, its supervisor stopped": "setsid {s} & kill -STOP $(supervisor); kill -KILL $PPID; {s}",
    "both": "setsid {s} & (setsid sh -c '{s} & {s}' &); kill -KILL $PPID $(supervisor); {s}",
    "both, its environment empty": "kill -KILL $PPID $(supervisor); {s} & exec env -i sh -c '{s} & {s}'",
    "both, and it goes on printing": "kill -KILL $(supervisor) $PPID; (while echo tick; do :; done; : {m}) & {s}",
    "both, one after the other": "n=$(supervisor); kill -KILL $PPID; kill -KILL $n; (setsid {s} &) ; {s}",
}


@pytest.mark.parametrize("portable", [False, True], ids=["adopting", "portable"])
@pytest.mark.parametrize("shape", KILLERS)
async def test_a_command_that_kills_its_keepers_does_not_get_away(shape: str, portable: bool) -> None:
    if portable and "env -i setsid" in KILLERS[shape]:
        pytest.skip("without adoption, a daemon with an empty environment may survive")
    before = children_of(os.getpid())
    commands = LocalCommands(portable=portable)
    for _ in range(max(ROUNDS // 2, 1)):
        marker = new_marker()
        ended = await commands.run(turned(KILLERS[shape], marker), Ready())
        assert ended in ([Exit(0), Exit(None)] if "shell's end" in shape else [Exit(None)])
        assert processes_with(marker) == []
        assert (await commands.run(Command(["/bin/true"], "/"), Ready())).code == 0
    await commands.aclose()
    assert children_of(os.getpid()) == before


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_command_that_disturbs_its_keepers_ends_as_it_would(number: int) -> None:
    commands = LocalCommands()
    ended = await commands.run(turned(f"kill -{int(number)} $PPID $(supervisor); exit 3", new_marker()), Ready())
    assert ended.code == 3
    assert (await commands.run(Command(["/bin/true"], "/"), Ready())).code == 0
    await commands.aclose()


async def test_background_processes_die_although_both_keepers_were_killed() -> None:
    commands = LocalCommands()
    marker, other = new_marker(), new_marker()
    ended = await commands.run(turned("{s} & true", marker), Ready())
    (left,) = ended.background
    keeper = parent_of(left.pid)
    supervisor = parent_of(keeper)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    assert await anyio.to_thread.run_sync(lambda: until(lambda: parent_of(left.pid) not in (keeper, supervisor)))
    assert (await commands.run(turned("{s} & true", other), Ready())).code == 0  # notices, and starts anew
    assert processes_with(marker) == []
    assert processes_with(other)
    await commands.aclose()
    assert processes_with(other) == []


async def test_a_supervisor_that_stands_still_does_not_hold_up_the_closing() -> None:
    before = children_of(os.getpid())
    commands = LocalCommands()
    marker = new_marker()
    await commands.run(turned("{s} & kill -STOP $(supervisor)", marker), Ready())
    await commands.aclose()
    assert processes_with(marker) == []
    assert children_of(os.getpid()) == before


async def test_an_environment_closes_although_its_supervisor_was_killed() -> None:
    before = children_of(os.getpid())
    commands = LocalCommands()
    marker = new_marker()
    await commands.run(Command(["/bin/bash", "-c", f"sleep {marker} &"], "/"), Ready())
    (supervisor,) = set(children_of(os.getpid())) - set(before)
    os.kill(supervisor, signal.SIGKILL)
    await commands.aclose()
    assert processes_with(marker) == []
    assert children_of(os.getpid()) == before


async def test_a_killed_supervisor_is_replaced() -> None:
    before = children_of(os.getpid())
    commands = LocalCommands()
    assert (await commands.run(Command(["/bin/true"], "/"), Ready())).code == 0
    (supervisor,) = set(children_of(os.getpid())) - set(before)
    os.kill(supervisor, signal.SIGKILL)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(commands.run, Command(["/bin/true"], "/"), Ready())
    await commands.aclose()
    assert children_of(os.getpid()) == before
