"""ls: the entries of one directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from handrail.core.arguments import parameter
from handrail.core.errors import ToolError, tool_error
from handrail.core.locating import listing_error
from handrail.core.notices import bounded, whole_limit
from handrail.core.paths import join, resolve, show_name
from handrail.core.results import ToolResult, text_result
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.truncation import Truncation
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from handrail.ports.files import DirListing, FileContent, FileKind

__all__ = ["LsArguments", "LsDetails", "LsOptions", "ls_tool"]

_DEFAULT_LIMIT = 500


@frozen
class LsArguments:
    """What ``ls`` takes."""

    path: str | None = parameter("Directory to list (default: the working directory)", default=None)
    limit: float | None = parameter(f"Most entries to return (default: {_DEFAULT_LIMIT})", default=None, minimum=1)


@frozen
class LsDetails:
    """What is missing from a listing."""

    entry_limit_reached: int | None = None
    truncation: Truncation | None = None


@frozen
class LsOptions:
    """What a host decides about ``ls``."""

    default_limit: int = _DEFAULT_LIMIT


def ls_tool(options: LsOptions = LsOptions()) -> Tool[LsArguments]:
    """Return the ``ls`` tool."""

    @define_tool(
        "ls",
        label="List directory",
        parameters=LsArguments,
        details=LsDetails,
        description=(
            "List a directory, sorted by name regardless of case, hidden entries included; directories end in /. "
            f"Returns at most {options.default_limit} entries or 50KB, whichever comes first."
        ),
    )
    async def ls(arguments: LsArguments, context: ToolContext) -> ToolResult:
        env = context.env
        path = await resolve(arguments.path or ".", env)
        listing = await _listing(env, path, arguments.path or ".")
        limit = whole_limit(arguments.limit, options.default_limit)
        kinds: dict[str, FileKind] = {entry.name: entry.kind for entry in listing.others}
        names = sorted(sorted([*listing.files, *kinds]), key=str.casefold)
        cut = len(names) > limit
        lines = await _lines(env, path, names[:limit], kinds)
        notices = [f"{limit} entries limit reached. Use limit={limit * 2} for more"] if cut else []
        text, truncation = bounded(lines or ["(empty directory)"], notices)
        details = LsDetails(limit if cut else None, truncation) if cut or truncation else None
        return text_result(text, details=details)

    return ls


async def _listing(env: Environment, path: str, raw: str) -> DirListing:
    try:
        (listing,) = await env.files.list_dirs([path])
        if listing.error is not None:
            raise listing.error
        return listing
    except PortError as error:
        if error.code == "not_a_directory" and await _exists(env, path):
            raise ToolError("not_a_directory", f"Not a directory: {raw}. Use read for a file.") from error
        raise listing_error(error, raw) from error


async def _exists(env: Environment, path: str) -> bool:
    try:
        await env.files.stat(path)
    except PortError as error:
        if error.code in ("not_found", "not_a_directory"):
            return False
        raise tool_error(error, path) from error
    return True


async def _lines(env: Environment, path: str, names: Sequence[str], kinds: Mapping[str, FileKind]) -> list[str]:
    """The names to show, with a mark after each that is no regular file; the kinds are those of all but these."""
    links = [name for name in names if kinds.get(name) == "symlink"]
    marks = {name: "/" for name, kind in kinds.items() if kind == "directory"}
    marks |= zip(links, await _link_marks(env, [join(path, name) for name in links]), strict=True)
    return [show_name(name) + marks.get(name, "") for name in names]


async def _link_marks(env: Environment, links: Sequence[str]) -> list[str]:
    """What stands after each link: a slash for a directory, a note where nothing is behind it.

    Reading no bytes tells what a link leads to, for all of them in one step.
    """
    if not links:
        return []
    targets = await env.files.read_many(links, max_bytes=0)
    return ["" if isinstance(target, FileContent) else _mark(target) for target in targets]


def _mark(error: PortError) -> str:
    if error.code == "is_a_directory":
        return "/"
    return " (broken link)" if error.code in ("not_found", "not_a_directory", "symlink_loop") else ""
