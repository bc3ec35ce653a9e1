"""Whatever is done to a log, verify finds it, and at the right entry."""

from __future__ import annotations

import base64
from functools import cache

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.memory import memory_environment
from handrail.adapters.recording import Head, LogError, MemoryLog, Signer, Verifier, record, verify_log
from handrail.adapters.recording.chain import canonical_json, parse_line, seal
from handrail.core.toolbox import Toolbox
from handrail.core.toolsets import all_tools


def toy_sign(data: bytes) -> bytes:
    return base64.b85encode(data)


SIGNER = Signer("toy", toy_sign)
VERIFIER = Verifier("toy", lambda signature, data: signature == toy_sign(data))


@cache
def sample() -> tuple[bytes, ...]:
    async def make() -> tuple[bytes, ...]:
        log = MemoryLog()
        env = record(memory_environment({"a.txt": "text\n"}), log, signer=SIGNER, checkpoint_every=10)
        async with env, Toolbox(env, all_tools()) as toolbox:
            await toolbox.call("bash", {"command": "cat a.txt; echo é"})
            await toolbox.call("read", {"path": "a.txt"})
        return tuple(log.lines)

    return anyio.run(make)


def log_of(lines: list[bytes]) -> MemoryLog:
    """A log as reading a file would split it."""
    return MemoryLog([line + b"\n" for line in b"".join(lines).split(b"\n")[:-1]] + _rest(b"".join(lines)))


def _rest(data: bytes) -> list[bytes]:
    rest = data.rpartition(b"\n")[2]
    return [rest] if rest else []


def head() -> Head:
    return parse_line(sample()[-1]).head


indexes = st.integers(0, len(sample()) - 1)


def test_the_sample_is_intact() -> None:
    found = verify_log(MemoryLog(list(sample())), head=head(), verifier=VERIFIER)
    assert found.intact
    assert (found.entries, found.complete, found.torn_bytes) == (len(sample()), True, 0)
    assert found.signed_up_to == len(sample()) - 1


@given(st.data())
def test_any_changed_byte_is_found_at_its_entry(data: st.DataObject) -> None:
    lines = list(sample())
    index = data.draw(indexes)
    position = data.draw(st.integers(0, len(lines[index]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != lines[index][position]))
    lines[index] = lines[index][:position] + bytes([byte]) + lines[index][position + 1 :]
    found = verify_log(log_of(lines))
    if found.problem is None:
        # The last newline is gone: that is what a crash leaves.
        assert (index, position) == (len(lines) - 1, len(sample()[-1]) - 1)
        assert found.torn_bytes == len(sample()[-1])
        assert verify_log(log_of(lines), head=head()).problem is not None
    else:
        assert found.problem.seq == index
        assert found.problem.line == index + 1


@given(st.data())
def test_a_removed_entry_is_found(data: st.DataObject) -> None:
    lines = list(sample())
    index = data.draw(st.integers(0, len(lines) - 2))
    del lines[index]
    problem = verify_log(log_of(lines)).problem
    assert problem is not None
    assert problem.seq == index
    assert problem.kind == ("header" if index == 0 else "removed")


@given(st.data())
def test_an_end_that_was_cut_off_is_found_with_an_anchor(data: st.DataObject) -> None:
    kept = data.draw(st.integers(1, len(sample()) - 1))
    lines = list(sample()[:kept])
    assert verify_log(log_of(lines)).intact
    problem = verify_log(log_of(lines), head=head()).problem
    assert problem is not None
    assert (problem.kind, problem.seq) == ("truncated", kept)


@given(st.data())
def test_an_inserted_entry_is_found(data: st.DataObject) -> None:
    lines = list(sample())
    index = data.draw(st.integers(1, len(lines) - 1))
    source = parse_line(lines[data.draw(indexes)])
    forged = seal({**source.entry, "seq": index, "prev": parse_line(lines[index - 1]).hash, "forged": True})
    lines.insert(index, data.draw(st.sampled_from([forged.raw, source.raw])))
    problem = verify_log(log_of(lines)).problem
    if lines[index] == sample()[index]:
        # A line that stands twice: the second one is the one too many.
        assert problem is not None
        assert problem.seq == index + 1
        return
    assert problem is not None
    # A well-made forgery fits what is before it; what follows tells.
    assert problem.seq in (index, index + 1)


@given(st.data())
def test_a_changed_order_is_found(data: st.DataObject) -> None:
    lines = list(sample())
    first = data.draw(st.integers(1, len(lines) - 2))
    second = data.draw(st.integers(first + 1, len(lines) - 1))
    lines[first], lines[second] = lines[second], lines[first]
    problem = verify_log(log_of(lines)).problem
    assert problem is not None
    assert (problem.kind, problem.seq) == ("reordered", first)


@given(st.integers(1, len(sample()) - 1))
def test_a_rest_that_was_written_anew_is_found_by_signature_and_anchor(start: int) -> None:
    lines = list(sample()[:start])
    previous = parse_line(lines[-1]).hash
    for raw in sample()[start:]:
        line = seal({**parse_line(raw).entry, "prev": previous, "at": 0.5})
        lines.append(line.raw)
        previous = line.hash
    assert verify_log(log_of(lines)).intact
    assert verify_log(log_of(lines), head=head()).problem is not None
    problem = verify_log(log_of(lines), verifier=VERIFIER).problem
    assert problem is not None
    assert problem.kind == "signature"


@given(st.binary(max_size=200))
def test_what_is_no_log_is_refused_or_a_problem(data: bytes) -> None:
    try:
        found = verify_log(log_of([data, b"\n"]))
    except LogError:
        return
    assert found.problem is not None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(json_values)
def test_every_entry_survives_its_line(value: object) -> None:
    line = seal({"seq": 0, "prev": "", "kind": "log", "value": value})
    assert parse_line(line.raw).entry["value"] == value
    assert line.raw.count(b"\n") == 1
    line.raw.decode()


def test_a_number_that_is_none_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))
