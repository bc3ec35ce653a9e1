"""RecordingClock: a ClockPort that records what it is asked and passes it on unchanged."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime

from handrail.adapters.recording.recorder import Recorder
from handrail.ports.clock import ClockPort, Deadline

__all__ = ["RecordingClock"]


class RecordingClock(ClockPort):
    """Records readings, waits and deadlines.

    Args:
        clock: The port to wrap.
        recorder: Where entries go.
    """

    def __init__(self, clock: ClockPort, recorder: Recorder) -> None:
        self._clock = clock
        self._recorder = recorder

    def now(self) -> datetime:
        operation = self._recorder.operation("clock", "now", {})
        moment = self._clock.now()
        operation.end(moment.isoformat())
        return moment

    def monotonic(self) -> float:
        operation = self._recorder.operation("clock", "monotonic", {})
        moment = self._clock.monotonic()
        operation.end(moment)
        return moment

    async def sleep(self, seconds: float) -> None:
        arguments = {"seconds": self._recorder.encoder.value(float(seconds))}
        operation = self._recorder.operation("clock", "sleep", arguments)
        await operation.run(lambda: self._clock.sleep(seconds), lambda _: None)

    def move_on_after(self, seconds: float | None) -> AbstractContextManager[Deadline]:
        return self._limit(seconds)

    @contextmanager
    def _limit(self, seconds: float | None) -> Generator[Deadline, None, None]:
        arguments = {"seconds": None if seconds is None else self._recorder.encoder.value(float(seconds))}
        operation = self._recorder.operation("clock", "move_on_after", arguments)
        operation.announce()
        deadline: Deadline | None = None
        try:
            with self._clock.move_on_after(seconds) as deadline:
                yield deadline
        finally:
            operation.end({"expired": deadline is not None and deadline.expired})
