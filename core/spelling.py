"""A pattern in the words of other engines: RE2, which decides, and ripgrep, which only narrows down.

``to_re2`` is exact for a line without its ending, except that RE2's word boundaries know ASCII only.

``to_ripgrep`` is looser on purpose: it matches the bytes of every file in which the pattern matches some line once the
file is decoded, whatever its encoding, and of few others. So beyond ASCII it asks for some bytes of 0x80 and above, and
for ASCII it asks exactly. Files in UTF-16 with a mark ripgrep decodes itself.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Final

from handrail.core.automata import accepts
from handrail.core.characters import CharacterSet, Ranges, fold_variants, is_word, merged
from handrail.core.regexes import Alternation, Assertion, AssertionKind, Character, Node, Repetition, Sequence

__all__ = ["has_word_boundary", "required_text", "to_re2", "to_ripgrep"]


def has_word_boundary(node: Node) -> bool:
    """Whether a pattern asks for the edge of a word, or for its absence."""
    if isinstance(node, Assertion):
        return node.kind in ("word_boundary", "not_word_boundary")
    if isinstance(node, Sequence):
        return any(map(has_word_boundary, node.items))
    if isinstance(node, Alternation):
        return any(map(has_word_boundary, node.choices))
    return isinstance(node, Repetition) and has_word_boundary(node.item)


# ------------------------------------------------------------------ RE2


def to_re2(node: Node, *, in_buffer: bool = False, loose: bool = False) -> str:
    """Return the pattern for RE2; it never matches a newline.

    Args:
        node: The pattern.
        in_buffer: For text of many lines, in multi-line mode: a line may end in a carriage return.
        loose: Leave out word boundaries, so that what is found is a superset.
    """

    def spell(node: Node) -> str:
        if isinstance(node, Character):
            return _re2_character(node)
        if isinstance(node, Sequence):
            return "".join(map(spell, node.items))
        if isinstance(node, Alternation):
            return f"(?:{'|'.join(map(spell, node.choices))})"
        if isinstance(node, Repetition):
            return f"(?:{spell(node.item)}){_count(node)}"
        return assertions[node.kind]

    assertions: dict[AssertionKind, str] = {
        "start": "^",
        "end": r"(?:\r?$)" if in_buffer else "$",
        "word_boundary": "" if loose else r"\b",
        "not_word_boundary": "" if loose else r"\B",
    }
    return spell(node)


def _count(node: Repetition) -> str:
    if node.maximum is None:
        return {0: "*", 1: "+"}.get(node.minimum, f"{{{node.minimum},}}")
    return "?" if (node.minimum, node.maximum) == (0, 1) else f"{{{node.minimum},{node.maximum}}}"


def _re2_character(node: Character) -> str:
    literal = node.literal
    if literal is not None and literal != "\n":
        return _code(ord(literal)) if not node.fold else f"(?i:{_code(ord(literal))})"
    inside = _re2_members(node.set)
    text = f"[^{inside}]" if node.set.negated else f"[{inside}]" if inside else r"[^\x00-\x{10FFFF}]"
    return f"(?i:{text})" if node.fold else text


def _re2_members(members: CharacterSet) -> str:
    """The inside of brackets. The newline is in no set, so it is among what a negated one excludes."""
    spelled = members
    if "Cn" in members.categories:  # RE2 has no name for what is not assigned
        spelled = CharacterSet(CharacterSet(members.ranges, members.categories).spelled_out())
    ranges = merged([*spelled.ranges, (10, 10)]) if members.negated else _without_newline(spelled.ranges)
    parts = [_range(low, high) for low, high in _without_surrogates(ranges)]
    categories = set(spelled.categories)
    if "Cc" in categories:
        categories.remove("Cc")
        parts += [r"\x00-\x09\x0b-\x1f\x7f-\x9f"]
    return "".join(parts) + "".join(rf"\p{{{category}}}" for category in sorted(categories - {"Cs"}))


def _without_newline(ranges: Ranges) -> Ranges:
    return _without(ranges, 10, 10)


def _without_surrogates(ranges: Ranges) -> Ranges:
    return _without(ranges, 0xD800, 0xDFFF)


def _without(ranges: Ranges, first: int, last: int) -> Ranges:
    kept: list[tuple[int, int]] = []
    for low, high in ranges:
        kept += [(low, min(high, first - 1))] if low < first else []
        kept += [(max(low, last + 1), high)] if high > last else []
    return tuple(kept)


def _range(low: int, high: int) -> str:
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"


# ------------------------------------------------------------------ ripgrep


# One character beyond ASCII in any encoding that knows ASCII. Double-byte encodings end in bytes from 0x30 on.
_BEYOND_ASCII: Final = r"(?-u:[\x80-\xFF][\x30-\xFF]{0,3})"
_START: Final = r"(?m:^)(?:\x{FEFF})?"
_END: Final = r"\r?(?m:$)"


def to_ripgrep(node: Node) -> str:
    """Return the looser pattern for ripgrep's default engine."""
    return _rg_sequence(node.items, is_whole=True) if isinstance(node, Sequence) else _rg(node)


