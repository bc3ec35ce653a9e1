"""Short, slow and independent definitions of what read and edit must give; no code of the tools is used."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["beyond_end", "exact_occurrences", "is_splice", "shown_text"]

# ------------------------------------------------------------------ read

_LINES: Final = 2000
_BYTES: Final = 51_200


def _lines(text: str) -> list[str]:
    """The lines; a final newline ends the last one and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def beyond_end(text: str, offset: int | None) -> str | None:
    """The error for an offset past the last line."""
    total = len(_lines(text))
    return f"Offset {offset} is beyond end of file ({total} lines total)" if offset and offset > total else None


def shown_text(text: str, offset: int | None, limit: int | None) -> str:
    """What read shows of a text, with its notice."""
    lines = _lines(text)
    first = max(offset or 1, 1)
    wanted = lines[first - 1 :][:limit]
    reaches_end = first - 1 + len(wanted) == len(lines)
    body = "\n".join(wanted) + ("\n" if reaches_end and text.endswith("\n") else "")
    if len(wanted) <= _LINES and len(body.encode()) <= _BYTES:
        left = len(lines) - (first - 1) - len(wanted)
        more = f"\n\n[{left} more lines in file. Use offset={first + len(wanted)} to continue.]"
        return body + (more if left else "")
    kept: list[str] = []
    for line in wanted:
        if len(kept) == _LINES or len("\n".join([*kept, line]).encode()) > _BYTES:
            break
        kept.append(line)
    if len(kept) == len(wanted):  # only the final newline did not fit
        return "\n".join(kept)
    by_bytes = "" if len(kept) == _LINES else " (50.0KB limit)"
    last = first + len(kept) - 1
    notice = f"[Showing lines {first}-{last} of {len(lines)}{by_bytes}. Use offset={last + 1} to continue.]"
    return "\n".join(kept) + "\n\n" + notice


# ------------------------------------------------------------------ edit

_LOOK_ALIKES: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
}


def _lf(text: str, *, lone_cr_ends: bool) -> str:
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if lone_cr_ends else text


def _tolerant(text: str) -> str:
    """The form in which two texts that may match tolerantly are equal."""
    folded = "".join(_LOOK_ALIKES.get(c, c) for c in unicodedata.normalize("NFKC", text))
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in folded)
    return "\n".join(line.rstrip(" \t\r\v\f\ufeff\u2028\u2029") for line in spaced.split("\n"))


def exact_occurrences(text: str, wanted: str) -> int:
    """How often a text occurs, overlapping ones counted, whatever the line endings."""
    ends = "\n" not in text
    text, wanted = _lf(text, lone_cr_ends=ends), _lf(wanted, lone_cr_ends=ends)
    return sum(text.startswith(wanted, at) for at in range(len(text)))


def is_splice(before: str, after: str, edits: Sequence[Mapping[str, Any]]) -> bool:
    """Whether ``after`` is ``before`` with one range replaced for each edit and nothing else changed."""
    return any(True for _ in _splices(before, after, list(edits), "\n" not in before))


def _splices(before: str, after: str, edits: list[Mapping[str, Any]], lone_cr_ends: bool) -> Iterator[None]:
    if not edits:
        if before == after:
            yield
        return
    for index, edit in enumerate(edits):
        old, new = edit["oldText"], _lf(edit["newText"], lone_cr_ends=lone_cr_ends)
        for start in range(len(before) + 1):
            if before[:start] != after[:start]:
                break
            for ending in ("\n", "\r\n", "\r"):
                put = new.replace("\n", ending)
                if not after.startswith(put, start):
                    continue
                for end in range(start + 1, min(len(before), start + 2 * len(old) + 20) + 1):
                    if _matches(before[start:end], old, lone_cr_ends):
                        rest = [*edits[:index], *edits[index + 1 :]]
                        yield from _splices(before[end:], after[start + len(put) :], rest, lone_cr_ends)


def _matches(found: str, old: str, lone_cr_ends: bool) -> bool:
    found, old = _lf(found, lone_cr_ends=lone_cr_ends), _lf(old, lone_cr_ends=lone_cr_ends)
    return found == old or (_tolerant(found) == _tolerant(old) != "")
