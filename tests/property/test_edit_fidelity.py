"""Laws of edit and read: whatever is decoded, edited and shown, no byte is lost and no line miscounted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import anyio
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

from handrail.adapters.memory import memory_environment
from handrail.core import diffs
from handrail.core.errors import ToolError
from handrail.core.planning import EditPlan, plan_content
from handrail.core.replacement import LfText, Replacement, Splice, locate, splice_bytes
from handrail.core.results import ToolResult
from handrail.core.text import Binary, TextDocument, decode, line_ending_of, sample_of, visible
from handrail.core.tolerance import NormalizedText, normalize, tolerated_between
from handrail.core.toolbox import Toolbox
from handrail.core.tools import read as read_module
from handrail.core.tools.read import read_tool
from handrail.core.truncation import MAX_BYTES, MAX_LINES
from handrail.ports.files import FileContent, FileStat, Version
from patching import apply_display, apply_unified, plain_lines
from samples import ENCODINGS
from strategies import contents, texts

CODECS: Final = sorted({(sample.codec, sample.mark) for sample in ENCODINGS.values()})

PIECES: Final = [
    *(
        "a",
        "b",
        "ab",
        " ",
        "  ",
        "\t",
        "x = 1",
        "-",
        "'",
        '"',
        "\u2019",
        "\u201c",
        "\u2014",
        "\u00a0",
        "\u00b2",
        "\ufb01",
    ),
    *(
        "e\u0301",
        "\u00e9",
        "\u1112\u1161\u11ab",
        "\uff76\uff9e",
        "\u65e5",
        "\U0001f600",
        "\u2028",
        "\f",
        "\udcff",
        "\ufeff",
    ),
]
ENDINGS: Final = ["\n", "\r\n", "\r"]


def documents(*, stray: bool = True) -> st.SearchStrategy[str]:
    """Texts of few different pieces, some of them numbered, with any mixture of line endings."""
    pieces = PIECES if stray else [piece for piece in PIECES if piece != "\udcff"]
    part = st.tuples(st.sampled_from([*pieces, *ENDINGS, *ENDINGS]), st.booleans())
    parts = st.lists(part, max_size=30)
    return parts.map(
        lambda found: "".join(f"{piece}{n}" if numbered else piece for n, (piece, numbered) in enumerate(found))
    )


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Content of a file: text in one of many encodings, valid or not."""
    if draw(st.booleans()):
        return draw(st.one_of(contents(), documents().map(lambda text: text.encode("utf-8", "surrogateescape"))))
    codec, mark = draw(st.sampled_from(CODECS))
    return mark + draw(documents(stray=False)).encode(codec, "ignore")


def document_of(data: bytes) -> TextDocument:
    document = decode(data)
    assume(isinstance(document, TextDocument))
    assert isinstance(document, TextDocument)
    return document


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[tuple[int, int]]:
    """Ranges of a text that are not empty and do not overlap, in order."""
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True)))
    return [(start, end) for start, end in list(pairwise(edges))[:: draw(st.integers(1, 2))]]


def new_texts() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(["", "n", "new", "\n", "\r\n", "\u00e9", " "]), max_size=4).map("".join)


def is_unique(text: str, piece: str) -> bool:
    first = text.find(piece)
    return first >= 0 and text.find(piece, first + 1) < 0


@st.composite
def edits_of(draw: st.DrawFn, lf: LfText) -> list[Replacement]:
    """Edits of a text that are found, in order."""
    pieces = [lf.text[a:b] for a, b in draw(cuts(lf.text))]
    # A lone CR before a line ending reads as one ending when it is sent as text to find.
    found = [piece for piece in pieces if is_unique(lf.text, piece) and lf.lf(piece) == piece]
    return [Replacement(piece, draw(new_texts())) for piece in found]


def located(text: str, edits: Sequence[Replacement]) -> list[Splice] | ToolError:
    """Where edits are found, or why they are refused."""
    try:
        return locate(LfText(text), edits, "f.txt")
    except ToolError as error:
        error.message.encode()  # a model can read it
        return error


