"""Bytes to text and back: byte order marks, codecs, line endings. Shared by read, edit and grep.

The order: byte order mark, strict UTF-8, the caller's hint, plain UTF-16 or UTF-32 without a mark, detection.
A guess is accepted only if decoding and encoding give the same bytes again; what no codec explains keeps its
odd bytes as lone surrogates (PEP 383), so that no byte is ever lost. Binary data is recognised, not decoded.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Final

from attrs import field, frozen

from handrail.core.errors import ToolError

__all__ = [
    "Binary",
    "LineEnding",
    "TextDocument",
    "decode",
    "decode_unicode",
    "is_binary_sample",
    "line_ending_of",
    "sample_of",
    "visible",
]

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


def decode(data: bytes, *, hint: str | None = None) -> TextDocument | Binary:
    """Decode the content of a file.

    Args:
        data: The whole file, or enough of its start to judge it.
        hint: A codec to try after UTF-8, e.g. a project's charset; ignored when unknown or not fitting.
    """
    document = decode_unicode(data)
    if document is not None:
        return document
    if hint is not None and (hinted := _round_trip(data, hint)) is not None:
        return hinted
    if b"\0" in data or _has_many_controls(data):
        return Binary(len(data))
    escaped = TextDocument(data.decode("utf-8", "surrogateescape"), errors="surrogateescape")
    if _ends_in_cut_character(data) or _is_mostly_utf8(data, escaped.text):
        return escaped
    return _detect(data) or escaped


def decode_unicode(data: bytes) -> TextDocument | Binary | None:
    """Decode what is Unicode by its mark, by strict UTF-8, or plainly without a mark; ``None`` for anything else."""
    for bom, codec in _MARKS:
        if data.startswith(bom):
            return _after_mark(data, bom, codec)
    if b"\0" in data and (wide := _wide(data)) is not None:
        return wide
    try:
        return TextDocument(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def sample_of(data: bytes) -> bytes:
    """Return the start of a large file without the character that its end may have cut in two.

    Below 30 hex no byte is part of a longer character, in UTF-8 and in all codecs that are accepted here.
    """
    end = len(data.rstrip(_PARTS_OF_CHARACTERS)) or len(data)
    if b"\0" not in data[:end]:
        return data[:end]
    end -= end % 4  # a whole number of units, if it is UTF-16 or UTF-32
    while end > 4 and {data[end - 1], data[end - 2]} & _HIGH_SURROGATES:
        end -= 4
    return data[:end]


_PARTS_OF_CHARACTERS: Final = bytes(range(0x30, 0x100))
_HIGH_SURROGATES: Final = frozenset(range(0xD8, 0xDC))


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

# Codecs without shift states, in which a piece encodes the same wherever it stands.
_STATELESS: Final = frozenset(
    [
        *("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "ascii"),
        *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950"),
        *("shift_jis", "shift_jis_2004", "cp932", "euc_jp", "euc_kr", "cp949", "johab"),
        *("koi8-r", "koi8-u", "koi8-t", "kz1048", "tis-620"),
        *("mac-roman", "mac-cyrillic", "mac-latin2", "mac-greek"),
        *(f"cp{page}" for page in (437, 850, 852, 855, 862, 866, 874, *range(1250, 1259))),
        *(f"iso8859-{part}" for part in range(1, 17) if part != 12),
    ]
)

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


def _round_trip(data: bytes, codec: str | None, *, guessed: bool = False) -> TextDocument | None:
    """The document in a codec, if it explains every byte and gives each of them back."""
    try:
        name = codecs.lookup(codec or "").name
    except LookupError:
        return None
    for candidate in dict.fromkeys((_SUPERSETS.get(name, name), name)):
        if candidate in _STATELESS:
            with suppress(UnicodeError):
                text = data.decode(candidate)
                if text.encode(candidate) == data:
                    return TextDocument(text, candidate, guessed=guessed)
    return None


def _wide(data: bytes) -> TextDocument | None:
    """UTF-16 or UTF-32 without a mark, where it is plain: Latin text has its NULs in fixed columns."""
    for codec, width, columns in _COLUMNS:
        units = len(data) // width
        if len(data) % width or any(data[column::width].count(0) < units * 0.6 for column in columns):
            continue
        document = _round_trip(data, codec, guessed=True)
        if document is not None and "\0" not in document.text and not _has_many_controls(document.text.encode("utf-8")):
            return document
    return None


_COLUMNS: Final = (("utf-32-le", 4, (2, 3)), ("utf-32-be", 4, (0, 1)), ("utf-16-le", 2, (1,)), ("utf-16-be", 2, (0,)))
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


def _has_many_controls(data: bytes) -> bool:
    sample = data[:65536]
    return len(sample) - len(sample.translate(None, _CONTROLS)) > len(sample) // 50


def _ends_in_cut_character(data: bytes) -> bool:
    """Whether the only fault in UTF-8 is that the last character lacks bytes."""
    try:
        _, decoded = codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return False
    return len(data) - decoded > 1  # a single byte may as well be a letter of another encoding


def _is_mostly_utf8(data: bytes, text: str) -> bool:
    """Whether valid multi-byte sequences clearly outnumber the bytes that are not valid."""
    valid = len(data.decode("utf-8", "ignore"))
    multi_byte = valid - len(data.translate(None, _BEYOND_ASCII_BYTES))
    return multi_byte >= 2 * (len(text) - valid)


_BEYOND_ASCII_BYTES: Final = bytes(range(0x80, 0x100))


def _detect(data: bytes) -> TextDocument | None:
    import chardet  # 20 ms to import, and needed for few files

    part = _telling_part(data)
    found = chardet.detect(part)
    document = _round_trip(data, found["encoding"], guessed=True)
    if (document is None or document.codec not in _MULTI_BYTE) and _is_latin_script(part):
        found = chardet.detect(part, include_encodings=_LATIN)
        document = _round_trip(data, found["encoding"], guessed=True)
    if document is not None and found["confidence"] >= _NEEDED_CONFIDENCE.get(document.codec, 0.05):
        return document
    return _round_trip(data, "cp1252", guessed=True)


def _is_latin_script(data: bytes) -> bool:
    """Whether bytes beyond ASCII stand in words of ASCII letters; other scripts have words of their own."""
    beyond_ascii = len(data) - len(data.translate(None, _BEYOND_ASCII_BYTES))
    return 4 * len(_IN_LATIN_WORDS.findall(data)) >= beyond_ascii


_IN_LATIN_WORDS: Final = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")
_LATIN: Final = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859-2")

_MULTI_BYTE: Final = frozenset(
    [
        *("gb18030", "gbk", "gb2312", "big5", "big5hkscs", "cp950"),
        *("cp949", "euc_kr", "johab", "cp932", "shift_jis", "euc_jp"),
    ]
)
# Fitting many bytes of text is proof enough for a multi-byte codec. The others in this table are what detectors fall
# back to for a few signs; windows-1252 is far likelier on disk.
_NEEDED_CONFIDENCE: Final = {
    **dict.fromkeys(_MULTI_BYTE, 0.0),
    **dict.fromkeys(["cp437", "cp850", "cp852", "cp862", "mac-latin2", "mac-roman"], 0.3),
    **{f"iso8859-{n}": 0.3 for n in (3, 4, 9, 10, 13, 14, 15, 16)},
}


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
    listed = ", ".join(f"{visible(c)} (U+{ord(c):04X})" for c in misfits[:10])
    more = f" and {len(misfits) - 10} more" if len(misfits) > 10 else ""
    return ToolError(
        "unencodable",
        f"The file is encoded in {_LABELS.get(document.codec, document.codec)}, which has no {listed}{more}. "
        "Use other characters, or convert the file first.",
    )
