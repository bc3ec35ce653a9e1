"""Laws of command output: how a stream was divided never shows; memory has a bound."""

from __future__ import annotations

import tracemalloc
import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handrail.core.output import OutputAccumulator, SecretMask, Snapshot
from handrail.core.sanitizing import Sanitizer, sanitize
from handrail.core.truncation import truncate_tail

FRAGMENTS = st.sampled_from(
    [
        *(b"\r", b"\n", b"\r\n", b"\x1b", b"\x1b[", b"\x1b[31m", b"\x1b]0;t", b"\x07", b"\x1b\\", b"\x9b", b"\0"),
        *(b"a", b" ", b"word", b"50%\r", b"\r" * 11, b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\x80", b"\xe6\xbc"),
        *("é".encode(), "漢".encode(), "😀".encode(), "\u009b1m".encode(), "\u0085".encode(), b"0123456789" * 5),
    ]
)
STREAMS = st.lists(FRAGMENTS | st.binary(max_size=6), max_size=40).map(b"".join)
CUTS = st.lists(st.integers(0, 400), max_size=12)


def divided(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def accumulated(pieces: list[bytes], max_lines: int, max_bytes: int, utf16: bool) -> tuple[Snapshot, str]:
    output = OutputAccumulator(max_lines=max_lines, max_bytes=max_bytes, utf16=utf16)
    for piece in pieces:
        output.feed(piece)
        output.snapshot()  # looking changes nothing
    output.finish()
    return output.snapshot(), output.text()[0]


@given(STREAMS, CUTS, st.integers(1, 8), st.integers(1, 60), st.booleans())
def test_any_division_gives_the_same_result(
    data: bytes, cuts: list[int], max_lines: int, max_bytes: int, utf16: bool
) -> None:
    whole = accumulated([data], max_lines, max_bytes, utf16)
    assert accumulated(divided(data, cuts), max_lines, max_bytes, utf16) == whole


@given(STREAMS, st.integers(1, 8), st.integers(1, 60))
def test_a_snapshot_is_the_tail_of_the_whole_text(data: bytes, max_lines: int, max_bytes: int) -> None:
    snapshot, text = accumulated([data], max_lines, max_bytes, False)
    assert snapshot.truncation == truncate_tail(text, max_lines=max_lines, max_bytes=max_bytes)
    assert snapshot.last_line_bytes == len(text.removesuffix("\n").rpartition("\n")[2].encode())


@given(STREAMS)
def test_output_holds_no_control_characters(data: bytes) -> None:
    _, text = accumulated([data], 2000, 51200, False)
    assert not [each for each in text if unicodedata.category(each) == "Cc" and each not in "\t\n\r"]


@given(st.text(st.characters(exclude_categories=["Cs"])), CUTS)
def test_sanitising_is_idempotent_and_ignores_divisions(text: str, cuts: list[int]) -> None:
    clean = sanitize(text)
    assert sanitize(clean) == clean
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    sanitizer = Sanitizer()
    assert "".join(sanitizer.feed(text[a:b]) for a, b in pairwise(places)) == clean


@given(st.text("ab*", max_size=30), CUTS, st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
def test_masking_ignores_divisions_and_leaves_no_value(text: str, cuts: list[int], values: list[str]) -> None:
    mask = SecretMask(values)
    data = text.encode()
    shown = b"".join(map(mask.feed, divided(data, cuts))) + mask.finish()
    assert shown == SecretMask(values).text(text).encode()
    assert not any(value.encode() in shown for value in values)


def test_memory_does_not_grow_with_the_output() -> None:
    pieces = [b"a line of output\n" * 8000, b"x" * 130_000, "漢".encode() * 40_000, b"\x1b[1m50%\r" * 2000]
    output = OutputAccumulator()
    tracemalloc.start()
    try:
        for _ in range(100):
            for piece in pieces:
                output.feed(piece)
        output.snapshot()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024
