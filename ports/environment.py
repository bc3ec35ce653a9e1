"""Environment: the ports, working directory and home that are handed to a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

from attrs import field, frozen

from handrail.ports.clock import ClockPort
from handrail.ports.commands import CommandPort
from handrail.ports.context import CallObserver
from handrail.ports.files import FilePort

__all__ = ["Environment", "Offload", "Session", "run_inline"]

T = TypeVar("T")


class Offload(Protocol):
    """Runs a pure, long computation where it does not hold up the event loop."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        """Return ``function()``; its exceptions propagate.

        The function must touch nothing shared that is used after a cancellation: it may go on when nobody waits for
        its result any more.
        """
        ...


async def run_inline(function: Callable[[], T], /) -> T:
    """Run a computation at once; for environments without threads."""
    return function()


@frozen
class Session:
    """What is known of the agent session; commands see it as ``PI_…`` variables, absent where ``None``."""

    id: str | None = None
    file: str | None = None
    provider: str | None = None
    model: str | None = None
    reasoning_level: str | None = None

    def variables(self) -> Mapping[str, str | None]:
        """Return the variables of a command; ``None`` removes an inherited one."""
        return {
            "PI_SESSION_ID": self.id,
            "PI_SESSION_FILE": self.file,
            "PI_PROVIDER": self.provider,
            "PI_MODEL": self.model,
            "PI_REASONING_LEVEL": self.reasoning_level,
        }


@frozen(eq=False)
class Environment:
    """One world a tool works in. An async context manager: leaving it closes it.

    Attributes:
        files: The FilePort.
        commands: The CommandPort.
        clock: The ClockPort.
        cwd: Absolute working directory; relative paths start here.
        home: Absolute home directory, for ``~``.
        session: What commands are told about the agent session.
        offload: Runs long pure computations (decoding an image, matching a large file).
    """

    files: FilePort
    commands: CommandPort
    clock: ClockPort
    cwd: str
    home: str
    session: Session = Session()
    offload: Offload = run_inline
    on_close: list[Callable[[], Awaitable[None]]] = field(factory=list[Callable[[], Awaitable[None]]], repr=False)
    """Called in reverse order when the environment closes; adapters and tools add to it."""
    observers: Sequence[CallObserver] = ()
    """Told of the start and end of every tool call, in order; adapters that keep a record add themselves."""

    async def aclose(self) -> None:
        """Kill what still runs and release what is held. Closing twice is harmless."""
        while self.on_close:
            await self.on_close.pop()()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
