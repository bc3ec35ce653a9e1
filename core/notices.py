"""How a listing ends: the byte limit, and what a model should know about what it does not see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from handrail.core.truncation import Truncation, format_size, truncate_head

__all__ = ["NO_LINE_LIMIT", "bounded", "plural", "whole_limit"]

NO_LINE_LIMIT: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


def bounded(lines: Sequence[str], notices: Sequence[str], after: Sequence[str] = ()) -> tuple[str, Truncation | None]:
    """Return the lines within the byte limit, followed by the notices in one bracket.

    Also returns what was cut, ``None`` when nothing was.

    Args:
        lines: What was found.
        notices: Notices that stand before the one of the byte limit.
        after: Notices that stand behind it.
    """
    shown = truncate_head("\n".join(lines), max_lines=NO_LINE_LIMIT)
    said = list(notices)
    if shown.truncated:
        said.append(f"{format_size(shown.max_bytes)} limit reached")
    said += after
    text = f"{shown.content}\n\n[{'. '.join(said)}]" if said else shown.content
    return text, shown if shown.truncated else None


def whole_limit(limit: float | None, default: int) -> int:
    """The number of results a caller wants: at least 1, fractions dropped."""
    return default if limit is None else max(1, math.floor(limit))


def plural(count: int, singular: str, many: str | None = None) -> str:
    """``1 file``, ``2 files``, ``2 directories``."""
    return f"{count} {singular if count == 1 else many or singular + 's'}"
