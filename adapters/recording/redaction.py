r"""Redaction: what is secret leaves a typed marker in a log, before anything is written or hashed.

A marker reads ``[redacted:secret:NAME]``, ``[redacted:pattern:NAME]`` or ``[redacted:path]``.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import posixpath
import re
import secrets as random_secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from attrs import define, field, frozen

__all__ = ["DEFAULT_PATTERNS", "Pattern", "Redaction", "Redactor", "StreamRedactor"]

_MAX_MATCH_BYTES: Final = 64 * 1024
"""A match may be this long and still be found where it crosses two pieces of a stream."""


_SHORT_TEXT: Final = 4096


@frozen
class Pattern:
    """Text that is secret by its look.

    Attributes:
        name: For the marker.
        regex: Matched against bytes; UTF-8 where the text is not ASCII. No match should be longer than 64 KiB.
        hints: Some of these literals are in every match; without any of them the expression is not tried.
            Empty: it is always tried.
    """

    name: str
    regex: re.Pattern[bytes]
    hints: Sequence[bytes] = ()


DEFAULT_PATTERNS: Final[Sequence[Pattern]] = (
    Pattern(
        "private-key",
        re.compile(
            rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----"
            rb"(?:[\s\S]{0,15000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----"
            # Cut off: the lines that follow and hold a long word, whatever an excerpt puts before it.
            rb"|(?:(?:\r?\n|\\r\\n|\\n)[^\n]{0,120}?[A-Za-z0-9+/=]{16,80}){0,200})"
        ),
        (b"PRIVATE KEY",),
    ),
    Pattern("aws-key", re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), (b"AKIA", b"ASIA")),
    Pattern(
        "api-key",
        re.compile(rb"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]{1,12}[-_]){0,3}[A-Za-z0-9_-]{16,512}"),
        (b"sk-", b"sk_", b"pk-", b"pk_", b"rk-", b"rk_"),
    ),
    Pattern(
        "github-token",
        re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})"),
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
    ),
    Pattern("gitlab-token", re.compile(rb"\bglpat-[A-Za-z0-9_-]{20,255}"), (b"glpat-",)),
    Pattern("slack-token", re.compile(rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}"), (b"xox",)),
    Pattern("google-key", re.compile(rb"\bAIza[A-Za-z0-9_-]{35}"), (b"AIza",)),
    Pattern(
        "jwt", re.compile(rb"\beyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{0,2048}"), (b"eyJ",)
    ),
    Pattern("bearer-token", re.compile(rb"[Bb]earer [A-Za-z0-9._~+/-]{16,4096}={0,2}"), (b"earer ",)),
    Pattern("url-password", re.compile(rb"://[^\s/:@]{1,128}:[^\s/@]{1,256}@"), (b"://",)),
)
"""Keys and tokens of well-known makes, and private keys.

No look-behind and no look-ahead beyond the secret: in a stream, what stands around it may be gone already.
"""


@frozen
class Redaction:
    """What must not get into a log.

    Attributes:
        secrets: Values by name. Found as they are, and in JSON, percent and base64 encoding.
        patterns: Secret by look; by default the well-known makes. Own ones are added with
            ``patterns=(*DEFAULT_PATTERNS, Pattern(…))``.
        paths: Patterns of paths (``fnmatch``; without ``/`` they match a name at any depth) whose contents are not
            recorded at all, nor the result of a tool call that got to see one.
    """

    secrets: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    patterns: Sequence[Pattern] = DEFAULT_PATTERNS
    paths: Sequence[str] = ()


class Redactor:
    """Applies one Redaction.

    Args:
        redaction: What is secret.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._patterns = (*_named(redaction.secrets), *redaction.patterns)
        self._paths = tuple(redaction.paths)
        self._key = random_secrets.token_bytes(32)
        hints = [hint.decode("utf-8", "surrogatepass") for pattern in self._patterns for hint in pattern.hints]
        is_hinted = all(pattern.hints for pattern in self._patterns)
        self._hint = re.compile("|".join(map(re.escape, hints))) if hints and is_hinted else None

    def data(self, data: bytes) -> tuple[bytes, frozenset[str]]:
        """Return bytes with markers, and which kinds of marker."""
        found: set[str] = set()
        for pattern in self._patterns:
            if pattern.hints and not any(hint in data for hint in pattern.hints):
                continue
            data, count = pattern.regex.subn(_marker(pattern.name).replace(b"\\", rb"\\"), data)
            if count:
                found.add(_type(pattern.name))
        return data, frozenset(found)

    def text(self, text: str) -> str:
        """Return a text with markers."""
        if self._hint is not None and len(text) < _SHORT_TEXT and self._hint.search(text) is None:
            return text  # one look for all: a large directory has many names
        clean, found = self.data(text.encode("utf-8", "surrogatepass"))
        return clean.decode("utf-8", "surrogatepass") if found else text

    @property
    def has_path_rules(self) -> bool:
        """Whether contents of some paths are secret."""
        return bool(self._paths)

    def hides(self, path: str) -> bool:
        """Whether the contents of a path are secret."""
        path = path.replace("\\", "/")
        return any(
            fnmatch.fnmatch(path if "/" in pattern else posixpath.basename(path), pattern) for pattern in self._paths
        )

    def alias(self, version: str) -> str:
        """Return another token for a version: a token may hold a hash of a content."""
        return hashlib.blake2b(version.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).hexdigest()

    def stream(self) -> StreamRedactor:
        """Begin a stream."""
        return StreamRedactor(self)

    def safe_end(self, data: bytes) -> int:
        """Return how much of the beginning of a stream can be decided on, whatever follows."""
        cut = max(len(data) - _MAX_MATCH_BYTES, 0)
        moved = True
        while moved and cut:
            moved = False
            for pattern in self._patterns:
                if pattern.hints and not any(hint in data for hint in pattern.hints):
                    continue
                for match in pattern.regex.finditer(data):
                    if match.start() >= cut:
                        break
                    if match.end() >= cut:
                        cut, moved = match.start(), True
                        break
        return cut


@define(eq=False)
class StreamRedactor:
    """Redacts a stream; holds back what could be the beginning of a secret."""

    _redactor: Redactor
    _held: bytes = b""
    found: set[str] = field(factory=set[str])

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what is certain."""
        self._held += data
        end = self._redactor.safe_end(self._held)
        ready, self._held = self._held[:end], self._held[end:]
        return self._clean(ready)

    def finish(self) -> bytes:
        """Return the rest."""
        rest, self._held = self._held, b""
        return self._clean(rest)

    def _clean(self, data: bytes) -> bytes:
        if not data:
            return data
        clean, found = self._redactor.data(data)
        self.found |= found
        return clean


def _named(secrets: Mapping[str, str]) -> Iterable[Pattern]:
    """One pattern for each secret; the longest first, so that none is cut by one that it contains."""
    for name, value in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if value:
            forms = _forms(value)
            yield Pattern(f"secret:{name}", re.compile(b"|".join(re.escape(form) for form in forms)), forms)


def _forms(value: str) -> list[bytes]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {
        raw,
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        quote(raw).encode(),
        quote(raw, safe="").encode(),
    }
    if len(raw) >= 6:  # shorter ones would be found by chance
        forms |= {base64.b64encode(raw).rstrip(b"="), base64.urlsafe_b64encode(raw).rstrip(b"=")}
    return sorted(forms, key=len, reverse=True)


def _type(name: str) -> str:
    return name if name.startswith("secret:") else f"pattern:{name}"


def _marker(name: str) -> bytes:
    return f"[redacted:{_type(name)}]".encode()
