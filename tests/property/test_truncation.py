"""Laws of bounded output: contract section 3."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.core.truncation import (
    Truncation,
    byte_length,
    count_lines,
    format_size,
    truncate_head,
    truncate_line,
    truncate_middle,
    truncate_tail,
)

Truncate = Callable[..., Truncation]

# Few different characters of every length in UTF-8, and many line ends, so that every limit falls everywhere.
TEXTS = st.text(st.sampled_from("a\u00e9\u20ac\U0001f600 \r\n\n\n\0\ufeff\u2028"), max_size=60)
LIMITS = st.integers(0, 40)

both = pytest.mark.parametrize("truncate", [truncate_head, truncate_tail])


@both
@given(TEXTS, LIMITS, LIMITS)
def test_the_output_is_within_both_limits(truncate: Truncate, text: str, max_lines: int, max_bytes: int) -> None:
    kept = truncate(text, max_lines=max_lines, max_bytes=max_bytes)
    assert (kept.max_lines, kept.max_bytes) == (max_lines, max_bytes)
    assert kept.output_bytes == byte_length(kept.content) <= max_bytes
    assert kept.output_lines <= max_lines or kept.last_line_partial
    assert count_lines(kept.content) <= kept.output_lines


@both
@given(TEXTS, LIMITS, LIMITS)
def test_truncated_means_that_input_is_missing(truncate: Truncate, text: str, max_lines: int, max_bytes: int) -> None:
    kept = truncate(text, max_lines=max_lines, max_bytes=max_bytes)
    assert kept.truncated == (kept.content != text)
    assert kept.truncated == (kept.total_lines > max_lines or kept.total_bytes > max_bytes)
    assert (kept.truncated_by is None) == (not kept.truncated)
    if not kept.truncated:
        assert (kept.output_lines, kept.output_bytes) == (kept.total_lines, kept.total_bytes)


@both
@given(TEXTS, LIMITS, LIMITS, LIMITS, LIMITS)
def test_totals_do_not_depend_on_the_limits(truncate: Truncate, text: str, a: int, b: int, c: int, d: int) -> None:
    one, other = truncate(text, max_lines=a, max_bytes=b), truncate(text, max_lines=c, max_bytes=d)
    assert (one.total_lines, one.total_bytes) == (other.total_lines, other.total_bytes)
    assert (one.total_lines, one.total_bytes) == (count_lines(text), len(text.encode()))


@both
@given(TEXTS, LIMITS, LIMITS)
def test_truncating_twice_changes_nothing(truncate: Truncate, text: str, max_lines: int, max_bytes: int) -> None:
    once = truncate(text, max_lines=max_lines, max_bytes=max_bytes).content
    assert truncate(once, max_lines=max_lines, max_bytes=max_bytes).content == once


@given(TEXTS, LIMITS, LIMITS)
def test_the_head_is_whole_lines_from_the_start(text: str, max_lines: int, max_bytes: int) -> None:
    kept = truncate_head(text, max_lines=max_lines, max_bytes=max_bytes)
    assert not kept.last_line_partial
    if kept.truncated:
        lines = text.split("\n")[: kept.total_lines]
        assert kept.content == "\n".join(lines[: kept.output_lines])
        following = lines[: kept.output_lines + 1]
        fits = len(following) <= max_lines and byte_length("\n".join(following)) <= max_bytes
        assert kept.output_lines == kept.total_lines or not fits
    assert kept.first_line_exceeds_limit == (byte_length(text.split("\n")[0]) > max_bytes and max_lines > 0)


@given(TEXTS, LIMITS, LIMITS)
def test_the_tail_is_whole_lines_from_the_end_or_the_end_of_the_last(text: str, max_lines: int, max_bytes: int) -> None:
    kept = truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)
    assert not kept.first_line_exceeds_limit
    lines = text.split("\n")[: kept.total_lines]
    if kept.last_line_partial:
        assert byte_length(lines[-1]) > max_bytes
        assert lines[-1].endswith(kept.content)
        longer = lines[-1][-len(kept.content) - 1 :]
        assert byte_length(longer) > max_bytes
    elif kept.truncated:
        assert kept.content == "\n".join(lines[len(lines) - kept.output_lines :])
        more = lines[-kept.output_lines - 1 :]
        fits = len(more) <= max_lines and byte_length("\n".join(more)) <= max_bytes
        assert kept.output_lines == kept.total_lines or not fits


@given(TEXTS, LIMITS)
def test_the_middle_keeps_both_ends_and_counts_what_is_left_out(text: str, max_bytes: int) -> None:
    kept = truncate_middle(text, max_bytes=max_bytes)
    if byte_length(text) <= max_bytes:
        assert kept == text
        return
    marker = re.search(r"\n\n\[\.\.\. (\d+) bytes(?: \((\d+) lines\))? omitted \.\.\.\]\n\n", kept)
    assert marker is not None
    head, tail = kept[: marker.start()], kept[marker.end() :]
    omitted = text[len(head) : len(text) - len(tail)]
    assert head + omitted + tail == text
    assert int(marker[1]) == byte_length(omitted)
    assert int(marker[2] or 1) == omitted.count("\n") + 1
    # A character has at most four bytes, so each cut gives away three of them at most.
    assert max_bytes - 6 <= byte_length(head) + byte_length(tail) <= max_bytes
    assert abs(byte_length(head) - byte_length(tail)) <= 7


@given(TEXTS, LIMITS)
def test_a_line_is_cut_after_whole_characters_and_marked(line: str, limit: int) -> None:
    kept, was_cut = truncate_line(line, limit)
    assert was_cut == (len(line) > limit)
    assert kept == (f"{line[:limit]}... [truncated]" if was_cut else line)


@given(TEXTS, TEXTS)
def test_counting_lines_is_additive_at_line_ends(first: str, second: str) -> None:
    assert count_lines(f"{first}\n{second}") == count_lines(f"{first}\n") + count_lines(second)


@pytest.mark.parametrize("text, lines", [("", 0), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n", 1), ("a\rb", 1)])
def test_a_final_newline_adds_no_line(text: str, lines: int) -> None:
    assert count_lines(text) == lines


@given(st.integers(0, 10**15))
def test_a_size_is_within_half_a_tenth_of_its_unit(size: int) -> None:
    shown = format_size(size)
    unit = {"B": 1, "KB": 1024, "MB": 1024**2}[shown.lstrip("0123456789.")]
    number = float(shown.rstrip("BKM"))
    assert abs(number * unit - size) <= unit / 20 + size * 1e-12
    assert unit == 1 or size >= unit


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_larger_file_never_looks_smaller(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert _bytes(format_size(small)) <= _bytes(format_size(large))


def _bytes(shown: str) -> float:
    unit = {"B": 1, "KB": 1024, "MB": 1024**2}[shown.lstrip("0123456789.")]
    return float(shown.rstrip("BKM")) * unit
