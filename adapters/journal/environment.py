"""journal: wrap an environment so that what its tools change can be undone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from attrs import field, frozen

from handrail.adapters.journal.commands import JournaledCommands
from handrail.adapters.journal.files import JournaledFiles
from handrail.adapters.journal.history import History
from handrail.adapters.journal.ledger import Ledger
from handrail.adapters.journal.store import DirectoryJournal, JournalStore, MemoryJournal
from handrail.adapters.journal.watching import Watch
from handrail.ports.environment import Environment

__all__ = ["JournaledEnvironment", "journal"]


@frozen(eq=False, kw_only=True)
class JournaledEnvironment(Environment):
    """An environment whose changes can be undone.

    Attributes:
        history: Undo, redo, and what changed.
    """

    history: History = field(repr=False)


def journal(
    env: Environment,
    store: JournalStore | str | os.PathLike[str] | None = None,
    *,
    roots: Sequence[str | os.PathLike[str]] | None = None,
    exclude: Sequence[str] = (".git", ".venv", "__pycache__", "node_modules"),
    max_file_bytes: int = 64 * 1024 * 1024,
) -> JournaledEnvironment:
    """Return an environment that does the same and keeps what was there before each change.

    Through the FilePort every change is covered, wherever it is. Commands are covered inside ``roots`` only, by
    looking at them before and after; the first look reads every file there. Not covered: special files, owners, time
    stamps, extended attributes and hard links that a command makes or removes; symbolic links and modes of directories
    where the port cannot set them; what background processes do after their command; anything outside of the roots.
    ``history.not_covered`` names what was met of these. Two commands that run at once share their changes: each is
    noted for the one that ends first.

    Args:
        env: The environment to wrap; closing the result closes it.
        store: Where contents and records go: a directory (in which an earlier journal is continued, also another
            process's), or memory by default. It must lie outside of ``roots`` or be excluded.
        roots: Directories that commands may change; by default the working directory, ``()`` for none.
        exclude: Names in the roots (``fnmatch``) that are not looked at, with all below them.
        max_file_bytes: Contents of larger files are not kept; their changes cannot be undone.
    """
    place = DirectoryJournal(store) if isinstance(store, str | os.PathLike) else store or MemoryJournal()
    ledger = Ledger(place, max_file_bytes)
    ledger.load()
    watched = (env.cwd,) if roots is None else tuple(os.fspath(root) for root in roots)
    if isinstance(place, DirectoryJournal):
        exclude = (*exclude, os.path.basename(place.path))
    watch = Watch(env.files, env.clock, ledger, watched, tuple(exclude))
    return JournaledEnvironment(
        files=JournaledFiles(env.files, ledger, watch),
        commands=JournaledCommands(env.commands, ledger, watch),
        clock=env.clock,
        cwd=env.cwd,
        home=env.home,
        session=env.session,
        offload=env.offload,
        on_close=env.on_close,
        observers=env.observers,
        history=History(env.files, ledger, watch),
    )
