"""Checking JSON Schemas with an independent implementation of the standard."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

__all__ = ["accepts", "check_schema"]


def check_schema(schema: dict[str, Any]) -> None:
    """Fail unless this is a valid schema of draft 2020-12."""
    Draft202012Validator.check_schema(schema)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is valid by a schema."""
    validator: Any = Draft202012Validator(schema)
    return bool(validator.is_valid(value))
