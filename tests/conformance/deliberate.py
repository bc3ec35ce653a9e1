"""The vectors that we answer differently, each with its reason.

Vectors that carry ``differs`` are no expectations and stand here only where a test uses them as material.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DELIBERATE"]

_CHARACTERS: Final = "a width counts characters, not UTF-16 units"
_LONE_CR: Final = "a lone CR is a line ending only in a text without LF"
_BINARY: Final = "binary data is described, not shown as text"
_NEAREST: Final = (
    "the diff is as right and stays at the change: it does not look for a place where repeated lines align"
)
_SANITISED: Final = "output is sanitised before it is counted"

DELIBERATE: Final[dict[str, str]] = {
    "truncation-548bce946c": _CHARACTERS,
    "truncation-bd8ecab69c": _CHARACTERS,
    "truncation-c735e1f6c4": _CHARACTERS,
    "normalize-07ceed8024": _LONE_CR,
    "normalize-4dcb76672a": _LONE_CR,
    "normalize-e8cfb13a8f": _LONE_CR,
    "paths-0b8c9e54d6": "the working directory of an environment is absolute already",
    "paths-2e1ea3f25c": "the literal name comes first",
    "read-072c5866c0": _BINARY,
    "read-cdf6a0db65": _BINARY,
    "read-f05e53acf3": "a byte order mark is no text: it stays in the file and is not shown",
    "read-666d382ed1": "the literal name comes first: a file is named ~",
    "edit-d007a961cf": _NEAREST,
    "edit-defde3096a": _NEAREST,
    "grep-3a813c2365": "names with control characters or backslashes are shown escaped",
    "bash-491e7ce46a": "a last line that ends with a newline is told with its size, not as 0B",
    "permissions-d132ae6319": "a directory without x still tells its names: they are listed, not called empty",
    "permissions-ddf5be5d22": "find counts what it could not look into, as grep does",
    "accumulator-59cb8b56e4": _SANITISED,
    "accumulator-d41eda71b0": _SANITISED,
}
