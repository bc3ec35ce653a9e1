"""Bytes to text and back: byte order marks, codecs, line endings. Shared by read, edit and grep.

The order: byte order mark, strict UTF-8, the caller's hint, plain UTF-16 or UTF-32 without a mark, detection.
A guess is accepted only if decoding and encoding give the same bytes again; what no codec explains keeps its
odd bytes as lone surrogates (PEP 383), so that no byte is ever lost. Binary data is recognised, not decoded.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from attrs import field, frozen

from handrail.core.errors import ToolError

__all__ = ["Binary", "LineEnding", "TextDocument", "decode", "is_binary_sample", "line_ending_of", "visible"]

LineEnding = str
"""``\\n``, ``\\r\\n`` or ``\\r``."""


@frozen
class Binary:
    """Data that is not text."""

    size: int


@frozen
class TextDocument:
    """A decoded file; ``bom + text.encode(codec, errors)`` are its bytes."""

    text: str = field(repr=False)
    """Everything after the byte order mark, line endings as they are."""
    codec: str = "utf-8"
    bom: bytes = b""
    errors: str = "strict"
    """``surrogateescape`` where a few bytes are not valid in the codec."""
    guessed: bool = False
    """Whether the codec was found by detection."""

    @property
    def label(self) -> str | None:
        """The encoding in words for a notice; ``None`` for plain UTF-8, with or without a mark."""
        if self.codec == "utf-8":
            return "UTF-8 with bytes that are not valid" if self.errors != "strict" else None
        name = _LABELS.get(self.codec, self.codec)
        return f"{name}, detected" if self.guessed else name

    def encode(self, text: str) -> bytes:
        """Return text in this document's encoding, without a mark.

        Raises:
            ToolError: ``unencodable``, naming the characters.
        """
        try:
            return text.encode(self.codec, self.errors)
        except UnicodeEncodeError:
            raise _unencodable(text, self) from None

    def encoded_length(self, start: int, end: int) -> int:
        """Return how many bytes a piece of ``text`` takes in the file."""
        piece = self.text[start:end]
        if self.codec in _ASCII_SUPERSETS and piece.isascii():
            return len(piece)
        return len(piece.encode(self.codec, self.errors))


def decode(data: bytes, *, hint: str | None = None) -> TextDocument | Binary:
    """Decode the content of a file.

    Args:
        data: The whole file, or enough of its start to judge it.
        hint: A codec to try after UTF-8, e.g. a project's charset; ignored when unknown or not fitting.
    """
    for bom, codec in _MARKS:
        if data.startswith(bom):
            return _after_mark(data, bom, codec)
    has_nul = b"\0" in data
    if has_nul and (wide := _wide(data)) is not None:
        return wide
    cut_short = False
    try:
        return TextDocument(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        cut_short = error.end == len(data) and error.end - error.start > 1
    if hint is not None and (hinted := _round_trip(data, hint)) is not None:
        return hinted
    if has_nul or _has_many_controls(data):
        return Binary(len(data))
    escaped = TextDocument(data.decode("utf-8", "surrogateescape"), errors="surrogateescape")
    if cut_short or _is_mostly_utf8(data, escaped.text):
        return escaped
    return _detect(data) or escaped


def is_binary_sample(data: bytes) -> bool:
    """Whether the start of a file shows that it is binary: a NUL that no wide encoding explains."""
    return b"\0" in data and not any(data.startswith(bom) for bom, _ in _MARKS) and _wide(data) is None


def line_ending_of(text: str, position: int) -> LineEnding:
    """Return the ending of the line that a position is in; of the last line, that of the line before it.

    A lone carriage return ends a line only in a text without any line feed.
    """
    at = text.find("\n", position)
    if at < 0:
        at = text.rfind("\n", 0, position)
    if at >= 0:
        return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"
    return "\r" if "\r" in text else "\n"


def visible(text: str) -> str:
    """Return text that is valid Unicode: bytes that could not be decoded become U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


_SURROGATES: Final = re.compile("[\ud800-\udfff]")

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16 LE, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_LABELS: Final = {
    "utf-16-le": "UTF-16 LE",
    "utf-16-be": "UTF-16 BE",
    "utf-32-le": "UTF-32 LE",
    "utf-32-be": "UTF-32 BE",
    "cp1252": "windows-1252",
    "cp1251": "windows-1251",
    "cp932": "Shift-JIS",
    "cp949": "EUC-KR",
}

# Codecs without shift states, in which a piece encodes the same wherever it stands, and ASCII is ASCII.
_ASCII_SUPERSETS: Final = frozenset(
    {"utf-8", "ascii", "mac-roman", "mac-cyrillic", "mac-latin2", "mac-greek", "tis-620", "koi8-r", "koi8-u", "koi8-t"}
    | {
        "kz1048",
        "gb2312",
        "gbk",
        "gb18030",
        "big5",
        "big5hkscs",
        "cp932",
        "cp949",
        "cp950",
        "euc_kr",
        "euc_jp",
        "johab",
    }
    | {f"cp{page}" for page in (437, 850, 852, 855, 862, 866, 874, *range(1250, 1259))}
    | {f"iso8859-{part}" for part in range(1, 17)}
)
_STATELESS: Final = _ASCII_SUPERSETS | {
    "utf-16-le",
    "utf-16-be",
    "utf-32-le",
    "utf-32-be",
    "shift_jis",
    "shift_jis_2004",
}

