"""From what a model sends to typed arguments, and from an attrs class to JSON Schema.

The only user of cattrs. Lenient where the intent is plain (``"10"`` for a number, 5 for a string, ``null`` for
an optional, unknown keys); strict where it is not (``null`` or a boolean is never a string). Contract section 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import GenericAlias, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs
from cattrs import BaseValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn, override

from handrail.core.errors import ToolError
from handrail.core.results import camel_case

__all__ = ["json_schema", "parameter", "structure"]

T = TypeVar("T")

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def parameter(
    description: str,
    *,
    default: Any = attrs.NOTHING,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Any:
    """Declare a parameter of a tool, as the default of a field in an attrs class.

    Args:
        description: What a model reads about it.
        default: The value when it is absent or ``null``; without one the parameter is required.
        minimum: Smallest value that a schema shows. Not enforced here: the tool decides.
        maximum: Largest value that a schema shows. Not enforced here.
    """
    metadata = {"description": description, "minimum": minimum, "maximum": maximum}
    return attrs.field(default=default, metadata=metadata)


def structure(tool: str, raw: Any, into: type[T]) -> T:
    """Return the typed arguments of a call.

    Args:
        tool: The tool's name, for the error text.
        raw: What the caller sent.
        into: The tool's parameter class.

    Raises:
        ToolError: ``invalid_arguments``, naming each field, what came and what is wanted.
    """
    if not isinstance(raw, Mapping):
        raise ToolError(
            "invalid_arguments", f"Arguments of {tool} must be an object with named fields, not {_kind(raw)}."
        )
    try:
        return _CONVERTER.structure(raw, into)
    except BaseValidationError as error:
        problems = [problem.removesuffix(" @ $") for problem in transform_error(error, format_exception=_problem)]
        listed = "\n".join(f"- {_locate(problem)}" for problem in problems)
        given = cast("dict[Any, Any]", raw)
        unknown = [str(name) for name in given if name not in json_schema(into)["properties"]]
        ignored = f"\nNot understood: {', '.join(unknown)}." if unknown else ""
        message = f"Invalid arguments for {tool}:\n{listed}\n{_usage(into)}{ignored}"
        raise ToolError("invalid_arguments", message) from error


def json_schema(of: type[Any]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12 subset) of a parameter class."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    hints = get_type_hints(of)
    for attribute in attrs.fields(of):
        wire_name = camel_case(attribute.name)
        schema = _type_schema(hints[attribute.name])
        for key in ("description", "minimum", "maximum"):
            if attribute.metadata.get(key) is not None:
                schema[key] = attribute.metadata[key]
        properties[wire_name] = schema
        if attribute.default is attrs.NOTHING:
            required.append(wire_name)
    return {"type": "object", "properties": properties, "required": required}


# ------------------------------------------------------------------ schema


_SCALARS: Final[dict[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _type_schema(hint: Any) -> dict[str, Any]:
    hint = _without_none(hint)
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if attrs.has(hint):
        return dict(json_schema(hint))
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if get_origin(hint) in (tuple, list, Sequence):
        return {"type": "array", "items": _type_schema(get_args(hint)[0])}
    if get_origin(hint) in (dict, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(get_args(hint)[1])}
    return {}


def _without_none(hint: Any) -> Any:
    """``int`` for ``int | None``; other hints as they are."""
    if get_origin(hint) in (Union, UnionType):
        rest = [arm for arm in get_args(hint) if arm is not type(None)]
        return rest[0] if len(rest) == 1 else hint
    return hint


# ------------------------------------------------------------------ values


def _kind(value: Any) -> str:
    """Say what came, in the words of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, str):
        return f"the string {value!r}" if len(value) <= 40 else f"a string of {len(value)} characters"
    if isinstance(value, int | float):
        return f"the number {value!r}"
    return "an object" if isinstance(value, Mapping) else "a list" if isinstance(value, Sequence) else "an odd value"


def _string(value: Any, _: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value):
        return str(int(value)) if value == int(value) else repr(value)
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {_kind(value)}")
    half = _half_surrogate(value)
    if half is not None:
        raise ValueError(
            f"has half of a surrogate pair (U+{ord(value[half]):04X}) at position {half}; send whole characters"
        )
    return value


def _half_surrogate(text: str) -> int | None:
    if text.isascii():
        return None
    found = re.search("[\ud800-\udfff]", text)
    return found.start() if found else None


def _number(value: Any, _: Any) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, not {_kind(value)}")
    if not _is_finite(value):
        raise ValueError("must be a finite number")
    return value


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an int beyond the range of floats
        return False


def _integer(value: Any, _: Any) -> int:
    try:
        number = _number(value, float)
    except ValueError:
        raise ValueError(f"must be a whole number, not {_kind(value)}") from None
    if number != int(number):
        raise ValueError(f"must be a whole number, not {number!r}")
    return int(number)


_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


def _boolean(value: Any, _: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | str) and str(value).strip().lower() in _BOOLEANS:
        return _BOOLEANS[str(value).strip().lower()]
    raise ValueError(f"must be true or false, not {_kind(value)}")


def _sequence_hook(hint: Any) -> Callable[[Any, Any], Any]:
    items: Any = GenericAlias(list, (get_args(hint)[0],))

    def hook(value: Any, _: Any) -> Any:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ValueError(f"must be a list, not {_kind(value)}")
        return tuple(_CONVERTER.structure(value, items))

    return hook


def _object_hook(of: type[Any]) -> Callable[[Any, Any], Any]:
    names = {attribute.name: override(rename=camel_case(attribute.name)) for attribute in attrs.fields(of)}
    inner = make_dict_structure_fn(of, _CONVERTER, **names)  # type: ignore[arg-type]
    optional = [camel_case(a.name) for a in attrs.fields(of) if a.default is not attrs.NOTHING]

    def hook(value: Any, to: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"must be an object, not {_kind(value)}")
        given = cast("dict[Any, Any]", value)
        return inner({k: v for k, v in given.items() if not (v is None and k in optional)}, to)

    return hook


def _is_sequence(hint: Any) -> bool:
    return get_origin(hint) in (tuple, Sequence)


_CONVERTER: Final = Converter(forbid_extra_keys=False)
_CONVERTER.register_structure_hook(str, _string)
_CONVERTER.register_structure_hook(int, _integer)
_CONVERTER.register_structure_hook(float, _number)
_CONVERTER.register_structure_hook(bool, _boolean)
_CONVERTER.register_structure_hook_factory(attrs.has, _object_hook)
_CONVERTER.register_structure_hook_factory(_is_sequence, _sequence_hook)


# ------------------------------------------------------------------ problems


def _problem(error: BaseException, _: type[Any] | None) -> str:
    if isinstance(error, KeyError):
        return "is required"
    return str(error)


def _locate(problem: str) -> str:
    """Turn cattrs's ``text @ $.edits[0].oldText`` into ``edits[0].oldText text``."""
    text, _, path = problem.rpartition(" @ $")
    field, where = (path.lstrip("."), text) if text else ("arguments", problem)
    return f"{_wire_path(field)} {where}"


def _wire_path(path: str) -> str:
    return ".".join(camel_case(part) for part in path.split("."))


def _usage(of: type[Any]) -> str:
    schema = json_schema(of)
    shown = [name if name in schema["required"] else f"{name}?" for name in schema["properties"]]
    return f"Expected: {{{', '.join(shown)}}}"
