"""What a tool is: a name, a parameter schema, and a coroutine that gets arguments and a context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, evolve, field, frozen

from handrail.core.file_queue import FileQueue
from handrail.core.results import ToolResult
from handrail.ports.environment import Environment

__all__ = ["Tool", "ToolContext", "define_tool"]

P = TypeVar("P")
S = TypeVar("S")


@define(eq=False)
class ToolContext:
    """What a running call may use besides its arguments.

    Attributes:
        env: The environment to work in.
        call_id: The caller's name for this call.
        file_queue: Turns for operations that change a file.
        update: Shows an intermediate result to whoever listens.
        aborted_result: What the call answers when it is cancelled from now on. A tool sets it as soon as
            something has taken effect or is worth keeping; without it the answer is ``Operation aborted``.
    """

    env: Environment
    call_id: str
    file_queue: FileQueue
    update: Callable[[ToolResult], None]
    aborted_result: ToolResult | None = None
    _shared: dict[type[Any], Any] = field(factory=dict[type[Any], Any], alias="shared")

    def shared(self, kind: type[S]) -> S:
        """Return this toolbox's one object of a class, made without arguments on first use.

        For what calls of one environment have in common: caches, a choice made once, files to clean up.
        """
        if kind not in self._shared:
            self._shared[kind] = kind()
        found: S = self._shared[kind]
        return found


@frozen
class Tool(Generic[P]):
    """A named operation with a parameter schema.

    Attributes:
        name: The name a model calls it by.
        label: The name a person reads.
        description: What a model reads to decide whether and how to call it.
        parameters: An attrs class; its fields are the parameters (see ``core.arguments``).
        execute: Does the work. Raises ToolError for what cannot be done; any other exception is a defect.
        prepare: Reshapes raw arguments before validation, for compatibility with what models really send.
        details: What the result's details hold, as an attrs class; for documentation.
    """

    name: str
    label: str
    description: str
    parameters: type[P]
    execute: Callable[[P, ToolContext], Awaitable[ToolResult]] = field(repr=False)
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = field(default=None, repr=False)
    details: type[Any] | None = field(default=None, repr=False)

    def renamed(self, name: str) -> Tool[P]:
        """Return the same tool under another name."""
        return evolve(self, name=name)


def define_tool(
    name: str,
    *,
    parameters: type[P],
    description: str,
    label: str | None = None,
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    details: type[Any] | None = None,
) -> Callable[[Callable[[P, ToolContext], Awaitable[ToolResult]]], Tool[P]]:
    """Make a coroutine function a tool; a decorator.

    The tool is a peer of the built-in ones: it gets validated arguments and the same context.

    Args:
        name: The name a model calls it by.
        parameters: An attrs class whose fields are made with ``core.arguments.parameter`` or plain attrs.
        description: What a model reads.
        label: What a person reads; by default the name.
        prepare: Reshapes raw arguments before validation.
        details: The attrs class of the result's details, for documentation.
    """

    def decorate(execute: Callable[[P, ToolContext], Awaitable[ToolResult]]) -> Tool[P]:
        return Tool(name, label or name, description, parameters, execute, prepare, details)

    return decorate
