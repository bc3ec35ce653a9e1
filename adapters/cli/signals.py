"""Signals that ask the program to end: what runs is killed, then the program leaves with 128 + signal."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from attrs import define

__all__ = ["Interruption", "on_interruption"]

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@define
class Interruption:
    """The signal that asked the program to end, if one came."""

    number: int | None = None

    def exit_status(self, otherwise: int) -> int:
        """Return 128 + signal, or the given status when no signal came."""
        return otherwise if self.number is None else 128 + self.number


@contextmanager
def on_interruption(stop: Callable[[], object]) -> Generator[Interruption, None, None]:
    """Call ``stop`` once in this block when SIGINT, SIGTERM or SIGHUP arrives.

    ``stop`` begins an orderly end. A second signal has its usual effect, so that a person who insists is
    obeyed; commands die then too, because their supervisor sees this process end. A signal that the parent
    chose to ignore (``nohup``, a background job) stays ignored.
    """
    loop = asyncio.get_running_loop()
    interruption = Interruption()
    wanted = [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
    watched = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
    if sys.platform == "win32":
        watched = []  # no handlers in its event loop: Ctrl-C arrives as KeyboardInterrupt, which unwinds everything

    def release() -> None:
        for number in watched:
            loop.remove_signal_handler(number)

    def received(number: int) -> None:
        interruption.number = number
        release()
        stop()

    for number in watched:
        loop.add_signal_handler(number, received, number)
    try:
        yield interruption
    finally:
        release()
