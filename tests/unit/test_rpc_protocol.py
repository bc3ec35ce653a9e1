"""The lines of the protocol: any bytes in, whole requests or reasons out."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.adapters.rpc.protocol import (
    CallRequest,
    CancelRequest,
    LineSplitter,
    RequestError,
    RequestId,
    call_id_of,
    encode_error,
    encode_event,
    parse_request,
)
from handrail.core.events import CallEnded, CallStarted
from handrail.core.results import ToolResult

ids = st.text() | st.integers(-(2**70), 2**70)


@given(ids, st.text(), st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_a_call_comes_through_unchanged(request_id: RequestId, tool: str, arguments: dict[str, object]) -> None:
    line = json.dumps({"id": request_id, "tool": tool, "arguments": arguments}).encode()
    assert parse_request(line) == CallRequest(request_id, tool, arguments)


def test_arguments_may_be_left_out_and_unknown_fields_are_passed_over() -> None:
    assert parse_request(b'\xef\xbb\xbf {"id": 0, "tool": "ls", "traceparent": "x"}\r') == CallRequest(0, "ls", {})


@given(ids)
def test_a_cancel_names_its_call(request_id: RequestId) -> None:
    assert parse_request(json.dumps({"id": request_id, "cancel": True}).encode()) == CancelRequest(request_id)


@given(
    st.binary() | st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_other_line_has_a_reason(line: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request(line)
    answer = json.loads(encode_error(caught.value))
    assert (answer["type"], answer["errorCode"]) == ("error", "malformed_line")


def test_an_error_names_the_id_of_its_line_where_there_is_one() -> None:
    for line, named in ((b'{"id": "a", "tool": 1}', {"id": "a"}), (b'{"id": [], "tool": "ls"}', {})):
        with pytest.raises(RequestError) as caught:
            parse_request(line)
        answer = json.loads(encode_error(caught.value))
        assert {key: answer[key] for key in answer.keys() & {"id"}} == named


@given(ids, st.text())
def test_an_event_is_one_ascii_line_with_the_callers_own_id(request_id: RequestId, text: str) -> None:
    line = encode_event(CallStarted(call_id_of(request_id), "ls", {"path": text}))
    assert line.isascii()
    assert line.index(b"\n") == len(line) - 1
    assert json.loads(line) == {"type": "start", "id": request_id, "tool": "ls", "arguments": {"path": text}}


@given(ids, ids)
def test_different_ids_are_different_calls(one: RequestId, other: RequestId) -> None:
    assert (call_id_of(one) == call_id_of(other)) == ((type(one), one) == (type(other), other))


def test_what_json_has_no_form_for_is_written_as_text() -> None:
    line = encode_event(CallEnded("1", "custom", ToolResult((), details={"when": complex(1, 2)}), 1.5))
    assert json.loads(line)["result"]["details"] == {"when": "(1+2j)"}


# ------------------------------------------------------------------ lines


def split(chunks: Iterable[bytes], max_bytes: int) -> list[bytes | None]:
    splitter = LineSplitter(max_bytes)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, *splitter.finish()]


@given(st.lists(st.binary(max_size=12) | st.just(b"\n") | st.just(b"ab\ncd"), max_size=12), st.integers(0, 10))
def test_lines_do_not_depend_on_how_the_bytes_arrive(chunks: list[bytes], max_bytes: int) -> None:
    data = b"".join(chunks)
    lines = data.split(b"\n")
    expected = [line if len(line) <= max_bytes else None for line in (lines if lines[-1] else lines[:-1])]
    assert split(chunks, max_bytes) == expected


def test_nothing_is_kept_of_a_line_that_is_too_long() -> None:
    splitter = LineSplitter(10)
    for _ in range(100):
        assert list(splitter.feed(b"x" * 1000)) == []
    assert list(splitter.feed(b"\nok\n")) == [None, b"ok"]
