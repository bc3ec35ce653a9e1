"""deepagents' FilesystemBackend, by its asynchronous methods as an agent on an event loop calls it."""

from __future__ import annotations

import os
import re
from typing import Any

from deepagents.backends import FilesystemBackend

from benchmarks.peers.peer import NotOffered, Peer, ToolFailed

__all__ = ["DeepAgents"]


class DeepAgents(Peer):
    """One backend for each working directory."""

    def __init__(self) -> None:
        self._backends: dict[str, Any] = {}

    async def open(self, cwd: str) -> None:
        """Make the backend."""
        if cwd not in self._backends:
            self._backends[cwd] = FilesystemBackend(root_dir=cwd, virtual_mode=False)

    async def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> str:
        """Do the work of one tool call."""
        backend = self._backends[cwd]
        path = os.path.join(cwd, arguments.get("path", ""))
        match tool:
            case "read":
                result = _checked(await backend.aread(path, arguments.get("offset", 1) - 1, 2000))
                return str(result.file_data["content"])
            case "write":
                return str(_checked(await backend.awrite(path, arguments["content"])))
            case "edit":
                for edit in arguments["edits"]:
                    _checked(await backend.aedit(path, edit["oldText"], edit["newText"]))
                return ""
            case "ls":
                return "\n".join(entry["path"] for entry in _checked(await backend.als(path)).entries)
            case "find":
                found = _checked(await backend.aglob(arguments["pattern"], cwd)).matches
                return "\n".join(entry["path"] for entry in found)
            case "grep":
                if re.escape(arguments["pattern"]) != arguments["pattern"]:
                    raise NotOffered("deepagents' grep finds literal text only")
                found = _checked(await backend.agrep(arguments["pattern"], cwd)).matches
                return "\n".join(f"{match['path']}:{match['line']}:{match['text']}" for match in found)
            case _:
                raise NotOffered(f"deepagents' file backend has no {tool}")


def _checked(result: Any) -> Any:
    if result.error:
        raise ToolFailed(result.error)
    if getattr(result, "truncated", False):
        raise ToolFailed(f"stopped early, with {len(result.matches)} found")
    return result
