"""What is at a path now, through the FilePort: a state, and the content where it is to be kept."""

from __future__ import annotations

from handrail.adapters.journal.ledger import digest_of, file_state
from handrail.adapters.journal.states import ABSENT, State
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent, FilePort

__all__ = ["look", "read_state"]


async def look(files: FilePort, path: str, max_bytes: int) -> tuple[State, bytes | None]:
    """Return the state of a path, the name itself, and the content of a file.

    What cannot be looked at counts as something that cannot be restored.
    """
    try:
        found = await files.stat(path, follow_symlinks=False)
        if found.kind == "directory":
            return State("directory", found.mode), None
        if found.kind != "file":
            return State("other", found.mode), None
        return read_state(await files.read(path, max_bytes=max_bytes + 1), max_bytes)
    except PortError as error:
        if error.code in ("not_found", "not_a_directory"):
            return ABSENT, None
        return State("other"), None


def read_state(content: FileContent, max_bytes: int) -> tuple[State, bytes | None]:
    """Return the state of a file that was read, and its content unless it is too large."""
    if content.complete and len(content.data) <= max_bytes:
        return State("file", content.stat.mode, len(content.data), digest_of(content.data)), content.data
    state = file_state(content)
    return State("file", state.mode, state.size), None
