"""Sets of characters: what ``\\w``, ``\\p{L}`` and ``[a-z&&[^x]]`` mean, in one form for every matching engine.

A set is a union of code point ranges and Unicode general categories, perhaps complemented. The newline is in no set,
for text is matched line by line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from attrs import frozen

__all__ = [
    "CharacterSet",
    "Ranges",
    "fold_variants",
    "intersection",
    "is_word",
    "merged",
    "named_set",
    "perl_set",
    "posix_set",
    "union",
]

Ranges = tuple[tuple[int, int], ...]

_NEWLINE: Final = 10
_LAST: Final = 0x10FFFF


@frozen
class CharacterSet:
    """A union of ranges and categories, or everything else."""

    ranges: Ranges = ()
    categories: frozenset[str] = frozenset()
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        code = ord(character)
        if code == _NEWLINE:
            return False
        inside = any(low <= code <= high for low, high in self.ranges) or (
            bool(self.categories) and unicodedata.category(character) in self.categories
        )
        return inside != self.negated

    def complement(self) -> CharacterSet:
        """Everything but this (and the newline)."""
        return CharacterSet(self.ranges, self.categories, not self.negated)

    def has_beyond_ascii(self) -> bool:
        """Whether the set may have a character that is not ASCII; errs on the side of yes."""
        return self.negated or bool(self.categories) or any(high >= 0x80 for _, high in self.ranges)

    def spelled_out(self) -> Ranges:
        """The members as ranges, ascending and apart."""
        members = [*self.ranges, *(r for category in self.categories for r in _category_ranges()[category])]
        return _complement(members) if self.negated else merged(members)


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ascending ranges with the same members, none touching."""
    result: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return tuple(result)


def union(sets: Sequence[CharacterSet]) -> CharacterSet:
    """The members of any of some sets."""
    plain = [s for s in sets if not s.negated]
    negated = [s for s in sets if s.negated]
    joined = CharacterSet(merged(r for s in plain for r in s.ranges), frozenset(c for s in plain for c in s.categories))
    if not negated:
        return joined
    if len(sets) == 1:
        return negated[0]
    return CharacterSet(merged(r for s in sets for r in s.spelled_out()))


def intersection(left: CharacterSet, right: CharacterSet) -> CharacterSet:
    """The members of both sets."""
    outside = [*_complement(left.spelled_out()), *_complement(right.spelled_out())]
    return CharacterSet(_complement(outside))


def _complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in merged(ranges):
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        result.append((start, _LAST))
    return tuple(result)


@cache
def _category_ranges() -> dict[str, list[tuple[int, int]]]:
    """The code points of each general category. Takes about 0.1 s, once, and only for sets of sets."""
    found: dict[str, list[tuple[int, int]]] = {category: [] for category in _ALL}
    category, start = unicodedata.category("\0"), 0
    for code in range(1, _LAST + 2):
        current = unicodedata.category(chr(code)) if code <= _LAST else ""
        if current != category:
            found[category].append((start, code - 1))
            category, start = current, code
    return found


# ------------------------------------------------------------------ names


