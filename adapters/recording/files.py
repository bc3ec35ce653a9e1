"""RecordingFiles: a FilePort that records every call and passes it on unchanged."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress

import anyio

from handrail.adapters.recording.keeping import ContentStream
from handrail.adapters.recording.recorder import Operation, Recorder
from handrail.adapters.recording.streams import finished, record_piece
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FilePort, FileStat, Version, WriteReceipt

__all__ = ["RecordingFiles"]


class RecordingFiles(FilePort):
    """Records file operations.

    Args:
        files: The port to wrap.
        recorder: Where entries go.
    """

    def __init__(self, files: FilePort, recorder: Recorder) -> None:
        self._files = files
        self._recorder = recorder
        self._encoder = recorder.encoder

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        operation = self._operation("stat", path=path, follow_symlinks=follow_symlinks)
        return await operation.run(lambda: self._files.stat(path, follow_symlinks=follow_symlinks), self._encoder.stat)

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        operation = self._operation("stat_many", paths=paths, follow_symlinks=follow_symlinks)
        return await operation.run(
            lambda: self._files.stat_many(paths, follow_symlinks=follow_symlinks), self._encoder.stats
        )

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        operation = self._operation("list_dir", path=path)
        return await operation.run(lambda: self._files.list_dir(path), self._encoder.entries)

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        operation = self._operation("list_dirs", paths=paths)
        return await operation.run(lambda: self._files.list_dirs(paths), self._encoder.listings)

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        hidden = await self._hides(path)
        operation = self._operation("read", path=path, max_bytes=max_bytes)
        return await operation.run(
            lambda: self._files.read(path, max_bytes=max_bytes),
            lambda content: self._encoder.content(content, hidden=hidden),
        )

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        hidden = [await self._hides(path) for path in paths]
        operation = self._operation("read_many", paths=paths, max_bytes=max_bytes)
        return await operation.run(
            lambda: self._files.read_many(paths, max_bytes=max_bytes),
            lambda contents: self._encoder.contents(contents, hidden),
        )

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        hidden = await self._hides(path)
        operation = self._operation("read_chunks", path=path, start=start, end=end)
        operation.announce()
        stream = self._recorder.keeper.stream(hidden=hidden)
        chunks = self._files.read_chunks(path, start=start, end=end)
        try:
            async for chunk in chunks:
                await record_piece(stream, operation, chunk)
                yield chunk
        except GeneratorExit:
            await self._end(stream, operation, closed=True)
            raise
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                operation.fail(error, {"content": await finished(stream, operation)})
            raise
        finally:
            await chunks.aclose()
        await self._end(stream, operation)

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        hidden = await self._hides(path)
        operation = self._operation("scan", path=path, start=start)
        operation.announce()
        stream = self._recorder.keeper.stream(hidden=hidden)
        lock = threading.Lock()
        abandoned = False

        def step(piece: bytes | bytearray) -> bool:
            # In a thread, perhaps; one that was given up on a cancellation may come once more.
            with lock:
                if abandoned:
                    return False
                stream.feed(bytes(piece))
                if stream.wants_drain:
                    stream.drain()
            return consume(piece)

        try:
            found = await self._files.scan(path, step, start=start)
        except BaseException as error:
            with lock:
                abandoned = True
                stream.abandon()
            operation.fail(error)
            raise
        stream.rest()
        content = await self._recorder.stored(stream.finish, stream.waiting_bytes)
        operation.end({"stat": self._encoder.stat(found), "content": content})
        return found

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        hidden = await self._hides(path)
        described = self._recorder.keeper.describe(data, hidden=hidden)
        version = None if expect is None else self._recorder.keeper.version(expect)
        operation = self._operation(
            "write", path=path, expect=version, mode=mode, previous_limit=previous_limit, data=described
        )
        await operation.intend()
        return await operation.run(
            lambda: self._files.write(path, data, expect=expect, mode=mode, previous_limit=previous_limit),
            lambda receipt: self._encoder.receipt(receipt, hidden=hidden),
        )

    async def append(self, path: str, data: bytes) -> None:
        hidden = await self._hides(path)
        operation = self._operation("append", path=path, data=self._recorder.keeper.describe(data, hidden=hidden))
        await operation.intend()
        await operation.run(lambda: self._files.append(path, data), _nothing)

    async def make_dirs(self, path: str) -> Sequence[str]:
        operation = self._operation("make_dirs", path=path)
        await operation.intend()
        return await operation.run(lambda: self._files.make_dirs(path), self._encoder.value)

    async def remove(self, path: str) -> None:
        operation = self._operation("remove", path=path)
        await operation.intend()
        await operation.run(lambda: self._files.remove(path), _nothing)

    async def rename(self, source: str, target: str) -> None:
        operation = self._operation("rename", source=source, target=target)
        await operation.intend()
        await operation.run(lambda: self._files.rename(source, target), _nothing)

    async def read_link(self, path: str) -> str:
        operation = self._operation("read_link", path=path)
        return await operation.run(lambda: self._files.read_link(path), self._encoder.value)

    async def make_link(self, path: str, target: str) -> None:
        operation = self._operation("make_link", path=path, target=target)
        await operation.intend()
        await operation.run(lambda: self._files.make_link(path, target), _nothing)

    async def change_mode(self, path: str, mode: int) -> None:
        operation = self._operation("change_mode", path=path, mode=mode)
        await operation.intend()
        await operation.run(lambda: self._files.change_mode(path, mode), _nothing)

    async def canonical_path(self, path: str) -> str:
        operation = self._operation("canonical_path", path=path)
        return await operation.run(lambda: self._files.canonical_path(path), self._encoder.value)

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        operation = self._operation("create_temp_file", prefix=prefix, suffix=suffix)
        await operation.intend()
        return await operation.run(
            lambda: self._files.create_temp_file(prefix=prefix, suffix=suffix), self._encoder.value
        )

    # -------------------------------------------------------------- parts

    def _operation(self, method: str, **arguments: object) -> Operation:
        return self._recorder.operation("files", method, self._encoder.value(arguments))

    async def _hides(self, path: str) -> bool:
        """Whether a path rule hides the content of a path, also when it is reached through a link."""
        if not self._recorder.keeper.has_path_rules:
            return False
        hides = self._recorder.keeper.hides(path)
        if not hides:
            with suppress(PortError):  # the operation itself will meet it
                hides = self._recorder.keeper.hides(await self._files.canonical_path(path))
        if hides:
            self._recorder.note_hidden()
        return hides

    async def _end(self, stream: ContentStream, operation: Operation, **more: object) -> None:
        with anyio.CancelScope(shield=True):
            operation.end({"content": await finished(stream, operation), **more})


def _nothing(_: None) -> None:
    return None
