"""Which tool call is running: what adapters may know of it, and how they learn of its start and end.

A toolbox sets ``current_call`` around each call; every task of the call inherits it. An adapter that groups port
calls by tool call (a log, a journal) reads it, and joins ``Environment.observers`` to see arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from attrs import field, frozen

__all__ = ["CallContext", "CallObserver", "current_call"]


@frozen(eq=False)
class CallContext:
    """One tool call, while it runs.

    Attributes:
        call_id: The caller's name for it; unique among the running calls of one toolbox only.
        tool: The tool's name.
        cancel: Ends the call as if its caller had cancelled it.
    """

    call_id: str
    tool: str
    cancel: Callable[[], None] = field(repr=False)


current_call: Final[ContextVar[CallContext | None]] = ContextVar("current_call", default=None)
"""The tool call that the running task belongs to; ``None`` outside of any."""


class CallObserver(Protocol):
    """Sees every tool call of an environment."""

    async def call_started(self, call: CallContext, arguments: Any) -> None:
        """A call is about to run; ``arguments`` are raw, as they came from the model.

        Raises:
            PortError: The call must not run; it fails with this error.
        """
        ...

    async def call_ended(self, call: CallContext, arguments: Any, result: Mapping[str, Any]) -> None:
        """A call is over, also one that was refused or cancelled before ``call_started``.

        Runs shielded from cancellation.

        Args:
            call: The call.
            arguments: As in ``call_started``.
            result: The result in its wire form.

        Raises:
            PortError: The result must not be given out; the call fails with this error.
        """
        ...