def _rg(node: Node) -> str:
    if isinstance(node, Character):
        return _rg_character(node)
    if isinstance(node, Assertion):
        return {"start": _START, "end": _END}.get(node.kind, "")
    if isinstance(node, Sequence):
        return _rg_sequence(node.items)
    if isinstance(node, Alternation):
        return f"(?:{'|'.join(map(_rg, node.choices))})"
    return f"(?:{_rg(node.item)}){_count(node)}"


def _rg_sequence(items: Items[Node], *, is_whole: bool = False) -> str:
    """Items in turn; a word boundary is kept where ASCII decides it, and dropped elsewhere."""
    parts: list[str] = []
    for index, item in enumerate(items):
        if isinstance(item, Assertion) and item.kind == "word_boundary":
            before = items[index - 1] if index else None
            after = items[index + 1] if index + 1 < len(items) else None
            parts.append(_rg_boundary(before, after, is_first=is_whole and index == 0))
        else:
            parts.append(_rg(item))
    return "".join(parts)


def _rg_boundary(before: Node | None, after: Node | None, *, is_first: bool) -> str:
    if _is_ascii_word(before) or (_is_ascii(before) and _is_ascii_word(after)):
        return r"(?-u:\b)"
    if is_first and _is_ascii_word(after):
        # The last byte of a double-byte character may look like a letter.
        return r"(?:(?-u:\b)|(?-u:[\x80-\xFF][\x30-\x7E]))"
    return ""


def _is_ascii(node: Node | None) -> bool:
    """Whether a node is one ASCII character and nothing beyond, case or not."""
    if not isinstance(node, Character) or node.literal is None:
        return False
    return (fold_variants(node.literal) if node.fold else node.literal).isascii()


def _is_ascii_word(node: Node | None) -> bool:
    return isinstance(node, Character) and node.literal is not None and _is_ascii(node) and is_word(node.literal)


def _rg_character(node: Character) -> str:
    literal = node.literal
    if literal is not None and literal.isascii():
        text = _rg_escape(literal)
        return f"(?i:{text})" if node.fold and literal.isalpha() else text
    ascii_members = "".join(_rg_escape(chr(code)) for code in range(128) if code != 10 and accepts(node, chr(code)))
    choices = [f"[{ascii_members}]"] if ascii_members else []
    if node.set.has_beyond_ascii() or node.fold:
        choices.append(_BEYOND_ASCII)
    return f"(?:{'|'.join(choices)})" if choices else r"(?-u:[^\x00-\xFF])"


def _rg_escape(character: str) -> str:
    return character if character.isalnum() else f"\\x{ord(character):02X}"


def required_text(node: Node) -> str:
    """Return the longest text that stands in everything a tree matches, as far as it is plain to see; often empty."""
    items = node.items if isinstance(node, Sequence) else (node,)
    longest = current = ""
    for item in items:
        plain = item.literal if isinstance(item, Character) and not item.fold else None
        if plain is not None:
            current += plain
        elif not isinstance(item, Assertion):  # a condition on a place takes no room
            current = required_text(item.item) if isinstance(item, Repetition) and item.minimum else ""
            longest = max(longest, current, key=len)
            current = ""
        longest = max(longest, current, key=len)
    return longest
