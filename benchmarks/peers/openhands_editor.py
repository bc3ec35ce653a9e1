"""OpenHands' file editor. It is synchronous: calls that are made at once run one after another."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from benchmarks.peers.peer import NotOffered, Peer, ToolFailed

__all__ = ["OpenHandsEditor"]


class OpenHandsEditor(Peer):
    """One editor for each working directory."""

    def __init__(self) -> None:
        # No banner, and no look-up of prices on the network.
        os.environ.update(OPENHANDS_SUPPRESS_BANNER="1", LITELLM_LOCAL_MODEL_COST_MAP="True")
        self._make: Any = import_module("openhands.tools.file_editor.impl").FileEditorExecutor
        self._action: Any = import_module("openhands.tools.file_editor.definition").FileEditorAction
        self._editors: dict[str, Any] = {}

    async def open(self, cwd: str) -> None:
        """Make the editor."""
        if cwd not in self._editors:
            self._editors[cwd] = self._make(workspace_root=cwd)

    async def call(self, cwd: str, tool: str, arguments: dict[str, Any]) -> str:
        """Do the work of one tool call."""
        path = os.path.join(cwd, arguments.get("path", ""))
        match tool:
            case "read":
                first = arguments.get("offset")
                return self._ask(cwd, "view", path, view_range=[first, first + 1999] if first else None)
            case "write":
                return self._create(cwd, path, arguments["content"])
            case "edit":
                return "\n".join(
                    self._ask(cwd, "str_replace", path, old_str=edit["oldText"], new_str=edit["newText"])
                    for edit in arguments["edits"]
                )
            case "ls":
                return self._ask(cwd, "view", path)
            case _:
                raise NotOffered(f"OpenHands' editor has no {tool}")

    def _create(self, cwd: str, path: str, text: str) -> str:
        if os.path.exists(path):
            raise NotOffered("OpenHands' editor creates files, it overwrites none")
        return self._ask(cwd, "create", path, file_text=text)

    def _ask(self, cwd: str, command: str, path: str, **arguments: Any) -> str:
        answer = self._editors[cwd](self._action(command=command, path=path, **arguments))
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        if answer.is_error:
            raise ToolFailed(text)
        return text
