"""Python systems of the same kind as subjects; run with their own interpreter: ``run_peer.py NAME``.

Each knows the workloads that its own tools can do and says so for the others.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from measuring import lay_files, serve


class DeepAgents:
    """deepagents' FilesystemBackend."""

    def __init__(self) -> None:
        from deepagents.backends import FilesystemBackend

        self._make: Callable[..., Any] = FilesystemBackend

    def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> None:
        """Do the work of one tool call."""
        backend = self._make(root_dir=cwd, virtual_mode=False, max_file_size_mb=2000)
        path = os.path.join(cwd, arguments.get("path", "."))
        match tool:
            case "read":
                backend.read(path, arguments.get("offset", 1) - 1, 2000)
            case "edit":
                for edit in arguments["edits"]:
                    _checked(backend.edit(path, edit["oldText"], edit["newText"]))
            case "ls":
                backend.ls(path)
            case "find":
                backend.glob(arguments["pattern"], cwd)
            case "grep":
                backend.grep(arguments["pattern"], cwd)
            case _:
                raise NotImplementedError(f"deepagents' file backend has no {tool}")


class McpFiles:
    """The MCP reference file server, through the SDK's client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._sessions: dict[str, Any] = {}
        self._contexts: list[Any] = []

    def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> None:
        """Do the work of one tool call."""
        self._loop.run_until_complete(self._call(cwd, tool, arguments))

    async def _call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> None:
        session = await self._session(cwd)
        path = os.path.join(cwd, arguments.get("path", "."))
        match tool:
            case "read":
                await session.call_tool("read_text_file", {"path": path})
            case "write":
                await session.call_tool("write_file", {"path": path, "content": arguments["content"]})
            case "edit":
                await session.call_tool("edit_file", {"path": path, "edits": arguments["edits"]})
            case "ls":
                await session.call_tool("list_directory", {"path": path})
            case "find":
                await session.call_tool("search_files", {"path": cwd, "pattern": arguments["pattern"]})
            case _:
                raise NotImplementedError(f"the MCP file server has no {tool}")

    async def _session(self, cwd: str) -> Any:
        if cwd not in self._sessions:
            from mcp import ClientSession, StdioServerParameters
            from mcp.client.stdio import stdio_client

            server = StdioServerParameters(command="npx", args=["-y", "@modelcontextprotocol/server-filesystem", cwd])
            transport = stdio_client(server)
            read, write = await transport.__aenter__()
            session = await ClientSession(read, write).__aenter__()
            await session.initialize()
            self._contexts.append(transport)
            self._sessions[cwd] = session
        return self._sessions[cwd]


def _checked(result: Any) -> None:
    if getattr(result, "error", None):
        raise RuntimeError(result.error)


def main() -> None:
    """Serve the system named on the command line."""
    system: DeepAgents | McpFiles = DeepAgents() if sys.argv[1] == "deepagents" else McpFiles()

    def run(workload: dict[str, Any], number: int) -> float:
        lay_files(workload, number)
        if workload["cancel_after"] is not None:
            raise NotImplementedError("no cancellation")
        begun = time.perf_counter()
        for _ in range(workload["repeat"]):
            for tool, arguments in workload["rounds"][number % len(workload["rounds"])]:
                system.call(workload["cwd"], tool, arguments)
        return (time.perf_counter() - begun) / float(workload["repeat"] * workload["per"])

    serve(run)


if __name__ == "__main__":
    main()
