"""``key=text`` and ``key:=json`` become the arguments of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.cli.assignments import parse_assignments, parse_object
from handrail.adapters.cli.errors import UsageError

keys = st.from_regex(r"[A-Za-z]\w*", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=8,
)


@given(st.dictionaries(keys, texts))
def test_any_text_comes_through_unchanged(arguments: dict[str, str]) -> None:
    assert parse_assignments(f"{key}={text}" for key, text in arguments.items()) == arguments


@given(st.dictionaries(keys, values))
def test_any_json_value_comes_through_unchanged(arguments: dict[str, Any]) -> None:
    assert parse_assignments(f"{key}:={json.dumps(value)}" for key, value in arguments.items()) == arguments


@given(values)
def test_one_json_text_may_be_anything(value: Any) -> None:
    assert parse_object(json.dumps(value)) == value


@pytest.mark.parametrize(
    "words, message",
    [
        (["path"], "'path' is not key=value or key:=json."),
        (["=x"], "'=x' is not key=value or key:=json."),
        ([":=1"], "':=1' is not key=value or key:=json."),
        (["a=1", "a:=2"], "a is given twice."),
        (["a:={'x': 1}"], "a: not valid JSON at line 1 column 2: "),
        (["a:=" + "[" * 100_000], "a: this JSON is nested too deeply."),
        (["a:=" + "9" * 5000], "a: "),
        (["a=x\udcffy"], "a: the byte 0xFF at position 1 is not UTF-8. In a path, write it as \\xff."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_other_words_are_refused_with_the_reason(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_assignments(words)
    assert str(caught.value).startswith(message)
