"""Tool arguments as a person types them: ``key=text`` and ``key:=json``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from handrail.adapters.cli.errors import UsageError

__all__ = ["parse_assignments", "parse_object"]


def parse_assignments(words: Iterable[str]) -> dict[str, Any]:
    """Return the arguments that ``key=value`` words spell.

    ``key=value`` gives a string, which the tool's validation turns into what its parameter wants;
    ``key:=value`` gives a JSON value.

    Raises:
        UsageError: A word without a key or ``=``, a key given twice, a value that is not JSON or not UTF-8.
    """
    arguments: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise UsageError(f"{word!r} is not key=value or key:=json.")
        if key in arguments:
            raise UsageError(f"{key} is given twice.")
        arguments[key] = _parse_json(text, key) if is_json else _checked(text, key)
    return arguments


def parse_object(text: str) -> Any:
    """Return the arguments of one JSON text. Whether it is an object is for the tool's validation to say.

    Raises:
        UsageError: The text is not JSON.
    """
    return _parse_json(text, "--args")


def _parse_json(text: str, name: str) -> Any:
    try:
        return json.loads(_checked(text, name))
    except RecursionError:
        raise UsageError(f"{name}: this JSON is nested too deeply.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise UsageError(f"{name}: not valid JSON at {where}: {error.msg}. A plain text needs key=text.") from None
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def _checked(text: str, name: str) -> str:
    """Refuse bytes that are not UTF-8; Python hands them over as lone surrogates (PEP 383)."""
    for position, character in enumerate(text):
        if "\udc80" <= character <= "\udcff":
            byte = ord(character) - 0xDC00
            raise UsageError(
                f"{name}: the byte 0x{byte:02X} at position {position} is not UTF-8. "
                f"In a path, write it as \\x{byte:02x}."
            )
    return text
