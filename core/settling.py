"""Operations that must not be left half known: a cancel waits for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

__all__ = ["settled"]

T = TypeVar("T")


async def settled(operation: Callable[[], Awaitable[T]]) -> T:
    """Run an operation to its end whatever is cancelled meanwhile, so that its effect is known.

    One that is cancelled before it begins does not begin.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    with anyio.CancelScope(shield=True):
        return await operation()
    raise AssertionError("nobody cancels this scope itself")
