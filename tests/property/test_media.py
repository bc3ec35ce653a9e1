"""Laws of what is made from unchecked files: an answer for any bytes, within the limits, never an exception."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pypdf import PdfWriter

from handrail.core.images import MAX_BASE64_BYTES, MAX_SIDE, PreparedImage, detect_image_type, prepare_image
from handrail.core.notebooks import MAX_OUTPUT_BYTES, render_notebook
from handrail.core.pdf import pdf_page_window

# Pillow warns of odd metadata and goes on.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")

TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"]
KINDS = dict(zip(TYPES, ["JPEG", "PNG", "GIF", "WEBP", "BMP"], strict=True))


def sample(mime_type: str, mode: str, width: int, height: int, options: dict[str, Any]) -> bytes:
    raw = Image.frombytes("RGBA", (width, height), random.Random(width).randbytes(4 * width * height))
    target = io.BytesIO()
    raw.convert(mode).save(target, KINDS[mime_type], **options)
    return target.getvalue()


def frames(mode: str) -> dict[str, Any]:
    return {"save_all": True, "append_images": [Image.new(mode, (20, 15), 1)]}


ORIENTATION_SIX = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("image/jpeg", "RGB", {"exif": ORIENTATION_SIX}),
    ("image/jpeg", "CMYK", {}),
    ("image/jpeg", "L", {"progressive": True}),
    ("image/png", "RGBA", {}),
    ("image/png", "P", {"transparency": 3}),
    ("image/png", "1", {}),
    ("image/gif", "P", frames("P")),
    ("image/webp", "RGBA", {"lossless": True}),
    ("image/webp", "RGB", frames("RGB")),
    ("image/bmp", "RGB", {}),
    ("image/bmp", "P", {}),
]
SAMPLES = [(mime_type, sample(mime_type, mode, 20, 15, options)) for mime_type, mode, options in VARIANTS]


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with some changed, a piece gone, doubled or put in, or the end missing."""
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 40)))
        data = data[:at] + draw(st.sampled_from([b"", data[at:end] * 2]) | st.binary(max_size=8)) + data[end:]
    return data[: draw(st.just(len(data)) | st.integers(0, len(data)))]


def check(result: PreparedImage | str, mime_type: str, resize: bool) -> None:
    if isinstance(result, str):
        head, _, reason = result.partition("\n")
        assert head == f"Read image file [{mime_type}]"
        assert reason.startswith("[Image omitted: ")
        assert len(result) < 500
        assert result.isprintable() or result.count("\n") == 1
        return
    assert result.note_lines[0] == f"Read image file [{result.mime_type}]"
    data = base64.b64decode(result.data, validate=True)
    assert detect_image_type(data) == result.mime_type or result.mime_type == mime_type
    assert result.mime_type != "image/bmp"
    if resize:
        assert max(result.width, result.height) <= MAX_SIDE
        assert len(result.data) <= MAX_BASE64_BYTES


@given(st.binary(max_size=200), st.sampled_from([*TYPES, "image/x-unknown"]), st.booleans())
def test_any_bytes_give_an_image_or_a_reason(data: bytes, mime_type: str, resize: bool) -> None:
    assert detect_image_type(data) in [None, *TYPES]
    check(prepare_image(data, mime_type, resize=resize), mime_type, resize)


@given(st.sampled_from(SAMPLES), st.data(), st.booleans())
def test_damaged_images_give_an_image_or_a_reason(file: tuple[str, bytes], data: st.DataObject, resize: bool) -> None:
    mime_type, whole = file
    check(prepare_image(data.draw(damaged(whole)), mime_type, resize=resize), mime_type, resize)


@given(st.sampled_from(SAMPLES), st.floats(0, 1))
def test_the_type_is_known_from_the_start_of_a_file(file: tuple[str, bytes], part: float) -> None:
    mime_type, whole = file
    assert detect_image_type(whole) == mime_type
    assert detect_image_type(whole[: int(len(whole) * part)]) in (None, mime_type)


@given(st.sampled_from(TYPES), st.integers(1, 4200), st.integers(1, 12), st.booleans())
def test_any_size_is_brought_within_the_limits(mime_type: str, long: int, short: int, tall: bool) -> None:
    width, height = (short, long) if tall else (long, short)
    result = prepare_image(sample(mime_type, "RGB", width, height, {}), mime_type)
    assert isinstance(result, PreparedImage)
    shown = Image.open(io.BytesIO(base64.b64decode(result.data)))
    shown.load()
    assert shown.size == (result.width, result.height)
    assert max(shown.size) == min(long, MAX_SIDE) or long < short
    assert (f"original {width}x{height}" in result.note) is (long > MAX_SIDE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
CELL_KEYS = ["cell_type", "source", "input", "outputs", "execution_count", "id", "level", "attachments"]
OUTPUT_KEYS = ["output_type", "text", "name", "stream", "data", "png", "traceback", "ename", "evalue"]
KEYS = [*CELL_KEYS, *OUTPUT_KEYS, "language_info", "kernelspec", "text/plain", "image/png"]
WORDS = [
    "code",
    "markdown",
    "heading",
    "stream",
    "error",
    "pyerr",
    "execute_result",
    "pyout",
    "display_data",
    "\x1b[1m",
]
notebook_like = st.recursive(
    json_values | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(st.text())
def test_any_text_is_a_notebook_or_not(text: str) -> None:
    rendered = render_notebook(text)
    assert rendered is None or rendered.startswith("[Jupyter notebook")


@given(st.lists(notebook_like, max_size=4), notebook_like)
def test_any_values_in_a_notebook_are_shown(cells: list[Any], metadata: Any) -> None:
    rendered = render_notebook(json.dumps({"nbformat": 4, "metadata": metadata, "cells": cells}))
    assert rendered is not None
    assert rendered.startswith("[Jupyter notebook (nbformat 4.0")
    assert rendered.count("\n=== Cell ") >= len(cells)
    rendered.encode()  # whole characters only


@given(st.text(max_size=50), st.integers(0, 3000))
def test_the_text_of_an_output_is_bounded(piece: str, times: int) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": piece * times}
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [output]}]}
    rendered = render_notebook(json.dumps(notebook))
    assert rendered is not None
    assert len(rendered.encode()) < MAX_OUTPUT_BYTES + 400


def blank_pdf(encrypt: Callable[[PdfWriter], None] = lambda writer: None) -> bytes:
    writer = PdfWriter()
    for _ in range(3):
        writer.add_blank_page(100, 100)
    encrypt(writer)
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


PDFS = [blank_pdf(), blank_pdf(lambda writer: writer.encrypt("", "owner", algorithm="RC4-128"))]


@given(st.sampled_from(PDFS), st.data(), st.integers(1, 5), st.none() | st.integers(0, 4))
def test_damaged_pdfs_give_pages_or_a_reason(whole: bytes, data: st.DataObject, first: int, limit: int | None) -> None:
    result = pdf_page_window(data.draw(damaged(whole)), first=first, limit=limit)
    if isinstance(result, str):
        assert result.startswith("[PDF file that ")
    else:
        assert len(result.pages) <= max(0, result.total - first + 1)


@given(st.binary(max_size=300))
def test_any_bytes_give_pages_or_a_reason(data: bytes) -> None:
    for file in (data, b"%PDF-1.4\n" + data):
        assert isinstance(pdf_page_window(file), str)
