"""The named sets of built-in tools. Contract section 1.

Each option is what the host decides about one tool; the defaults are the contract's.
"""

from __future__ import annotations

from typing import Any

from handrail.core.tool import Tool
from handrail.core.tools.bash import BashOptions, bash_tool
from handrail.core.tools.edit import EditOptions, edit_tool
from handrail.core.tools.find import FindOptions, find_tool
from handrail.core.tools.grep import GrepOptions, grep_tool
from handrail.core.tools.ls import LsOptions, ls_tool
from handrail.core.tools.powershell import PowershellOptions, powershell_tool
from handrail.core.tools.read import ReadOptions, read_tool
from handrail.core.tools.write import WriteOptions, write_tool

__all__ = ["all_tools", "coding_tools", "read_only_tools"]


def coding_tools(
    *,
    read: ReadOptions = ReadOptions(),  # noqa: B008 - frozen, as all options
    bash: BashOptions = BashOptions(),  # noqa: B008
    edit: EditOptions = EditOptions(),  # noqa: B008
    write: WriteOptions = WriteOptions(),  # noqa: B008
) -> list[Tool[Any]]:
    """Return what an agent needs to work on code: read, bash, edit, write."""
    return [read_tool(read), bash_tool(bash), edit_tool(edit), write_tool(write)]


def read_only_tools(
    *,
    read: ReadOptions = ReadOptions(),  # noqa: B008
    grep: GrepOptions = GrepOptions(),  # noqa: B008
    find: FindOptions = FindOptions(),  # noqa: B008
    ls: LsOptions = LsOptions(),  # noqa: B008
) -> list[Tool[Any]]:
    """Return the tools that change nothing: read, grep, find, ls."""
    return [read_tool(read), grep_tool(grep), find_tool(find), ls_tool(ls)]


def all_tools(
    *,
    read: ReadOptions = ReadOptions(),  # noqa: B008
    bash: BashOptions = BashOptions(),  # noqa: B008
    powershell: PowershellOptions = PowershellOptions(),  # noqa: B008
    edit: EditOptions = EditOptions(),  # noqa: B008
    write: WriteOptions = WriteOptions(),  # noqa: B008
    grep: GrepOptions = GrepOptions(),  # noqa: B008
    find: FindOptions = FindOptions(),  # noqa: B008
    ls: LsOptions = LsOptions(),  # noqa: B008
) -> dict[str, Tool[Any]]:
    """Return the eight built-in tools by name."""
    tools: list[Tool[Any]] = [
        read_tool(read),
        bash_tool(bash),
        powershell_tool(powershell),
        edit_tool(edit),
        write_tool(write),
        grep_tool(grep),
        find_tool(find),
        ls_tool(ls),
    ]
    return {tool.name: tool for tool in tools}
