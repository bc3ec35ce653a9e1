"""Plans: looked at before they are written, written only on what they were made from, several whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
import pytest
from attrs import evolve

from handrail.adapters.memory import File, MemoryEnvironment, Symlink, memory_environment
from handrail.core.errors import ToolError
from handrail.core.planning import EditPlan, apply_plan, apply_plans, change_between, plan_replacements
from handrail.core.replacement import Replacement
from handrail.core.toolbox import Toolbox
from handrail.core.tools.edit import edit_tool, plan_edit

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

PATH = "/project/f.txt"

T = TypeVar("T")


async def planned(env: MemoryEnvironment, path: str, *edits: tuple[str, str], encoding: str | None = None) -> EditPlan:
    return await plan_replacements(env, path, [Replacement(*edit) for edit in edits], encoding=encoding)


async def refusal(env: MemoryEnvironment, plans: EditPlan | Sequence[EditPlan]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await (apply_plan(env, plans) if isinstance(plans, EditPlan) else apply_plans(env, plans))
    return caught.value


async def test_a_plan_writes_nothing_and_tells_everything() -> None:
    env = memory_environment({"f.txt": "one\ntwo\n"})
    plan = await planned(env, "f.txt", ("two", "2"), ("one", "1"))
    assert env.files.read_text(PATH) == "one\ntwo\n"
    assert (plan.path, plan.target, plan.before, plan.after) == ("f.txt", PATH, b"one\ntwo\n", b"1\n2\n")
    assert plan.sha256_before == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert plan.sha256_after == hashlib.sha256(b"1\n2\n").hexdigest()
    assert [splice.index for splice in plan.splices] == [1, 0]
    assert [match.kind for match in plan.matches] == ["exact", "exact"]
    assert plan.first_changed_line == 1
    assert plan.diff == "-1 one\n-2 two\n+1 1\n+2 2"


async def test_applying_a_plan_gives_what_it_says() -> None:
    env = memory_environment({"f.txt": File("one\ntwo\n", 0o755)})
    plan = await planned(env, "f.txt", ("two", "2"))
    applied = await apply_plan(env, plan)
    assert applied.plan is plan
    assert not applied.receipt.created
    assert env.files.read_bytes(PATH) == plan.after
    assert env.files.mode(PATH) == 0o755


async def test_the_edit_tool_does_what_the_plan_said() -> None:
    arguments = {"path": "f.txt", "edits": [{"oldText": "'it'", "newText": "that"}, {"oldText": "b\n", "newText": ""}]}
    env = memory_environment({"f.txt": "a\r\n\u2018it\u2019\r\nb\r\n"})
    plan = await plan_edit(env, arguments)
    async with Toolbox(env, [edit_tool()]) as toolbox:
        result = await toolbox.call("edit", arguments)
    assert env.files.read_bytes(PATH) == plan.after
    assert (result.details.diff, result.details.patch) == (plan.diff, plan.patch)
    assert result.details.exact_patch == plan.exact_patch
    assert result.details.match == ["tolerant", "exact"]


async def test_plan_edit_takes_the_arguments_as_a_model_sends_them() -> None:
    env = memory_environment({"f.txt": "one\n"})
    plan = await plan_edit(env, {"path": "@f.txt", "edits": '{"oldText": "one", "newText": "1"}'})
    assert plan.after == b"1\n"
    with pytest.raises(ToolError) as caught:
        await plan_edit(env, {"path": "f.txt", "edits": [{"oldText": "one"}]})
    assert caught.value.code == "invalid_arguments"
    with pytest.raises(ToolError) as caught:
        await plan_edit(env, {"path": "g.txt", "edits": [{"oldText": "one", "newText": "1"}]})
    assert caught.value.code == "missing_file"


async def test_a_link_is_planned_and_applied_at_its_target() -> None:
    env = memory_environment({"real.txt": "one\n", "link": Symlink("real.txt")})
    await apply_plan(env, await planned(env, "link", ("one", "1")))
    assert env.files["/project/link"] == Symlink("real.txt")
    assert env.files.read_text("/project/real.txt") == "1\n"


# ------------------------------------------------------------------ conflicts


async def test_a_changed_file_is_a_conflict_that_shows_what_changed() -> None:
    env = memory_environment({"f.txt": "one\ntwo\nthree\n"})
    plan = await planned(env, "f.txt", ("two", "2"))
    env.files[PATH] = "one\ntwo\nTHREE\n"
    error = await refusal(env, plan)
    assert error.code == "conflict"
    assert "-3 three\n+3 THREE" in error.message
    assert env.files.read_text(PATH) == "one\ntwo\nTHREE\n"


async def test_a_removed_file_is_a_conflict() -> None:
    env = memory_environment({"f.txt": "one\n"})
    plan = await planned(env, "f.txt", ("one", "1"))
    env.files.delete(PATH)
    error = await refusal(env, plan)
    assert error.code == "conflict"
    assert "was removed meanwhile" in error.message
    assert PATH not in env.files


async def test_a_file_that_was_touched_or_rewritten_alike_is_no_conflict() -> None:
    env = memory_environment({"f.txt": "one\n"})
    plan = await planned(env, "f.txt", ("one", "1"))
    env.files[PATH] = "two\n"
    env.files[PATH] = "one\n"
    env.files.set_mtime(PATH, 1)
    assert (await env.files.stat(PATH)).version != plan.version
    await apply_plan(env, plan)
    assert env.files.read_text(PATH) == "1\n"


async def test_rebasing_applies_the_edits_to_the_new_content() -> None:
    env = memory_environment({"f.txt": "one\ntwo\nthree\n"})
    plan = await planned(env, "f.txt", ("two", "2"))
    env.files[PATH] = "zero\none\ntwo\nTHREE\n"
    applied = await apply_plan(env, plan, rebase=True)
    assert env.files.read_text(PATH) == "zero\none\n2\nTHREE\n"
    assert applied.plan.after == b"zero\none\n2\nTHREE\n"
    assert applied.plan.first_changed_line == 3


@pytest.mark.parametrize(("content", "code"), [("two two\n", "not_unique"), ("three\n", "not_found")])
async def test_rebasing_needs_the_one_place_of_each_edit(content: str, code: str) -> None:
    env = memory_environment({"f.txt": "two\n"})
    plan = await planned(env, "f.txt", ("two", "2"))
    env.files[PATH] = content
    with pytest.raises(ToolError) as caught:
        await apply_plan(env, plan, rebase=True)
    assert caught.value.code == code
    assert env.files.read_text(PATH) == content


async def test_rebasing_keeps_the_encoding_of_the_plan() -> None:
    text = "\u0414\u0430 one\n"
    env = memory_environment({"f.txt": text.encode("cp866")})
    plan = await planned(env, "f.txt", ("one", "\u044f"), encoding="cp866")
    env.files[PATH] = ("\u041d\u0435\u0442\n" + text).encode("cp866")
    await apply_plan(env, plan, rebase=True)
    assert env.files.read_bytes(PATH) == "\u041d\u0435\u0442\n\u0414\u0430 \u044f\n".encode("cp866")


async def test_a_file_that_never_rests_is_given_up() -> None:
    env = memory_environment({"f.txt": "one\n"})
    plan = await planned(env, "f.txt", ("one", "1"))
    env.files.faults.fail("conflict", operation="write", path=PATH, times=None)
    error = await refusal(env, plan)
    assert error.code == "conflict"
    assert "all the time" in error.message


async def test_other_refusals_of_the_port_come_through() -> None:
    env = memory_environment({"f.txt": "one\n"})
    plan = await planned(env, "f.txt", ("one", "1"))
    env.files.faults.fail("no_space", operation="write")
    assert (await refusal(env, plan)).code == "no_space"
    env.files[PATH] = "two\n"
    env.files.faults.fail("permission_denied", operation="read")
    assert (await refusal(env, plan)).code == "permission"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (b"a\nb\n", b"a\nc\n", " 1 a\n-2 b\n+2 c"),
        (b"a\nb\n", b"a\r\nb\r\n", "(only line endings or the encoding)"),
        ("\u00e9\n".encode(), "\u00e9\n".encode("utf-16"), "(only line endings or the encoding)"),
        (b"a", b"\0\xff\x01\x02", "(binary content)"),
        (b"", b"a\n", "-1 \n+1 a"),
    ],
)
async def test_what_changed_between_two_contents_in_short(before: bytes, after: bytes, shown: str) -> None:
    if before:
        assert change_between(before, after) == shown
    else:
        assert "+1 a" in change_between(before, after)


async def test_a_long_change_is_cut() -> None:
    shown = change_between(b"", b"new line\n" * 1000)
    assert shown.endswith("\n[more changes not shown]")
    assert shown.count("\n") <= 41


# ------------------------------------------------------------------ several files


async def three_plans(env: MemoryEnvironment) -> list[EditPlan]:
    return [await planned(env, name, ("old", "new")) for name in ("a.txt", "b.txt", "c.txt")]


def three_files() -> MemoryEnvironment:
    return memory_environment({"a.txt": File("old a\r\n", 0o600), "b.txt": "old b\n", "c.txt": "old c\n"})


async def test_several_plans_are_applied_together() -> None:
    env = three_files()
    applied = await apply_plans(env, await three_plans(env))
    assert len(applied) == 3
    assert [env.files.read_text(f"/project/{name}.txt") for name in "abc"] == ["new a\r\n", "new b\n", "new c\n"]


@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_a_failure_restores_what_was_written(nth: int) -> None:
    env = three_files()
    before = env.files.tree()
    plans = await three_plans(env)
    env.files.faults.fail("no_space", operation="write", nth=nth)
    error = await refusal(env, plans)
    assert error.code == "no_space"
    assert "Not restored" not in error.message
    assert env.files.tree() == before
    assert env.files.mode("/project/a.txt") == 0o600


async def test_a_conflict_in_one_file_restores_the_others() -> None:
    env = three_files()
    plans = await three_plans(env)
    env.files["/project/c.txt"] = "old C\n"
    assert (await refusal(env, plans)).code == "conflict"
    assert [env.files.read_text(f"/project/{name}.txt") for name in "abc"] == ["old a\r\n", "old b\n", "old C\n"]


async def test_what_somebody_changed_since_is_not_restored_but_named() -> None:
    env = three_files()
    plans = await three_plans(env)

    async def change_a() -> None:
        env.files["/project/a.txt"] = "theirs\n"

    env.files.faults.before(change_a, operation="write", path="/project/c.txt")
    env.files.faults.fail("no_space", operation="write", path="/project/c.txt")
    error = await refusal(env, plans)
    assert error.code == "no_space"
    assert error.message.endswith("\nNot restored, changed meanwhile: a.txt")
    assert [env.files.read_text(f"/project/{name}.txt") for name in "abc"] == ["theirs\n", "old b\n", "old c\n"]


async def test_what_cannot_be_read_again_is_named() -> None:
    env = three_files()
    plans = await three_plans(env)
    env.files.faults.fail("no_space", operation="write", path="/project/c.txt")
    env.files.faults.fail("io_error", operation="read", path="/project/a.txt")
    error = await refusal(env, plans)
    assert error.message.endswith("\nNot restored, changed meanwhile: a.txt")
    assert env.files.read_text("/project/b.txt") == "old b\n"


async def test_what_somebody_else_wrote_alike_is_left_to_them() -> None:
    env = three_files()
    plans = await three_plans(env)
    env.files["/project/b.txt"] = plans[1].after
    assert (await refusal(env, plans)).code == "conflict"
    assert [env.files.read_text(f"/project/{name}.txt") for name in "abc"] == ["old a\r\n", "new b\n", "old c\n"]


async def test_two_plans_of_one_file_are_a_conflict() -> None:
    env = memory_environment({"f.txt": "one two\n"})
    plans = [await planned(env, "f.txt", ("one", "1")), await planned(env, "f.txt", ("two", "2"))]
    assert (await refusal(env, plans)).code == "conflict"
    assert env.files.read_text(PATH) == "one two\n"


@pytest.mark.parametrize(("before", "after"), [(1.0, 0.0), (0.0, 1.0)])
async def test_a_cancellation_restores_also_the_write_that_it_hit(before: float, after: float) -> None:
    env = three_files()
    tree = env.files.tree()
    plans = await three_plans(env)
    async with anyio.create_task_group() as group:

        async def cancel() -> None:
            group.cancel_scope.cancel()

        env.files.faults.before(cancel, operation="write", path="/project/b.txt")
        env.files.faults.delay(before, operation="write", path="/project/b.txt", after=after)
        group.start_soon(apply_plans, env, plans)
    assert env.files.tree() == tree


# ------------------------------------------------------------------ patches and encodings


async def test_the_exact_patch_stands_only_where_bytes_differ() -> None:
    env = memory_environment(
        {"lf": "a\nb\n", "crlf": "a\r\nb\r\n", "mark": "\ufeffa\nb\n", "far": "\ufeff" + "x\n" * 20 + "a\n"}
    )
    assert (await planned(env, "lf", ("a", "A"))).exact_patch is None
    assert (await planned(env, "far", ("a", "A"))).exact_patch is None
    crlf = await planned(env, "crlf", ("a", "A"))
    assert (crlf.patch, crlf.exact_patch) == (
        "--- crlf\n+++ crlf\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
        "--- crlf\n+++ crlf\n@@ -1,2 +1,2 @@\n-a\r\n+A\r\n b\r\n",
    )
    mark = await planned(env, "mark", ("a", "A"))
    assert mark.exact_patch == "--- mark\n+++ mark\n@@ -1,2 +1,2 @@\n-\ufeffa\n+\ufeffA\n b\n"


async def test_diffs_are_valid_text_also_beside_undecodable_bytes() -> None:
    env = memory_environment({"f.txt": "\u65e5\u672c\u8a9e\u30c6 \n".encode() + b"\xff one\n"})
    plan = await planned(env, "f.txt", ("one", "1"))
    assert plan.after.endswith(b"\xff 1\n")
    plan.diff.encode()
    plan.patch.encode()
    assert "-2 \ufffd one\n+2 \ufffd 1" in plan.diff


async def test_binary_files_and_edits_without_effect_are_refused() -> None:
    env = memory_environment({"bin": b"\x7fELF\0\xff\xfe", "f.txt": "it\u2019s\r\n"})
    for path, edit, code in (
        ("bin", ("ELF", "x"), "undecodable"),
        ("f.txt", ("it\u2019s\n", "it\u2019s\n"), "no_change"),
    ):
        with pytest.raises(ToolError) as caught:
            await planned(env, path, edit)
        assert caught.value.code == code


async def test_large_files_are_worked_on_off_the_event_loop() -> None:
    calls: list[str] = []

    async def offload(function: Callable[[], T], /) -> T:
        calls.append("offloaded")
        return function()

    env = evolve(memory_environment({"big": "line\n" * 300_000 + "one\n", "small": "one\n"}), offload=offload)
    await planned(env, "small", ("one", "1"))
    assert not calls
    plan = await planned(env, "big", ("one", "1"))
    assert calls
    assert plan.after.endswith(b"line\n1\n")
