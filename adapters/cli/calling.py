"""``handrail call``: one tool, from the words of the command line to what is printed."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
from attrs import define, frozen

from handrail.adapters.cli import terminal
from handrail.adapters.cli.assignments import parse_assignments, parse_object
from handrail.adapters.cli.composition import local_toolbox, working_directory
from handrail.adapters.cli.errors import UsageError
from handrail.adapters.cli.rendering import duration, live_lines
from handrail.adapters.cli.signals import on_interruption
from handrail.core.results import ImageContent, ToolResult
from handrail.core.toolbox import UpdateListener

__all__ = ["call_tool", "read_arguments"]

_CALL_ID: Final = "call"
_REPAINT_SECONDS: Final = 0.25
_MAX_LIVE_ROWS: Final = 12

_WITH_OUTPUT: Final = frozenset({"exit_code", "timeout", "aborted", "output_limit", "resource_limit"})
"""Failures whose text is first of all what a command printed."""


def read_arguments(assignments: Sequence[str], text: str | None) -> Any:
    """Return the raw arguments of a call, from ``key=value`` words or from one JSON text (``-``: on stdin).

    Raises:
        UsageError: They cannot be understood, or both forms were used.
    """
    if text is None:
        return parse_assignments(assignments)
    if assignments:
        raise UsageError("Give either key=value words or --args, not both.")
    return parse_object(_standard_input() if text == "-" else text)


def _standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("--args - reads standard input, which is closed.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--args -: standard input is not UTF-8 at byte {error.start}.") from None


def call_tool(
    name: str,
    arguments: Any,
    *,
    cwd: str | None,
    as_json: bool,
    record: str | None = None,
    roots: Sequence[str] = (),
) -> int:
    """Call a tool, print its result and return the exit status.

    Raises:
        UsageError: ``cwd`` is no directory, or there cannot be a log at ``record``.
    """
    outcome = anyio.run(partial(_call, name, arguments, working_directory(cwd), record, roots))
    if as_json:
        terminal.say(json.dumps(outcome.result.to_dict(), indent=2))
    else:
        _print(outcome.result)
    return outcome.exit_status


@frozen
class _Outcome:
    result: ToolResult
    exit_status: int


async def _call(name: str, arguments: Any, cwd: str, record: str | None, roots: Sequence[str]) -> _Outcome:
    # The notice of a cut output names a file; the reader must find it after this program has ended.
    async with local_toolbox(cwd, keep_output_files=True, record=record, roots=roots) as toolbox:
        # A cancelled call still has a result: what a command printed so far.
        with on_interruption(lambda: toolbox.cancel(_CALL_ID)) as interruption:
            async with _live_display() as show:
                result = await toolbox.call(name, arguments, call_id=_CALL_ID, on_update=show)
    return _Outcome(result, interruption.exit_status(1 if result.is_error else 0))


# ------------------------------------------------------------------ while it runs


@asynccontextmanager
async def _live_display() -> AsyncGenerator[UpdateListener, None]:
    """Show updates and the elapsed time where standard error is a terminal; leave nothing of it behind."""
    if not terminal.is_live(sys.stderr):
        yield lambda result: None
        return
    display = _LiveDisplay(terminal.LiveRegion(sys.stderr))
    async with anyio.create_task_group() as group:
        group.start_soon(display.repaint)
        try:
            yield display.update
        finally:
            group.cancel_scope.cancel()
            display.region.clear()


@define
class _LiveDisplay:
    """The newest output of a call, repainted a few times a second; a quick call is never painted."""

    region: terminal.LiveRegion
    _text: str = ""

    def update(self, result: ToolResult) -> None:
        self._text = result.text

    async def repaint(self) -> None:
        started = anyio.current_time()
        while True:
            await anyio.sleep(_REPAINT_SECONDS)
            status = f"[running for {duration(anyio.current_time() - started)}; Ctrl-C stops it]"
            rows = min(self.region.rows, _MAX_LIVE_ROWS)
            self.region.paint(live_lines(self._text, status, columns=self.region.columns, rows=rows))


# ------------------------------------------------------------------ afterwards


def _print(result: ToolResult) -> None:
    error = result.is_error and result.error_code not in _WITH_OUTPUT
    for block in result.content:
        if isinstance(block, ImageContent):
            terminal.say(f"[{block.mime_type} saved to {_save_image(block)}]")
        else:
            terminal.show(block.text, error=error)


def _save_image(image: ImageContent) -> str:
    suffix = "." + image.mime_type.rpartition("/")[2]
    descriptor, path = tempfile.mkstemp(prefix="handrail-", suffix=suffix)
    with os.fdopen(descriptor, "wb") as file:
        file.write(base64.b64decode(image.data))
    return path
