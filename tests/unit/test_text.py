"""Decoding: what is tried in which order, and that no byte is lost."""

from __future__ import annotations

import codecs

import pytest

import handrail.core.text as text_module
from handrail.core.errors import ToolError
from handrail.core.text import (
    Binary,
    TextDocument,
    decode,
    decode_unicode,
    is_binary_sample,
    line_ending_of,
    sample_of,
    visible,
)
from samples import ENCODINGS, LAYOUTS, EncodingSample, layout


def decoded(data: bytes, *, hint: str | None = None) -> TextDocument:
    document = decode(data, hint=hint)
    assert isinstance(document, TextDocument)
    assert document.bom + document.text.encode(document.codec, document.errors) == data
    return document


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("sample", ENCODINGS.values(), ids=ENCODINGS)
def test_the_text_of_every_encoding_is_found(sample: EncodingSample, kind: str) -> None:
    text = layout(sample.prose, kind, "target", sample.codec)
    document = decoded(sample.mark + text.encode(sample.codec))
    assert document.text == text
    assert document.bom == sample.mark


@pytest.mark.parametrize(
    ("data", "codec", "bom"),
    [
        (b"\xef\xbb\xbfa", "utf-8", b"\xef\xbb\xbf"),
        (b"\xff\xfea\0", "utf-16-le", b"\xff\xfe"),
        (b"\xfe\xff\0a", "utf-16-be", b"\xfe\xff"),
        (b"\xff\xfe\0\0a\0\0\0", "utf-32-le", b"\xff\xfe\0\0"),
        (b"\0\0\xfe\xff\0\0\0a", "utf-32-be", b"\0\0\xfe\xff"),
    ],
)
def test_a_mark_decides_and_is_no_text(data: bytes, codec: str, bom: bytes) -> None:
    document = decoded(data, hint="latin-1")
    assert (document.text, document.codec, document.bom, document.guessed) == ("a", codec, bom, False)


def test_only_the_first_mark_is_one() -> None:
    assert decoded(b"\xef\xbb\xbf\xef\xbb\xbfa").text == "\ufeffa"


def test_strict_utf8_goes_before_the_hint() -> None:
    assert decoded("café".encode(), hint="latin-1").text == "café"


def test_the_hint_goes_before_detection() -> None:
    data = "да".encode("koi8-r")
    assert decoded(data, hint="koi8-r").text == "да"
    assert decoded(data, hint="cp866").text != "да"
    assert not decoded(data, hint="koi8-r").guessed


@pytest.mark.parametrize("hint", ["no-such-codec", "utf-16", "iso2022_jp", "idna", "hex", "utf-7", "cp037"])
def test_a_hint_that_is_no_plain_text_encoding_is_ignored(hint: str) -> None:
    data = "déjà vu".encode("latin-1")
    assert decoded(data, hint=hint) == decoded(data)


def test_a_hint_that_does_not_fit_is_ignored() -> None:
    data = b"a\xffb caf\xe9"
    assert decoded(data, hint="gbk") == decoded(data)


def test_latin_1_as_a_hint_takes_bytes_that_windows_has_not() -> None:
    data = b"caf\xe9 \x81\x8d\x8f\x90\x9d"
    assert decoded(data, hint="latin-1").text == data.decode("latin-1")


def test_windows_quotes_are_read_in_what_is_declared_as_latin_1() -> None:
    assert decoded(b"\x93caf\xe9\x94", hint="latin1").text == "“café”"


def test_a_hint_makes_wide_text_without_latin_letters_readable() -> None:
    data = "日本語\nテスト。\n한국\n".encode("utf-16-le")
    assert decoded(data, hint="utf-16le").text == data.decode("utf-16-le")


def test_a_stray_byte_in_utf8_stays_and_does_not_change_the_rest() -> None:
    data = "日本語 → café ".encode() + b"\xff" + "テスト".encode()
    document = decoded(data)
    assert (document.codec, document.errors) == ("utf-8", "surrogateescape")
    assert document.label == "UTF-8 with bytes that are not valid"
    assert visible(document.text) == "日本語 → café �テスト"


def test_a_stray_byte_after_a_utf8_mark_stays() -> None:
    assert decoded(b"\xef\xbb\xbfa\xffb").errors == "surrogateescape"


def test_a_cut_character_at_the_end_is_utf8() -> None:
    assert decoded(b"price: \xe2\x82").codec == "utf-8"


@pytest.mark.parametrize(("text", "codec"), [("Это русский текст для проверки\n", "koi8-r"), ("déjà vu\n", "latin-1")])
def test_a_few_lines_in_much_ascii_are_enough(text: str, codec: str) -> None:
    whole = "plain code = 1\n" * 5000 + text + "plain code = 2\n" * 5000
    assert decoded(whole.encode(codec)).text == whole


def test_much_text_is_judged_by_its_first_part() -> None:
    whole = "Это русский текст для проверки\n" * 2000
    assert decoded(whole.encode("cp1251")).text == whole


@pytest.mark.parametrize("count", [1, 2, 3])
def test_single_accented_letters_are_western(count: int) -> None:
    data = ("name = '" + "é" * count + "'\n").encode("latin-1")
    assert decoded(data).text == data.decode("latin-1")


