"""A search through files: from the walk, through ripgrep where that pays, to the lines that are shown.

Small searches are done here: the first files of a walk are read and scanned at once. What is left of a tree with many
files, or large ones, goes to ripgrep in parts while the walk goes on; the files it names are then read and scanned in
the walk's order, so the answer is the same. A search ends as soon as the limit is passed.
"""

from __future__ import annotations

import codecs
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Final, Literal

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from attrs import define, field, frozen

from handrail.core.regexes import Node
from handrail.core.ripgrep import MAX_ARGUMENT_BYTES, Ripgrep, targets_of
from handrail.core.searching import FileScan, LineMatcher, ShownLine, is_plain, lines_of_binary, searchable
from handrail.core.spelling import to_ripgrep
from handrail.core.text import Binary, decode
from handrail.core.walking import Listed, Round, TreeWalk
from handrail.ports.environment import Environment, run_inline
from handrail.ports.errors import PortError
from handrail.ports.files import FileStart

__all__ = ["Engine", "FileHits", "FindRipgrep", "Grep"]

Engine = Literal["auto", "ripgrep", "scan"]

FindRipgrep = Callable[[], Awaitable[str | None]]
"""Returns the path of ripgrep, where there is one; asked only when it would really be used."""

_SCANNED_FIRST: Final = 128
"""How many files are scanned here before ripgrep is asked. Below, starting a process costs more than it saves."""