# Detectors name the base standard; files on disk use the vendors' supersets.
_SUPERSETS: Final = {
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
}


def _after_mark(data: bytes, bom: bytes, codec: str) -> TextDocument | Binary:
    body = data[len(bom) :]
    try:
        return TextDocument(body.decode(codec), codec, bom)
    except UnicodeDecodeError:
        if codec == "utf-8":
            return TextDocument(body.decode(codec, "surrogateescape"), codec, bom, "surrogateescape")
    # Half a unit or half a surrogate pair: no way to keep those bytes inside a text.
    return Binary(len(data))


def _round_trip(data: bytes, codec: str, *, guessed: bool = False) -> TextDocument | None:
    """The document in a codec, if it explains every byte and gives each of them back."""
    try:
        name = codecs.lookup(codec).name
        name = _SUPERSETS.get(name, name)
        if name not in _STATELESS:
            return None
        text = data.decode(name)
        return TextDocument(text, name, guessed=guessed) if text.encode(name) == data else None
    except (LookupError, UnicodeError):
        return None


def _wide(data: bytes) -> TextDocument | None:
    """UTF-16 or UTF-32 without a mark, where it is plain: Latin text has its NULs in fixed columns."""
    for codec, width, column in (("utf-32-le", 4, 3), ("utf-32-be", 4, 0), ("utf-16-le", 2, 1), ("utf-16-be", 2, 0)):
        units = len(data) // width
        if len(data) % width or not units:
            continue
        if data[column::width].count(0) < units * 0.6 or (width == 4 and data[3 - column :: width].count(0) == units):
            continue
        document = _round_trip(data, codec, guessed=True)
        if document is not None and "\0" not in document.text and not _has_many_controls(document.text.encode("utf-8")):
            return document
    return None


_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


def _has_many_controls(data: bytes) -> bool:
    sample = data[:65536]
    return len(sample) - len(sample.translate(None, _CONTROLS)) > len(sample) // 50


def _is_mostly_utf8(data: bytes, text: str) -> bool:
    """Whether valid multi-byte sequences clearly outnumber the bytes that are not valid."""
    valid = len(data.decode("utf-8", "ignore"))
    multi_byte = valid - len(data.translate(None, _BEYOND_ASCII_BYTES))
    return multi_byte >= 4 * (len(text) - valid)


_BEYOND_ASCII_BYTES: Final = bytes(range(0x80, 0x100))


def _detect(data: bytes) -> TextDocument | None:
    import chardet  # 20 ms to import, and needed for few files

    found = chardet.detect(_telling_part(data))
    name, confidence = found["encoding"], found["confidence"] or 0.0
    if name and (confidence >= 0.05 or _is_multi_byte(name)):
        document = _round_trip(data, name, guessed=True)
        if document is not None and (confidence >= 0.3 or document.codec not in _WESTERN):
            return document
    return _round_trip(data, "cp1252", guessed=True)


# What detectors fall back to for a few accented letters; windows-1252 is far likelier on disk.
_WESTERN: Final = (
    frozenset(f"cp{n}" for n in (437, 850, 852, 862, 1250))
    | {f"iso8859-{n}" for n in range(2, 17)}
    | {"mac-latin2", "mac-roman"}
)


def _is_multi_byte(name: str) -> bool:
    try:
        return codecs.lookup(name).name in {
            "gb18030",
            "gbk",
            "gb2312",
            "big5",
            "cp950",
            "cp949",
            "euc_kr",
            "cp932",
            "shift_jis",
            "euc_jp",
        }
    except LookupError:
        return False


def _telling_part(data: bytes) -> bytes:
    """The lines with bytes beyond ASCII, up to 8 KB of them: what a detector can learn from."""
    if len(data) <= _TELLING_SIZE:
        return data
    part = bytearray()
    for match in _BEYOND_ASCII.finditer(data):
        start = max(data.rfind(b"\n", 0, match.start()) + 1, match.start() - 200)
        part += data[start : match.end() + 20] + b"\n"
        if len(part) > _TELLING_SIZE:
            break
    return bytes(part)


_TELLING_SIZE: Final = 8192
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff][^\n]{0,200}")


def _unencodable(text: str, document: TextDocument) -> ToolError:
    def fits(character: str) -> bool:
        try:
            character.encode(document.codec, document.errors)
        except UnicodeEncodeError:
            return False
        return True

    misfits = [c for c in dict.fromkeys(text) if not fits(c)]
    listed = ", ".join(f"{c} (U+{ord(c):04X})" for c in misfits[:10])
    more = f" and {len(misfits) - 10} more" if len(misfits) > 10 else ""
    return ToolError(
        "unencodable",
        f"The file is encoded in {_LABELS.get(document.codec, document.codec)}, which has no {listed}{more}. "
        "Use other characters, or convert the file first.",
    )
