"""Bounded output: keep the head, the tail, both ends, or the start of a line. Contract section 3.

Lines are what ``\\n`` ends; the empty piece after a final newline is no line. Bytes are those of UTF-8.
Whichever limit is met first wins.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import field, frozen

__all__ = [
    "MAX_BYTES",
    "MAX_LINES",
    "MAX_LINE_CHARACTERS",
    "Truncation",
    "byte_length",
    "count_lines",
    "format_size",
    "join_ends",
    "truncate_head",
    "truncate_line",
    "truncate_middle",
    "truncate_tail",
]

MAX_LINES: Final = 2000
MAX_BYTES: Final = 50 * 1024
MAX_LINE_CHARACTERS: Final = 500


@frozen
class Truncation:
    """What was kept of a text, by which limit, and the totals."""

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None = field(metadata={"keep_none": True})
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool
    """Only the end of the last line is left, because it alone is over the byte limit."""
    first_line_exceeds_limit: bool
    """Nothing is left, because the first line alone is over the byte limit."""
    max_lines: int
    max_bytes: int


def truncate_head(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep whole lines from the start.

    A text within both limits comes back unchanged; cut content ends without a newline.
    """
    total_lines, total_bytes = count_lines(text), byte_length(text)
    if total_lines <= max_lines and total_bytes <= max_bytes:
        return _untruncated(text, total_lines, total_bytes, max_lines, max_bytes)
    lines = _first_lines(text, max_lines, max_bytes)
    head = "\n".join(lines).encode("utf-8", "surrogatepass")
    fits = len(head) <= max_bytes
    end = len(head) if fits else head.rfind(b"\n", 0, max_bytes + 1)  # of the last line that fits; -1 if none does
    kept = head[: max(end, 0)]
    return Truncation(
        content=kept.decode("utf-8", "surrogatepass"),
        truncated=True,
        truncated_by="lines" if fits else "bytes",
        total_lines=total_lines,
        total_bytes=total_bytes,
        output_lines=kept.count(b"\n") + 1 if lines and end >= 0 else 0,
        output_bytes=len(kept),
        last_line_partial=False,
        first_line_exceeds_limit=end < 0,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_tail(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep whole lines from the end; of a last line over the byte limit, its end at a character boundary."""
    total_lines, total_bytes = count_lines(text), byte_length(text)
    if total_lines <= max_lines and total_bytes <= max_bytes:
        return _untruncated(text, total_lines, total_bytes, max_lines, max_bytes)
    kept: list[str] = []
    used = 0
    limit: Literal["lines", "bytes"] = "lines"
    partial = False
    for line in _last_lines(text, max_lines, max_bytes):
        cost = byte_length(line) + (1 if kept else 0)
        if used + cost > max_bytes:
            limit = "bytes"
            if not kept:
                kept.append(_last_bytes(line, max_bytes))
                used = byte_length(kept[0])
                partial = True
            break
        kept.append(line)
        used += cost
    return Truncation(
        content="\n".join(reversed(kept)),
        truncated=True,
        truncated_by="lines" if len(kept) >= max_lines else limit,
        total_lines=total_lines,
        total_bytes=total_bytes,
        output_lines=len(kept),
        output_bytes=used,
        last_line_partial=partial,
        first_line_exceeds_limit=False,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_middle(text: str, *, max_bytes: int) -> str:
    """Keep both ends of a text around a marker that says how many bytes and lines are left out.

    The result has at most ``max_bytes`` bytes of the text itself; the marker comes on top. Both cuts are
    at character boundaries.
    """
    total = byte_length(text)
    if total <= max_bytes:
        return text
    head = _first_bytes(text, max_bytes // 2)
    tail = _last_bytes(text, max_bytes - byte_length(head))
    omitted = text[len(head) : len(text) - len(tail)]
    return join_ends(head, tail, omitted_bytes=byte_length(omitted), omitted_newlines=omitted.count("\n"))


def join_ends(head: str, tail: str, *, omitted_bytes: int, omitted_newlines: int) -> str:
    """Return both ends of a text around a marker that says what is left out between them."""
    lines = f" ({omitted_newlines + 1} lines)" if omitted_newlines else ""
    return f"{head}\n\n[... {omitted_bytes} bytes{lines} omitted ...]\n\n{tail}"


def truncate_line(line: str, max_characters: int = MAX_LINE_CHARACTERS) -> tuple[str, bool]:
    """Return the first characters of a line, marked when cut, and whether it was cut."""
    if len(line) <= max_characters:
        return line, False
    return f"{line[:max_characters]}... [truncated]", True


def format_size(size: int) -> str:
    """Return a size in bytes for people: ``512B``, ``50.0KB``, ``12.4MB``; halves round up."""
    if size < 1024:
        return f"{size}B"
    unit, name = (1024, "KB") if size < 1024 * 1024 else (1024 * 1024, "MB")
    tenths = (size * 20 + unit) // (2 * unit)  # exact where a binary float would round 1.25 down
    return f"{tenths // 10}.{tenths % 10}{name}"


def count_lines(text: str) -> int:
    """Count lines; a final newline ends the last one and adds none."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def byte_length(text: str) -> int:
    """Count the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _untruncated(text: str, lines: int, size: int, max_lines: int, max_bytes: int) -> Truncation:
    return Truncation(text, False, None, lines, size, lines, size, False, False, max_lines, max_bytes)


def _first_lines(text: str, max_lines: int, max_bytes: int) -> list[str]:
    """The first lines that could be kept; never looks at more of the text than the limits allow."""
    if max_lines <= 0:
        return []
    window = text[: max_bytes + 1]
    lines = window.split("\n", max_lines)
    if len(lines) <= max_lines and len(window) == len(text) and not lines[-1]:
        lines.pop()  # the empty piece after the final newline
    return lines[:max_lines]


def _last_lines(text: str, max_lines: int, max_bytes: int) -> list[str]:
    """The last lines that could be kept, last first."""
    body = text.removesuffix("\n")
    window = body[max(0, len(body) - max_bytes - 1) :]
    return list(reversed(window.rsplit("\n", max_lines)[-max_lines:])) if max_lines > 0 else []


def _first_bytes(text: str, size: int) -> str:
    return text[:size].encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore")


def _last_bytes(text: str, size: int) -> str:
    if size <= 0:
        return ""
    return text[-size:].encode("utf-8", "surrogatepass")[-size:].decode("utf-8", "ignore")
