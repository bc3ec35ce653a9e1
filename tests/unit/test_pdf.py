"""PDF files as text by page; the library is the real one."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from pypdf import PdfWriter

from handrail.core.pdf import PdfPages, is_pdf, pdf_page_window


def pdf(*pages: str, trailer: bytes = b"", broken_page: int | None = None) -> bytes:
    """Write a PDF of text pages by hand (ISO 32000-1, section 7.5); one may name a filter that does not exist."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, page in enumerate(pages):
        lines = b" ".join(b"(%s) Tj T*" % line.encode() for line in page.splitlines())
        content = b"BT /F1 12 Tf 72 720 Td 14 TL %s ET" % lines
        resources = b"/Resources << /Font << /F1 3 0 R >> >>"
        box = b"/MediaBox [0 0 612 792]"
        objects.append(b"<< /Type /Page /Parent 2 0 R %s %s /Contents %d 0 R >>" % (box, resources, 5 + 2 * index))
        filters = b"/Filter /Unheard" if index + 1 == broken_page else b""
        objects.append(b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), filters, content))
    file = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    file += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start)
    return bytes(file)


def encrypted(data: bytes, password: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(password, "owner", algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def window(result: PdfPages | str) -> PdfPages:
    assert isinstance(result, PdfPages), result
    return result


def pdf_pages(data: bytes) -> list[str] | str:
    """The text of every page, or why there is none."""
    result = pdf_page_window(data, max_bytes=None)
    return result if isinstance(result, str) else list(result.pages)


def refused(result: list[str] | str) -> str:
    assert isinstance(result, str)
    return result


def test_every_page_is_text() -> None:
    assert pdf_pages(pdf("one", "two\nlines", "three")) == ["one", "two\nlines", "three"]


def test_a_page_without_text_says_so() -> None:
    assert pdf_pages(pdf("one", "")) == ["one", "[No text on this page; it may be a scan or a drawing.]"]


def test_a_file_without_pages_has_none() -> None:
    assert pdf_pages(pdf()) == []


@pytest.mark.parametrize(
    "first, limit, pages",
    [
        (1, None, "abcde"),
        (2, 2, "bc"),
        (4, 9, "de"),
        (5, 1, "e"),
        (6, None, ""),
        (9, 3, ""),
        (1, 0, ""),
    ],
)
def test_a_window_has_the_pages_asked_for(first: int, limit: int | None, pages: str) -> None:
    found = window(pdf_page_window(pdf(*"abcde"), first=first, limit=limit))
    assert found == PdfPages(tuple(pages), first, 5)


@pytest.mark.parametrize("max_bytes, count", [(1, 1), (10, 1), (11, 2), (35, 4), (1000, 5)])
def test_a_window_ends_with_the_page_that_reaches_the_limit(max_bytes: int, count: int) -> None:
    data = pdf(*("ten bytes." for _ in range(5)))
    found = window(pdf_page_window(data, max_bytes=max_bytes))
    assert (len(found.pages), found.total) == (count, 5)


def test_a_broken_page_leaves_the_others() -> None:
    broken = "[This page cannot be read: Unsupported filter /Unheard.]"
    assert pdf_pages(pdf("one", "two", "three", broken_page=2)) == ["one", broken, "three"]


def test_unprintable_characters_are_replaced() -> None:
    assert pdf_pages(pdf("a\\001b")) == ["a\ufffdb"]


@pytest.mark.parametrize(
    "data", [b"", b"%PDF-1.4", b"%PDF-1.4\n%%EOF", b"garbage " * 100, pdf("one")[:-80], pdf("one")[:100]]
)
def test_a_damaged_file_says_what_is_wrong(data: bytes) -> None:
    text = refused(pdf_pages(data))
    assert text.startswith("[PDF file that cannot be read (")
    assert text.endswith("). It is damaged or incomplete.]")


def test_a_password_is_named_as_the_reason() -> None:
    assert "encrypted with a password" in refused(pdf_pages(encrypted(pdf("secret"), "word")))


def test_a_file_that_only_restricts_printing_is_read() -> None:
    assert pdf_pages(encrypted(pdf("public"), "")) == ["public"]


def test_encryption_that_needs_another_library_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "pypdf":
            monkeypatch.delitem(sys.modules, name)  # it looks for its providers when it is imported
    for provider in ("cryptography", "Crypto"):
        monkeypatch.setitem(sys.modules, provider, None)
    filters = b"/CF << /StdCF << /CFM /AESV3 /AuthEvent /DocOpen /Length 32 >> >> /StmF /StdCF /StrF /StdCF"
    keys = b"/O <%s> /U <%s> /OE <%s> /UE <%s> /Perms <%s>" % (
        b"00" * 48,
        b"00" * 48,
        b"00" * 32,
        b"00" * 32,
        b"00" * 16,
    )
    trailer = b"/Encrypt << /Filter /Standard /V 5 /R 6 /Length 256 /P -4 %s %s >>" % (filters, keys)
    assert "pip install cryptography" in refused(pdf_pages(pdf("secret", trailer=trailer)))


def test_without_the_library_the_text_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)  # what Python itself does for a module that must not be found
    assert "pip install 'handrail[pdf]'" in refused(pdf_pages(pdf("one")))


def test_what_the_library_mends_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []  # a host that has not set up logging
    try:
        assert pdf_pages(pdf("one").replace(b"startxref\n", b"startxref\n1")) == ["one"]
    finally:
        root.handlers = handlers
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "data, known",
    [
        (b"%PDF-1.7\n", True),
        (b"\n\r %PDF-1.4", True),
        (b"\xef\xbb\xbf%PDF-1.4", True),
        (b"", False),
        (b"%PDF", False),
        (b"# the mark is %PDF-\n", False),
        (b" " * 2000 + b"%PDF-", False),
    ],
)
def test_a_pdf_is_known_by_its_first_bytes(data: bytes, known: bool) -> None:
    assert is_pdf(data) is known
