"""find: paths that match a glob pattern."""

from __future__ import annotations

from contextlib import aclosing

from attrs import frozen

from handrail.core.arguments import parameter
from handrail.core.errors import ToolError, tool_error
from handrail.core.globs import Glob, GlobError, parse_glob
from handrail.core.locating import locate
from handrail.core.notices import bounded, plural, whole_limit
from handrail.core.paths import relative_to, show_names, unescape_name
from handrail.core.results import ToolResult, text_result
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.truncation import Truncation
from handrail.core.walking import TreeWalk
from handrail.ports.errors import PortError

__all__ = ["FindArguments", "FindDetails", "FindOptions", "find_tool"]

_DEFAULT_LIMIT = 1000
_NOTHING_FOUND = "No files found matching pattern"


@frozen
class FindArguments:
    """What ``find`` takes."""

    pattern: str = parameter("Glob pattern, e.g. '*.ts', '**/*.json', or 'src/**/*.spec.ts'")
    path: str | None = parameter("Directory to search in (default: the working directory)", default=None)
    limit: float | None = parameter(f"Most results to return (default: {_DEFAULT_LIMIT})", default=None, minimum=1)


@frozen
class FindDetails:
    """What is missing from a result."""

    result_limit_reached: int | None = None
    truncation: Truncation | None = None
    unreadable: int | None = None
    """Directories that could not be listed."""
    ignored: int | None = None
    """Matches left out by ignore rules; told when nothing was found."""
    time_limit_reached: float | None = None
    """Seconds after which the search was cut."""


@frozen
class FindOptions:
    """What a host decides about ``find``."""

    default_limit: int = _DEFAULT_LIMIT
    time_budget_seconds: float | None = 30.0


def find_tool(options: FindOptions = FindOptions()) -> Tool[FindArguments]:
    """Return the ``find`` tool."""

    @define_tool(
        "find",
        label="Find files",
        parameters=FindArguments,
        details=FindDetails,
        description=(
            "Find files and directories by glob pattern; returns paths relative to the searched directory, sorted. "
            "A pattern without / matches names at any depth; an all-lower-case pattern ignores case. Hidden files "
            f"are included, ignored ones (.gitignore) are not. Returns at most {options.default_limit} results or "
            "50KB, whichever comes first."
        ),
    )
    async def find(arguments: FindArguments, context: ToolContext) -> ToolResult:
        env = context.env
        place = await locate(arguments.path, env)
        if place.kind != "directory":
            raise ToolError(
                "not_a_directory", f"Not a directory: {arguments.path}. Give the directory that holds it as `path`."
            )
        limit = whole_limit(arguments.limit, options.default_limit)
        walk = TreeWalk(env.files, place.path, glob=_glob(arguments.pattern, place.path))
        found: list[str] = []
        with env.clock.move_on_after(options.time_budget_seconds) as deadline:
            try:
                await _collect(walk, found, limit)
            except PortError as error:
                raise tool_error(error, arguments.path) from error
        return _result(found, walk, limit, options.time_budget_seconds if deadline.expired else None)

    return find


def _glob(pattern: str, root: str) -> Glob:
    """The compiled pattern; one that begins with the searched directory's own path is taken relative to it."""
    text = unescape_name(pattern)
    if text.startswith("/"):
        text = relative_to(text, root)
        if text.startswith("/"):
            return parse_glob("")  # a place outside of what is searched
    try:
        return parse_glob(text, ignore_case=text == text.lower())
    except GlobError as error:
        raise ToolError(
            "bad_glob", f"Not a valid glob pattern: {pattern}\nAt position {error.position + 1}: {error}."
        ) from error


async def _collect(walk: TreeWalk, found: list[str], limit: int) -> None:
    """Add paths up to one more than the limit."""
    async with aclosing(walk.rounds()) as rounds:
        async for step in rounds:
            found += show_names(walk.relative(step.paths[: limit + 1 - len(found)]))
            if len(found) > limit:
                return


def _result(found: list[str], walk: TreeWalk, limit: int, cut_after: float | None) -> ToolResult:
    more = len(found) > limit
    notices: list[str] = []
    if more:
        notices.append(f"{limit} results limit reached. Use limit={limit * 2} for more, or refine pattern")
    ignored = 0 if found else walk.ignored_files + walk.ignored_directories
    if ignored:
        notices.append(
            f"{plural(ignored, 'match', 'matches')} left out by ignore rules (.gitignore). "
            "Give an ignored directory as `path` to search it"
        )
    if walk.unreadable:
        notices.append(f"{plural(len(walk.unreadable), 'directory', 'directories')} could not be read")
    if cut_after is not None:
        notices.append(f"Search cut after {cut_after:g} seconds; give a narrower `path`")
    text, truncation = bounded(found[:limit] or [_NOTHING_FOUND], notices)
    details = FindDetails(
        result_limit_reached=limit if more else None,
        truncation=truncation,
        unreadable=len(walk.unreadable) or None,
        ignored=ignored or None,
        time_limit_reached=cut_after,
    )
    return text_result(text, details=details if details != FindDetails() else None)