_SCANNED_FIRST_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of files are scanned here before ripgrep is asked, for the same reason."""

_FILES_AT_ONCE: Final = 128
_SMALL_FILE_BYTES: Final = 64 * 1024
"""Files up to this size are read many at a time."""

_WHOLE_FILE_BYTES: Final = 16 * 1024 * 1024
"""Files up to this size are decoded as a whole; larger ones block by block."""

_LONGEST_LINE_BYTES: Final = 64 * 1024 * 1024
"""In a file that is searched block by block, a longer line is cut, so that memory stays bounded."""

_BLOCK_BYTES: Final = 1024 * 1024
_INLINE_BYTES: Final = 128 * 1024
"""Blocks up to this size are searched on the event loop, larger ones beside it."""

_JOB_FILES: Final = 8000
"""How many files ripgrep is given at a time, while the walk goes on."""


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
    to_search: int = 0
    """How many files ripgrep has to read: those in the directories."""
    files: list[str] = field(factory=list[str])
    """Files that the walk has come to, in order; all are in directories of this or an earlier job."""
    done: anyio.Event = field(factory=anyio.Event)

    def add(self, step: Round) -> None:
        """Add what a part of the walk brought."""
        self.listed += step.listed
        self.to_search += sum(len(directory.files) for directory in step.listed)
        self.files += step.paths


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
    _searched_bytes: int = 0
    """Sizes of the files that were searched here."""
    _candidates: set[str] = field(factory=set[str])
    """Files that ripgrep has named, or could not judge."""
    _runs: anyio.Semaphore = field(factory=lambda: anyio.Semaphore(3))
    """Turns of ripgrep, which is parallel in itself: one to work, others to start and to end meanwhile."""
    _failure: PortError | None = None

    def __attrs_post_init__(self) -> None:
        self._matcher = LineMatcher(self.node, self.use_re2)

    @property
    def is_complete(self) -> bool:
        """Whether more was found than is shown, so that the search can end."""
        return self.matches > self.limit

    # ---------------------------------------------------------------- files

    async def files(self, paths: Sequence[str], *, most_bytes: float = math.inf) -> int:
        """Search some files in order; return how many were done.

        Args:
            paths: The files.
            most_bytes: It ends before the file with which this search would have read more than that.
        """
        for start in range(0, len(paths), _FILES_AT_ONCE):
            part = paths[start : start + _FILES_AT_ONCE]
            contents = await self.env.files.read_starts(part, max_bytes=_SMALL_FILE_BYTES)
            if await self._are_without_match(contents, most_bytes):
                continue
            for number, (path, content) in enumerate(zip(part, contents, strict=True), start):
                if isinstance(content, FileStart):
                    if self._searched_bytes + content.size > most_bytes:
                        return number
                    self._searched_bytes += content.size
                    await self._content(path, content)
                else:
                    self.unreadable.append((path, content))
                if self.is_complete:
                    return number + 1
        return len(paths)

    async def _are_without_match(self, contents: Sequence[FileStart | PortError], most_bytes: float) -> bool:
        """Whether files are small, plain text without a match: one search through all of them tells it soonest."""
        texts = [content.data for content in contents if isinstance(content, FileStart) and content.complete]
        size = sum(map(len, texts))
        if len(texts) < len(contents) or self._searched_bytes + size > most_bytes:
            return False
        text = b"\n".join(texts)
        run = self.env.offload if size > _INLINE_BYTES else run_inline
        if not await run(lambda: is_plain(text) and not self._matcher.matches_in(text)):
            return False
        self._searched_bytes += size
        return True

    async def _content(self, path: str, content: FileStart) -> None:
        try:
            if content.complete:
                await self._whole(path, content.data)
            elif content.size <= _WHOLE_FILE_BYTES:
                await self._whole(path, (await self.env.files.read(path)).data)
            else:
                await self._large(path, content.data)
        except PortError as error:
            self.unreadable.append((path, error))

    async def _whole(self, path: str, data: bytes) -> None:
        """Search the content of a file."""
        text = searchable(data)
        scan = self._scan(is_binary=text.is_binary)
        for block in _blocks_of(text.data):
            await self._block(block, scan)
            if scan.is_complete:
                break
        self._keep(path, scan, is_binary=text.is_binary)

    async def _large(self, path: str, beginning: bytes) -> None:
        """Search a file block by block."""
        mark, decoder = _decoder_for(beginning)
        is_binary = decoder is None
        scan = self._scan(is_binary=is_binary)
        left = bytearray()
        async with aclosing(self.env.files.read_chunks(path, start=mark)) as chunks:
            async for chunk in chunks:
                text = chunk if decoder is None else decoder.decode(chunk).encode("utf-8", "replace")
                is_binary = is_binary or b"\0" in text
                text = lines_of_binary(text) if is_binary else text
                end = text.rfind(b"\n") + 1 or (len(text) if len(left) > _LONGEST_LINE_BYTES else 0)
                if end:
                    await self._block(bytes(left) + text[:end], scan)
                    left.clear()
                left += text[end:]
                if scan.is_complete or (is_binary and scan.matches):
                    break
            else:
                await self._block(bytes(left), scan)
        self._keep(path, scan, is_binary=is_binary)

    def _scan(self, *, is_binary: bool) -> FileScan:
        """What collects the matches of a file; of a binary one, whether there is any."""
        return (
            FileScan(self._matcher, 0, 0)
            if is_binary
            else FileScan(self._matcher, self.limit - self.matches, self.context)
        )

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

    async def tree(self, walk: TreeWalk, find_ripgrep: FindRipgrep, *, scan_first: bool = True) -> None:
        """Search what a walk comes to.

        Args:
            walk: The walk, not begun; of files only.
            find_ripgrep: Where ripgrep is. Without it, all files are scanned.
            scan_first: Whether to scan the first files before ripgrep is asked.

        Raises:
            PortError: The start of the walk cannot be listed.
        """
        most_files = _SCANNED_FIRST if scan_first else 0
        listed: list[Listed] = []
        scanned: set[str] = set()
        async with aclosing(walk.rounds()) as rounds:
            async for step in rounds:
                listed += step.listed
                first = step.paths[: most_files - len(scanned)]
                done = await self.files(first, most_bytes=_SCANNED_FIRST_BYTES)
                scanned.update(first[:done])
                if self.is_complete:
                    return
                if done < len(first) or len(scanned) >= most_files:
                    ripgrep, rest = await find_ripgrep(), step.paths[done:]
                    if ripgrep is None:
                        await self._scanned(rounds, rest)
                    else:
                        sieve = Ripgrep(ripgrep, to_ripgrep(self.node), walk.root)
                        await self._sieved(rounds, _without(listed, scanned), rest, sieve)
                    return

    async def _scanned(self, rounds: AsyncIterator[Round], files: Sequence[str]) -> None:
        """Search the rest of a walk without ripgrep.

        Args:
            rounds: The rest of the walk.
            files: Files that the walk has come to already.
        """
        await self.files(files)
        if not self.is_complete:
            async for step in rounds:
                await self.files(step.paths)
                if self.is_complete:
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
            group.start_soon(self._feed, rounds, Round(listed, files), sieve, send)
            async for job in receive:
                await job.done.wait()
                await self.files([path for path in job.files if path in self._candidates])
                if self.is_complete:
                    group.cancel_scope.cancel()
                    break
        if self._failure is not None:
            raise self._failure

    async def _feed(
        self, rounds: AsyncIterator[Round], first: Round, sieve: Ripgrep, send: MemoryObjectSendStream[_Job]
    ) -> None:
        """Go on walking; whenever there is enough to do, start ripgrep on it and queue the job."""
        job = _Job()
        job.add(first)
        async with anyio.create_task_group() as group, send:
            try:
                async for step in rounds:
                    job.add(step)
                    if job.to_search >= _JOB_FILES:
                        group.start_soon(self._sieve, job, sieve)
                        await send.send(job)
                        job = _Job()
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
            contents = await self.env.files.read_starts(part, max_bytes=0)
            refused += [path for path, content in zip(part, contents, strict=True) if isinstance(content, PortError)]
        return refused


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
