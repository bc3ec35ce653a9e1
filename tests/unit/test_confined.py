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