def attempt(data: bytes, document: TextDocument, edits: Sequence[Replacement]) -> tuple[list[Splice], bytes]:
    """The splices and the new bytes; edits that are rightly refused are not looked at further."""
    splices = located(document.text, edits)
    assert isinstance(splices, list), splices
    try:
        after = splice_bytes(data, document, splices, "f.txt")
    except ToolError as error:
        if error.code in ("unencodable", "undecodable"):
            reject()
        raise
    return splices, after


@given(files())
@example(b"\xff\xfe\0")
@example("\u65e5\u672c".encode("utf-16-be") + b"\0")
def test_decoding_never_fails_and_never_loses_a_byte(data: bytes) -> None:
    document = decode(data)
    if isinstance(document, Binary):
        assert document.size == len(data)
    else:
        assert document.bom + document.text.encode(document.codec, document.errors) == data
        visible(document.text).encode()


@given(
    st.binary(max_size=300),
    st.sampled_from([None, "latin-1", "gbk", "utf-16-le", "shift_jis", "utf-8", "big5hkscs", "x"]),
)
def test_decoding_arbitrary_bytes_with_any_hint(data: bytes, hint: str | None) -> None:
    document = decode(data, hint=hint)
    if isinstance(document, TextDocument):
        assert document.bom + document.text.encode(document.codec, document.errors) == data
    sample_of(data)


@given(st.data())
def test_bytes_outside_the_edits_are_identical(data: st.DataObject) -> None:
    before = data.draw(files())
    document = document_of(before)
    lf = LfText(document.text)
    ranges = [(a, b) for a, b in data.draw(cuts(lf.text)) if is_unique(lf.text, lf.text[a:b])]
    # A lone carriage return before a line ending looks like one line ending to whoever writes it down.
    ranges = [(a, b) for a, b in ranges if "\r\n" not in lf.text[a:b]]
    assume(ranges)
    edits = [Replacement(lf.text[a:b], data.draw(new_texts())) for a, b in ranges]
    splices, after = attempt(before, document, edits)
    assert [(lf.raw_offset(a), lf.raw_offset(b)) for a, b in ranges] == [(s.start, s.end) for s in splices]

    # The law, worked out independently: the pieces between the splices, each encoded by itself.
    pieces, position = [document.bom], 0
    for splice in splices:
        pieces += [document.text[position : splice.start].encode(document.codec, document.errors)]
        pieces += [splice.new_text.encode(document.codec, document.errors)]
        position = splice.end
    pieces.append(document.text[position:].encode(document.codec, document.errors))
    assert after == b"".join(pieces)

    # New text has the ending of the line where its range starts, and no other.
    for splice, edit in zip(splices, edits, strict=True):
        ending = line_ending_of(document.text, splice.start)
        plain = lf.lf(edit.new_text)
        assert splice.new_text.removeprefix("\r" if plain.startswith("\n") else "") in (
            plain.replace("\n", ending),
            plain.replace("\n", ending).removeprefix("\r"),
        )


@given(st.data())
def test_the_order_of_edits_does_not_matter(data: st.DataObject) -> None:
    before = data.draw(files())
    document = document_of(before)
    lf = LfText(document.text)
    edits = data.draw(edits_of(lf))
    assume(edits)
    shuffled = data.draw(st.permutations(edits))
    assert attempt(before, document, edits)[1] == attempt(before, document, shuffled)[1]


@given(st.data())
def test_a_text_is_found_exactly_if_and_only_if_it_occurs_once(data: st.DataObject) -> None:
    text = data.draw(documents(stray=False))
    lf = LfText(text)
    old = data.draw(st.one_of(st.sampled_from(PIECES[:8]), st.text("ab \n", min_size=1, max_size=4)))
    places = [i for i in range(len(lf.text)) if lf.text.startswith(lf.lf(old), i)]  # overlapping ones too
    found = located(text, [Replacement(old, "x")])
    if len(places) > 1:
        assert isinstance(found, ToolError)
        assert found.code == "not_unique"
        assert found.message.startswith(f"Found {len(places)} occurrences ")
    elif isinstance(found, ToolError):
        assert not places
        assert found.code in ("not_found", "not_unique")
    else:
        assert found[0].match == ("exact" if places else "tolerant")


