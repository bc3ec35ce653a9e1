"""Bytes as file objects: the same answers as the standard library's."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.core.byte_streams import ByteReader, ByteWriter, as_file

# A step: a method and its arguments.
reads = st.tuples(st.just("read"), st.tuples(st.none() | st.integers(-2, 30)))
seeks = st.tuples(st.just("seek"), st.tuples(st.integers(-30, 30), st.sampled_from([1, 2])))
starts = st.tuples(st.just("seek"), st.tuples(st.integers(0, 30), st.just(0)))


@given(st.binary(max_size=20), st.lists(reads | seeks | starts, max_size=12))
def test_a_reader_agrees_with_the_standard_library(
    data: bytes, steps: list[tuple[str, tuple[int | None, ...]]]
) -> None:
    ours, theirs = as_file(ByteReader(data)), io.BytesIO(data)
    for method, arguments in steps:
        assert getattr(ours, method)(*arguments) == getattr(theirs, method)(*arguments)
        assert ours.tell() == theirs.tell()


def test_a_negative_position_is_refused() -> None:
    with pytest.raises(ValueError, match="negative seek value -1"):
        ByteReader(b"abc").seek(-1)


def test_a_writer_keeps_a_copy_of_what_is_written() -> None:
    writer = ByteWriter()
    piece = bytearray(b"one")
    assert writer.write(piece) == 3
    piece[:] = b"two"
    writer.write(b"!")
    assert writer.value() == b"one!"
