"""confine: wrap an environment so that its files stay inside given roots."""

from __future__ import annotations

import os
from collections.abc import Sequence

from attrs import evolve

from handrail.adapters.confined.files import ConfinedFiles
from handrail.ports.environment import Environment

__all__ = ["Root", "confine"]

Root = str | os.PathLike[str]


def confine(env: Environment, roots: Root | Sequence[Root] = ()) -> Environment:
    """Return an environment whose FilePort refuses every path outside the roots (``outside_workspace``).

    The place that would really be touched decides: symbolic links are resolved first, also for a path that
    does not exist yet. Commands are not confined: a shell can name any path. Give the agent no shell, or a
    sandboxed CommandPort, where that matters.

    Args:
        env: The environment to wrap; closing the result closes it.
        roots: A directory or several to stay in, absolute or relative to the working directory; by default the
            working directory itself.
    """
    given = (roots,) if isinstance(roots, str | os.PathLike) else tuple(roots)
    inside = tuple(os.path.join(env.cwd, os.fspath(root)) for root in given) or (env.cwd,)
    return evolve(env, files=ConfinedFiles(env.files, inside))
