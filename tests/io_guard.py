"""Catches code of the core or the ports that touches the operating system, while it does so.

An audit hook sees every file, process and socket the interpreter opens. While the guard is armed, one that is
opened with a frame of ``handrail.core`` or ``handrail.ports`` on the stack raises, and is remembered, because
a tool turns exceptions into results. Loading a module is not the doing of the code that imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["ForbiddenAccess", "guarded"]

_EVENTS = ("os.", "subprocess.", "socket.", "shutil.", "tempfile.", "glob.", "sqlite3.")
_INNER_RINGS = ("handrail.core", "handrail.ports")
# What opens files on behalf of the interpreter, a traceback or the coverage measurement; and a library that loads
# its own tables only when it is first asked.
_BYSTANDERS = ("importlib", "zipimport", "linecache", "coverage", "chardet")


class ForbiddenAccess(Exception):
    """Code of an inner ring touched the operating system."""


_armed = False
_seen: list[str] = []


@contextmanager
def guarded() -> Generator[None, None, None]:
    """Forbid the inner rings the operating system in this block.

    Raises:
        ForbiddenAccess: At the access, and again at the end of the block.
    """
    global _armed
    _seen.clear()
    _armed = True
    try:
        yield
    finally:
        _armed = False
    if _seen:
        raise ForbiddenAccess("; ".join(_seen))


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _armed or not (event == "open" or event.startswith(_EVENTS)):
        return
    culprit = _inner_ring(sys._getframe(1))  # pyright: ignore[reportPrivateUsage] - the documented way to a frame
    if culprit is not None:
        message = f"{culprit} caused {event}{arguments!r}"
        _seen.append(message)
        raise ForbiddenAccess(message)


def _inner_ring(frame: FrameType | None) -> str | None:
    """The module of the inner rings that is at work in a stack, if one is."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if _below(module, _BYSTANDERS):
            return None
        if _below(module, _INNER_RINGS):
            return module
        frame = frame.f_back
    return None


def _below(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


sys.addaudithook(_audit)
