"""Recording of ``Environment.offload``: when long computations began and ended, not what they are.

Replay needs it: what a tool does meanwhile depends on how long they take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from handrail.adapters.recording.recorder import Recorder
from handrail.ports.environment import Offload

__all__ = ["RecordingOffload"]

T = TypeVar("T")


class RecordingOffload:
    """Records computations and passes them on.

    Args:
        offload: What runs them.
        recorder: Where entries go.
    """

    def __init__(self, offload: Offload, recorder: Recorder) -> None:
        self._offload = offload
        self._recorder = recorder

    async def __call__(self, function: Callable[[], T], /) -> T:
        operation = self._recorder.operation("offload", "run", {})
        return await operation.run(lambda: self._offload(function), lambda _: None)
