"""The edit tool: exact replacements that leave every other byte alone. Contract section 7."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from handrail.core.arguments import parameter, structure
from handrail.core.errors import ToolError, tool_error
from handrail.core.freshness import Freshness
from handrail.core.paths import relative_to, resolve, resolve_existing
from handrail.core.planning import EditPlan, apply_plan, plan_content, plan_replacements, read_to_edit
from handrail.core.replacement import Replacement
from handrail.core.results import TextContent, ToolResult, text_result
from handrail.core.suggestions import missing_file
from handrail.core.tool import Tool, ToolContext
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError

__all__ = ["EditArguments", "EditDetails", "EditEntry", "EditOptions", "edit_tool", "plan_edit"]


@frozen
class EditEntry:
    """One replacement."""

    old_text: str = parameter("Text to replace, copied exactly from the file. It must occur only once there.")
    new_text: str = parameter("Text to put in its place. May be empty.")


@frozen
class EditArguments:
    """Parameters of edit."""

    path: str = parameter("File to edit, relative to the working directory or absolute.")
    edits: Sequence[EditEntry] = parameter(
        "Replacements, all matched against the file as it is now; all are made or none. They must not overlap: "
        "merge changes of neighbouring lines into one."
    )


@frozen
class EditDetails:
    """What an edit did."""

    diff: str
    patch: str
    first_changed_line: int | None
    match: Sequence[Literal["exact", "tolerant"]]
    tolerated: Sequence[Sequence[str]] | None = None
    """Per edit, what differed in a tolerant match; only when there was one."""
    exact_patch: str | None = None
    """The unified diff of the very bytes, where line endings make it differ from ``patch``."""


@frozen
class EditOptions:
    """What the host decides about edit.

    Attributes:
        require_fresh: Refuse to edit a file that the session has not read or that changed since (``stale``).
        encoding: A codec to try where a file is not Unicode, e.g. the project's.
        rebase: When somebody changes the file during the edit, apply it to the new content if it still fits.
            Without effect together with ``require_fresh``.
    """

    require_fresh: bool = False
    encoding: str | None = None
    rebase: bool = True


def edit_tool(options: EditOptions = EditOptions()) -> Tool[EditArguments]:
    """Return the edit tool."""

    async def edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
        target = await resolve(arguments.path, context.env)
        plan = await _edit_at(target, arguments, options, context)
        if plan is None and (other := await resolve_existing(arguments.path, context.env)) != target:
            target, plan = other, await _edit_at(other, arguments, options, context)
        if plan is None:
            raise await missing_file(context.env, target, arguments.path)
        shown = plan.path if relative_to(target, context.env.cwd) == plan.path else target
        return text_result(_receipt(plan, shown), details=_details(plan))

    return Tool(
        name="edit",
        label="Edit file",
        description=(
            "Replace exact pieces of text in one file. Each oldText must occur exactly once in the file; everything "
            "else keeps its exact bytes, line endings and encoding. Several changes of one file go into one call."
        ),
        parameters=EditArguments,
        execute=edit,
        prepare=_prepare,
        details=EditDetails,
    )


async def _edit_at(
    target: str, arguments: EditArguments, options: EditOptions, context: ToolContext
) -> EditPlan | None:
    """Edit the file at an absolute path; returns what was done, ``None`` when there is no such file."""
    env = context.env
    replacements = [Replacement(entry.old_text, entry.new_text) for entry in arguments.edits]
    async with context.file_queue.turn(target) as canonical:
        try:
            content = await read_to_edit(env, arguments.path, target)
        except PortError as error:
            if error.code == "not_found":
                return None
            raise tool_error(error, arguments.path) from error
        if options.require_fresh:
            context.shared(Freshness).check(canonical, content.data, arguments.path)
        plan = await plan_content(env, arguments.path, target, replacements, content, encoding=options.encoding)
        # What the session has not seen is not to be edited: with require_fresh, no re-basing on it.
        rebase = options.rebase and not options.require_fresh
        plan = (await apply_plan(env, plan, rebase=rebase)).plan
        context.aborted_result = _aborted(plan)
        if options.require_fresh:
            context.shared(Freshness).note(canonical, plan.after)
    return plan


async def plan_edit(env: Environment, arguments: Mapping[str, Any], *, encoding: str | None = None) -> EditPlan:
    """Work out what a call of edit would do, without writing; ``apply_plan`` then does it.

    Args:
        env: Where the file is.
        arguments: The arguments of the call, as a model sends them.
        encoding: A codec to try where the file is not Unicode.

    Raises:
        ToolError: As the edit tool reports it.
    """
    checked = structure("edit", _prepare(arguments), EditArguments)
    replacements = [Replacement(entry.old_text, entry.new_text) for entry in checked.edits]
    return await plan_replacements(env, checked.path, replacements, encoding=encoding)


def _prepare(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Accept ``edits`` as a JSON string or a single object, and a top-level pair as one more edit."""
    edits: Any = raw.get("edits")
    edits = _as_list(_parsed(edits) if isinstance(edits, str) else edits)
    if "oldText" in raw and "newText" in raw:
        edits = _with_pair(edits, {"oldText": raw["oldText"], "newText": raw["newText"]})
    return raw if edits is None else {**raw, "edits": edits}


def _as_list(edits: Any) -> Any:
    return [edits] if isinstance(edits, Mapping) else edits


def _with_pair(edits: Any, pair: Mapping[str, Any]) -> Any:
    if edits is None:
        return [pair]
    return [*edits, pair] if isinstance(edits, list) else edits


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(
            "invalid_arguments",
            f"edits is a string that is not valid JSON ({error}). Send a list of {{oldText, newText}} objects.",
        ) from error


def _receipt(plan: EditPlan, shown: str) -> str:
    count = len(plan.edits)
    made = "1 replacement" if count == 1 else f"{count} replacements"
    text = f"Edited {shown}: {made}, first changed line {plan.first_changed_line}."
    tolerated = sorted({name for match in plan.matches for name in match.tolerated or ()})
    if any(match.kind == "tolerant" for match in plan.matches):
        text += f" Not found exactly; matched although these differ: {', '.join(tolerated) or 'look-alike characters'}."
    return text


def _details(plan: EditPlan) -> EditDetails:
    tolerant = any(match.kind == "tolerant" for match in plan.matches)
    return EditDetails(
        diff=plan.diff,
        patch=plan.patch,
        first_changed_line=plan.first_changed_line,
        match=[match.kind for match in plan.matches],
        tolerated=[match.tolerated or () for match in plan.matches] if tolerant else None,
        exact_patch=plan.exact_patch,
    )


def _aborted(plan: EditPlan) -> ToolResult:
    text = f"Operation aborted, but {plan.path} was written before the cancel."
    return ToolResult((TextContent(text),), _details(plan), is_error=True, error_code="aborted")
