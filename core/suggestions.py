"""What a model may have meant by a path that does not exist."""

from __future__ import annotations

import difflib
from typing import Final

from handrail.core.errors import ToolError
from handrail.core.paths import parent, relative_to, show_name
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["missing_file"]

_SHOWN: Final = 5
_COMPARED: Final = 10_000


async def missing_file(env: Environment, target: str, path: str) -> ToolError:
    """Return the error for a missing file, naming the nearest existing names.

    Args:
        env: Where the file was looked for.
        target: The absolute path that does not exist.
        path: The path as the model wrote it.
    """
    message = f"File not found: {path}."
    directory = parent(target)
    missing = target[len(directory) :].strip("/\\")
    while True:
        try:
            names = [entry.name for entry in await env.files.list_dir(directory)]
            break
        except PortError:
            above = parent(directory)
            if above == directory:
                return ToolError("missing_file", message)
            missing = directory[len(above) :].strip("/\\")
            directory = above
    shown = relative_to(directory, env.cwd) if directory != env.cwd else "the working directory"
    if directory != parent(target):
        message += f" There is no {show_name(missing)} in {show_name(shown)}."
    near = _nearest(missing, names)
    if near:
        return ToolError("missing_file", f"{message} Similar names in {show_name(shown)}: {', '.join(near)}.")
    return ToolError("missing_file", f"{message} ls or find shows what is there.")


def _nearest(missing: str, names: list[str]) -> list[str]:
    folded: dict[str, str] = {}
    for name in sorted(names)[:_COMPARED]:
        folded.setdefault(name.casefold(), name)
    close = difflib.get_close_matches(missing.casefold(), folded, n=_SHOWN, cutoff=0.6)
    stem = missing.casefold().partition(".")[0]
    same_stem = [key for key in folded if stem and key.partition(".")[0] == stem and key not in close]
    return [show_name(folded[key]) for key in (close + same_stem)[:_SHOWN]]
