"""The charset that a project's ``.editorconfig`` files declare for a file; nothing else of them is used.

Only files that are not Unicode need it, so nothing is remembered: the files of all directories above come in one
step, and what they say is never out of date. Sections are matched with the project's own globs, which do not know
EditorConfig's number ranges (``{1..9}``). Format: editorconfig.org, specification 0.17.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from handrail.core.globs import GlobError, parse_glob
from handrail.core.paths import join, parent, relative_to
from handrail.core.text import Binary, TextDocument, decode, decode_unicode
from handrail.ports.environment import Environment, run_inline
from handrail.ports.files import FileContent

__all__ = ["decode_in_project", "project_charset"]

_NAME: Final = ".editorconfig"
_MAX_BYTES: Final = 256 * 1024
_OFFLOADED_BYTES: Final = 1024 * 1024


async def decode_in_project(
    env: Environment, path: str, data: bytes, *, encoding: str | None = None
) -> TextDocument | Binary:
    """Decode the content of a file; what is not Unicode by a given codec, else by the project's charset.

    Args:
        env: Where the file is.
        path: Its absolute path.
        data: Its content, or enough of its start to judge it.
        encoding: A codec to try where the content is not Unicode; goes before the project's.
    """
    run = env.offload if len(data) > _OFFLOADED_BYTES else run_inline
    document = await run(lambda: decode_unicode(data))
    if document is not None:
        return document
    hint = encoding or await project_charset(env, path)
    return await run(lambda: decode(data, hint=hint))


async def project_charset(env: Environment, path: str) -> str | None:
    """Return the charset that ``.editorconfig`` files declare for a file; ``None`` where they are silent.

    Closer files win over those further up; the search ends at one that says ``root = true``.
    """
    directories = list(_upwards(parent(path)))
    found = await env.files.read_many([join(directory, _NAME) for directory in directories], max_bytes=_MAX_BYTES)
    for directory, content in zip(directories, found, strict=True):
        if isinstance(content, FileContent):
            text = content.data.decode("utf-8-sig", "replace")
            charset, is_root = _declared(text, relative_to(path, directory))
            if charset is not None or is_root:
                return None if charset == "unset" else charset
    return None


def _upwards(directory: str) -> Iterator[str]:
    """The directory and all above it, nearest first."""
    while True:
        yield directory
        above = parent(directory)
        if above == directory:
            return
        directory = above


def _declared(text: str, path: str) -> tuple[str | None, bool]:
    """What one file says: the charset for a path relative to it, and whether the search ends there."""
    charset: str | None = None
    is_root = False
    applies: bool | None = None  # before the first section
    for line in text.splitlines():
        if header := _HEADER.fullmatch(line):
            applies = _matches(header[1], path)
        elif pair := _PAIR.fullmatch(line):
            key, value = pair[1].lower(), pair[2].lower()
            if key == "charset" and applies:
                charset = value
            elif key == "root" and applies is None:
                is_root = value == "true"
    return charset, is_root


_HEADER: Final = re.compile(r"\s*\[(.+)\]\s*")
_PAIR: Final = re.compile(r"\s*([^\s#;=\[][^=]*?)\s*=\s*(.*?)\s*")


def _matches(pattern: str, path: str) -> bool:
    try:
        return parse_glob(pattern).matches_path(path)
    except GlobError:
        return False
