"""grep: lines that match a pattern, in files below a directory or in one file."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import frozen

from handrail.core.arguments import parameter
from handrail.core.errors import ToolError, tool_error
from handrail.core.globs import Glob, GlobError, parse_glob
from handrail.core.grepping import Engine, FileHits, FindRipgrep, Grep
from handrail.core.locating import locate
from handrail.core.notices import bounded, plural, whole_limit
from handrail.core.paths import parent, relative_to, show_name, unescape_name
from handrail.core.regexes import Node, RegexError, parse_literal, parse_regex
from handrail.core.results import ToolResult, text_result
from handrail.core.ripgrep import RipgrepProgram
from handrail.core.tool import Tool, ToolContext, define_tool
from handrail.core.truncation import MAX_LINE_CHARACTERS, Truncation
from handrail.core.walking import TreeWalk
from handrail.ports.errors import PortError

__all__ = ["GrepArguments", "GrepDetails", "GrepOptions", "grep_tool"]

_DEFAULT_LIMIT = 100
_NOTHING_FOUND = "No matches found"


@frozen
class GrepArguments:
    """What ``grep`` takes."""

    pattern: str = parameter("Regular expression to search for, or text with literal")
    path: str | None = parameter("Directory or file to search (default: the working directory)", default=None)
    glob: str | None = parameter(
        "Search only files that match, e.g. '*.ts' or 'src/**/*.py'; '!' in front leaves them out", default=None
    )
    ignore_case: bool = parameter("Ignore case (default: false)", default=False)
    literal: bool = parameter("Take the pattern as plain text (default: false)", default=False)
    context: float | None = parameter("Lines to show before and after each match (default: 0)", default=None, minimum=0)
    limit: float | None = parameter(f"Most matches to return (default: {_DEFAULT_LIMIT})", default=None, minimum=1)


@frozen
class GrepDetails:
    """What is missing from a result."""

    match_limit_reached: int | None = None
    lines_truncated: bool | None = None
    truncation: Truncation | None = None
    unreadable: int | None = None
    """Files and directories that could not be read."""
    ignored: int | None = None
    """Files and directories left out by ignore rules; told when nothing was found."""
    time_limit_reached: float | None = None
    """Seconds after which the search was cut."""


@frozen
class GrepOptions:
    """What a host decides about ``grep``.

    Attributes:
        engine: ``scan`` reads files through the FilePort, ``ripgrep`` asks ripgrep first which to read, ``auto`` does
            the one for small trees and the other for large ones. The answers are the same.
    """

    default_limit: int = _DEFAULT_LIMIT
    time_budget_seconds: float | None = 30.0
    engine: Engine = "auto"
    use_re2: bool = True
    """False does without RE2 also where it is installed."""


def grep_tool(options: GrepOptions = GrepOptions()) -> Tool[GrepArguments]:
    """Return the ``grep`` tool."""

    @define_tool(
        "grep",
        label="Search file contents",
        parameters=GrepArguments,
        details=GrepDetails,
        description=(
            "Search file contents, line by line, for a regular expression (no look-around, no back-references) or a "
            "literal text. Returns matching lines with line numbers and paths relative to the searched directory, "
            "sorted. Hidden files are included, ignored ones (.gitignore) are not. "
            f"Returns at most {options.default_limit} matches or 50KB, whichever comes first; lines over "
            f"{MAX_LINE_CHARACTERS} characters are cut."
        ),
    )
    async def grep(arguments: GrepArguments, context: ToolContext) -> ToolResult:
        env = context.env
        node = _pattern(arguments)
        glob = _glob(arguments.glob)
        place = await locate(arguments.path, env)
        limit = whole_limit(arguments.limit, options.default_limit)
        search = Grep(env, node, limit, max(0, math.floor(arguments.context or 0)), options.use_re2)
        is_tree = place.kind == "directory"
        walk = TreeWalk(env.files, place.path, glob=glob, files_only=True)
        with env.clock.move_on_after(options.time_budget_seconds) as deadline:
            try:
                if is_tree:
                    await search.tree(walk, _ripgrep(options, context), scan_first=options.engine != "ripgrep")
                else:
                    await search.files([place.path])
            except PortError as error:
                raise tool_error(error, arguments.path) from error
        if not is_tree and search.unreadable:
            raise tool_error(search.unreadable[0][1], arguments.path)
        base = place.path if is_tree else parent(place.path)
        return _result(search, walk, base, options.time_budget_seconds if deadline.expired else None)

    return grep


def _pattern(arguments: GrepArguments) -> Node:
    parse = parse_literal if arguments.literal else parse_regex
    try:
        return parse(arguments.pattern, ignore_case=arguments.ignore_case)
    except RegexError as error:
        raise ToolError("bad_regex", f"Not a valid regular expression: {error}.") from error


def _glob(text: str | None) -> Glob | None:
    if text is None or not text.strip():
        return None
    try:
        return parse_glob(unescape_name(text), negatable=True)
    except GlobError as error:
        raise ToolError("bad_glob", f"Not a valid glob: {text}\nAt position {error.position + 1}: {error}.") from error


def _ripgrep(options: GrepOptions, context: ToolContext) -> FindRipgrep:
    """What looks for ripgrep, as the options have it."""

    async def find() -> str | None:
        if options.engine == "scan":
            return None
        path = await context.shared(RipgrepProgram).path(context.env)
        if path is None and options.engine == "ripgrep":
            raise ToolError(
                "spawn_failed",
                "ripgrep (rg), version 13 or later, was not found. Install it, or search with the engine scan.",
            )
        return path

    return find


def _result(search: Grep, walk: TreeWalk, base: str, cut_after: float | None) -> ToolResult:
    lines = [line for hits in search.hits for line in _lines(hits, base)]
    cut = any(line.was_cut for hits in search.hits for line in hits.lines)
    more = search.matches > search.limit
    unreadable = len(search.unreadable) + len(walk.unreadable)
    ignored = 0 if lines else walk.ignored_files + walk.ignored_directories
    notices: list[str] = []
    if more:
        notices.append(
            f"{search.limit} matches limit reached. Use limit={search.limit * 2} for more, or refine pattern"
        )
    if ignored:
        notices.append(_ignored_notice(walk))
    if unreadable:
        notices.append(f"{plural(unreadable, 'path')} could not be read")
    if cut_after is not None:
        notices.append(f"Search cut after {cut_after:g} seconds; give a narrower `path` or `glob`")
    after = [f"Some lines truncated to {MAX_LINE_CHARACTERS} chars. Use read tool to see full lines"] if cut else []
    text, truncation = bounded(lines or [_NOTHING_FOUND], notices, after)
    details = GrepDetails(
        match_limit_reached=search.limit if more else None,
        lines_truncated=cut or None,
        truncation=truncation,
        unreadable=unreadable or None,
        ignored=ignored or None,
        time_limit_reached=cut_after,
    )
    return text_result(text, details=details if details != GrepDetails() else None)


def _lines(hits: FileHits, base: str) -> Iterator[str]:
    name = show_name(relative_to(hits.path, base))
    if hits.is_binary:
        yield f"Binary file {name} matches"
    for line in hits.lines:
        yield f"{name}:{line.number}: {line.text}" if line.is_match else f"{name}-{line.number}- {line.text}"


def _ignored_notice(walk: TreeWalk) -> str:
    counts = [plural(walk.ignored_files, "file")] if walk.ignored_files else []
    counts += [plural(walk.ignored_directories, "directory", "directories")] if walk.ignored_directories else []
    return f"{' and '.join(counts)} left out by ignore rules (.gitignore). Give an ignored path as `path` to search it"
