"""Shared Hypothesis strategies: names, texts and trees as they occur, the awkward ones included.

A new feature extends these instead of writing its own.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from handrail.adapters.memory import Directory, Entry

__all__ = ["contents", "lines", "names", "plain_names", "texts", "trees"]

LINE_ENDINGS: Final = ("\n", "\r\n", "\r")
_BYTE_ORDER_MARK: Final = "\ufeff"

_AWKWARD_NAMES: Final = [
    ".hidden",
    "-n",
    "..data",
    "a b",
    " lead",
    "trail ",
    "tab\tname",
    "line\nname",
    "qu'ote",
    'dou"ble',
    "back\\slash",
    "st*r",
    "que?tion",
    "[set]",
    "{brace,d}",
    "!bang",
    "#hash",
    "$HOME",
    "~",
    "%20",
    "@at",
    "caf\u00e9",
    "cafe\u0301",
    "Shot 10.32.05\u202fAM.png",
    "it\u2019s",
    "\U0001f600",
    "\u65e5\u672c",
    "x" * 255,
]

plain_names: Final = st.text("abcdefgh", min_size=1, max_size=3)
"""Short names that collide often."""


def names(*, undecodable: bool = False) -> st.SearchStrategy[str]:
    """Names that a POSIX file system takes.

    Args:
        undecodable: Also names that are not UTF-8, spelled with lone surrogates (PEP 383).
    """
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="/\0")
    any_name = st.text(characters, min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))
    kinds = [plain_names, st.sampled_from(_AWKWARD_NAMES), any_name.filter(lambda name: len(name.encode()) <= 255)]
    if undecodable:
        raw = st.binary(min_size=1, max_size=8).filter(lambda name: not set(name) & set(b"/\0"))
        decoded = raw.map(lambda name: name.decode("utf-8", "surrogateescape"))
        kinds.append(decoded.filter(lambda name: name not in (".", "..")))
    return st.one_of(kinds)


def lines() -> st.SearchStrategy[str]:
    """Text of one line: code-like, repeated, wide, or anything without a line break."""
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")
    return st.one_of(
        st.sampled_from(["", " ", "\t", "x", "    return x", "}", "a = 1", "\u201cq\u201d", "a\u00a0b", "10\u00b2"]),
        st.text(characters, max_size=20),
    )


@st.composite
def texts(draw: st.DrawFn, *, max_lines: int = 12, byte_order_mark: bool = True) -> str:
    """Text of a file: any line endings, also mixed, with or without a final one and a byte order mark."""
    endings = draw(st.sampled_from([("\n",), ("\r\n",), ("\r",), ("\n", "\r\n"), LINE_ENDINGS]))
    pieces = draw(st.lists(st.tuples(lines(), st.sampled_from(endings)), max_size=max_lines))
    text = "".join(line + ending for line, ending in pieces)
    without_final_ending, with_mark = draw(st.booleans()), draw(st.booleans())
    if pieces and without_final_ending:
        text = text[: -len(pieces[-1][1])]
    return _BYTE_ORDER_MARK + text if byte_order_mark and with_mark else text


def contents(*, max_size: int = 64) -> st.SearchStrategy[bytes]:
    """Content of a file: text of some encoding, or anything."""
    text = texts(max_lines=4)
    return st.one_of(st.binary(max_size=max_size), text.map(str.encode), text.map(lambda each: each.encode("utf-16")))


@st.composite
def trees(draw: st.DrawFn, *, root: str = "/project", max_entries: int = 8) -> dict[str, Entry]:
    """Files and empty directories below a root, to hand to ``memory_environment``."""
    entries: dict[str, Entry] = {}
    directories = [root]
    for _ in range(draw(st.integers(0, max_entries))):
        path = f"{draw(st.sampled_from(directories))}/{draw(names())}"
        if path in entries or path in directories:
            continue
        if draw(st.booleans()):
            entries[path] = draw(texts())
        else:
            directories.append(path)
    empty = [
        each for each in directories[1:] if not any(path.startswith(f"{each}/") for path in [*entries, *directories])
    ]
    return entries | dict.fromkeys(empty, Directory())
