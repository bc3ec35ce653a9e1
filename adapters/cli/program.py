"""The commands of ``handrail``: which words they take, and what their exit status is.

0: it worked. 1: a tool reported an error, or a check failed. 2: the words make no request. 128 + n: signal n
ended it (130 after Ctrl-C; 141 when the reader of standard output went away).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from handrail.adapters.cli import terminal
from handrail.adapters.cli.errors import UsageError
from handrail.adapters.cli.rendering import printable

__all__ = ["run"]

_BROKEN_PIPE: Final = 141


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    terminal.prepare()
    try:
        return _dispatch(arguments)
    except UsageError as error:
        terminal.say(f"handrail: {error}", error=True)
        return 2
    except BrokenPipeError:
        terminal.discard_output()
        return _BROKEN_PIPE
    except OSError as error:
        # Only writing can fail here: what tools meet comes back as a result.
        terminal.discard_output()
        terminal.say(f"handrail: cannot write the output: {error.strerror or error}", error=True)
        return 1


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints cannot drive the terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def _dispatch(arguments: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail",
        usage="handrail [--version] COMMAND …",
        description="The hands of a coding agent: eight tools with bounded output, exact edits and real cancellation.",
        epilog="commands:\n"
        + "\n".join(f"  {name:<8}{summary}" for name, (_, summary) in _COMMANDS.items())
        + "\n\n'handrail COMMAND --help' explains one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    parser.add_argument("command", nargs="?", choices=_COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.version:
        return _version()
    if parsed.command is None:
        parser.print_help(sys.stderr)
        return 2
    command, _ = _COMMANDS[parsed.command]
    return command(parsed.words)


def _version() -> int:
    from importlib.metadata import version

    terminal.say(f"handrail {version('handrail')}")
    return 0


def _tools(words: Sequence[str]) -> int:
    parser = _Parser(prog="handrail tools", description="List the tools: names, labels, parameters, results.")
    parser.add_argument("--json", action="store_true", help="as JSON, with the whole schemas")
    parser.add_argument(
        "--format",
        choices=("anthropic", "openai", "mcp", "jsonschema"),
        help="as JSON, in the form that a model provider or protocol wants",
    )
    parsed = parser.parse_args(words)
    from handrail.adapters.cli.listing import list_tools

    return list_tools(as_json=parsed.json, wire_format=parsed.format)


def _call(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail call",
        usage="handrail call TOOL [key=text | key:=json]… [--args JSON] [--cwd DIR] [--json] [--record LOG]",
        description="Call one tool and print what it answers. A failure goes to standard error, except what a "
        "command printed before it failed.",
        epilog="exit status: 0 ok, 1 the tool reported an error, 2 wrong usage, 130 after Ctrl-C",
    )
    parser.add_argument("tool", metavar="TOOL", help="a name that 'handrail tools' lists")
    parser.add_argument("assignments", metavar="key=text", nargs="*", help="an argument; key:=json gives a JSON value")
    parser.add_argument(
        "--args", metavar="JSON", help="all arguments as one JSON object; - reads it from standard input"
    )
    parser.add_argument("--cwd", metavar="DIR", help="where the tool works; by default here")
    parser.add_argument("--json", action="store_true", help="print the whole result as JSON")
    _add_recording(parser)
    parsed = parser.parse_intermixed_args(words)
    from handrail.adapters.cli.calling import call_tool, read_arguments

    raw = read_arguments(parsed.assignments, parsed.args)
    return call_tool(parsed.tool, raw, cwd=parsed.cwd, as_json=parsed.json, record=parsed.record, roots=parsed.root)


def _rpc(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail rpc",
        description="Serve calls as JSON lines: requests on standard input, events on standard output.",
    )
    parser.add_argument("--cwd", metavar="DIR", help="where the tools work; by default here")
    _add_recording(parser)
    parsed = parser.parse_args(words)
    from handrail.adapters.cli.serving import serve_standard_streams

    return serve_standard_streams(cwd=parsed.cwd, record=parsed.record, roots=parsed.root)


def _add_recording(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", metavar="LOG", help="keep a log for 'handrail audit', and a journal for 'undo'")
    parser.add_argument(
        "--root", metavar="DIR", action="append", default=[], help="with --record: undo covers commands in DIR too"
    )


def _audit(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail audit",
        description="Look at a log that --record or record() wrote.",
        epilog="exit status: 0 all is well, 1 the log is damaged or a replay differs, 2 wrong usage or no log",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="show | verify | replay | stats")
    show = actions.add_parser("show", help="a timeline: calls, what they did, results")
    show.add_argument("--tool", help="only this tool")
    show.add_argument("--call", metavar="ID", help="only this tool call")
    show.add_argument("--path", metavar="PATTERN", help="only entries with such a path (pattern or part of it)")
    show.add_argument("--since", metavar="TIME", help="from this time on (UTC, e.g. 2026-01-31T12:00)")
    show.add_argument("--until", metavar="TIME", help="up to this time")
    show.add_argument("--errors", action="store_true", help="only what failed")
    show.add_argument("--all", action="store_true", help="also clock readings, pieces of output")
    verify = actions.add_parser("verify", help="whether it is as it was written")
    verify.add_argument("--head", metavar="FILE", help="the anchored head: tells whether the end is missing")
    verify.add_argument("--key", metavar="FILE", help="public Ed25519 key (PEM) that must have signed it")
    verify.add_argument("--contents", action="store_true", help="check the kept contents too")
    replay = actions.add_parser("replay", help="make the recorded calls again, with the log in place of the world")
    replay.add_argument("--lenient", action="store_true", help="port calls may come in another order")
    stats = actions.add_parser("stats", help="calls, bytes, commands, failures, time by tool")
    for action in (show, verify, replay, stats):
        action.add_argument("log", metavar="LOG", help="a file of JSON lines, or a SQLite database")
    for action in (show, replay, stats):
        action.add_argument("--json", action="store_true", help="as JSON")
    parsed = parser.parse_args(words)
    from handrail.adapters.cli import audit
    from handrail.adapters.cli.timeline import Filter

    if parsed.action == "show":
        wanted = Filter(parsed.tool, parsed.call, parsed.path, parsed.since, parsed.until, parsed.errors, parsed.all)
        return audit.show(parsed.log, wanted, as_json=parsed.json)
    if parsed.action == "verify":
        return audit.verify(parsed.log, head=parsed.head, key=parsed.key, contents=parsed.contents)
    if parsed.action == "replay":
        return audit.replay(parsed.log, lenient=parsed.lenient, as_json=parsed.json)
    return audit.stats(parsed.log, as_json=parsed.json)


def _undo(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail undo",
        description="Take back what tool calls changed that were made with --record LOG; by default the last one.",
        epilog="exit status: 0 done, 1 refused because somebody else changed a file since, or not all came back",
    )
    parser.add_argument("log", metavar="LOG", help="the log that they were recorded in")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--call", metavar="ID", help="this tool call, by its id or its group in --list")
    what.add_argument("--since", metavar="N", type=int, help="everything from this change on (numbers as in --list)")
    what.add_argument("--redo", action="store_true", help="take the last undo back")
    what.add_argument("--list", action="store_true", help="only list the changes that can be undone")
    parser.add_argument("--diff", action="store_true", help="only show what is different since N, or since the start")
    parser.add_argument("--force", action="store_true", help="also over what somebody else changed since")
    parsed = parser.parse_args(words)
    from handrail.adapters.cli.undo import Wish, undo

    wish = Wish(parsed.call, parsed.since, parsed.force, parsed.redo, parsed.diff, parsed.list)
    return undo(parsed.log, wish)


def _tour(words: Sequence[str]) -> int:
    parser = _Parser(
        prog="handrail tour",
        description="Show all tools on real files and processes in a fresh temporary folder, and check what they do.",
        epilog="exit status: 0 when every check held, else 1",
    )
    parser.parse_args(words)
    from handrail.adapters.cli.tour import take_tour

    return take_tour()


_COMMANDS: Final[dict[str, tuple[Callable[[Sequence[str]], int], str]]] = {
    "tools": (_tools, "list the tools: names, labels, parameters, results"),
    "call": (_call, "call one tool and print what it answers"),
    "rpc": (_rpc, "serve calls as JSON lines on standard input and output"),
    "audit": (_audit, "show, verify, replay or count what was recorded"),
    "undo": (_undo, "take back what recorded calls changed"),
    "tour": (_tour, "show all tools on real files and processes, and check what they do"),
}
