"""Tells the kinds of JSON values apart, for type checkers too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

__all__ = ["is_list", "is_mapping", "is_object", "is_sequence"]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a JSON array."""
    return isinstance(value, list)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is what JSON would make an object of."""
    return isinstance(value, Mapping)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a value is what JSON would make an array of, or a text."""
    return isinstance(value, Sequence)
