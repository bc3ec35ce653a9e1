"""``handrail undo``: take back what recorded tool calls changed."""

from __future__ import annotations

import os
from functools import partial

import anyio
from attrs import frozen

from handrail.adapters.cli import terminal
from handrail.adapters.cli.errors import UsageError
from handrail.adapters.cli.recording import journal_of, with_journal
from handrail.adapters.journal import Change, History, JournalError, State, UndoConflict, Undone
from handrail.adapters.local.environment import local_environment
from handrail.adapters.recording import LogError, Redaction, record

__all__ = ["Wish", "undo"]


@frozen
class Wish:
    """What is to be undone.

    Attributes:
        call: The tool call, or group; ``None``: the last one.
        since: Everything from this change on.
        force: Also over changes by others.
        redo: Take the last undo back instead.
        diff: Only show what is different now.
        list_only: Only list what can be undone.
    """

    call: str | None = None
    since: int | None = None
    force: bool = False
    redo: bool = False
    diff: bool = False
    list_only: bool = False


def undo(log: str, wish: Wish) -> int:
    """Undo, and print what was done; 1 when it was refused or something could not be brought back.

    Raises:
        UsageError: There is no journal beside the log.
    """
    if not os.path.isdir(journal_of(log)):
        raise UsageError(
            f"{log} has no journal ({journal_of(log)}); only what was recorded with --record can be undone."
        )
    return anyio.run(partial(_undo, log, wish))


async def _undo(log: str, wish: Wish) -> int:
    try:
        # The log tells of the undo too.
        env = (
            local_environment() if wish.diff or wish.list_only else record(local_environment(), log, redact=Redaction())
        )
    except LogError as error:
        raise UsageError(str(error)) from error
    async with with_journal(env, log) as journaled:
        history = journaled.history
        try:
            if wish.list_only:
                return _list(history)
            if wish.diff:
                terminal.show(await history.diff(wish.since or 0))
                return 0
            return _tell(await _do(history, wish), "redone" if wish.redo else "undone")
        except UndoConflict as conflict:
            terminal.say("Nothing was done: files were changed since. --force goes over it.", error=True)
            terminal.show(conflict.diff, error=True)
        except JournalError as error:
            terminal.say(f"handrail undo: {error}", error=True)
    return 1


async def _do(history: History, wish: Wish) -> Undone:
    if wish.redo:
        return await history.redo(force=wish.force)
    if wish.since is not None:
        return await history.undo_since(wish.since, force=wish.force)
    return await history.undo(wish.call, force=wish.force)


def _tell(undone: Undone, word: str) -> int:
    for path in undone.paths:
        terminal.say(f"{word}: {path}")
    for path, reason in undone.not_restored.items():
        terminal.say(f"not {word}: {path}: {reason}", error=True)
    return 1 if undone.not_restored else 0


def _list(history: History) -> int:
    for change in history.changes():
        terminal.say(f"{change.number:>5} {change.group[:12]} {change.tool or '-'}: {change.path} {_what(change)}")
    return 0


def _what(change: Change) -> str:
    with_modes = change.before.kind == change.after.kind and change.before.mode != change.after.mode
    return f"({_state(change.before, with_modes)} -> {_state(change.after, with_modes)})"


def _state(state: State, with_mode: bool) -> str:
    said: str = state.kind
    if state.kind == "file":
        said = f"file of {state.size} bytes"
    elif state.kind == "symlink":
        said = f"symlink to {state.target}"
    return f"{said}, mode {state.mode:04o}" if with_mode and state.mode is not None else said
