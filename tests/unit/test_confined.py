"""confine: what it takes as roots, and that nothing outside them can be reached through files."""

from __future__ import annotations

import pathlib

import pytest

from handrail import PortError, Toolbox, all_tools, confine, memory_environment

pytestmark = [pytest.mark.anyio, pytest.mark.both_backends]

FILES = {"/project/in.txt": "in\n", "/project-evil/out.txt": "out\n", "/etc/secret": "s\n"}


@pytest.mark.parametrize("roots", ["/project", ["/project"], ".", [pathlib.PurePosixPath("/project")], ()], ids=repr)
async def test_roots_are_one_directory_or_several(roots: str | list[str]) -> None:
    async with confine(memory_environment(FILES, cwd="/project"), roots) as env:
        assert (await env.files.read("/project/in.txt")).data == b"in\n"
        for outside in ("/etc/secret", "/project-evil/out.txt", "/project/../etc/secret"):
            with pytest.raises(PortError) as caught:
                await env.files.read(outside)
            assert caught.value.code == "outside_workspace"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "/etc/secret"}),
        ("write", {"path": "../project-evil/new.txt", "content": "x"}),
        ("edit", {"path": "../etc/secret", "edits": [{"oldText": "s", "newText": "t"}]}),
        ("ls", {"path": "/etc"}),
        ("find", {"pattern": "*", "path": "/"}),
        ("grep", {"pattern": "s", "path": ".."}),
    ],
)
async def test_every_file_tool_stays_inside(tool: str, arguments: dict[str, object]) -> None:
    env = memory_environment(FILES, cwd="/project")
    before = env.files.tree()
    toolbox = Toolbox(confine(env, "/project"), all_tools())
    result = await toolbox.call(tool, arguments)
    assert (result.is_error, result.error_code) == (True, "outside_workspace")
    assert env.files.tree() == before


@pytest.mark.parametrize(
    "target",
    ["/etc/secret", "../../etc/secret", "../..", "../../project-evil", "/missing", "out/secret", "../up/secret"],
)
async def test_no_link_is_made_that_leads_outside(target: str) -> None:
    env = memory_environment({**FILES, "/project/d/in.txt": "in\n"}, cwd="/project")
    await env.files.make_link("/project/d/out", "/etc")
    await env.files.make_link("/project/up", "../etc")
    before = env.files.tree()
    inside = confine(env, "/project").files
    with pytest.raises(PortError) as caught:
        await inside.make_link("/project/d/link", target)
    assert (caught.value.code, caught.value.path) == ("outside_workspace", "/project/d/link")
    assert env.files.tree() == before


@pytest.mark.parametrize("target", ["in.txt", "../d/in.txt", "/project/d", "../missing", "..", "../d/../in.txt"])
async def test_a_link_that_stays_inside_is_made_as_it_is_written(target: str) -> None:
    env = memory_environment({**FILES, "/project/d/in.txt": "in\n"}, cwd="/project")
    inside = confine(env, "/project").files
    await inside.make_link("/project/d/link", target)
    assert await inside.read_link("/project/d/link") == target


async def test_links_and_modes_outside_are_out_of_reach() -> None:
    env = memory_environment(FILES, cwd="/project")
    await env.files.make_link("/etc/link", "secret")
    await env.files.make_link("/project/leak", "../etc/secret")
    inside = confine(env, "/project").files
    for work in (
        inside.read_link("/etc/link"),
        inside.make_link("/etc/new", "secret"),
        inside.make_link("/project/../etc/new", "/project"),
        inside.change_mode("/etc/secret", 0o777),
        inside.change_mode("/project/leak", 0o777),
    ):
        with pytest.raises(PortError) as caught:
            await work
        assert caught.value.code == "outside_workspace"
    stats = await inside.stat_many(["/project/in.txt", "/etc/secret", "/project/leak"])
    assert [stat.code if isinstance(stat, PortError) else stat.kind for stat in stats] == [
        "file",
        "outside_workspace",
        "outside_workspace",
    ]
    assert env.files.mode("/etc/secret") == 0o644
