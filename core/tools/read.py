"""The read tool: text by lines, images for eyes, and a word about everything else. Contract section 5."""

from __future__ import annotations

import hashlib
import re
from contextlib import aclosing
from typing import Any, Final

from attrs import evolve, frozen

from handrail.core import images, notebooks, pdf
from handrail.core.arguments import parameter
from handrail.core.editorconfig import decode_in_project
from handrail.core.errors import ToolError, tool_error
from handrail.core.freshness import Freshness
from handrail.core.line_index import LineIndexes
from handrail.core.paths import resolve, resolve_existing
from handrail.core.results import ImageContent, TextContent, ToolResult, text_result
from handrail.core.suggestions import missing_file
from handrail.core.text import Binary, TextDocument, is_binary_sample, sample_of, visible
from handrail.core.tool import Tool, ToolContext
from handrail.core.truncation import (
    MAX_BYTES,
    MAX_LINES,
    Truncation,
    byte_length,
    count_lines,
    format_size,
    truncate_head,
)
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent

__all__ = ["ReadArguments", "ReadDetails", "ReadOptions", "read_tool"]

_FIRST_BYTES: Final = 1024 * 1024
_MAX_WHOLE_BYTES: Final = 64 * 1024 * 1024
"""Images, notebooks and PDFs are read whole up to this size."""


@frozen
class ReadArguments:
    """Parameters of read."""

    path: str = parameter("File to read, relative to the working directory or absolute.")
    offset: int | None = parameter("Line to start at, from 1.", default=None, minimum=1)
    limit: int | None = parameter("How many lines to read at most.", default=None, minimum=1)


@frozen
class ReadDetails:
    """What was left out of a read, and why."""

    truncation: Truncation | None = None
    image_unsupported_by_model: str | None = None
    """The session's model, where it cannot see the image."""
    encoding: str | None = None
    """The encoding, where it is not plain UTF-8."""


@frozen
class ReadOptions:
    """What the host decides about read.

    Attributes:
        auto_resize_images: Scale images down to what models take.
        model_sees_images: Whether the session's model takes images; else the details say so.
        encoding: A codec to try where a file is not Unicode, e.g. the project's.
        remember: Note what was read, for edit and write with ``require_fresh``.
    """

    auto_resize_images: bool = True
    model_sees_images: bool = True
    encoding: str | None = None
    remember: bool = False


def read_tool(options: ReadOptions = ReadOptions()) -> Tool[ReadArguments]:
    """Return the read tool."""

    async def read(arguments: ReadArguments, context: ToolContext) -> ToolResult:
        _check_range(arguments)
        target, content = await _open(arguments.path, context)
        if options.remember:
            await _remember(context, target, content)
        mime_type = images.detect_image_type(content.data)
        if mime_type is not None:
            return await _read_image(arguments, target, content, mime_type, options, context)
        if pdf.is_pdf(content.data):
            return await _read_pdf(arguments, target, content, context)
        if content.complete:
            return await _read_whole(arguments, target, content, options, context)
        return await _read_part(arguments, target, content, options, context)

    return Tool(
        name="read",
        label="Read file",
        description=(
            "Read a file. Text comes as lines, at most 2000 lines or 50 KB a call; continue with offset. Images (jpeg, "
            "png, gif, webp, bmp) are shown, notebooks as cells, PDFs as pages (offset and limit count pages)."
        ),
        parameters=ReadArguments,
        execute=read,
        details=ReadDetails,
    )


def _check_range(arguments: ReadArguments) -> None:
    for name, value, least in (("offset", arguments.offset, 0), ("limit", arguments.limit, 1)):
        if value is not None and value < least:
            raise ToolError("invalid_arguments", f"{name} must be a whole number from 1 on, not {value}.")


async def _open(path: str, context: ToolContext) -> tuple[str, FileContent]:
    """Find and read the start of the file; other spellings are tried only when the first does not exist."""
    env = context.env
    target = await resolve(path, env)
    try:
        return target, await env.files.read(target, max_bytes=_FIRST_BYTES)
    except PortError as error:
        if error.code != "not_found":
            raise tool_error(error, path) from error
    other = await resolve_existing(path, env)
    if other == target:
        raise await missing_file(env, target, path)
    try:
        return other, await env.files.read(other, max_bytes=_FIRST_BYTES)
    except PortError as error:
        raise tool_error(error, path) from error


async def _remember(context: ToolContext, target: str, content: FileContent) -> None:
    freshness = context.shared(Freshness)
    if content.complete:
        freshness.note(content.canonical_path, content.data)
        return
    digest = hashlib.sha256()

    def consume(piece: bytes | bytearray) -> bool:
        digest.update(piece)
        return True

    scanned = await context.env.files.scan(target, consume)
    if scanned.version == content.stat.version:  # else it changed since, and nobody has seen that
        freshness.note_digest(content.canonical_path, digest.digest())


