"""Notebooks as text: cells with their outputs, bounded, from files that may hold anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.core.notebooks import MAX_OUTPUT_BYTES, MAX_OUTPUTS, render_notebook
from handrail.core.truncation import byte_length


def notebook(*cells: Any, **more: Any) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **more})


def code(*outputs: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "source": "run()", "outputs": outputs, **more}


def rendered(text: str) -> str:
    result = render_notebook(text)
    assert result is not None
    assert result.endswith("\n")
    return result


def outputs_of(*outputs: Any) -> list[str]:
    """The lines below the source of one code cell."""
    lines = rendered(notebook(code(*outputs))).splitlines()
    return lines[lines.index("run()") + 1 :]


def test_a_whole_notebook_reads_from_top_to_bottom() -> None:
    text = notebook(
        {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "\n", "Words."]},
        {
            "cell_type": "code",
            "id": "sum",
            "execution_count": 3,
            "source": "print(1)\n2",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                {"output_type": "execute_result", "execution_count": 3, "data": {"text/plain": "2"}},
            ],
        },
        {"cell_type": "raw", "source": ""},
        metadata={"language_info": {"name": "python"}},
    )
    assert rendered(text) == (
        "[Jupyter notebook (nbformat 4.5, python), 3 cells, shown as text with long outputs cut. "
        "The file is JSON, and edit matches that JSON.]\n"
        "\n"
        "=== Cell 1: markdown, id intro ===\n"
        "# Title\n"
        "\n"
        "Words.\n"
        "\n"
        "=== Cell 2: code, In [3], id sum ===\n"
        "print(1)\n"
        "2\n"
        "--- stdout\n"
        "1\n"
        "--- Out [3]: text/plain\n"
        "2\n"
        "\n"
        "=== Cell 3: raw ===\n"
    )


def test_the_old_format_is_read_too() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Part"},
        {"cell_type": "heading", "level": "odd", "source": "Other"},
        {
            "cell_type": "code",
            "input": ["a = 1\n", "a"],
            "prompt_number": 7,
            "language": "python",
            "outputs": [
                {"output_type": "stream", "stream": "stderr", "text": "careful"},
                {"output_type": "pyout", "prompt_number": 7, "text": ["1"], "html": ["<b>1</b>"]},
                {"output_type": "display_data", "png": "iVBORw0KGgo=\n", "text": "<Figure>"},
                {"output_type": "pyerr", "ename": "ValueError", "evalue": "no", "traceback": ["line 1", "line 2"]},
            ],
        },
    ]
    text = json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]})
    assert rendered(text).splitlines()[2:] == [
        "=== Cell 1: heading ===",
        "## Part",
        "",
        "=== Cell 2: heading ===",
        "# Other",
        "",
        "=== Cell 3: code, In [7] ===",
        "a = 1",
        "a",
        "--- stderr",
        "careful",
        "--- Out [7]: text/plain",
        "1",
        "--- display: image/png, 8B, not shown",
        "--- display: text/plain",
        "<Figure>",
        "--- error: ValueError: no",
        "line 1",
        "line 2",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "plain words",
        '{"a": 1}',
        '{"nbformat": 4}',
        '{"nbformat": "4", "cells": []}',
        '{"nbformat": 4, "cells": {}}',
        '{"cells": []}',
        "[" * 100_000,
        '{"nbformat": 4, "cells": [' + "[" * 5_000 + "]" * 5_000 + "]}",
        '{"nbformat": ' + "1" * 5_000 + ', "cells": []}',
    ],
)
def test_other_text_is_no_notebook(text: str) -> None:
    assert render_notebook(text) is None


def test_nesting_at_the_edge_of_the_stack_is_no_exception() -> None:
    whole = notebook(code({"output_type": "display_data", "data": {"application/json": "deep"}}))
    for depth in range(400, 1000, 7):
        render_notebook(whole.replace('"deep"', "[" * depth + "]" * depth))


def test_an_empty_notebook_has_its_first_line_only() -> None:
    text = notebook(metadata={"kernelspec": {"name": "julia-1.9"}})
    assert rendered(text).startswith("[Jupyter notebook (nbformat 4.5, julia-1.9), 0 cells, shown as text")
    assert rendered(text).count("\n") == 1
    assert "1 cell, " in rendered(notebook(code()))


def test_pieces_of_one_stream_are_one_output() -> None:
    assert outputs_of(
        {"output_type": "stream", "name": "stdout", "text": "a\nb"},
        {"output_type": "stream", "name": "stdout", "text": "c\n"},
        {"output_type": "stream", "name": "stderr", "text": "d\n"},
        {"output_type": "display_data", "data": {"text/plain": "e"}},
        {"output_type": "stream", "name": "stderr", "text": "f\n"},
    ) == ["--- stdout", "a", "bc", "--- stderr", "d", "--- display: text/plain", "e", "--- stderr", "f"]


def test_terminal_escapes_and_progress_bars_are_gone() -> None:
    traceback = ["\x1b[0;31mZeroDivisionError\x1b[0m", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "\x1b(Bend"]
    assert outputs_of(
        {"output_type": "error", "ename": "\x1b[1mZeroDivisionError", "evalue": "by\nzero", "traceback": traceback},
        {"output_type": "stream", "name": "stdout", "text": " 10%\r 50%\r100%\r\nnext\r\n\n"},
        {"output_type": "stream", "name": "stderr", "text": " \n"},
    ) == [
        "--- error: ZeroDivisionError: by zero",
        "ZeroDivisionError",
        "link",
        "end",
        "--- stdout",
        "100%",
        "next",
        "--- stderr",
    ]


def test_a_long_output_is_cut_in_the_middle() -> None:
    shown = outputs_of({"output_type": "stream", "name": "stdout", "text": "start" + "é" * 10_000 + "end"})
    assert shown[1].startswith("starté")
    assert shown[-1].endswith("éend")
    assert byte_length("\n".join(shown)) < MAX_OUTPUT_BYTES + 200
    assert any("omitted" in line for line in shown)


def test_outputs_past_the_limit_are_counted() -> None:
    shown = outputs_of(*({"output_type": "display_data", "data": {"text/plain": "x"}} for _ in range(MAX_OUTPUTS + 7)))
    assert shown[-1] == "--- 7 more outputs are left out"
    assert shown.count("x") == MAX_OUTPUTS


def test_one_text_is_shown_and_the_rest_is_named() -> None:
    data: dict[str, Any] = {
        "text/html": "<b>x</b>",
        "text/markdown": "**x**",
        "image/svg+xml": ["<svg>", "é</svg>"],
        "image/jpeg": "/9j/4AAQ" * 1000,
        "application/vnd.plotly.v1+json": {"data": []},
    }
    assert outputs_of({"output_type": "execute_result", "execution_count": 1, "data": data}) == [
        "--- Out [1]: image/svg+xml, 13B, not shown",
        "--- Out [1]: image/jpeg, 5.9KB, not shown",
        "--- Out [1]: application/vnd.plotly.v1+json, 12B, not shown",
        "--- Out [1]: text/markdown",
        "**x**",
    ]


def test_json_is_text() -> None:
    shown = outputs_of({"output_type": "display_data", "data": {"application/json": {"é": [1, None]}}})
    assert shown == ["--- display: application/json", '{"é": [1, null]}']


def test_attachments_are_named() -> None:
    text = notebook(
        {
            "cell_type": "markdown",
            "source": "![a](attachment:a b.png)",
            "attachments": {"a b.png": {"image/png": "iVBORw0KGgo="}},
        }
    )
    assert rendered(text).endswith("![a](attachment:a b.png)\n--- attachment a b.png: image/png, 8B, not shown\n")


@pytest.mark.parametrize("odd", [None, True, 5, 1.5, "text", [], ["a", 1], {}, {"a": {"b": []}}])
def test_values_of_any_type_are_borne(odd: Any) -> None:
    outputs = [
        {"output_type": odd},
        *({"output_type": kind} for kind in ("stream", "error", "execute_result", "display_data")),
        {"output_type": "stream", "name": odd, "text": odd},
        {"output_type": "error", "ename": odd, "evalue": odd, "traceback": odd},
        {"output_type": "execute_result", "execution_count": odd, "data": odd},
        {"output_type": "display_data", "data": {"text/plain": odd, "image/png": odd}},
        odd,
    ]
    cells = [
        odd,
        {"cell_type": odd, "source": odd, "id": odd, "attachments": odd, "outputs": odd},
        {"cell_type": "heading", "level": odd, "attachments": {"a": odd}},
        *(code(output, execution_count=odd) for output in outputs),
    ]
    for text in (
        notebook(*cells, metadata=odd, nbformat_minor=odd),
        json.dumps({"nbformat": 3, "worksheets": [odd, {"cells": odd}, {"cells": cells}]}),
    ):
        rendered(text).encode()


def test_labels_stay_on_their_line() -> None:
    text = rendered(notebook({"cell_type": "code\n=== Cell 9", "id": "a\nb" * 100, "source": "x"}))
    title = text.splitlines()[2]
    assert title.startswith("=== Cell 1: code === Cell 9, id a b")
    assert len(title) < 200


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert "a\ufffdb" in rendered('{"nbformat": 4, "cells": [{"cell_type": "raw", "source": "a\\ud800b"}]}')
