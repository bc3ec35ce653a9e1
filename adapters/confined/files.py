"""ConfinedFiles: a FilePort that lets through only what lies inside the roots."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import TypeVar

from attrs import evolve

from handrail.ports.errors import PortError
from handrail.ports.files import (
    DirEntry,
    DirListing,
    FileContent,
    FilePort,
    FileStart,
    FileStat,
    Version,
    WriteReceipt,
)

__all__ = ["ConfinedFiles"]

T = TypeVar("T")


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
        inside = await (self._inside(path) if follow_symlinks else self._entry_inside(path))
        with _spelled(inside, path):
            return await self._files.stat(inside, follow_symlinks=follow_symlinks)

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        check = self._inside if follow_symlinks else self._entry_inside
        return await self._each(paths, check, partial(self._files.stat_many, follow_symlinks=follow_symlinks))

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        inside = await self._inside(path)
        with _spelled(inside, path):
            return await self._files.list_dir(inside)

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        async def list_all(inside: Sequence[str]) -> Sequence[DirListing | PortError]:
            return [listing.error or listing for listing in await self._files.list_dirs(inside)]

        listings = await self._each(paths, self._inside, list_all)
        return [
            DirListing(path, error=listing) if isinstance(listing, PortError) else evolve(listing, path=path)
            for path, listing in zip(paths, listings, strict=True)
        ]

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        inside = await self._inside(path)
        with _spelled(inside, path):
            return await self._files.read(inside, max_bytes=max_bytes)

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        return await self._each(paths, self._inside, partial(self._files.read_many, max_bytes=max_bytes))

    async def read_starts(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileStart | PortError]:
        return await self._each(paths, self._inside, partial(self._files.read_starts, max_bytes=max_bytes))

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        inside = await self._inside(path)
        chunks = self._files.read_chunks(inside, start=start, end=end)
        try:
            with _spelled(inside, path):
                async for chunk in chunks:
                    yield chunk
        finally:
            await chunks.aclose()

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        inside = await self._inside(path)
        with _spelled(inside, path):
            return await self._files.scan(inside, consume, start=start)

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
        with _spelled(inside, path):
            return await self._files.write(inside, data, expect=expect, mode=mode, previous_limit=previous_limit)

    async def append(self, path: str, data: bytes) -> None:
        inside = await self._inside(path)
        with _spelled(inside, path):
            await self._files.append(inside, data)

    async def make_dirs(self, path: str) -> Sequence[str]:
        place = await self._missing_inside(path)
        with _spelled(place, path):
            created = await self._files.make_dirs(place)
        tails = [place[len(each) :] for each in created]
        return [path.removesuffix(tail) for tail in tails]

    async def remove(self, path: str) -> None:
        inside = await self._entry_inside(path)
        with _spelled(inside, path):
            await self._files.remove(inside)
        self._own.discard(path)

    async def rename(self, source: str, target: str) -> None:
        inside, goal = await self._entry_inside(source), await self._entry_inside(target)
        with _spelled(inside, source), _spelled(goal, target):
            await self._files.rename(inside, goal)

    async def read_link(self, path: str) -> str:
        inside = await self._entry_inside(path)
        with _spelled(inside, path):
            return await self._files.read_link(inside)

    async def make_link(self, path: str, target: str) -> None:
        inside = await self._entry_inside(path)
        style = _style(inside)
        # From the link's own directory, so that ".." of the target means here what it will mean there.
        leads_to = str(style.join(style.dirname(inside), target))
        with _spelled(leads_to, path), _spelled(inside, path):
            await self._inside(leads_to)
            await self._files.make_link(inside, target)

    async def change_mode(self, path: str, mode: int) -> None:
        inside = await self._inside(path)
        with _spelled(inside, path):
            await self._files.change_mode(inside, mode)

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
        if not name:
            return await self._inside(path)
        with _spelled(directory, path):
            return str(style.join(await self._inside(directory), name))

    async def _missing_inside(self, path: str) -> str:
        """Return the path with its existing part resolved: a link to nothing stays what it is, and is met."""
        inside = await self._inside(path)
        style = _style(path)
        head, missing = style.normpath(path), list[str]()
        while head != style.dirname(head):
            try:
                await self._files.stat(head)
                break
            except PortError as error:
                if error.code != "not_found":
                    return inside
            head, name = style.split(head)
            missing.insert(0, name)
        return str(style.join(await self._inside(head), *missing)) if missing else inside

    async def _each(
        self,
        paths: Sequence[str],
        check: Callable[[str], Awaitable[str]],
        work: Callable[[Sequence[str]], Awaitable[Sequence[T | PortError]]],
    ) -> Sequence[T | PortError]:
        """Do something in one step with those of several paths that are inside; the others get their refusal."""
        checked: list[str | PortError] = []
        for path in paths:
            try:
                checked.append(await check(path))
            except PortError as error:
                checked.append(error)
        allowed = [inside for inside in checked if isinstance(inside, str)]
        results = iter(await work(allowed))
        answers: list[T | PortError] = []
        for path, inside in zip(paths, checked, strict=True):
            answer = inside if isinstance(inside, PortError) else next(results)
            if isinstance(answer, PortError) and answer.path == inside:
                answer = PortError(answer.code, path, answer.detail)
            answers.append(answer)
        return answers


@contextmanager
def _spelled(inside: str, path: str) -> Generator[None, None, None]:
    """Let errors in the block name a path as the caller spelled it."""
    try:
        yield
    except PortError as error:
        if error.path != inside or inside == path:
            raise
        raise PortError(error.code, path, error.detail) from error


def _contains(root: str, path: str) -> bool:
    separator = _style(root).sep
    return path == root or path.startswith(root if root.endswith(separator) else root + separator)


def _style(path: str) -> ModuleType:
    return ntpath if path[1:3] in (":\\", ":/") or path.startswith("\\\\") else posixpath
