"""The place a search starts from: told apart are a missing path, a file, and a directory."""

from __future__ import annotations

from attrs import frozen

from handrail.core.errors import ToolError, tool_error
from handrail.core.paths import resolve
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from handrail.ports.files import FileKind

__all__ = ["Place", "listing_error", "locate"]


@frozen
class Place:
    """An existing path and what it is, symbolic links followed."""

    path: str
    kind: FileKind


async def locate(raw: str | None, env: Environment) -> Place:
    """Return the place that a ``path`` argument names; the working directory for none.

    Raises:
        ToolError: ``missing_file`` (``Path not found: …``), and what else the port says.
    """
    path = await resolve(raw or ".", env)
    try:
        return Place(path, (await env.files.stat(path)).kind)
    except PortError as error:
        raise listing_error(error, raw or ".") from error


def listing_error(error: PortError, raw: str) -> ToolError:
    """The ToolError for a path that cannot be searched or listed."""
    if error.code in ("not_found", "not_a_directory"):
        return ToolError("missing_file", f"Path not found: {raw}")
    return tool_error(error, raw)
