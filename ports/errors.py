"""The one error that crosses a port, and its stable codes.

    Exception
    └── PortError        the world refused; ``code`` says how, ``path`` says where

An adapter translates every foreign error (OSError, a server's answer, …) into a PortError through one
table and chains the original with ``from``. Tools turn codes into texts; no adapter text reaches a model
unexamined.
"""

from typing import Literal

__all__ = ["PortError", "PortErrorCode"]

PortErrorCode = Literal[
    "not_found",  # no such file, directory, or working directory
    "permission_denied",  # access rights forbid it, also for a read-only file
    "not_a_directory",  # a directory was needed, or a parent of the path is a file
    "is_a_directory",  # a file was needed
    "not_a_regular_file",  # a FIFO, socket or device where a regular file was needed
    "already_exists",  # the target exists and must not
    "not_empty",  # a directory to remove has entries
    "no_space",  # disk full or quota used up
    "read_only",  # the file system is mounted read-only
    "symlink_loop",  # too many symbolic links on the way
    "name_too_long",  # a path component or the whole path is longer than the host allows
    "invalid_path",  # a NUL, an empty path, or a path that the host cannot spell
    "conflict",  # the file is not in the version that was expected
    "outside_workspace",  # a confined environment refuses the path
    "program_not_found",  # the program of a command does not exist or is not executable
    "spawn_failed",  # the operating system could not start the process
    "resource_limit",  # a limit of processes, descriptors or memory of the host was met
    "not_supported",  # the adapter or its host cannot do this at all
    "closed",  # the environment was closed
    "io_error",  # anything else; the chained cause has the details
]


class PortError(Exception):
    """The world behind a port refused an operation.

    Attributes:
        code: One of the stable codes above; programs and tools decide by it.
        path: The path, program or name concerned, in the spelling the caller used; empty where there is none.
        detail: A short text from the adapter for people who debug it. Tools do not show it to a model
            except for ``io_error``, ``spawn_failed`` and ``not_supported``.
    """

    def __init__(self, code: PortErrorCode, path: str = "", detail: str = "") -> None:
        super().__init__(code, path, detail)
        self.code: PortErrorCode = code
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return ": ".join(part for part in (self.code, self.path, self.detail) if part)
