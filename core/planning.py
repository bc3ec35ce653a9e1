"""Plan an edit, look at it, apply it: the pure plan first, the write only if the file is still the same.

``edit`` is plan and apply in one turn of the file. Hosts that ask a person first call the two halves
themselves; a plan of several files is applied whole or not at all.
"""

from __future__ import annotations

import hashlib
from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import Final, Literal

from anyio import CancelScope
from attrs import evolve, field, frozen

from handrail.core import diffs
from handrail.core.editorconfig import decode_in_project
from handrail.core.errors import ToolError, tool_error
from handrail.core.paths import resolve_existing
from handrail.core.replacement import LfText, Replacement, Splice, locate, splice_bytes
from handrail.core.text import Binary, TextDocument, decode, is_binary_sample, sample_of, visible
from handrail.core.truncation import format_size, truncate_head
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent, Version, WriteReceipt

__all__ = [
    "AppliedPlan",
    "EditPlan",
    "Match",
    "apply_plan",
    "apply_plans",
    "change_between",
    "plan_content",
    "plan_replacements",
    "read_to_edit",
]

_OFFLOADED_BYTES: Final = 1024 * 1024
_WHOLE_FILE_BYTES: Final = 8 * 1024 * 1024
"""Smaller files are read in one step; of others, the start is looked at first."""

_SAMPLE_BYTES: Final = 64 * 1024

_ATTEMPTS: Final = 5


@frozen
class Match:
    """How the text of one edit was found."""

    kind: Literal["exact", "tolerant"]
    tolerated: Sequence[str] | None = None
    """What differed in a tolerant match."""


@frozen
class EditPlan:
    """What an edit would do to one file; nothing has been written.

    Attributes:
        path: The file as the caller named it.
        target: Its absolute path.
        edits: What was asked.
        splices: Where the edits apply, sorted by position.
        before: The bytes the plan was made from.
        after: The bytes it leads to.
        version: The version of the file the plan was made from.
        encoding: The codec to try where the file is not Unicode, as the caller gave it.
    """

    path: str
    target: str
    edits: Sequence[Replacement] = field(repr=False)
    splices: Sequence[Splice] = field(repr=False)
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)
    version: Version
    diff: str
    """Numbered diff for people, bounded."""
    patch: str
    """Unified diff with ``\\n`` line endings, bounded."""
    exact_patch: str | None
    """Unified diff of the very bytes, for ``patch`` and ``git apply``; only where it differs from ``patch``."""
    first_changed_line: int | None
    """In the new file, from 1."""
    matches: Sequence[Match]
    """Per edit, in the order asked."""
    encoding: str | None = None

    @property
    def sha256_before(self) -> str:
        """Hash of the bytes before, in hexadecimal."""
        return hashlib.sha256(self.before).hexdigest()

    @property
    def sha256_after(self) -> str:
        """Hash of the bytes after, in hexadecimal."""
        return hashlib.sha256(self.after).hexdigest()


@frozen
class AppliedPlan:
    """A plan that was carried out."""

    plan: EditPlan
    """What was done: another plan than the one given where that had to be re-based."""
    receipt: WriteReceipt


async def plan_replacements(
    env: Environment, path: str, edits: Sequence[Replacement], *, encoding: str | None = None
) -> EditPlan:
    """Work out what edits would do to a file, without writing.

    Args:
        env: Where the file is.
        path: The file as the caller names it.
        edits: What to replace; each old text occurs once.
        encoding: A codec to try where the file is not Unicode.

    Raises:
        ToolError: As the edit tool reports it.
    """
    target = await resolve_existing(path, env)
    try:
        content = await read_to_edit(env, path, target)
    except PortError as error:
        raise tool_error(error, path) from error
    return await plan_content(env, path, target, edits, content, encoding=encoding)