_ALL: Final = frozenset(unicodedata.category(chr(code)) for code in (*range(0x2100), 0x20DD, 0xD800, 0xE000, 0xFFFF))
_LONG_NAMES: Final = {
    "letter": "L",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "casedletter": "LC",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "mark": "M",
    "nonspacingmark": "Mn",
    "spacingmark": "Mc",
    "enclosingmark": "Me",
    "number": "N",
    "decimalnumber": "Nd",
    "digit": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P",
    "punct": "P",
    "connectorpunctuation": "Pc",
    "dashpunctuation": "Pd",
    "openpunctuation": "Ps",
    "closepunctuation": "Pe",
    "initialpunctuation": "Pi",
    "finalpunctuation": "Pf",
    "otherpunctuation": "Po",
    "symbol": "S",
    "mathsymbol": "Sm",
    "currencysymbol": "Sc",
    "modifiersymbol": "Sk",
    "othersymbol": "So",
    "separator": "Z",
    "spaceseparator": "Zs",
    "lineseparator": "Zl",
    "paragraphseparator": "Zp",
    "other": "C",
    "control": "Cc",
    "cntrl": "Cc",
    "format": "Cf",
    "surrogate": "Cs",
    "privateuse": "Co",
    "unassigned": "Cn",
}
_ALPHABETIC_SYMBOLS: Final = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_SPACES: Final = (
    (9, 9),
    (11, 13),
    (32, 32),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_WORD: Final = CharacterSet(
    ranges=((0x200C, 0x200D), *_ALPHABETIC_SYMBOLS),
    categories=frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"]),
)
_PERL: Final = {"d": CharacterSet(categories=frozenset({"Nd"})), "s": CharacterSet(_SPACES), "w": _WORD}
_PROPERTIES: Final = {
    "any": CharacterSet(((0, _LAST),)),
    "assigned": CharacterSet(categories=frozenset({"Cn"}), negated=True),
    "ascii": CharacterSet(((0, 127),)),
    "alphabetic": CharacterSet(_ALPHABETIC_SYMBOLS, frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Nl"])),
    "alpha": CharacterSet(_ALPHABETIC_SYMBOLS, frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Nl"])),
    "uppercase": CharacterSet(((0x2160, 0x216F), (0x24B6, 0x24CF)), frozenset({"Lu"})),
    "upper": CharacterSet(((0x2160, 0x216F), (0x24B6, 0x24CF)), frozenset({"Lu"})),
    "lowercase": CharacterSet(((0xAA, 0xAA), (0xBA, 0xBA), (0x2170, 0x217F), (0x24D0, 0x24E9)), frozenset({"Ll"})),
    "lower": CharacterSet(((0xAA, 0xAA), (0xBA, 0xBA), (0x2170, 0x217F), (0x24D0, 0x24E9)), frozenset({"Ll"})),
    "whitespace": CharacterSet(_SPACES),
    "space": CharacterSet(_SPACES),
    # Scripts that people search for, by their blocks and without the marks that scripts share.
    "latin": CharacterSet(
        (
            (0x41, 0x5A),
            (0x61, 0x7A),
            (0xAA, 0xAA),
            (0xBA, 0xBA),
            (0xC0, 0xD6),
            (0xD8, 0xF6),
            (0xF8, 0x2B8),
            (0x1D00, 0x1D25),
            (0x1E00, 0x1EFF),
            (0x2C60, 0x2C7F),
            (0xA722, 0xA787),
            (0xAB30, 0xAB5A),
            (0xFB00, 0xFB06),
            (0xFF21, 0xFF3A),
            (0xFF41, 0xFF5A),
        )
    ),
    "greek": CharacterSet(
        (
            (0x370, 0x373),
            (0x375, 0x377),
            (0x37A, 0x37D),
            (0x37F, 0x37F),
            (0x384, 0x384),
            (0x386, 0x386),
            (0x388, 0x3E1),
            (0x3F0, 0x3FF),
            (0x1F00, 0x1FFE),
        )
    ),
    "cyrillic": CharacterSet(((0x400, 0x484), (0x487, 0x52F), (0x1C80, 0x1C8A), (0x2DE0, 0x2DFF), (0xA640, 0xA69F))),
    "han": CharacterSet(
        (
            (0x2E80, 0x2FD5),
            (0x3005, 0x3005),
            (0x3007, 0x3007),
            (0x3021, 0x3029),
            (0x3038, 0x303B),
            (0x3400, 0x4DBF),
            (0x4E00, 0x9FFF),
            (0xF900, 0xFAD9),
            (0x20000, 0x323AF),
        )
    ),
    "hiragana": CharacterSet(((0x3041, 0x3096), (0x309D, 0x309F), (0x1B001, 0x1B11F), (0x1F200, 0x1F200))),
    "katakana": CharacterSet(
        ((0x30A1, 0x30FA), (0x30FD, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF6F), (0xFF71, 0xFF9D))
    ),
    "hangul": CharacterSet(((0x1100, 0x11FF), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB))),
    "arabic": CharacterSet(((0x600, 0x604), (0x606, 0x60B), (0x60D, 0x6FF), (0x750, 0x77F), (0xFB50, 0xFDFF))),
    "hebrew": CharacterSet(((0x591, 0x5F4), (0xFB1D, 0xFB4F))),
    "thai": CharacterSet(((0xE01, 0xE3A), (0xE40, 0xE5B))),
    "devanagari": CharacterSet(((0x900, 0x950), (0x955, 0x963), (0x966, 0x97F), (0xA8E0, 0xA8FF))),
}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


def perl_set(letter: str) -> CharacterSet:
    """The set of ``\\d``, ``\\s`` or ``\\w``, or of ``\\D``, ``\\S`` or ``\\W``; Unicode throughout."""
    found = _PERL[letter.lower()]
    return found.complement() if letter.isupper() else found


def posix_set(name: str) -> CharacterSet | None:
    """The set of ``[:name:]``; ASCII only."""
    ranges = _POSIX.get(name)
    return CharacterSet(ranges) if ranges is not None else None


def named_set(name: str) -> CharacterSet | None:
    """The set of ``\\p{name}``: a general category, a common property or a common script."""
    key = name.rpartition("=")[2].replace("_", "").replace(" ", "").replace("-", "").lower()
    if key in _PROPERTIES and len(key) > 2:
        return _PROPERTIES[key]
    short = _LONG_NAMES.get(key, key.capitalize())
    if short in ("LC", "Lc", "L&"):
        return CharacterSet(categories=frozenset({"Lu", "Ll", "Lt"}))
    members = frozenset(category for category in _ALL if category == short or category[0] == short)
    return CharacterSet(categories=members) if members else None


def is_word(character: str) -> bool:
    """Whether ``\\w`` matches a character."""
    if character.isascii():
        return character.isalnum() or character == "_"
    return character in _WORD


# ------------------------------------------------------------------ case


def _fold(character: str) -> str:
    """Simple case folding: one character to one character."""
    folded = character.casefold()
    if len(folded) > 1:
        folded = character.lower()
    return folded if len(folded) == 1 else character


@cache
def _fold_groups() -> dict[str, str]:
    """For each character that has variants in case, all of them. Takes some 0.2 s, once."""
    groups: dict[str, list[str]] = {}
    for code in range(0x1E944):
        character = chr(code)
        folded = _fold(character)
        if folded != character:
            groups.setdefault(folded, [folded]).append(character)
    return {member: "".join(group) for group in groups.values() for member in group}


def fold_variants(character: str) -> str:
    """All characters that are the same but for case, itself included."""
    if character.isascii():
        return _ASCII_VARIANTS.get(character, character)
    return _fold_groups().get(character, character)


_ASCII_VARIANTS: Final = {
    letter: lower + lower.upper() + {"k": "\u212a", "s": "\u017f"}.get(lower, "")
    for lower in "abcdefghijklmnopqrstuvwxyz"
    for letter in (lower, lower.upper())
}
