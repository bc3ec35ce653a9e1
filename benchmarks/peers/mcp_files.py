"""The file server of the Model Context Protocol, through the Python SDK's client."""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Final

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from benchmarks.peers.peer import NotOffered, Peer, ToolFailed, at_any_depth

__all__ = ["McpFiles"]

# The package is installed into the same directory as this interpreter.
_SERVER: Final = Path(sys.prefix, "node_modules", ".bin", "mcp-server-filesystem")


class McpFiles(Peer):
    """One server for each working directory."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._opened = AsyncExitStack()

    async def open(self, cwd: str) -> None:
        """Start a server that may work in the directory."""
        if cwd not in self._clients:
            server = StdioServerParameters(command=str(_SERVER), args=[cwd])
            # What the server prints about itself is no part of the report.
            client = Client(stdio_client(server, errlog=DEVNULL))
            self._clients[cwd] = await self._opened.enter_async_context(client)

    async def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> str:
        """Do the work of one tool call."""
        path = os.path.join(cwd, arguments.get("path", ""))
        match tool:
            case "read" if "offset" in arguments:
                raise NotOffered("the MCP file server reads no part from the middle of a file")
            case "read":
                return await self._ask(cwd, "read_text_file", path=path)
            case "write":
                return await self._ask(cwd, "write_file", path=path, content=arguments["content"])
            case "edit":
                return await self._ask(cwd, "edit_file", path=path, edits=arguments["edits"])
            case "ls":
                return await self._ask(cwd, "list_directory", path=path)
            case "find":
                return await self._ask(cwd, "search_files", path=cwd, pattern=at_any_depth(arguments["pattern"]))
            case _:
                raise NotOffered(f"the MCP file server has no {tool}")

    async def aclose(self) -> None:
        """End the servers."""
        await self._opened.aclose()

    async def _ask(self, cwd: str, name: str, **arguments: Any) -> str:
        try:
            result = await self._clients[cwd].call_tool(name, arguments)
        except Exception:
            # A server that broke down is started again for the next workload.
            self._clients.pop(cwd, None)
            raise
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise ToolFailed(text)
        return text