async def read_to_edit(env: Environment, path: str, target: str) -> FileContent:
    """Return the whole content of a file; of a large one only if its start may be text.

    Args:
        env: Where the file is.
        path: The file as the caller names it.
        target: Its absolute path.

    Raises:
        PortError: As ``FilePort.read``.
        ToolError: ``undecodable``: a large binary file.
    """
    start = await env.files.read(target, max_bytes=_WHOLE_FILE_BYTES)
    if len(start.data) < _WHOLE_FILE_BYTES and start.complete:
        return start
    sample = sample_of(start.data[:_SAMPLE_BYTES])
    # A stray NUL in a text is no reason to refuse it.
    if sample.count(0) > len(sample) // 50 and is_binary_sample(sample):
        raise _is_binary(path, start.stat.size)
    return await env.files.read(target)


async def plan_content(
    env: Environment,
    path: str,
    target: str,
    edits: Sequence[Replacement],
    content: FileContent,
    *,
    encoding: str | None = None,
) -> EditPlan:
    """Like ``plan_replacements``, for content that was already read; large files are worked on off the event loop."""
    document = await decode_in_project(env, target, content.data, encoding=encoding)

    def plan() -> EditPlan:
        return _plan(path, target, edits, content, document, encoding)

    work = len(content.data) * max(1, len(edits) // 16)
    return await env.offload(plan) if work > _OFFLOADED_BYTES else plan()


async def apply_plan(env: Environment, plan: EditPlan, *, rebase: bool = False) -> AppliedPlan:
    """Write what a plan says, if the file still is what the plan was made from.

    A file that was touched but not changed counts as the same.

    Args:
        env: Where the file is.
        plan: The plan.
        rebase: When the file changed meanwhile but each edit still finds its one place, apply the edits
            to the new content instead of refusing.

    Raises:
        ToolError: ``conflict``, with a diff of what changed meanwhile; what the write reports.
    """
    for _ in range(_ATTEMPTS):
        try:
            return AppliedPlan(plan, await env.files.write(plan.target, plan.after, expect=plan.version))
        except PortError as error:
            if error.code != "conflict":
                raise tool_error(error, plan.path) from error
        current = await _reread(env, plan)
        if current.data == plan.before:
            plan = evolve(plan, version=current.stat.version)
        elif rebase:
            plan = await plan_content(env, plan.path, plan.target, plan.edits, current, encoding=plan.encoding)
        else:
            raise _conflict(plan, current.data)
    raise ToolError("conflict", f"{plan.path} is being changed by someone else all the time. Try again later.")


async def apply_plans(env: Environment, plans: Sequence[EditPlan]) -> list[AppliedPlan]:
    """Apply the plans of several files, all or nothing: on a failure the files already written are restored.

    Raises:
        ToolError: What the failing plan reports; when a file could not be restored, the text names it.
    """
    applied: list[AppliedPlan] = []
    try:
        for plan in plans:
            applied.append(await apply_plan(env, plan))
    except BaseException as error:
        # A write that was cancelled may have happened all the same; one that was refused has not.
        attempted = len(applied) + (not isinstance(error, ToolError))
        lost = await _restore(env, plans[:attempted])
        if lost and isinstance(error, ToolError):
            names = ", ".join(lost)
            raise ToolError(error.code, f"{error.message}\nNot restored, changed meanwhile: {names}") from error
        raise
    return applied


# ------------------------------------------------------------------ the pure plan


def _plan(
    path: str,
    target: str,
    edits: Sequence[Replacement],
    content: FileContent,
    document: TextDocument | Binary,
    encoding: str | None,
) -> EditPlan:
    if not isinstance(document, TextDocument):
        raise _is_binary(path, document.size)
    lf = LfText(document.text)
    splices = locate(lf, edits, path)
    after = splice_bytes(content.data, document, splices, path)
    if after == content.data:
        raise ToolError("no_change", f"The edits change nothing in {path}: oldText and newText are the same there.")
    regions, old_lines, new_lines = _regions(lf, splices)
    patch = diffs.unified_diff(path, regions)
    by_index = sorted(splices, key=lambda splice: splice.index)
    return EditPlan(
        path=path,
        target=target,
        edits=edits,
        splices=splices,
        before=content.data,
        after=after,
        version=content.stat.version,
        diff=diffs.bounded(visible(diffs.display_diff(lf.text, regions, old_lines, new_lines))),
        patch=diffs.bounded(visible(patch)),
        exact_patch=_exact_patch(path, content.data, document, splices, patch),
        first_changed_line=diffs.first_changed_line(regions),
        matches=[Match(splice.match, splice.tolerated or None) for splice in by_index],
        encoding=encoding,
    )


def _is_binary(path: str, size: int) -> ToolError:
    return ToolError(
        "undecodable",
        f"{path} is a binary file ({format_size(size)}); edit changes text only. "
        "Use bash with a program that knows the format.",
    )


def _regions(lf: LfText, splices: Sequence[Splice]) -> tuple[list[diffs.Hunk], int, int]:
    """The hunks in the view with ``\n`` line endings, and how many pieces the old and the new text have there."""
    changes = [
        diffs.Change(lf.lf_offset(splice.start), lf.lf_offset(splice.end), lf.lf(splice.new_text)) for splice in splices
    ]
    grown = sum(change.new.count("\n") - lf.text.count("\n", change.start, change.end) for change in changes)
    old_lines = lf.text.count("\n") + 1
    return diffs.hunks(lf.text, changes), old_lines, old_lines + grown


def _exact_patch(path: str, data: bytes, document: TextDocument, splices: Sequence[Splice], patch: str) -> str | None:
    has_mark = data.startswith(BOM_UTF8)
    if not has_mark and "\r" not in document.text and not any("\r" in splice.new_text for splice in splices):
        return None
    # The mark is a character of the first line for programs that read patches.
    text = f"\ufeff{document.text}" if has_mark else document.text
    changes = [diffs.Change(s.start + has_mark, s.end + has_mark, s.new_text) for s in splices]
    exact = diffs.unified_diff(path, diffs.hunks(text, changes))
    return None if exact == patch else diffs.bounded(visible(exact))


# ------------------------------------------------------------------ conflicts


async def _reread(env: Environment, plan: EditPlan) -> FileContent:
    try:
        return await env.files.read(plan.target)
    except PortError as error:
        if error.code == "not_found":
            raise ToolError("conflict", f"{plan.path} was removed meanwhile; nothing was written.") from error
        raise tool_error(error, plan.path) from error


def _conflict(plan: EditPlan, current: bytes) -> ToolError:
    return ToolError(
        "conflict",
        f"{plan.path} was changed by someone else since it was read; nothing was written. What changed:\n"
        f"{change_between(plan.before, current)}\nRead it again, then repeat the edit.",
    )


def change_between(before: bytes, after: bytes) -> str:
    """Return a short display diff of two contents of a file, or a line that says why there is none."""
    old, new = decode(before), decode(after)
    if not isinstance(old, TextDocument) or not isinstance(new, TextDocument):
        return "(binary content)"
    old_text, new_text = LfText(old.text).text, LfText(new.text).text
    regions = diffs.hunks(old_text, diffs.changes_between(old_text, new_text))
    if not regions:
        return "(only line endings or the encoding)"
    shown = truncate_head(
        visible(diffs.display_diff(old_text, regions, old_text.count("\n") + 1, new_text.count("\n") + 1)),
        max_lines=40,
        max_bytes=4000,
    )
    return shown.content + ("\n[more changes not shown]" if shown.truncated else "")


async def _restore(env: Environment, plans: Sequence[EditPlan]) -> list[str]:
    """Put back what was written; returns the files that someone else has changed since."""
    lost: list[str] = []
    with CancelScope(shield=True):
        for plan in reversed(plans):
            try:
                current = await env.files.read(plan.target)
                if current.data == plan.after:
                    await env.files.write(plan.target, plan.before, expect=current.stat.version)
                if current.data in (plan.before, plan.after):
                    continue
            except PortError:
                pass
            lost.append(plan.path)
    return lost
