"""From OSError to PortError: the one table of this adapter."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from handrail.ports.errors import PortError, PortErrorCode

__all__ = ["answer_of", "port_error", "translated"]

T = TypeVar("T")

_CODES: Final[dict[int, PortErrorCode]] = {
    errno.ENOENT: "not_found",
    errno.ENOTDIR: "not_a_directory",
    errno.EISDIR: "is_a_directory",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EEXIST: "already_exists",
    errno.ENOTEMPTY: "not_empty",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EROFS: "read_only",
    errno.ELOOP: "symlink_loop",
    errno.ENAMETOOLONG: "name_too_long",
    errno.EINVAL: "invalid_path",
    errno.ENXIO: "not_a_regular_file",
    errno.EMFILE: "resource_limit",
    errno.ENFILE: "resource_limit",
    errno.ENOMEM: "resource_limit",
    errno.EAGAIN: "resource_limit",
}


def port_error(error: OSError, path: str) -> PortError:
    """Return the PortError for an error of the operating system."""
    code = _CODES.get(error.errno or 0, "io_error")
    return PortError(code, path, error.strerror or str(error))


@contextmanager
def translated(path: str) -> Generator[None, None, None]:
    """Turn what the operating system refuses in the block into PortError; an empty path is refused at once."""
    if not path:
        raise _no_path()
    try:
        yield
    except OSError as error:
        raise port_error(error, path) from error
    except ValueError as error:
        raise _unspeakable(error, path) from error


def answer_of(work: Callable[[str], T], path: str) -> T | PortError:
    """Do some work on a path, with the error as the answer: a search meets many, and raising one costs more."""
    if not path:
        return _no_path()
    try:
        return work(path)
    except OSError as error:
        return port_error(error, path)
    except ValueError as error:
        return _unspeakable(error, path)
    except PortError as error:
        return error


def _no_path() -> PortError:
    return PortError("invalid_path", "", "the path is empty")


def _unspeakable(error: ValueError, path: str) -> PortError:
    """What a NUL in a path is, or characters that the host cannot spell."""
    return PortError("invalid_path", path, str(error))
