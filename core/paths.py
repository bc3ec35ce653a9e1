"""Path rules: what a model writes, the path that is meant, and how names are shown. Contract section 4.

Purely lexical except ``resolve`` and ``resolve_existing``, which ask the FilePort whether a name exists.
Nothing here is a boundary: boundaries are an adapter's work.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Final
from urllib.parse import unquote

from handrail.core.errors import ToolError
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = [
    "expand",
    "join",
    "parent",
    "relative_to",
    "resolve",
    "resolve_existing",
    "show_name",
    "show_names",
    "spellings",
    "unescape_name",
]

_UNICODE_SPACES: Final = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_WINDOWS_ROOT: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_BEFORE_MERIDIEM: Final = re.compile(r" (AM|PM)(?=\.|$)", re.IGNORECASE)


async def resolve(raw: str, env: Environment, *, argument: str = "path") -> str:
    """Return the absolute path that an argument means.

    The literal name wins where it exists; only then are spaces, ``@``, ``~``, ``file://`` and escaped names
    understood. What exists in neither sense is a new file: the literal name, if its first directory exists.

    Raises:
        ToolError: ``nul_in_argument``; ``bad_file_url``.
    """
    if "\0" in raw:
        raise ToolError(
            "nul_in_argument", f"The argument {argument} has a NUL byte at position {raw.index(chr(0))}; remove it."
        )
    literal = _absolute(raw, env.cwd)
    escaped = unescape_name(raw)
    if escaped != raw and not await _exists(env, literal):
        unescaped = _absolute(escaped, env.cwd)
        if await _exists(env, unescaped) or await _exists(env, parent(unescaped)):
            return unescaped
    expanded = expand(raw, cwd=env.cwd, home=env.home)
    if expanded == literal or await _exists_as_written(raw, literal, env):
        return literal
    if not await _exists(env, expanded) and await _first_directory_exists(raw, env):
        return literal
    return expanded


async def resolve_existing(raw: str, env: Environment, *, argument: str = "path") -> str:
    """Like ``resolve``, and try the other spellings of a name while it does not exist.

    A path that exists in no spelling comes back as ``resolve`` gives it.
    """
    path = await resolve(raw, env, argument=argument)
    if not await _exists(env, path):
        for candidate in spellings(path):
            if await _exists(env, candidate):
                return candidate
    return path


def spellings(path: str) -> Iterator[str]:
    """Yield other ways in which the file that is meant may be written on disk, likeliest first.

    They are what macOS makes of names: a narrow no-break space before AM or PM in screenshots, decomposed
    accents, typographic apostrophes.
    """
    decomposed = unicodedata.normalize("NFD", path)
    candidates = (
        _BEFORE_MERIDIEM.sub("\u202f\\1", path),
        decomposed,
        path.replace("'", "\u2019"),
        decomposed.replace("'", "\u2019"),
    )
    return (candidate for candidate in candidates if candidate != path)


def expand(raw: str, *, cwd: str, home: str) -> str:
    """Return the absolute, lexically normalised path of an argument, without asking whether anything exists.

    Raises:
        ToolError: ``bad_file_url``.
    """
    text = _UNICODE_SPACES.sub(" ", raw).removeprefix("@")
    if text == "~" or text.startswith("~/"):
        return _absolute(text[2:].lstrip("/"), home)
    if text.startswith("file://"):
        return _absolute(_from_file_url(text), cwd)
    return _absolute(text, cwd)


def join(directory: str, name: str) -> str:
    """Return the path of a name in a directory, in the directory's own style."""
    return str(_style(directory).join(directory, name))


def parent(path: str) -> str:
    """Return the directory of a path."""
    return str(_style(path).dirname(path))


def relative_to(path: str, directory: str) -> str:
    """Return a path below a directory relative to it, with ``/``; any other path unchanged."""
    style = _style(directory)
    prefix = directory if directory.endswith(style.sep) else directory + style.sep
    below = path.startswith(prefix) and path != prefix
    return path[len(prefix) :].replace(style.sep, "/") if below else path


# ------------------------------------------------------------------ names as a model sees them


def show_name(name: str) -> str:
    """Return a name or path with control characters and undecodable bytes escaped.

    A byte that is not UTF-8 and an ASCII control are shown as ``\\xHH``, other line breaking and control
    characters as ``\\uHHHH``. ``resolve`` accepts this form where no file has it as its literal name.
    """
    if name.isprintable() and "\\" not in name:
        return name
    return _TO_ESCAPE.sub(_escape, name)


def show_names(names: Sequence[str]) -> Sequence[str]:
    """``show_name`` of each; quick for many plain ones."""
    together = "".join(names)
    if together.isascii() and not together.encode().translate(None, _PLAIN):
        return names
    return [show_name(name) for name in names]


_PLAIN: Final = bytes(range(0x20, 0x7F)).replace(b"\\", b"")
"""What needs no escape in ASCII."""


def unescape_name(text: str) -> str:
    """Undo ``show_name``."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(_unescape, text)


_TO_ESCAPE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
    r"|\\(?=x[0-9a-f]{2}|u[0-9a-f]{4})"
)
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte of PEP 383
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return chr(code if code < 0x80 else 0xDC00 + code)
    return chr(int(match[2], 16))


# ------------------------------------------------------------------ parts


def _style(directory: str) -> ModuleType:
    """The path rules of the environment, told by the look of its absolute paths."""
    return ntpath if _WINDOWS_ROOT.match(directory) else posixpath


def _absolute(text: str, base: str) -> str:
    style = _style(base)
    path = str(style.normpath(style.join(base, text)))
    return path[1:] if path.startswith("//") and style is posixpath else path


def _from_file_url(url: str) -> str:
    rest = url.removeprefix("file://")
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise ToolError("bad_file_url", f"Not a local file URL: {url}. Use file:///absolute/path or a plain path.")
    if re.search("%2f", path, re.IGNORECASE):
        raise ToolError("bad_file_url", f"An encoded slash (%2F) in a file URL is not allowed: {url}")
    try:
        decoded = unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise ToolError("bad_file_url", f"The file URL is not valid UTF-8: {url}") from None
    if "\0" in decoded:
        raise ToolError("nul_in_argument", f"The file URL has a NUL byte: {url}. Remove it.")
    return decoded if re.match(r"[A-Za-z]:[\\/]", decoded) else "/" + decoded


async def _exists(env: Environment, path: str) -> bool:
    try:
        await env.files.stat(path, follow_symlinks=False)
    except PortError as error:
        # What exists but cannot be looked at is for the operation itself to report.
        return error.code not in ("not_found", "not_a_directory", "invalid_path", "name_too_long")
    return True


async def _exists_as_written(raw: str, literal: str, env: Environment) -> bool:
    """Whether a path exists to the letter: ``~/..`` is not the working directory where no directory is named ``~``."""
    first, slash, _ = raw.partition("/")
    starts_well = not slash or not first or await _first_directory_exists(raw, env)
    return starts_well and await _exists(env, literal)


async def _first_directory_exists(raw: str, env: Environment) -> bool:
    """Whether a relative path starts with a directory that exists under its literal name."""
    first, slash, _ = raw.partition("/")
    if not slash or not first:
        return False
    try:
        return (await env.files.stat(_absolute(first, env.cwd))).kind == "directory"
    except PortError:
        return False
