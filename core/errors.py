"""What a tool says when it cannot do what was asked.

    Exception
    └── ToolError        the request cannot be met; the message is for the model, with its next step

A ToolError carries one of the stable codes of the contract. ``tool_error`` turns a PortError into one;
no other place decides what a port's code means to a model.
"""

from __future__ import annotations

from typing import Any, Final

from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["ToolError", "tool_error"]


class ToolError(Exception):
    """A tool cannot do what was asked.

    Attributes:
        code: Stable error code (contract section 14, or a custom tool's own).
        message: What the model reads: what is wrong, where, and what to do next.
        details: Facts for programs, as in a result's ``details``.
    """

    def __init__(self, code: str, message: str, details: Any = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message


# Port code -> tool code and text. ``{path}`` is the path as the model knows it.
_TEXTS: Final[dict[PortErrorCode, tuple[str, str]]] = {
    "not_found": ("missing_file", "File not found: {path}"),
    "permission_denied": ("permission", "Permission denied: {path}. Check its mode, or choose another path."),
    "not_a_directory": ("not_a_directory", "Not a directory: {path}. A part of this path is a file."),
    "is_a_directory": ("is_a_directory", "Is a directory: {path}. Name a file; ls lists the directory."),
    "not_a_regular_file": (
        "not_a_regular_file",
        "Not a regular file: {path} is a pipe, socket or device. Use bash with a timeout if it must be used.",
    ),
    "already_exists": ("exists", "Already exists: {path}"),
    "not_empty": ("exists", "Directory not empty: {path}"),
    "no_space": ("no_space", "No space left on the device for {path}; the old content is whole. Free space first."),
    "read_only": ("read_only", "The file system of {path} is read-only. Choose another path."),
    "symlink_loop": ("link_loop", "Symbolic links form a loop: {path}. Name the real file."),
    "name_too_long": ("name_too_long", "Name too long: {path}. Shorten it."),
    "invalid_path": (
        "nul_in_argument",
        "Not a path that can be used: {path!r}. It must be absolute and without a NUL byte.",
    ),
    "conflict": ("conflict", "{path} was changed by someone else meanwhile. Read it again, then repeat."),
    "outside_workspace": ("outside_workspace", "{path} is outside the workspace. Use a path inside it."),
    "closed": ("closed", "The environment is closed; nothing was done."),
    "resource_limit": ("resource_limit", "The system is out of processes or open files. Try again later."),
    "spawn_failed": ("spawn_failed", "The program could not be started: {detail}"),
    "program_not_found": ("spawn_failed", "Program not found: {path}"),
    "not_supported": ("internal", "This environment cannot do that: {detail}"),
}


def tool_error(error: PortError, path: str | None = None) -> ToolError:
    """Return the ToolError for a PortError.

    Args:
        error: What the port said.
        path: The path as the model wrote it; by default the port's own.
    """
    code, text = _TEXTS.get(error.code, ("internal", "{path}: the file system reported an error: {detail}"))
    message = text.format(path=error.path if path is None else path, detail=error.detail or error.code)
    return ToolError(code, message)
