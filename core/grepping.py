"""A search through files: from the walk, through ripgrep where that pays, to the lines that are shown.

Small searches are done here: the first files of a walk are read and scanned at once. What is left of a large tree goes
to ripgrep in parts while the walk goes on; the files it names are then read and scanned in the walk's order, so the
answer is the same. A search ends as soon as the limit is passed.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Literal

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from attrs import define, field, frozen

from handrail.core.regexes import Node
from handrail.core.ripgrep import MAX_ARGUMENT_BYTES, Ripgrep, targets_of
from handrail.core.searching import FileScan, LineMatcher, ShownLine, searchable
from handrail.core.spelling import to_ripgrep
from handrail.core.text import Binary, decode
from handrail.core.walking import Listed, Round, TreeWalk
from handrail.ports.environment import Environment
from handrail.ports.errors import PortError
from handrail.ports.files import FileContent

__all__ = ["Engine", "FileHits", "Grep"]

Engine = Literal["auto", "ripgrep", "scan"]

_SCANNED_FIRST: Final = 128
"""How many files are scanned here before ripgrep is asked. Below, starting a process costs more than it saves."""

_FILES_AT_ONCE: Final = 64
_SMALL_FILE_BYTES: Final = 64 * 1024
"""Files up to this size are read many at a time."""

_WHOLE_FILE_BYTES: Final = 16 * 1024 * 1024
"""Files up to this size are decoded as a whole; larger ones block by block."""

_LONGEST_LINE_BYTES: Final = 64 * 1024 * 1024
"""In a file that is searched block by block, a longer line is cut, so that memory stays bounded."""

_BLOCK_BYTES: Final = 1024 * 1024
_INLINE_BYTES: Final = 128 * 1024
"""Blocks up to this size are searched on the event loop, larger ones beside it."""

_FIRST_JOB_FILES: Final = 4000
"""How many files ripgrep starts with, while the walk goes on; each job is four times as large as the last."""

_MOST_JOB_FILES: Final = 100_000


@frozen
class FileHits:
    """What a file has to show."""

    path: str
    lines: Sequence[ShownLine]
    is_binary: bool = False
    """It matches but is no text; there are no lines."""


@define(eq=False)
class _Job:
    """A part of the walk on its way through ripgrep."""

    listed: list[Listed] = field(factory=list[Listed])
    """Directories to search."""
    files: list[str] = field(factory=list[str])
    """Files that the walk has come to, in order; all are in directories of this or an earlier job."""
    done: anyio.Event = field(factory=anyio.Event)

    @property
    def to_search(self) -> int:
        """How many files ripgrep has to read."""
        return sum(len(directory.files) for directory in self.listed)


@define(eq=False)
class Grep:
    """One search.

    Attributes:
        env: Where to search.
        node: The pattern.
        limit: Matches to show.
        context: Lines of context.
        hits: What was found so far, in order.
        matches: Matches found so far; one more than ``limit`` tells that there are more.
        unreadable: Files that could not be read.
    """

    env: Environment
    node: Node
    limit: int
    context: int
    use_re2: bool = True
    hits: list[FileHits] = field(factory=list[FileHits])
    matches: int = 0
    unreadable: list[tuple[str, PortError]] = field(factory=list[tuple[str, PortError]])
    _matcher: LineMatcher = field(init=False)
    _candidates: set[str] = field(factory=set[str])
    """Files that ripgrep has named, or could not judge."""
    _runs: anyio.Semaphore = field(factory=lambda: anyio.Semaphore(2))
    """Turns of ripgrep, which is parallel in itself: one to work, one to start meanwhile."""
    _failure: PortError | None = None

    def __attrs_post_init__(self) -> None:
        self._matcher = LineMatcher(self.node, self.use_re2)

    @property
    def is_complete(self) -> bool:
        """Whether more was found than is shown, so that the search can end."""
        return self.matches > self.limit

    # ---------------------------------------------------------------- files

    async def files(self, paths: Sequence[str]) -> None:
        """Search some files in order."""
        for start in range(0, len(paths), _FILES_AT_ONCE):
            part = paths[start : start + _FILES_AT_ONCE]
            contents = await self.env.files.read_many(part, max_bytes=_SMALL_FILE_BYTES)
            for path, content in zip(part, contents, strict=True):
                if isinstance(content, FileContent):
                    await self._content(path, content)
                else:
                    self.unreadable.append((path, content))
                if self.is_complete:
                    return

    async def _content(self, path: str, content: FileContent) -> None:
        scan = FileScan(self._matcher, self.limit - self.matches, self.context)
        try:
            if content.complete:
                is_binary = await self._whole(content.data, scan)
            elif content.stat.size <= _WHOLE_FILE_BYTES:
                is_binary = await self._whole((await self.env.files.read(path)).data, scan)
            else:
                is_binary = await self._large(path, content.data, scan)
        except PortError as error:
            self.unreadable.append((path, error))
            return
        self._keep(path, scan, is_binary=is_binary)

    async def _whole(self, data: bytes, scan: FileScan) -> bool:
        """Search the content of a file; returns whether it is binary."""
        text = searchable(data)
        for block in _blocks_of(text.data):
            await self._block(block, scan)
            if scan.is_complete:
                break
        return text.is_binary

    async def _large(self, path: str, beginning: bytes, scan: FileScan) -> bool:
        """Search a file block by block; returns whether it is binary."""
        mark, decoder = _decoder_for(beginning)
        is_binary = decoder is None
        left = b""
        async with aclosing(self.env.files.read_chunks(path, start=mark)) as chunks:
            async for chunk in chunks:
                is_binary = is_binary or (mark != len(codecs.BOM_UTF16) and b"\0" in chunk)
                text = left + (chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "replace"))
                end = text.rfind(b"\n") + 1 or (len(text) if len(text) > _LONGEST_LINE_BYTES else 0)
                await self._block(text[:end], scan)
                left = text[end:]
                if scan.is_complete or (is_binary and scan.matches):
                    return is_binary
        await self._block(left, scan)
        return is_binary

    async def _block(self, block: bytes, scan: FileScan) -> None:
        if len(block) > _INLINE_BYTES:
            await self.env.offload(lambda: scan.feed(block))
        else:
            scan.feed(block)

    def _keep(self, path: str, scan: FileScan, *, is_binary: bool) -> None:
        if not scan.matches:
            return
        self.matches += 1 if is_binary else scan.matches
        if is_binary and self.matches <= self.limit:
            self.hits.append(FileHits(path, (), is_binary=True))
        elif not is_binary and scan.lines:
            self.hits.append(FileHits(path, scan.lines))

    # ---------------------------------------------------------------- trees

    async def tree(self, walk: TreeWalk, engine: Engine, ripgrep: str | None) -> None:
        """Search what a walk comes to.

        Args:
            walk: The walk, not begun.
            engine: Which way to go; ``auto`` scans the first files and leaves the rest to ripgrep.
            ripgrep: Path of the program, where there is one.

        Raises:
            PortError: The start of the walk cannot be listed.
        """
        left_to_scan = 0 if engine == "ripgrep" else _SCANNED_FIRST
        sieve = None if engine == "scan" or ripgrep is None else Ripgrep(ripgrep, to_ripgrep(self.node), walk.root)
        listed: list[Listed] = []
        scanned: set[str] = set()
        async with aclosing(walk.rounds()) as rounds:
            async for step in rounds:
                files = _regular(step)
                listed += step.listed
                here = files if sieve is None else files[:left_to_scan]
                await self.files(here)
                if self.is_complete:
                    return
                if sieve is not None:
                    left_to_scan -= len(here)
                    scanned.update(here)
                    if left_to_scan <= 0:
                        await self._sieved(rounds, _without(listed, scanned), files[len(here) :], sieve)
                        return

    async def _sieved(
        self, rounds: AsyncIterator[Round], listed: Sequence[Listed], files: Sequence[str], sieve: Ripgrep
    ) -> None:
        """Search the rest of a walk with ripgrep in front.

        Args:
            rounds: The rest of the walk.
            listed: Directories that were listed already, with the files that are still to be searched.
            files: Files that the walk has come to already.
            sieve: ripgrep.
        """
        send, receive = anyio.create_memory_object_stream[_Job](4)
        async with anyio.create_task_group() as group, receive:
            group.start_soon(self._feed, rounds, _Job(list(listed), list(files)), sieve, send)
            async for job in receive:
                await job.done.wait()
                await self.files([path for path in job.files if path in self._candidates])
                if self.is_complete:
                    group.cancel_scope.cancel()
                    break
        if self._failure is not None:
            raise self._failure

    async def _feed(
        self, rounds: AsyncIterator[Round], job: _Job, sieve: Ripgrep, send: MemoryObjectSendStream[_Job]
    ) -> None:
        """Go on walking; whenever there is enough to do, start ripgrep on it and queue the job."""
        enough = _FIRST_JOB_FILES
        async with anyio.create_task_group() as group, send:
            try:
                async for step in rounds:
                    job.listed += step.listed
                    job.files += _regular(step)
                    if job.to_search >= enough:
                        group.start_soon(self._sieve, job, sieve)
                        await send.send(job)
                        job, enough = _Job(), min(enough * 4, _MOST_JOB_FILES)
            except PortError as error:
                self._failure = error
            group.start_soon(self._sieve, job, sieve)
            await send.send(job)

    async def _sieve(self, job: _Job, sieve: Ripgrep) -> None:
        """Add the files of a job that may hold a match to the candidates."""
        async with self._runs:
            for directories in _parts(job.listed, sieve.root):
                targets = [target for directory in directories for target in targets_of(directory, sieve.root)]
                sieved = await sieve.sieve(self.env, targets)
                files = [path for directory in directories for path in directory.files]
                if sieved is None:
                    self._candidates.update(files)
                else:
                    found, all_were_read = sieved
                    self._candidates.update(found)
                    if not all_were_read:
                        self._candidates.update(await self._unreadable_among(files))
        job.done.set()

    async def _unreadable_among(self, files: Sequence[str]) -> list[str]:
        """Files that cannot be read: they go to the scan, which says so."""
        refused: list[str] = []
        for start in range(0, len(files), 1000):
            part = files[start : start + 1000]
            contents = await self.env.files.read_many(part, max_bytes=0)
            refused += [path for path, content in zip(part, contents, strict=True) if isinstance(content, PortError)]
        return refused


def _regular(step: Round) -> list[str]:
    return [entry.path for entry in step.entries if entry.kind == "file"]


def _without(listed: Sequence[Listed], scanned: set[str]) -> list[Listed]:
    """The same directories with the files that are not scanned yet."""
    left: list[Listed] = []
    for directory in listed:
        files = [path for path in directory.files if path not in scanned]
        if files:
            others = directory.has_others or len(files) < len(directory.files)
            left.append(Listed(directory.path, files, others))
    return left


def _parts(listed: Sequence[Listed], root: str) -> Iterator[list[Listed]]:
    """Split directories so that the arguments of each part fit one command line."""
    part: list[Listed] = []
    used = 0
    for directory in listed:
        cost = sum(len(target.encode("utf-8", "surrogateescape")) + 1 for target in targets_of(directory, root))
        if part and used + cost > MAX_ARGUMENT_BYTES:
            yield part
            part, used = [], 0
        part.append(directory)
        used += cost
    if used:
        yield part


def _blocks_of(data: bytes) -> Iterator[bytes]:
    """Whole lines, about a megabyte of them at a time."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK_BYTES) + 1 or len(data)
        yield data[start:end] if end - start < len(data) else data
        start = end


def _decoder_for(beginning: bytes) -> tuple[int, codecs.IncrementalDecoder | None]:
    """The length of a file's byte order mark and what decodes the rest; no decoder for a binary file."""
    if beginning.startswith(codecs.BOM_UTF8):
        return 3, codecs.getincrementaldecoder("utf-8")("replace")
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if beginning.startswith(mark) and not beginning.startswith(codecs.BOM_UTF32_LE):
            return len(mark), codecs.getincrementaldecoder(codec)("replace")
    if b"\0" in beginning:
        return 0, None
    document = decode(beginning[: beginning.rfind(b"\n") + 1] or beginning)
    if isinstance(document, Binary):
        return 0, None
    return 0, codecs.getincrementaldecoder(document.codec)("replace")
