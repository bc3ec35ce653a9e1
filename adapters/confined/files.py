"""ConfinedFiles: a FilePort that lets through only what lies inside the roots."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import AsyncGenerator, Callable, Sequence
from types import ModuleType

from handrail.ports.errors import PortError
from handrail.ports.files import (
    DirEntry,
    DirListing,
    FileContent,
    FilePort,
    FileStat,
    Version,
    WriteReceipt,
)

__all__ = ["ConfinedFiles"]


class ConfinedFiles(FilePort):
    """Checks the canonical path of every operation, then works on that path and not on the spelling given.

    Working on the checked path closes most of the gap in which somebody could swap a directory for a link
    between the check and the operation; a hostile process on the same machine needs a sandbox instead.

    Files made by ``create_temp_file`` lie outside and stay usable by the path that was returned.

    Args:
        files: The port to wrap.
        roots: Absolute directories to stay in.
    """

    def __init__(self, files: FilePort, roots: Sequence[str]) -> None:
        self._files = files
        self._roots = tuple(roots)
        self._canonical_roots: tuple[str, ...] | None = None
        self._own: set[str] = set()

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        inside = await self._inside(path) if follow_symlinks else await self._entry_inside(path)
        return await self._files.stat(inside, follow_symlinks=follow_symlinks)

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return await self._files.list_dir(await self._inside(path))

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        checked = [await self._checked(path) for path in paths]
        listings = iter(await self._files.list_dirs([inside for inside, _ in checked if inside is not None]))
        return [
            DirListing(path, error=error) if inside is None else _named(next(listings), path)
            for path, (inside, error) in zip(paths, checked, strict=True)
        ]

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        return await self._files.read(await self._inside(path), max_bytes=max_bytes)

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        checked = [await self._checked(path) for path in paths]
        allowed = [inside for inside, _ in checked if inside is not None]
        contents = iter(await self._files.read_many(allowed, max_bytes=max_bytes))
        return [error if error is not None else next(contents) for _, error in checked]

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        chunks = self._files.read_chunks(await self._inside(path), start=start, end=end)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        return await self._files.scan(await self._inside(path), consume, start=start)

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        inside = await self._inside(path)
        return await self._files.write(inside, data, expect=expect, mode=mode, previous_limit=previous_limit)

    async def append(self, path: str, data: bytes) -> None:
        await self._files.append(await self._inside(path), data)

    async def make_dirs(self, path: str) -> Sequence[str]:
        return await self._files.make_dirs(await self._inside(path))

    async def remove(self, path: str) -> None:
        await self._files.remove(await self._entry_inside(path))
        self._own.discard(path)

    async def rename(self, source: str, target: str) -> None:
        await self._files.rename(await self._entry_inside(source), await self._entry_inside(target))

    async def canonical_path(self, path: str) -> str:
        return await self._inside(path)

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        path = await self._files.create_temp_file(prefix=prefix, suffix=suffix)
        self._own.add(path)
        return path

    # ---------------------------------------------------------------- the rail

    async def _inside(self, path: str) -> str:
        """Return the canonical path if it is inside a root."""
        if path in self._own:
            return path
        if self._canonical_roots is None:
            self._canonical_roots = tuple([await self._files.canonical_path(root) for root in self._roots])
        try:
            canonical = await self._files.canonical_path(path)
        except PortError as error:
            named_inside = any(_contains(root, path) for root in (*self._roots, *self._canonical_roots))
            if named_inside or error.code in ("closed", "invalid_path"):
                raise
            # What is wrong with a place outside is not told: that would tell what is there.
            raise PortError("outside_workspace", path) from error
        if not any(_contains(root, canonical) for root in self._canonical_roots):
            raise PortError("outside_workspace", path)
        return canonical

    async def _entry_inside(self, path: str) -> str:
        """Return the path with only its directory resolved: the name itself is meant, link or not."""
        if path in self._own:
            return path
        style = _style(path)
        directory, name = style.split(style.normpath(path))
        return str(style.join(await self._inside(directory), name)) if name else await self._inside(path)

    async def _checked(self, path: str) -> tuple[str | None, PortError | None]:
        try:
            return await self._inside(path), None
        except PortError as error:
            return None, error


def _contains(root: str, path: str) -> bool:
    separator = _style(root).sep
    return path == root or path.startswith(root if root.endswith(separator) else root + separator)


def _style(path: str) -> ModuleType:
    return ntpath if path[1:3] in (":\\", ":/") or path.startswith("\\\\") else posixpath


def _named(listing: DirListing, path: str) -> DirListing:
    return DirListing(path, listing.entries, listing.error)
