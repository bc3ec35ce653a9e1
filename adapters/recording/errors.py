"""What can be wrong with a log, with writing one, and with a replay.

Exception
└── RecordingError       the message says what is wrong and what to do
    ├── LogError         a log cannot be read, or cannot be continued
    ├── ContentError     a content that an entry names is not there or is not what its hash says
    └── ReplayError      a replay was asked something else than what was recorded
"""

from __future__ import annotations

__all__ = ["ContentError", "LogError", "RecordingError", "ReplayError"]


class RecordingError(Exception):
    """Base of all errors of this package."""


class LogError(RecordingError):
    """A log cannot be read, or cannot be continued."""


class ContentError(RecordingError):
    """A content is missing from the store, or was altered there."""


class ReplayError(RecordingError):
    """What is asked differs from what was recorded; the message shows both."""
