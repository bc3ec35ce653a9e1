"""Jupyter notebooks as text that reads from top to bottom: numbered cells with their outputs. nbformat 3 and 4.

Sources are shown whole; outputs are bounded, and what is not text is named by type and size. The content of a
file is trusted in nothing: any value may be of any type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from handrail.core.truncation import byte_length, format_size, truncate_middle

__all__ = ["MAX_OUTPUTS", "MAX_OUTPUT_BYTES", "render_notebook"]

MAX_OUTPUT_BYTES: Final = 4096
"""Bytes of UTF-8 that one output may take; of a longer one, its start and end are kept."""
MAX_OUTPUTS: Final = 20
"""Outputs of a cell that are shown."""

_Object = dict[str, Any]

# The first of these that an output offers is its text.
_TEXT_TYPES: Final = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")

# nbformat 3 had short names in place of MIME types.
_OLD_TYPES: Final = {
    "text": "text/plain",
    "html": "text/html",
    "latex": "text/latex",
    "json": "application/json",
    "javascript": "application/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
}

# ECMA-48: control sequences, strings up to their terminator, two-character escapes.
_TERMINAL_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_LONE_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def render_notebook(text: str) -> str | None:
    """Return a notebook as readable text; its first line says that it is one.

    Args:
        text: The content of an ``.ipynb`` file.

    Returns:
        The rendering, which ends with a newline, or ``None`` where the text is no notebook.
    """
    try:
        notebook = _parse(text)
        if notebook is None:
            return None
        cells = list(_cells(notebook))
        parts = [_header(notebook, cells), *(_cell(number, cell) for number, cell in enumerate(cells, 1))]
    except RecursionError:  # nested deeper than any notebook is
        return None
    return _LONE_SURROGATES.sub("\ufffd", "\n\n".join(parts)) + "\n"


def _parse(text: str) -> _Object | None:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    notebook = _object(value)
    is_notebook = isinstance(notebook.get("nbformat"), int) and any(
        isinstance(notebook.get(key), list) for key in ("cells", "worksheets")
    )
    return notebook if is_notebook else None


def _cells(notebook: _Object) -> Iterator[_Object]:
    """Yield the cells; nbformat 3 kept them in worksheets."""
    sheets = [notebook] if "cells" in notebook else _list(notebook.get("worksheets"))
    for sheet in sheets:
        for cell in _list(_object(sheet).get("cells")):
            yield _object(cell)


def _header(notebook: _Object, cells: Sequence[_Object]) -> str:
    metadata = _object(notebook.get("metadata"))
    language = _object(metadata.get("language_info")).get("name") or _object(metadata.get("kernelspec")).get("name")
    version = f"nbformat {_label(notebook['nbformat'])}.{_label(notebook.get('nbformat_minor', 0))}"
    kind = f"{version}, {_label(language)}" if language else version
    count = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
    return (
        f"[Jupyter notebook ({kind}), {count}, shown as text with long outputs cut. "
        "The file is JSON, and edit matches that JSON.]"
    )


# ------------------------------------------------------------------ cells


def _cell(number: int, cell: _Object) -> str:
    kind = _label(cell.get("cell_type", "unknown"))
    title = [kind]
    if kind == "code":
        title.append(f"In [{_count(cell)}]")
    if isinstance(cell.get("id"), str):
        title.append(f"id {_label(cell['id'])}")
    source = _text(cell.get("source", cell.get("input"))).rstrip("\n")
    if kind == "heading":  # nbformat 3
        level = cell.get("level")
        source = f"{'#' * (min(level, 6) if isinstance(level, int) else 1)} {source}"
    parts = [f"=== Cell {number}: {', '.join(title)} ==="]
    if source:
        parts.append(source)
    parts.extend(_attachments(cell))
    parts.extend(_outputs(cell))
    return "\n".join(parts)


def _attachments(cell: _Object) -> Iterator[str]:
    for name, bundle in _object(cell.get("attachments")).items():
        for mime_type, value in _object(bundle).items():
            yield f"--- attachment {_label(name)}: {_named(mime_type, value)}"


def _count(value: _Object) -> str:
    """Return the execution count as Jupyter shows it; a cell that never ran has a blank."""
    count = value.get("execution_count", value.get("prompt_number"))
    return " " if count is None else _label(count)


# ------------------------------------------------------------------ outputs


def _outputs(cell: _Object) -> Iterator[str]:
    outputs = list(_joined_streams(_list(cell.get("outputs"))))
    for output in outputs[:MAX_OUTPUTS]:
        yield from _output(output)
    if len(outputs) > MAX_OUTPUTS:
        yield f"--- {len(outputs) - MAX_OUTPUTS} more outputs are left out"


def _joined_streams(outputs: Sequence[Any]) -> Iterator[_Object]:
    """Yield the outputs, with pieces of one stream that follow one another as one."""
    name, pieces = "", list[str]()
    for output in map(_object, outputs):
        is_stream = output.get("output_type") == "stream"
        next_name = _label(output.get("name", output.get("stream", "stdout"))) if is_stream else ""
        if pieces and next_name != name:
            yield {"output_type": "stream", "name": name, "text": "".join(pieces)}
            pieces = []
        name = next_name
        if is_stream:
            pieces.append(_text(output.get("text")))
        else:
            yield output
    if pieces:
        yield {"output_type": "stream", "name": name, "text": "".join(pieces)}


def _output(output: _Object) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield f"--- {output['name']}"
            yield from _bounded(output["text"])
        case "error" | "pyerr":
            yield f"--- error: {_label(output.get('ename'))}: {_label(output.get('evalue'))}"
            yield from _bounded("\n".join(map(_text, _list(output.get("traceback")))))
        case "execute_result" | "pyout":
            yield from _bundle(output, f"Out [{_count(output)}]")
        case "display_data":
            yield from _bundle(output, "display")
        case kind:
            yield f"--- output of unknown type {_label(kind)}"


def _bundle(output: _Object, title: str) -> Iterator[str]:
    """Yield one value that is offered in several types: the best text, and the names of what is no text."""
    offered = _object(output.get("data")) or {
        mime_type: output[name] for name, mime_type in _OLD_TYPES.items() if name in output
    }
    for mime_type, value in offered.items():
        if mime_type not in _TEXT_TYPES:
            yield f"--- {title}: {_named(mime_type, value)}"
    text_type = next((mime_type for mime_type in _TEXT_TYPES if mime_type in offered), None)
    if text_type is not None:
        yield f"--- {title}: {text_type}"
        yield from _bounded(_text(offered[text_type]))


def _bounded(text: str) -> Iterator[str]:
    """Yield a text as a terminal would leave it, cut in the middle where it is too long; nothing if it is blank."""
    lines = _TERMINAL_ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    # A progress bar returns to the start of its line and writes over it.
    shown = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines).rstrip()
    if shown:
        yield truncate_middle(shown, max_bytes=MAX_OUTPUT_BYTES)


def _named(mime_type: str, value: Any) -> str:
    """Name a value that is not shown by its type and size."""
    text = _text(value)
    is_base64 = not mime_type.startswith("text/") and not mime_type.endswith(("+xml", "json", "javascript"))
    size = len("".join(text.split()).rstrip("=")) * 3 // 4 if is_base64 else byte_length(text)
    return f"{_label(mime_type)}, {format_size(size)}, not shown"


# ------------------------------------------------------------------ values of any type


def _object(value: Any) -> _Object:
    return cast(_Object, value) if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return cast(Sequence[Any], value) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    """Return a multi-line string, which notebooks may keep as a list of its lines; other values as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        pieces = cast(Sequence[Any], value)
        if all(isinstance(piece, str) for piece in pieces):
            return "".join(pieces)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _label(value: Any) -> str:
    """Return a value as part of one line."""
    return " ".join(_TERMINAL_ESCAPES.sub("", _text(value)).split())[:120]