# ------------------------------------------------------------------ text


async def _read_whole(
    arguments: ReadArguments, target: str, content: FileContent, options: ReadOptions, context: ToolContext
) -> ToolResult:
    document = await _text(target, content.data, options, context)
    if isinstance(document, Binary):
        return _binary(arguments.path, content)
    text = document.text
    if target.endswith(".ipynb"):
        rendered = await context.env.offload(lambda: notebooks.render_notebook(text))
        text = rendered if rendered is not None else text
    total = count_lines(text)
    first = _first_line(arguments, total)
    last = total if arguments.limit is None else min(first + arguments.limit, total)
    selected = visible(_lines_between(text, first, last))
    first_line = byte_length(selected.partition("\n")[0])
    return _shown(arguments, document, truncate_head(selected), first_line, first, last, total)


async def _text(target: str, data: bytes, options: ReadOptions, context: ToolContext) -> TextDocument | Binary:
    if is_binary_sample(data):
        return Binary(len(data))
    return await decode_in_project(context.env, target, data, encoding=options.encoding)


def _first_line(arguments: ReadArguments, total: int) -> int:
    """The first line to show, from 0."""
    offset = arguments.offset or 1
    if offset > total and not (total == 0 and offset == 1):
        raise ToolError("out_of_range_offset", f"Offset {offset} is beyond end of file ({total} lines total)")
    return offset - 1


def _lines_between(text: str, first: int, last: int) -> str:
    """The lines from ``first`` up to ``last``; the final line feed only of the text's last line."""
    start = _line_start(text, first, 0)
    end = _line_start(text, last - first, start)
    selected = text[start:end]
    return selected if end == len(text) else selected.removesuffix("\n")


def _line_start(text: str, lines: int, position: int) -> int:
    for _ in range(lines):
        position = text.find("\n", position) + 1
        if position == 0:
            return len(text)
    return position


async def _read_part(
    arguments: ReadArguments, target: str, content: FileContent, options: ReadOptions, context: ToolContext
) -> ToolResult:
    """Read lines of a large file: count its lines once, then fetch only what is shown."""
    document = await _text(target, sample_of(content.data), options, context)
    if isinstance(document, Binary):
        return _binary(arguments.path, content)
    files = context.env.files
    index = await context.shared(LineIndexes).get(files, target, document.codec, content.stat.version)
    first = _first_line(arguments, index.total_lines)
    last = index.total_lines if arguments.limit is None else min(first + arguments.limit, index.total_lines)
    start, end = await index.offset(files, target, first), await index.offset(files, target, last)
    # Enough for more than is shown and the line feed behind it, four bytes a character at most.
    head, needed = bytearray(), 4 * (MAX_BYTES + 2) + len(document.bom)
    async with aclosing(files.read_chunks(target, start=start, end=min(end, start + needed))) as chunks:
        async for chunk in chunks:
            head += chunk
    if start == 0:
        del head[: len(document.bom)]
    text = visible(head.decode(document.codec, "replace" if document.errors == "strict" else document.errors))
    if last < index.total_lines:
        text = text.removesuffix("\n") if start + needed >= end else text
    kept = truncate_head(text)
    if start + needed < end:  # the text goes on beyond what was fetched
        kept = evolve(kept, total_lines=last - first, total_bytes=end - start)
    first_line = byte_length(text.partition("\n")[0])
    if kept.first_line_exceeds_limit:
        first_line = await index.offset(files, target, first + 1) - start - index.ends_with_feed(first)
    return _shown(arguments, document, kept, first_line, first, last, index.total_lines)


def _shown(
    arguments: ReadArguments,
    document: TextDocument,
    kept: Truncation,
    first_line_bytes: int,
    first: int,
    last: int,
    total: int,
) -> ToolResult:
    """The result: the kept lines and, after a blank line, what is left out and how to go on."""
    text = kept.content
    end = first + kept.output_lines
    if kept.first_line_exceeds_limit:
        text = _long_line_notice(arguments.path, first + 1, first_line_bytes)
    elif kept.truncated and end < last:  # where only the final newline did not fit, nothing is left to show
        limit = f" ({format_size(MAX_BYTES)} limit)" if kept.truncated_by == "bytes" else ""
        text += f"\n\n[Showing lines {first + 1}-{end} of {total}{limit}. Use offset={end + 1} to continue.]"
    elif last < total:
        text += f"\n\n[{total - last} more lines in file. Use offset={last + 1} to continue.]"
    if document.label is not None:
        text += f"\n\n[Encoding: {document.label}]"
    details = ReadDetails(kept if kept.truncated else None, encoding=document.label)
    return text_result(text, details=_or_none(details), structured_content=text)


