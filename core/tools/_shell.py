"""What bash and powershell share: one command, from its arguments to its result. Contract section 8.

What differs between the two shells is a ``Shell`` value. The order here is the order in time: check, prepare,
start, take output, tell how it ended.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import anyio
import anyio.abc
from attrs import Factory, evolve, field, frozen

from handrail.core.arguments import parameter
from handrail.core.errors import ToolError, tool_error
from handrail.core.output import OutputAccumulator, SecretMask, Snapshot
from handrail.core.results import TextContent, ToolResult, text_result
from handrail.core.tool import Tool, ToolContext
from handrail.core.tools._capture import Capture
from handrail.core.tools._output_file import OutputFile
from handrail.core.truncation import MAX_BYTES, Truncation, format_size
from handrail.ports.commands import BackgroundProcess, Command, Exit, Inheritance, ResourceLimits
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["Shell", "ShellArguments", "ShellDetails", "ShellOptions", "SpawnRequest", "shell_tool"]

_MAX_TIMEOUT_SECONDS: Final = 2_147_483.647
_UPDATE_SECONDS: Final = 0.1

_ABOUT_OUTPUT: Final = (
    " Long output is cut to its last 2000 lines or 50KB and saved whole in a file that the result names. "
    "No timeout unless one is given."
)


@frozen
class ShellArguments:
    """Arguments of bash and powershell."""

    command: str = parameter("Command to execute")
    timeout: float | None = parameter("Timeout in seconds (optional, no default timeout)", default=None)


@frozen
class ShellDetails:
    """What programs read about a command.

    Attributes:
        truncation: What was cut from the text; absent when nothing was.
        full_output_path: The file with the complete raw output, where the text does not show all of it.
        background: Processes that a command which ended normally left running.
        may_survive: Shapes of process that a timeout, a cancel and the closing of the environment cannot be
            guaranteed to end on this host; absent where there are none.
    """

    truncation: Truncation | None = None
    full_output_path: str | None = None
    background: Sequence[BackgroundProcess] | None = None
    may_survive: Sequence[str] | None = None


@frozen
class SpawnRequest:
    """What is about to be started; a spawn hook may return another one.

    Attributes:
        command: The text for the shell, the command prefix included.
        cwd: The working directory.
        env: Changes to the inherited variables; ``None`` removes one.
    """

    command: str
    cwd: str
    env: Mapping[str, str | None]


@frozen(kw_only=True)
class ShellOptions:
    """What the host decides about commands.

    Attributes:
        command_prefix: Shell text that goes before every command, on lines of its own.
        shell_path: The shell to use instead of the one that is found.
        spawn_hook: Sees each request before it starts and returns the one to start.
        expose_session_environment: Whether commands see the ``PI_…`` variables of the session.
        inherit: Which variables of the host commands inherit.
        secrets: Values by variable name. A command gets those whose name stands in its text as a whole word
            (``$TOKEN``, ``printenv TOKEN``); no other command sees them. Wherever such a value turns up in
            output, ``***`` stands instead, in the saved file too.
        limits: Resource limits of each command and its children.
        max_output_bytes: Most raw output of one command; more ends it. ``None``: no limit.
        keep_output_files: Leave saved output where it is when the environment closes.
        default_timeout: Seconds for a call that names none; ``None``: no limit.
    """

    command_prefix: str | None = None
    shell_path: str | None = None
    spawn_hook: Callable[[SpawnRequest], SpawnRequest] | None = None
    expose_session_environment: bool = True
    inherit: Inheritance = Factory(Inheritance)
    secrets: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    limits: ResourceLimits = Factory(ResourceLimits)
    max_output_bytes: int | None = None
    keep_output_files: bool = False
    default_timeout: float | None = None


@frozen
class Shell:
    """How one shell differs from another.

    Attributes:
        name: The tool's name.
        description: What it does, for the model; what is said of its output is the same for all.
        programs: Where to find it, best first.
        missing: What the model reads when there is none.
        argv: Arguments after the program for a command text.
        source: Shell text that runs the script at a path in the same shell.
        script_suffix: What a script's name ends in.
        script_start: Bytes a script starts with.
        max_inline_bytes: A longer command is run from a script.
        utf16: Whether output may be UTF-16 with a byte order mark.
    """

    name: str
    description: str
    programs: Sequence[str]
    missing: str
    argv: Callable[[str], Sequence[str]]
    source: Callable[[str], str]
    script_suffix: str
    script_start: bytes
    max_inline_bytes: int
    utf16: bool


A = TypeVar("A", bound=ShellArguments)


def shell_tool(shell: Shell, parameters: type[A], options: ShellOptions) -> Tool[A]:
    """Return the tool for a shell.

    Args:
        shell: The shell.
        parameters: The class of its arguments.
        options: What the host decides.
    """

    async def execute(arguments: A, context: ToolContext) -> ToolResult:
        return await _run_shell(shell, arguments, context, options)

    return Tool(
        name=shell.name,
        label=shell.name,
        description=shell.description + _ABOUT_OUTPUT,
        parameters=parameters,
        execute=execute,
        details=ShellDetails,
    )


async def _run_shell(
    shell: Shell, arguments: ShellArguments, context: ToolContext, options: ShellOptions
) -> ToolResult:
    seconds = _checked_timeout(arguments.timeout, options.default_timeout)
    request = _prepare(arguments.command, context.env, options)
    secrets = {name: value for name, value in options.secrets.items() if _asks_for(request.command, name)}
    program = await _find(shell, options.shell_path, context.env)
    run = _ShellRun(shell, context, options, SecretMask(secrets.values()))
    script: str | None = None
    try:
        text = request.command
        if len(text.encode()) > shell.max_inline_bytes:
            script = await _write_script(shell, text, context.env)
            text = shell.source(script)
        command = Command(
            argv=(program, *shell.argv(text)),
            cwd=request.cwd,
            env={**request.env, **dict.fromkeys(options.secrets), **secrets},
            inherit=options.inherit,
            limits=options.limits,
        )
        return await run.run(command, seconds)
    except PortError as error:
        raise _start_error(error, command=request, program=program) from error
    finally:
        if script is not None:
            await _remove(script, context.env)


# ------------------------------------------------------------------ before


def _checked_timeout(asked: float | None, default: float | None) -> float | None:
    timeout = default if asked is None else asked
    if timeout is None or (math.isfinite(timeout) and 0 < timeout <= _MAX_TIMEOUT_SECONDS):
        return timeout
    raise ToolError(
        "invalid_timeout",
        f"Invalid timeout: {timeout!r}. Give seconds, more than 0 and at most {_MAX_TIMEOUT_SECONDS}, or leave it out.",
    )


def _prepare(command: str, env: Environment, options: ShellOptions) -> SpawnRequest:
    if options.command_prefix:
        command = f"{options.command_prefix}\n{command}"
    session = env.session.variables()
    if not options.expose_session_environment:
        session = dict.fromkeys(session)
    request = SpawnRequest(command, env.cwd, dict(session))
    if options.spawn_hook is not None:
        request = options.spawn_hook(request)
    if "\0" in request.command:
        position = request.command.index("\0")
        raise ToolError(
            "nul_in_argument", f"The command has a NUL byte at position {position}; no shell takes it. Remove it."
        )
    return request


def _asks_for(command: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", command) is not None


async def _find(shell: Shell, shell_path: str | None, env: Environment) -> str:
    for candidate in (shell_path,) if shell_path else shell.programs:
        found = await env.commands.find_program(candidate)
        if found is not None:
            return found
    if shell_path:
        raise ToolError("missing_shell", f"Shell not found: {shell_path}. The host's option shell_path names it.")
    raise ToolError("missing_shell", shell.missing)


async def _write_script(shell: Shell, text: str, env: Environment) -> str:
    """Save a command that is longer than an argument may be."""
    path = await env.files.create_temp_file(prefix=f"handrail-{shell.name}-", suffix=shell.script_suffix)
    await env.files.write(path, shell.script_start + text.encode())
    return path


async def _remove(path: str, env: Environment) -> None:
    with anyio.CancelScope(shield=True), suppress(PortError):  # the command removed it itself
        await env.files.remove(path)


def _start_error(error: PortError, *, command: SpawnRequest, program: str) -> ToolError:
    if error.path == command.cwd and error.code in ("not_found", "not_a_directory"):
        what = "does not exist" if error.code == "not_found" else "is not a directory"
        return ToolError(
            "missing_cwd", f"The working directory {command.cwd} {what}. Create it, or work in another one."
        )
    if error.path == program and error.code in ("program_not_found", "permission_denied"):
        return ToolError(
            "missing_shell",
            f"The shell {program} cannot be executed. Repair it, or let the host name another one (shell_path).",
        )
    if error.code == "not_supported":
        return ToolError(
            "spawn_failed",
            "The command was not started: the host set resource limits for commands (option limits), and this "
            f"environment has none: {error.detail}. No command will run until the host takes them out.",
        )
    return tool_error(error)


# ------------------------------------------------------------------ while it runs


class _OutputLimitReached(Exception):
    """A command printed more than the host allows."""


class _ShellRun:
    """One command while it runs, and what is said about it."""

    def __init__(self, shell: Shell, context: ToolContext, options: ShellOptions, mask: SecretMask) -> None:
        env = context.env
        self._context = context
        self._options = options
        self._mask = mask
        self._file = OutputFile(env, context, shell.name, keep=options.keep_output_files)
        self._capture = Capture(env, OutputAccumulator(utf16=shell.utf16), self._file, mask)
        self._exit: Exit | None = None
        self._started = self._updated = env.clock.monotonic()
        self._changed = anyio.Event()
        self._watched = False

    async def run(self, command: Command, seconds: float | None) -> ToolResult:
        """Run the command to whatever end, and tell it.

        Raises:
            PortError: The command could not be started.
        """
        self._context.update(text_result(""))
        result: ToolResult | PortError = ToolResult(())
        try:
            async with anyio.create_task_group() as group:
                result = await self._run(command, seconds, group)
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                self._context.aborted_result = await self._end(["Operation aborted"], "aborted")
            raise
        if isinstance(result, PortError):
            raise result
        return result

    async def _run(self, command: Command, seconds: float | None, group: anyio.abc.TaskGroup) -> ToolResult | PortError:
        env = self._context.env

        async def take(data: bytes) -> None:
            if not self._watched:
                self._watched = True
                group.start_soon(self._show_updates)
            await self._take(data, group)

        try:
            with env.clock.move_on_after(seconds) as deadline:
                self._exit = await env.commands.run(command, take, self._note_exit)
        except PortError as error:
            if error.code != "closed":
                return error
            text = "The environment was closed: the command was killed, or not started if it had not begun."
            return await self._end([text], "closed")
        except _OutputLimitReached:
            return await self._end([self._limit_text()], "output_limit")
        if deadline.expired:
            return await self._end(self._timeout_texts(seconds or 0.0), "timeout")
        return await self._end_normally()

    def _note_exit(self, ended: Exit) -> None:
        self._exit = ended

    async def _take(self, data: bytes, group: anyio.abc.TaskGroup) -> None:
        """Take the next output; the port reads on when this returns."""
        most = self._options.max_output_bytes
        if most is not None and self._capture.taken_bytes + len(data) > most:
            await self._capture.take(data[: most - self._capture.taken_bytes], group)
            raise _OutputLimitReached
        await self._capture.take(data, group)
        self._changed.set()

    async def _show_updates(self) -> None:
        """Show what is new, at most every 100 ms."""
        clock = self._context.env.clock
        while True:
            await clock.sleep(self._updated + _UPDATE_SECONDS - clock.monotonic())
            await self._changed.wait()
            self._changed = anyio.Event()
            self._update(await self._capture.snapshot())

    def _update(self, snapshot: Snapshot) -> None:
        self._updated = self._context.env.clock.monotonic()
        text, details = self._shown(snapshot)
        self._context.update(text_result(text, details=details))

    # -------------------------------------------------------------- what is said

    async def _end_normally(self) -> ToolResult:
        exit_code = self._exit_code()
        if exit_code == 0:
            return await self._end([], None)
        if exit_code is None:
            return await self._end(["Command terminated without an exit code"], "exit_code")
        status = f"Command exited with code {exit_code}"
        result = await self._end([status], "exit_code")
        limit = _limit_met(self._options.limits, exit_code, result.text)
        return result if limit is None else await self._end([status, limit], "resource_limit")

    def _exit_code(self) -> int | None:
        if self._exit is None:
            return None
        return self._exit.code if self._exit.signal is None else 128 + self._exit.signal

    def _timeout_texts(self, seconds: float) -> list[str]:
        texts = [f"Command timed out after {seconds:.15g} seconds"]
        exit_code = self._exit_code()
        if exit_code is not None:
            texts.append(
                f"The shell itself had already exited with code {exit_code}; background processes that still "
                "held its output were killed. Redirect their output to a file to let them go on."
            )
        return texts

    def _limit_text(self) -> str:
        size = format_size(self._options.max_output_bytes or 0)
        return f"Command stopped: it printed more than {size}. Redirect the output to a file, or print less."

    async def _end(self, status: Sequence[str], error_code: str | None) -> ToolResult:
        """Complete the output and return the result."""
        snapshot = await self._capture.finish()
        if self._changed.is_set():
            self._changed = anyio.Event()
            self._update(snapshot)
        text, details = self._shown(snapshot)
        if not text and error_code in (None, "exit_code", "resource_limit"):
            text = "(no output)"
        output, truncated = self._capture.text()
        return ToolResult(
            content=(TextContent("\n\n".join([text, *status] if text else status)),),
            details=details,
            structured_content={
                "output": output,
                "truncated": truncated,
                **({"full_output_path": self._file.path} if truncated else {}),
                "exit_code": self._exit_code(),
                "wall_time_seconds": round(self._context.env.clock.monotonic() - self._started, 3),
            },
            is_error=error_code is not None,
            error_code=error_code,
        )

    def _shown(self, snapshot: Snapshot) -> tuple[str, ShellDetails | None]:
        """The output as the model sees it, and the details."""
        cut = snapshot.truncation
        left = self._exit.background if self._exit is not None else ()
        details = ShellDetails(
            truncation=cut if cut.truncated else None,
            full_output_path=self._file.path,
            background=[evolve(each, command_line=self._mask.text(each.command_line)) for each in left] or None,
            may_survive=list(self._context.env.commands.may_survive) or None,
        )
        notice = _notice(snapshot, self._file)
        text = f"{cut.content}\n\n{notice}" if notice else cut.content
        return text, details if details != ShellDetails() else None


def _notice(snapshot: Snapshot, file: OutputFile) -> str | None:
    """Say what the text does not show and where it is."""
    cut = snapshot.truncation
    if file.problem:
        where = f" Full output could not be saved: {file.problem}"
    else:
        where = f" Full output: {file.path}" if file.path else ""
    if not cut.truncated:
        return f"[Progress lines are shown in their last state.{where}]" if snapshot.folded else None
    if cut.last_line_partial:
        shown, size = format_size(cut.output_bytes), format_size(snapshot.last_line_bytes)
        return f"[Showing last {shown} of line {cut.total_lines} (line is {size}).{where}]"
    first = cut.total_lines - cut.output_lines + 1
    limit = f" ({format_size(MAX_BYTES)} limit)" if cut.truncated_by == "bytes" else ""
    return f"[Showing lines {first}-{cut.total_lines} of {cut.total_lines}{limit}.{where}]"


# ------------------------------------------------------------------ resource limits


@frozen
class _LimitSign:
    """How a program that met a limit gives itself away."""

    limit: str
    text: str
    signal: int | None
    words: Sequence[str] = ()


_LIMIT_SIGNS: Final = (
    _LimitSign("cpu_seconds", "{} s of CPU time", 24),  # SIGXCPU
    _LimitSign("file_size_bytes", "{} bytes of file size", 25, ("File too large", "File size limit exceeded")),
    _LimitSign("open_files", "{} open files", None, ("Too many open files",)),
    _LimitSign("processes", "{} processes", None, ("Resource temporarily unavailable", "Cannot fork", "can't fork")),
    _LimitSign(
        "address_space_bytes",
        "{} bytes of address space",
        None,
        ("Cannot allocate memory", "MemoryError", "out of memory", "memory exhausted", "bad_alloc"),
    ),
)


def _limit_met(limits: ResourceLimits, exit_code: int, text: str) -> str | None:
    """Say which limit a failed command met, where that can be told."""
    for sign in _LIMIT_SIGNS:
        value = getattr(limits, sign.limit)
        by_signal = sign.signal is not None and exit_code == 128 + sign.signal
        if value is not None and (by_signal or any(word in text for word in sign.words)):
            return f"The limit of {sign.text.format(value)} was met. Do less at once, or ask the host for more."
    return None
