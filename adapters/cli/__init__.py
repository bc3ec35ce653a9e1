"""The command line ``handrail``: list the tools, call one, serve them over JSON lines, take the tour.

This module stays light, so that Ctrl-C during the slower imports ends as quietly as later.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: What follows the program's name; by default what the process was started with.
    """
    try:
        from handrail.adapters.cli.program import run

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return 130
