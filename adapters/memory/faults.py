"""Faults: what goes wrong in a file system in memory, and how long things take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from attrs import define, frozen

from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["FaultPlan", "Faults", "Hook", "Operation"]

Operation = Literal[
    "stat",
    "list_dir",
    "read",
    "read_chunks",  # opening the file
    "next_chunk",  # each further step of read_chunks
    "scan",
    "write",
    "append",
    "make_dirs",
    "remove",
    "rename",  # by its source
    "read_link",
    "make_link",
    "change_mode",
    "canonical_path",
    "create_temp_file",  # by the directory of such files
]

Hook = Callable[[], Awaitable[None]]


@frozen
class FaultPlan:
    """What is to happen around one operation, in this order.

    Attributes:
        delay_seconds: Wait this long.
        hooks: Call these.
        error: Fail with this.
        delay_after_seconds: Wait this long after it has taken effect.
    """

    delay_seconds: float = 0.0
    hooks: tuple[Hook, ...] = ()
    error: PortError | None = None
    delay_after_seconds: float = 0.0


@define
class _Rule:
    operation: Operation | None
    path: str | None
    first: int
    """The number of the first operation it applies to, counted from 1 among those that match."""
    last: int | None
    code: PortErrorCode | None = None
    delay: float = 0.0
    delay_after: float = 0.0
    hook: Hook | None = None
    seen: int = 0

    def applies(self, operation: Operation, path: str) -> bool:
        if self.operation not in (None, operation) or not _is_at_or_below(path, self.path):
            return False
        self.seen += 1
        return self.first <= self.seen and (self.last is None or self.seen <= self.last)


class Faults:
    """Rules about operations. All that match an operation apply; without rules everything works at once."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def __bool__(self) -> bool:
        return bool(self._rules)

    def fail(
        self,
        code: PortErrorCode,
        *,
        operation: Operation | None = None,
        path: str | None = None,
        nth: int = 1,
        times: int | None = 1,
    ) -> None:
        """Let operations fail, before they change anything.

        Args:
            code: How they fail.
            operation: Only this kind; by default all.
            path: Only on this canonical path and what is below it; by default everywhere.
            nth: The first that fails, counted from 1 and from now.
            times: How many fail from there on; ``None`` is all.
        """
        last = None if times is None else nth + times - 1
        self._rules.append(_Rule(operation, path, nth, last, code))

    def deny(self, path: str) -> None:
        """Refuse everything on a canonical path and below it with ``permission_denied``."""
        self.fail("permission_denied", path=path, times=None)

    def delay(
        self, seconds: float, *, operation: Operation | None = None, path: str | None = None, after: float = 0.0
    ) -> None:
        """Let operations take time of the environment's clock.

        Args:
            seconds: Before they take effect: a cancellation in this time finds nothing done.
            operation: Only this kind; by default all.
            path: Only on this canonical path and what is below it; by default everywhere.
            after: Seconds after they have taken effect: a cancellation in this time comes too late.
        """
        self._rules.append(_Rule(operation, path, 1, None, delay=seconds, delay_after=after))

    def before(self, hook: Hook, *, operation: Operation, path: str | None = None, nth: int = 1) -> None:
        """Call a function before an operation, once; what it raises the operation raises.

        It may change files as another program would, or wait: so a test stages a race exactly.
        """
        self._rules.append(_Rule(operation, path, nth, nth, hook=hook))

    def clear(self) -> None:
        """Forget all rules."""
        self._rules.clear()

    def plan(self, operation: Operation, canonical_path: str, path: str) -> FaultPlan:
        """Count an operation and return what is to happen around it; errors name ``path``."""
        rules = [rule for rule in self._rules if rule.applies(operation, canonical_path)]
        errors = [PortError(rule.code, path, "injected") for rule in rules if rule.code is not None]
        return FaultPlan(
            delay_seconds=sum(rule.delay for rule in rules),
            hooks=tuple(rule.hook for rule in rules if rule.hook),
            error=errors[0] if errors else None,
            delay_after_seconds=sum(rule.delay_after for rule in rules),
        )


def _is_at_or_below(path: str, directory: str | None) -> bool:
    return directory is None or f"{path}/".startswith(f"{directory.rstrip('/')}/")