def _long_line_notice(path: str, line: int, line_bytes: int) -> str:
    size, limit = format_size(line_bytes), format_size(MAX_BYTES)
    command = f"sed -n '{line}p' {_shell_quoted(path)} | head -c {MAX_BYTES}"
    return f"[Line {line} is {size}, exceeds {limit} limit. Use bash: {command}]"


def _shell_quoted(path: str) -> str:
    """The path as one word of a shell that no program takes for an option."""
    path = f"./{path}" if path.startswith("-") else path
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", path):
        return path
    return "'" + path.replace("'", "'\"'\"'") + "'"


def _or_none(details: ReadDetails) -> ReadDetails | None:
    return None if details == ReadDetails() else details


# ------------------------------------------------------------------ everything else


async def _whole(arguments: ReadArguments, target: str, content: FileContent, context: ToolContext) -> bytes | str:
    """The whole file, or a text that says that it is too large to be shown."""
    if content.complete:
        return content.data
    if content.stat.size > _MAX_WHOLE_BYTES:
        size, most = format_size(content.stat.size), format_size(_MAX_WHOLE_BYTES)
        return f"{arguments.path} is {size}, more than the {most} that are opened. Use bash to make a smaller one."
    return (await context.env.files.read(target)).data


async def _read_image(
    arguments: ReadArguments,
    target: str,
    content: FileContent,
    mime_type: str,
    options: ReadOptions,
    context: ToolContext,
) -> ToolResult:
    data = await _whole(arguments, target, content, context)
    if isinstance(data, str):
        return text_result(data, structured_content=data)
    image = data
    prepared = await context.env.offload(
        lambda: images.prepare_image(image, mime_type, resize=options.auto_resize_images)
    )
    if isinstance(prepared, str):
        return text_result(prepared, structured_content=prepared)
    unseen = (context.env.session.model or "the model") if not options.model_sees_images else None
    structured: dict[str, Any] = {
        "type": "image",
        "data": prepared.data,
        "mimeType": prepared.mime_type,
        "note": prepared.note,
    }
    return ToolResult(
        (TextContent(prepared.note), ImageContent(prepared.data, prepared.mime_type)),
        details=_or_none(ReadDetails(image_unsupported_by_model=unseen)),
        structured_content=structured,
    )


async def _read_pdf(arguments: ReadArguments, target: str, content: FileContent, context: ToolContext) -> ToolResult:
    """Show a PDF as text; offset and limit count pages."""
    data = await _whole(arguments, target, content, context)
    if isinstance(data, str):
        return text_result(data, structured_content=data)
    whole, first, limit = data, arguments.offset or 1, arguments.limit
    window = await context.env.offload(lambda: pdf.pdf_page_window(whole, first=first, limit=limit))
    if isinstance(window, str):
        return text_result(window, structured_content=window)
    if first > max(window.total, 1):
        raise ToolError("out_of_range_offset", f"Offset {first} is beyond the last page ({window.total} pages total)")
    last = window.first + len(window.pages) - 1
    shown = "\n\n".join(
        f"--- Page {number} of {window.total} ---\n{page}" for number, page in enumerate(window.pages, window.first)
    )
    kept = truncate_head(shown)
    text = f"[PDF, {window.total} pages, shown as text]\n\n{kept.content}"
    if kept.truncated:
        text += f"\n\n[Cut at {format_size(MAX_BYTES)} or {MAX_LINES} lines. Use offset and limit to read fewer pages.]"
    elif last < window.total:
        text += f"\n\n[{window.total - last} more pages in file. Use offset={last + 1} to continue.]"
    return text_result(text, details=ReadDetails(kept) if kept.truncated else None, structured_content=text)


def _binary(path: str, content: FileContent) -> ToolResult:
    text = (
        f"[Binary file: {path}, {format_size(content.stat.size)}, {_guess(content.data)}. "
        "It is not text; use bash with a program that knows the format.]"
    )
    return text_result(text, structured_content=text)


_MAGIC: Final = (
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program or library"),
    (b"PK\x03\x04", "zip archive (also jar, docx, xlsx, whl)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\xca\xfe\xba\xbe", "Java class file or universal binary"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"\0asm", "WebAssembly module"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\x01\0", "Windows icon"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"RIFF", "RIFF audio or video"),
    (b"\xd0\xcf\x11\xe0", "old Microsoft Office document"),
)


def _guess(data: bytes) -> str:
    return next((name for magic, name in _MAGIC if data.startswith(magic)), "of unknown type")