def test_wide_text_of_single_characters_and_breaks_is_not_taken_for_utf32() -> None:
    text = "1\n2\n3\n4\n"
    assert decoded(text.encode("utf-16-le")).text == text
    assert decoded(text.encode("utf-16-be")).text == text


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x02\x01\x01\0\xff\xfe\xfd" + bytes(range(256)),
        bytes(range(256)) * 4,
        b"\x01\x02\x03\x04\xff\xfe\x05\x06",
        b"\xff\xfea\0b",  # half a unit
        b"\xff\xfe\x00\xd8a\0",  # half a surrogate pair
        b"\0\0\xfe\xff\0\x11\0\0",  # beyond Unicode
        b"caf\xe9\0\0\xff",
    ],
)
def test_binary_data_is_not_text(data: bytes) -> None:
    assert decode(data) == Binary(len(data))


def test_a_sample_of_wide_text_is_not_binary() -> None:
    assert not is_binary_sample("plain words\n".encode("utf-16-le"))
    assert not is_binary_sample(b"\xff\xfe" + "日\n".encode("utf-16-le"))
    assert not is_binary_sample(b"plain \xff")
    assert is_binary_sample(b"plain\0words")


def test_empty_content_is_plain_utf8() -> None:
    assert decode(b"") == TextDocument("")


def test_only_what_is_neither_marked_nor_utf8_needs_a_hint() -> None:
    assert decode_unicode(b"caf\xe9") is None
    assert decode_unicode("café".encode()) == TextDocument("café")


@pytest.mark.parametrize(
    ("codec", "label"),
    [
        ("utf-16-le", "UTF-16 LE"),
        ("cp1252", "windows-1252"),
        ("cp949", "EUC-KR"),
        ("cp932", "Shift-JIS"),
        ("koi8-r", "koi8-r"),
    ],
)
def test_labels_name_the_encoding(codec: str, label: str) -> None:
    assert TextDocument("", codec).label == label
    assert TextDocument("", codec, guessed=True).label == f"{label}, detected"
    assert TextDocument("").label is None


def test_characters_that_the_encoding_lacks_are_named() -> None:
    document = TextDocument("", "cp1252")
    with pytest.raises(ToolError, match=r"windows-1252, which has no → \(U\+2192\), 😀 \(U\+1F600\)\.") as caught:
        document.encode("a→→😀")
    assert caught.value.code == "unencodable"
    with pytest.raises(ToolError, match=" and 2 more"):
        document.encode("".join(chr(0x4E00 + n) for n in range(12)))


def test_every_codec_that_is_accepted_has_pythons_own_name() -> None:
    # Names are looked up before they are compared, so a spelling of ours would never be found.
    accepted: frozenset[str] = vars(text_module)["_STATELESS"]
    assert {codecs.lookup(name).name for name in accepted} == accepted


@pytest.mark.parametrize("sample", ENCODINGS.values(), ids=ENCODINGS)
def test_a_sample_never_ends_inside_a_character(sample: EncodingSample) -> None:
    text = layout(sample.prose, "crlf", "target ·" if sample.codec.startswith("utf") else "target", sample.codec)
    data = sample.mark + (text * 20).encode(sample.codec)
    for end in range(len(data) // 2, len(data) // 2 + 40):
        piece = sample_of(data[:end])
        document = decode(piece)
        assert isinstance(document, TextDocument)
        assert (text * 20).startswith(document.text)
        assert len(piece) > end - 200


def test_a_sample_never_ends_inside_a_surrogate_pair() -> None:
    text = "words and 𐨀😀𒍅" * 50
    for codec, mark in (("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")):
        data = mark + text.encode(codec)
        for end in range(300, 380):
            assert isinstance(decode(sample_of(data[:end])), TextDocument)


@pytest.mark.parametrize(
    ("text", "position", "ending"),
    [
        ("a\nb", 0, "\n"),
        ("a\r\nb\n", 0, "\r\n"),
        ("a\r\nb\n", 3, "\n"),
        ("a\nb\r\nc", 5, "\r\n"),  # the last line has the ending of the one before
        ("a\rb", 0, "\r"),
        ("a\rb\nc", 0, "\n"),  # a lone CR in a text with LF is a character
        ("one line", 3, "\n"),
        ("", 0, "\n"),
        ("\n", 0, "\n"),
        ("\r\n", 0, "\r\n"),
    ],
)
def test_the_ending_of_a_line(text: str, position: int, ending: str) -> None:
    assert line_ending_of(text, position) == ending


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Perché la città è così bella\n", "latin-1"),
        ("Das schöne Mädchen grüßt über die Straße\n", "latin-1"),
        ("Räksmörgås på ön\n", "latin-1"),
        ("price £5 ©2020 ±3°\n", "latin-1"),
        ("# naïve café\ndef f(x): return 'é'\n", "latin-1"),
        (
            "Árvíztűrő tükörfúrógép, minden emberi lény szabadon\n",
            "cp1250",
        ),
        ("Witaj świecie, wszyscy ludzie rodzą się wolni i równi\n", "iso8859-2"),
        (
            "Привет, мир\nЭто тест\n",
            "iso8859-5",
        ),
        (
            "Привет, мир\nЭто тест\n",
            "cp866",
        ),
        ("x = 'Привет' # это тут\n", "cp1251"),
        ("Καλημέρα κόσμε\n", "cp1253"),
    ],
)
def test_short_texts_are_read_as_they_were_written(text: str, codec: str) -> None:
    assert decoded(text.encode(codec)).text == text
