"""The write tool: whole files, atomic, parents created. Contract section 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anyio import CancelScope
from attrs import evolve, frozen

from handrail.core import diffs
from handrail.core.arguments import parameter
from handrail.core.errors import ToolError, tool_error
from handrail.core.freshness import Freshness
from handrail.core.paths import parent, relative_to, resolve
from handrail.core.results import TextContent, ToolResult, text_result
from handrail.core.text import TextDocument, decode, visible
from handrail.core.tool import Tool, ToolContext
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from handrail.ports.files import ABSENT, Version, WriteReceipt

__all__ = ["WriteArguments", "WriteDetails", "WriteOptions", "write_tool"]

_DIFFED_BYTES: Final = 1024 * 1024
_DIFFED_AT_ONCE: Final = 32 * 1024


@frozen
class WriteArguments:
    """Parameters of write."""

    path: str = parameter("File to write, relative to the working directory or absolute.")
    content: str = parameter("The whole new content of the file.")


@frozen
class WriteDetails:
    """What a write did."""

    created: bool
    bytes: int
    patch: str | None = None
    """Unified diff for an overwritten text file, bounded."""


@frozen
class WriteOptions:
    """What the host decides about write.

    Attributes:
        require_fresh: Refuse to overwrite a file that the session has not read or that changed since (``stale``).
    """

    require_fresh: bool = False


def write_tool(options: WriteOptions = WriteOptions()) -> Tool[WriteArguments]:
    """Return the write tool."""

    async def write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
        env = context.env
        target = await resolve(arguments.path, env)
        data = arguments.content.encode("utf-8")
        try:
            async with context.file_queue.turn(target) as canonical:
                expect = (
                    await _known_version(context, target, canonical, arguments.path) if options.require_fresh else None
                )
                receipt = await _write(env, target, data, expect, arguments.path)
                details = WriteDetails(receipt.created, len(data))
                context.aborted_result = _aborted(arguments.path, details)
                details = evolve(details, patch=await _patch(env, arguments, data, receipt))
                if options.require_fresh:
                    context.shared(Freshness).note(canonical, data)
        except PortError as error:
            raise tool_error(error, arguments.path) from error
        shown = arguments.path if relative_to(target, env.cwd) == arguments.path else target
        made = f"Created {shown} ({len(data)} bytes)." if receipt.created else f"Wrote {len(data)} bytes to {shown}."
        return text_result(made, details=details)

    return Tool(
        name="write",
        label="Write file",
        description=(
            "Create a file or replace its whole content. Missing parent directories are created. "
            "To change parts of a file, use edit."
        ),
        parameters=WriteArguments,
        execute=write,
        details=WriteDetails,
    )


async def _known_version(context: ToolContext, target: str, canonical: str, path: str) -> Version:
    """The version of an existing file that the session knows; refuses one that it does not know."""
    try:
        content = await context.env.files.read(target)
    except PortError as error:
        if error.code == "not_found":
            return ABSENT
        raise
    context.shared(Freshness).check(canonical, content.data, path)
    return content.stat.version


async def _write(env: Environment, target: str, data: bytes, expect: Version | None, path: str) -> WriteReceipt:
    """Write, creating parents only when they are missing, and removing them again if the write then fails."""
    try:
        return await env.files.write(target, data, expect=expect, previous_limit=_DIFFED_BYTES)
    except PortError as error:
        if error.code not in ("not_found", "not_a_directory"):
            raise
    created = await _make_dirs(env, parent(target), path)
    try:
        return await env.files.write(target, data, expect=expect, previous_limit=_DIFFED_BYTES)
    except BaseException:
        with CancelScope(shield=True):
            await _remove_dirs(env, created)
        raise


async def _make_dirs(env: Environment, directory: str, path: str) -> Sequence[str]:
    try:
        return await env.files.make_dirs(directory)
    except PortError as error:
        if error.code != "already_exists":
            raise
        text = f"{directory} is a file, so {path} cannot be written below it. Choose another path or move the file."
        raise ToolError("exists", text) from error


async def _remove_dirs(env: Environment, created: Sequence[str]) -> None:
    for directory in reversed(created):
        try:
            await env.files.remove(directory)
        except PortError:
            return  # somebody uses it by now


async def _patch(env: Environment, arguments: WriteArguments, data: bytes, receipt: WriteReceipt) -> str | None:
    previous = receipt.previous
    if previous is None or not previous.complete or len(data) > _DIFFED_BYTES:
        return None
    before = previous.data

    def patch() -> str | None:
        return _patch_between(arguments, before)

    return await env.offload(patch) if len(data) + len(before) > _DIFFED_AT_ONCE else patch()


def _patch_between(arguments: WriteArguments, before: bytes) -> str | None:
    document = decode(before)
    if not isinstance(document, TextDocument):
        return None
    # The mark is a character of the first line for programs that read patches.
    old, new = ("\ufeff" if document.bom else "") + document.text, arguments.content
    regions = diffs.hunks(old, diffs.changes_between(old, new))
    return diffs.bounded(visible(diffs.unified_diff(arguments.path, regions)))


def _aborted(path: str, details: WriteDetails) -> ToolResult:
    text = f"Operation aborted, but {path} was written before the cancel."
    return ToolResult((TextContent(text),), details, is_error=True, error_code="aborted")
