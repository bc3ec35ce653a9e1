"""What ``--record LOG`` adds to an environment: a log, and a journal beside it for ``handrail undo``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from handrail.adapters.cli.errors import UsageError
from handrail.adapters.journal import JournaledEnvironment, journal
from handrail.adapters.recording import LogError, Redaction, record
from handrail.ports.environment import Environment

__all__ = ["journal_of", "recorded", "with_journal"]


def recorded(env: Environment, log: str, roots: Sequence[str] = ()) -> Environment:
    """Return the environment, recorded and journaled. Well-known keys and tokens do not get into the log.

    Args:
        env: The environment.
        log: Where the log goes.
        roots: Directories in which what commands change can be undone.

    Raises:
        UsageError: There is no place for the log, or something else is there.
    """
    try:
        return record(with_journal(env, log, roots), log, redact=Redaction())
    except LogError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"--record {log}: {error.strerror}.") from error


def with_journal(env: Environment, log: str, roots: Sequence[str] = ()) -> JournaledEnvironment:
    """Return the environment with the journal that belongs to a log."""
    own = f"{os.path.basename(log)}*"
    exclude = (own, ".git", ".venv", "__pycache__", "node_modules")
    return journal(env, journal_of(log), roots=[os.path.abspath(root) for root in roots], exclude=exclude)


def journal_of(log: str) -> str:
    """Return where the journal of a log is."""
    return f"{log}.journal"
