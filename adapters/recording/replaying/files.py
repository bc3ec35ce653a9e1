"""ReplayedFiles: a FilePort that answers from a log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Any

import anyio.lowlevel

from handrail.adapters.recording.errors import ReplayError
from handrail.adapters.recording.replaying.player import Player
from handrail.adapters.recording.values import (
    decode_content,
    decode_listing,
    decode_receipt,
    decode_stat,
    decode_stat_or_error,
    decode_value,
)
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FilePort, FileStat, Version, WriteReceipt

__all__ = ["PieceReader", "ReplayedFiles"]


class ReplayedFiles(FilePort):
    """Answers as the recorded files did; there are no files.

    Args:
        player: The log.
    """

    def __init__(self, player: Player) -> None:
        self._player = player

    async def stat(self, path: str, *, follow_symlinks: bool = True) -> FileStat:
        return decode_stat(await self._ask("stat", path=path, follow_symlinks=follow_symlinks))

    async def stat_many(self, paths: Sequence[str], *, follow_symlinks: bool = True) -> Sequence[FileStat | PortError]:
        stats = await self._ask("stat_many", paths=paths, follow_symlinks=follow_symlinks)
        return [decode_stat_or_error(each) for each in stats]

    async def list_dir(self, path: str) -> Sequence[DirEntry]:
        return tuple(DirEntry(name, kind) for name, kind in await self._ask("list_dir", path=path))

    async def list_dirs(self, paths: Sequence[str]) -> Sequence[DirListing]:
        return [decode_listing(each) for each in await self._ask("list_dirs", paths=paths)]

    async def read(self, path: str, *, max_bytes: int | None = None) -> FileContent:
        content = decode_content(await self._ask("read", path=path, max_bytes=max_bytes), self._player.content)
        assert not isinstance(content, PortError)
        return content

    async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> Sequence[FileContent | PortError]:
        contents = await self._ask("read_many", paths=paths, max_bytes=max_bytes)
        return [decode_content(each, self._player.content) for each in contents]

    async def read_chunks(self, path: str, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        answer = self._player.ask("files", "read_chunks", {"path": path, "start": start, "end": end})
        reader = PieceReader(self._player, answer.operation.outcome)
        try:
            for moment, entry in answer.pieces:
                await answer.reach(moment)
                yield reader.take(entry["content"]["size"])
            if (await answer.outcome()).get("closed"):
                raise self._player.differ(
                    answer.part, f"More of {path} is read than when it was recorded, where the reader had left off."
                )
        finally:
            answer.leave()

    async def scan(self, path: str, consume: Callable[[bytes | bytearray], bool], *, start: int = 0) -> FileStat:
        found = await self._ask("scan", path=path, start=start)
        for piece in self._player.pieces(found["content"]):
            if not consume(piece):
                break
        return decode_stat(found["stat"])

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        expect: Version | None = None,
        mode: int | None = None,
        previous_limit: int = 0,
    ) -> WriteReceipt:
        described = self._player.keeper.describe(data, hidden=self._player.keeper.hides(path))
        receipt = await self._ask(
            "write", path=path, data=described, expect=expect, mode=mode, previous_limit=previous_limit
        )
        return decode_receipt(receipt, self._player.content)

    async def append(self, path: str, data: bytes) -> None:
        described = self._player.keeper.describe(data, hidden=self._player.keeper.hides(path))
        await anyio.lowlevel.checkpoint_if_cancelled()
        for answer in self._player.ask_append(path, data, described):
            try:
                await answer.outcome()
            finally:
                answer.leave()

    async def make_dirs(self, path: str) -> Sequence[str]:
        return tuple(self._decoded(await self._ask("make_dirs", path=path)))

    async def remove(self, path: str) -> None:
        await self._ask("remove", path=path)

    async def rename(self, source: str, target: str) -> None:
        await self._ask("rename", source=source, target=target)

    async def read_link(self, path: str) -> str:
        return str(self._decoded(await self._ask("read_link", path=path)))

    async def make_link(self, path: str, target: str) -> None:
        await self._ask("make_link", path=path, target=target)

    async def change_mode(self, path: str, mode: int) -> None:
        await self._ask("change_mode", path=path, mode=mode)

    async def canonical_path(self, path: str) -> str:
        return str(self._decoded(await self._ask("canonical_path", path=path)))

    async def create_temp_file(self, *, prefix: str, suffix: str) -> str:
        return str(self._decoded(await self._ask("create_temp_file", prefix=prefix, suffix=suffix)))

    async def _ask(self, method: str, **arguments: object) -> Any:
        answer = self._player.ask("files", method, arguments)
        try:
            return await answer.outcome()
        finally:
            answer.leave()

    def _decoded(self, value: Any) -> Any:
        return decode_value(value, self._player.content)


class PieceReader:
    """Cuts a recorded content into the pieces it had, in bounded memory.

    Args:
        player: The log.
        outcome: The entry that names the content.
    """

    def __init__(self, player: Player, outcome: Mapping[str, Any] | None) -> None:
        result: Mapping[str, Any] = (outcome or {}).get("result") or {}
        self._described: Mapping[str, Any] | None = result.get("content")
        self._source: Iterator[bytes] = player.pieces(self._described)
        self._held = b""

    def take(self, size: int) -> bytes:
        """Return the next bytes.

        Raises:
            ReplayError: They were not kept.
        """
        if self._described is not None and self._described.get("redacted") == ["path"]:
            return next(self._source, b"\n")
        parts, missing = [self._held], size - len(self._held)
        while missing > 0:
            piece = next(self._source, None)
            if piece is None:
                raise ReplayError("The recorded content is shorter than its pieces.")
            parts.append(piece)
            missing -= len(piece)
        data = b"".join(parts)
        self._held = data[size:]
        return data[:size]
