r"""The form of a log: one canonical JSON object a line, each chained to the one before by its hash.

Canonical JSON here means: keys sorted, no blanks, UTF-8, no NaN or infinity, and lone surrogates (bytes of names
that are not UTF-8, PEP 383) as ``\udcXX`` escapes, which every JSON reader understands.

A line is the canonical body of an entry with one more key put at its end::

    {…,"prev":"<hash of the line before>","seq":7,…,"hash":"<SHA-256 of the body, in hex>"}

The body is the line without ``,"hash":"…"``. It contains ``prev``, so each hash vouches for all lines before it.
The first line's ``prev`` is 64 zeros.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from handrail.adapters.recording.json_values import is_object

__all__ = ["GENESIS", "Head", "Line", "canonical_json", "parse_line", "seal"]

GENESIS: Final = "0" * 64
"""What the first entry is chained to."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TAIL: Final = re.compile(rb',"hash":"([0-9a-f]{64})"\}\n')
_TAIL_BYTES: Final = len(',"hash":""}\n') + 64


@frozen
class Head:
    """The last entry of a log: all that is needed to continue it, or to notice that its end is missing."""

    seq: int
    hash: str


@frozen
class Line:
    """An entry as it stands in a log."""

    entry: Mapping[str, Any]
    """The body, ``hash`` not included."""
    hash: str
    raw: bytes
    """The line with its newline."""

    @property
    def head(self) -> Head:
        """The head of a log that ends here."""
        return Head(self.entry["seq"], self.hash)


def canonical_json(value: Any) -> bytes:
    """Return the one spelling of a JSON value that is hashed.

    Raises:
        ValueError: A float that is no number.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def seal(entry: Mapping[str, Any]) -> Line:
    """Return an entry, ``seq`` and ``prev`` included, as a line of a log."""
    body = canonical_json(entry)
    digest = hashlib.sha256(body).hexdigest()
    return Line(entry, digest, b'%b,"hash":"%b"}\n' % (body[:-1], digest.encode()))


def parse_line(raw: bytes) -> Line:
    """Return the entry of a line whose hash is right.

    Raises:
        ValueError: The line is no entry, or was edited; the message says which.
    """
    tail = _TAIL.fullmatch(raw, len(raw) - _TAIL_BYTES) if len(raw) > _TAIL_BYTES else None
    if tail is None:
        raise ValueError("not an entry of a log")
    body = raw[:-_TAIL_BYTES] + b"}"
    digest = tail[1].decode()
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError("its content does not fit its hash")
    entry = json.loads(body)
    if not is_object(entry) or not isinstance(entry.get("seq"), int) or not isinstance(entry.get("prev"), str):
        raise ValueError("not an entry of a log")
    return Line(entry, digest, raw)