@given(st.data())
def test_overlapping_edits_are_always_refused(data: st.DataObject) -> None:
    text = "".join(chr(0x100 + n) for n in range(data.draw(st.integers(3, 30))))  # every character once
    first, second = (
        sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2, unique=True))) for _ in range(2)
    )
    edits = [Replacement(text[a:b], "x") for a, b in (first, second)]
    overlap = max(first[0], second[0]) < min(first[1], second[1])
    found = located(text, edits)
    assert isinstance(found, ToolError) == overlap
    assert not isinstance(found, ToolError) or found.code == "overlap"


# ------------------------------------------------------------------ tolerance


@given(documents(), st.data())
def test_a_tolerant_range_normalises_to_what_matched(text: str, data: st.DataObject) -> None:
    normalized = NormalizedText.of(text)
    assert normalized.text == normalize(text)
    start, end = sorted(
        data.draw(st.lists(st.integers(0, len(normalized.text)), min_size=2, max_size=2, unique=True))
        if len(normalized.text) > 1
        else [0, len(normalized.text)]
    )
    found = normalized.original_range(start, end)
    if found is not None:
        wanted = normalized.text[start:end]
        covered = text[found[0] : found[1]]
        # Blanks in the middle of a line that a range begins or ends at count as trailing ones on both sides.
        assert normalize(covered) == normalize(wanted)
        assert covered.count("\n") == wanted.count("\n")
        tolerated_between(wanted, covered)


@given(documents(), documents())
def test_looking_for_anything_anywhere_fails_only_as_promised(text: str, wanted: str) -> None:
    found = located(text, [Replacement(wanted, "x")])
    if isinstance(found, ToolError):
        assert found.code in ("not_found", "not_unique", "empty_old_text")
        return
    (splice,) = found
    assert 0 <= splice.start < splice.end <= len(text)
    if splice.match == "tolerant":
        lf = LfText(text)
        covered = lf.lf(text[splice.start : splice.end])
        assert normalize(covered) == normalize(lf.lf(wanted))


# ------------------------------------------------------------------ diffs


def planned(before: bytes, edits: Sequence[Replacement]) -> EditPlan:
    content = FileContent(before, FileStat("file", len(before), 0o644, 0, Version("v")), "/f.txt")

    async def plan() -> EditPlan:
        return await plan_content(memory_environment(), "f.txt", "/f.txt", edits, content)

    return anyio.run(plan)


@given(st.data())
def test_patches_lead_to_the_new_bytes_and_the_display_agrees(data: st.DataObject) -> None:
    text = data.draw(documents(stray=False))
    before = text.encode()
    document = document_of(before)
    assume(document.codec == "utf-8" and document.errors == "strict")
    lf = LfText(document.text)
    edits = data.draw(edits_of(lf))
    assume(edits)
    _, after = attempt(before, document, edits)
    assume(after != before)
    plan = planned(before, edits)
    assert plan.after == after
    patch = plan.patch if plan.exact_patch is None else plan.exact_patch
    assert apply_unified(before.decode(), patch).encode() == after
    new_text = after.decode().removeprefix("\ufeff" if document.bom else "")
    assert apply_display(lf.text, plan.diff) == plain_lines(lf.lf(new_text))


@given(texts(), texts())
def test_any_text_is_reached_by_its_patch(old: str, new: str) -> None:
    regions = diffs.hunks(old, diffs.changes_between(old, new))
    assert diffs.apply_changes(old, diffs.changes_between(old, new)) == new
    if old == new:
        assert not regions
    else:
        assert apply_unified(old, diffs.unified_diff("f", regions)) == new
        assert diffs.first_changed_line(regions) is not None


# ------------------------------------------------------------------ read against plain Python


