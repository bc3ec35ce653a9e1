"""What the command line itself refuses.

Exception
└── UsageError       the words on the command line make no request; nothing was done
"""

from __future__ import annotations

__all__ = ["UsageError"]


class UsageError(Exception):
    """The command line was used wrongly; the message says how and what to write instead."""
