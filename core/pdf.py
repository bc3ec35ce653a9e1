"""PDF files as text by page, through the optional library pypdf (extra ``pdf``). No images, no layout.

A pure and possibly long computation; callers run it through the environment's ``offload``.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from handrail.core.byte_streams import ByteReader, as_file
from handrail.core.truncation import MAX_BYTES, byte_length

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

__all__ = ["PdfPages", "is_pdf", "pdf_page_window"]

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f\ud800-\udfff]")

# pypdf logs what it mends in a file. A handler of ours keeps that off standard error; hosts still receive it.
_SILENCE: Final = logging.NullHandler()


@frozen
class PdfPages:
    """Consecutive pages of a PDF file.

    Attributes:
        pages: The text of each page; where there is none or it cannot be read, a sentence that says so.
        first: Number of the first of them, counted from 1.
        total: Pages in the file.
    """

    pages: tuple[str, ...] = field(repr=False)
    first: int
    total: int


def is_pdf(data: bytes) -> bool:
    """Tell whether a file is a PDF: the mark stands first, after blanks at most.

    Readers accept it anywhere in the first kilobyte (ISO 32000-1, annex H), but there a source text may mention it.
    """
    return data[:1024].removeprefix(b"\xef\xbb\xbf").lstrip(b"\0\t\n\f\r ").startswith(b"%PDF-")


def pdf_page_window(
    data: bytes, *, first: int = 1, limit: int | None = None, max_bytes: int | None = MAX_BYTES
) -> PdfPages | str:
    """Extract the text of some pages.

    Args:
        data: The whole file.
        first: Number of the first page, counted from 1. Beyond the end there are no pages.
        limit: The most pages to extract; ``None`` for all.
        max_bytes: Extraction ends after the page that brings the text to this many bytes of UTF-8, so that
            the time depends on what can be shown and not on the file; ``None`` for no such end.

    Returns:
        The pages, or a text that says why there are none.
    """
    try:
        from pypdf import PdfReader
    except ImportError:
        return (
            "[PDF file. Reading its text needs an optional library: pip install 'handrail[pdf]'. "
            "Until then, use another program, for example pdftotext.]"
        )
    logging.getLogger("pypdf").addHandler(_SILENCE)
    try:
        reader = PdfReader(as_file(ByteReader(data)))
        total = len(reader.pages)
    except Exception as error:  # a damaged file makes the parser raise almost anything
        return _unreadable(error)
    last = total if limit is None else min(total, first - 1 + limit)
    return PdfPages(_extract(reader, range(first - 1, last), max_bytes), first, total)


def _extract(reader: PdfReader, indices: range, max_bytes: int | None) -> tuple[str, ...]:
    pages: list[str] = []
    size = 0
    for index in indices:
        if max_bytes is not None and size >= max_bytes:
            break
        pages.append(_page_text(reader, index))
        size += byte_length(pages[-1])
    return tuple(pages)


def _page_text(reader: PdfReader, index: int) -> str:
    try:
        page: PageObject = reader.pages[index]
        text = _UNPRINTABLE.sub("\ufffd", page.extract_text()).strip()
    except Exception as error:  # one broken page leaves the others readable
        return f"[This page cannot be read: {_said(error)}.]"
    return text or "[No text on this page; it may be a scan or a drawing.]"


def _unreadable(error: Exception) -> str:
    from pypdf.errors import DependencyError, FileNotDecryptedError

    if isinstance(error, FileNotDecryptedError):
        return "[PDF file that is encrypted with a password. Decrypt it first, for example with qpdf --decrypt.]"
    if isinstance(error, DependencyError):
        return "[PDF file that is encrypted with AES. Reading it needs one more library: pip install cryptography.]"
    return f"[PDF file that cannot be read ({_said(error)}). It is damaged or incomplete.]"


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