def plain_read(text: str, offset: int | None, limit: int | None) -> str:
    """What read answers, worked out line by line without any cleverness."""
    lines = text.split("\n")
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    total, first = len(lines), (offset or 1) - 1
    if first >= total and not (total == 0 and first == 0):
        return f"Offset {first + 1} is beyond end of file ({total} lines total)"
    last = min(total, first + (math.inf if limit is None else limit))
    wanted = lines[first : int(last)]
    whole = "\n".join(wanted) + ("\n" if ended and last == total and wanted else "")
    shown_lines = whole.count("\n") + (not whole.endswith("\n"))  # an empty piece at the end is no line
    left = total - int(last)
    more = f"\n\n[{left} more lines in file. Use offset={int(last) + 1} to continue.]" if left else ""
    if shown_lines <= MAX_LINES and len(whole.encode()) <= MAX_BYTES:
        return whole + more
    kept: list[str] = []
    by_bytes = False
    wanted = lines[first : int(last)]
    whole = "\n".join(wanted) + ("\n" if ended and last == total and wanted else "")
    shown_lines = whole.count("\n") + (not whole.endswith("\n"))  # an empty piece at the end is no line
    if shown_lines <= MAX_LINES and len(whole.encode()) <= MAX_BYTES:
        left = total - int(last)
        return whole + (f"\n\n[{left} more lines in file. Use offset={int(last) + 1} to continue.]" if left else "")
    for line in wanted[:MAX_LINES]:
        if len("\n".join([*kept, line]).encode()) > MAX_BYTES:
            by_bytes = True
            break
        kept.append(line)
    if not kept:
        size = len(wanted[0].encode())
        tenths = math.floor(size * 10 / 1024 + 0.5)  # halves round up
        return f"[Line {first + 1} is {tenths / 10}KB, exceeds"
    if len(kept) == len(wanted):  # only the final newline did not fit
        return "\n".join(kept) + more
    end = first + len(kept)
    limit_text = " (50.0KB limit)" if by_bytes else ""
    return (
        "\n".join(kept)
        + f"\n\n[Showing lines {first + 1}-{end} of {total}{limit_text}. Use offset={end + 1} to continue.]"
    )


Blocks = list[tuple[str, int]]
"""Texts and how often each is repeated."""


def blocks() -> st.SearchStrategy[Blocks]:
    """Texts of short and long lines around the limits."""
    short = st.tuples(st.text("ab\u00e9\u65e5\U0001f600 \r\t\n", max_size=6), st.just(1))
    long = st.tuples(st.just("x"), st.integers(45_000, 60_000))
    many = st.sampled_from([("a\n", 1999), ("b\n", 2001), ("\n", 2500), ("\u65e5\u672c\u8a9e x\n", 3800)])
    return st.lists(st.one_of(short, long, many), max_size=6)


@pytest.mark.parametrize("first_bytes", [1024 * 1024, 64], ids=["whole", "in parts"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-32-be"])
@given(
    parts=blocks(),
    offset=st.one_of(st.none(), st.integers(0, 12), st.integers(1990, 2510)),
    limit=st.one_of(st.none(), st.integers(1, 12), st.integers(1990, 2510)),
)
def test_read_agrees_with_plain_python(
    first_bytes: int, codec: str, parts: Blocks, offset: int | None, limit: int | None
) -> None:
    text = "".join(piece * count for piece, count in parts)
    mark = "" if codec == "utf-8" else "\ufeff"
    env = memory_environment({"f.txt": (mark + text).encode(codec)})
    arguments = {"path": "f.txt", "offset": offset, "limit": limit}

    async def read() -> ToolResult:
        async with Toolbox(env, [read_tool()]) as toolbox:
            return await toolbox.call("read", arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_module, "_FIRST_BYTES", first_bytes)
        shown = anyio.run(read).text.partition("\n\n[Encoding: ")[0]
    expected = plain_read(text, offset, limit)
    if expected.startswith("[Line "):
        # In another encoding the size is that of the file's own bytes when the line was not fetched whole.
        assert shown.startswith(expected if codec == "utf-8" else expected.partition(" is ")[0])
    else:
        assert shown == expected
