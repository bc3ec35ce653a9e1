"""Text in many encodings, with what a one-word edit of it must give; shared by the suites of read and edit."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["ENCODINGS", "LAYOUTS", "OLD_WORD", "EncodingSample", "layout"]

OLD_WORD: Final = "target"


@frozen
class EncodingSample:
    """An encoding and a few lines that are typical of it.

    Attributes:
        codec: Python's name.
        mark: The byte order mark in front.
        prose: Lines in the language; each holds characters beyond ASCII.
        new_word: Replaces ``OLD_WORD``; fits the encoding.
    """

    codec: str
    prose: tuple[str, str, str]
    new_word: str
    mark: bytes = b""


_ENGLISH = ("A first line of plain text", "the second line comes here", "and a third one at the end")
_FRENCH = (
    "Le café est fermé cet été",
    "déjà vu, naïve façade",
    "à bientôt, ça va très bien",
)
_QUOTED = (
    "Un “café” – très bon",
    "coût : 12 € …",
    "l’œuvre est finie",
)
_CHINESE = (
    "这是一个测试文件，用来检查编码。",
    "第二行也是中文内容，我们继续写。",
    "最后一行结束了。",
)
_TAIWANESE = (
    "這是一個測試文件，用來檢查編碼。",
    "第二行也是中文內容，我們繼續寫。",
    "最後一行結束了。",
)
_JAPANESE = (
    "これは日本語のテストです。",
    "二行目も日本語で書きます。",
    "表示の能力を確認する。",
)
_KOREAN = (
    "이것은 한국어 시험 파일입니다.",
    "두 번째 줄도 한국어입니다.",
    "마지막 줄입니다.",
)
_RUSSIAN = (
    "Это русский текст для проверки кодировки.",
    "Вторая строка тоже по-русски.",
    "Последняя строка файла.",
)

ENCODINGS: Final = {
    "utf-8": EncodingSample("utf-8", _FRENCH, "café 😀"),
    "utf-8 with mark": EncodingSample("utf-8", _RUSSIAN, "→", b"\xef\xbb\xbf"),
    "utf-16-le with mark": EncodingSample("utf-16-le", _CHINESE, "😀", b"\xff\xfe"),
    "utf-16-be with mark": EncodingSample("utf-16-be", _RUSSIAN, "→", b"\xfe\xff"),
    "utf-32-le with mark": EncodingSample("utf-32-le", _KOREAN, "😀", b"\xff\xfe\0\0"),
    "utf-32-be with mark": EncodingSample("utf-32-be", _FRENCH, "→", b"\0\0\xfe\xff"),
    "utf-16-le": EncodingSample("utf-16-le", _ENGLISH, "łódź"),
    "utf-16-be": EncodingSample("utf-16-be", _ENGLISH, "łódź"),
    "utf-32-le": EncodingSample("utf-32-le", _ENGLISH, "😀"),
    "utf-32-be": EncodingSample("utf-32-be", _ENGLISH, "😀"),
    "latin-1": EncodingSample("latin-1", _FRENCH, "über"),
    "windows-1252": EncodingSample("cp1252", _QUOTED, "€"),
    "windows-1251": EncodingSample("cp1251", _RUSSIAN, "слово"),
    "koi8-r": EncodingSample("koi8-r", _RUSSIAN, "слово"),
    "gbk": EncodingSample("gbk", _CHINESE, "修改"),
    "gb18030": EncodingSample("gb18030", _CHINESE, "修改😀"),
    "big5": EncodingSample("big5", _TAIWANESE, "修改"),
    "shift-jis": EncodingSample("shift_jis", _JAPANESE, "表能ソ"),  # their second bytes are backslashes
    "euc-jp": EncodingSample("euc_jp", _JAPANESE, "変更"),
    "euc-kr": EncodingSample("euc_kr", _KOREAN, "수정"),
}

LAYOUTS: Final = ("lf", "crlf", "mixed", "cr", "separators in a line", "no final newline")


def layout(prose: tuple[str, str, str], kind: str, word: str, codec: str) -> str:
    """Return the lines with a word on the second one, laid out in one of ``LAYOUTS``."""
    one, two, three = prose[0], f"{prose[1]} {word} {prose[1]}", prose[2]
    match kind:
        case "lf":
            return f"{one}\n{two}\n{three}\n"
        case "crlf":
            return f"{one}\r\n{two}\r\n{three}\r\n"
        case "mixed":
            return f"{one}\r\n{two}\n{three}\r\n"
        case "cr":
            return f"{one}\r{two}\r{three}\r"
        case "separators in a line":
            separators = "\f\u2028\u0085" if codec.startswith(("utf", "gb18030")) else "\f\v"
            return f"{one}{separators}{one}\n{two}{separators}{prose[1]}\n{three}\r\n"
        case "no final newline":
            return f"{one}\n{two}\n{three}"
        case _:
            raise ValueError(kind)
