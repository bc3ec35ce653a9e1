"""pydantic-ai's file and shell tools on its local workspace, called as an agent's run calls them."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from typing import Any, Final

from benchmarks.peers.peer import NotOffered, Peer, ToolFailed, at_any_depth

__all__ = ["PydanticWorkspace"]

_FAILED_COMMAND: Final = re.compile(r"\[(exit code: |Command timed out)[^\n]*\]\Z")


class PydanticWorkspace(Peer):
    """One agent's run for each working directory, held at its start: its tools work only in a run.

    In a run there is one set of tools for each limit of results.
    """

    def __init__(self) -> None:
        self._files: Any = import_module("pydantic_ai_harness.filesystem").FileSystem
        self._shell: Any = import_module("pydantic_ai_harness.shell").Shell
        self._contexts: dict[str, Any] = {}
        self._tools: dict[tuple[str, int], dict[str, Any]] = {}
        self._runs: list[asyncio.Task[Any]] = []

    async def open(self, cwd: str) -> None:
        """Start a run in the directory."""
        if cwd in self._contexts:
            return
        started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def hold(context: Any) -> None:
            started.set_result(context)
            await asyncio.Event().wait()

        capabilities: Any = import_module("pydantic_ai.capabilities")
        agent: Any = import_module("pydantic_ai").Agent(
            import_module("pydantic_ai.models.test").TestModel(),
            capabilities=[capabilities.LocalWorkspace(cwd), capabilities.Hooks(before_run=hold)],
        )
        run = asyncio.ensure_future(agent.run("work"))
        self._runs.append(run)
        await asyncio.wait([run, started], return_when=asyncio.FIRST_COMPLETED)
        self._contexts[cwd] = started.result() if started.done() else run.result()

    async def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> str:
        """Do the work of one tool call."""
        tools = await self._tools_of(cwd, arguments.get("limit", 1000))
        path = arguments.get("path", ".")
        match tool:
            case "read":
                return await self._ask(cwd, tools["read_file"], path=path, offset=arguments.get("offset", 1) - 1)
            case "write":
                return await self._ask(cwd, tools["write_file"], path=path, content=arguments["content"])
            case "edit":
                edits = [{"old_text": edit["oldText"], "new_text": edit["newText"]} for edit in arguments["edits"]]
                return await self._ask(cwd, tools["edit_file"], path=path, replacements=edits)
            case "ls":
                return await self._ask(cwd, tools["list_directory"], path=path)
            case "find":
                # The faster of two: the other asks ripgrep, which knows ignore files, and looks at every path again.
                return await self._ask(cwd, tools["find_files"], pattern=at_any_depth(arguments["pattern"]))
            case "grep":
                return await self._ask(cwd, tools["grep"], pattern=arguments["pattern"])
            case "bash":
                answer = await self._ask(cwd, tools["run_command"], command=arguments["command"])
                if failed := _FAILED_COMMAND.search(answer):
                    raise ToolFailed(failed[0])
                return answer
            case _:
                raise NotOffered(f"pydantic-ai's workspace has no {tool}")

    async def aclose(self) -> None:
        """End the runs."""
        for run in self._runs:
            run.cancel()
        await asyncio.gather(*self._runs, return_exceptions=True)

    async def _tools_of(self, cwd: str, limit: int) -> dict[str, Any]:
        """Return the tools by name, the file tools as its coding agent sets them up: without hashes."""
        if (cwd, limit) not in self._tools:
            files = self._files(
                content_hashes=False,
                tools=("read_file", "write_file", "edit_file", "list_directory", "find_files", "grep"),
                max_list_results=limit,
                max_find_results=limit,
            )
            context = self._contexts[cwd]
            offered = [await one.get_toolset().get_tools(context) for one in (files, self._shell())]
            self._tools[cwd, limit] = offered[0] | offered[1]
        return self._tools[cwd, limit]

    async def _ask(self, cwd: str, tool: Any, **arguments: Any) -> str:
        checked = tool.args_validator.validate_python(arguments)
        return str(await tool.toolset.call_tool(tool.tool_def.name, checked, self._contexts[cwd], tool))
