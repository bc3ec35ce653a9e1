"""FileContract: every promise of FilePort, as tests over any adapter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import timedelta

import anyio
import pytest

from contract.host import Host
from handrail.ports.errors import PortError, PortErrorCode
from handrail.ports.files import ABSENT, DirEntry, FileContent, FilePort, FileStart, FileStat, Version

__all__ = ["FileContract"]

Operation = Callable[[FilePort, str], Awaitable[object]]


async def _first_chunk(files: FilePort, path: str) -> bytes:
    async with aclosing(files.read_chunks(path)) as chunks:
        return await anext(chunks)


async def _list_one(files: FilePort, path: str) -> object:
    listing = (await files.list_dirs([path]))[0]
    if listing.error:
        raise listing.error
    return listing


async def _read_one(files: FilePort, path: str) -> object:
    content = (await files.read_many([path], max_bytes=10))[0]
    if isinstance(content, PortError):
        raise content
    return content


async def _start_of_one(files: FilePort, path: str) -> object:
    start = (await files.read_starts([path], max_bytes=10))[0]
    if isinstance(start, PortError):
        raise start
    return start


READING: Mapping[str, Operation] = {
    "read": lambda files, path: files.read(path),
    "read_many": _read_one,
    "read_starts": _start_of_one,
    "read_chunks": _first_chunk,
    "scan": lambda files, path: files.scan(path, lambda _: True),
}


async def _stat_one(files: FilePort, path: str) -> object:
    stat = (await files.stat_many([path]))[0]
    if isinstance(stat, PortError):
        raise stat
    return stat


LISTING: Mapping[str, Operation] = {
    "list_dir": lambda files, path: files.list_dir(path),
    "list_dirs": _list_one,
}
FILLING: Mapping[str, Operation] = {
    "write": lambda files, path: files.write(path, b"new"),
    "append": lambda files, path: files.append(path, b"new"),
}
NEEDING: Mapping[str, Operation] = {
    **READING,
    **LISTING,
    "stat": lambda files, path: files.stat(path),
    "stat_many": _stat_one,
    "append": lambda files, path: files.append(path, b"new"),
    "remove": lambda files, path: files.remove(path),
    "read_link": lambda files, path: files.read_link(path),
    "change_mode": lambda files, path: files.change_mode(path, 0o700),
    "rename": lambda files, path: files.rename(path, f"{path}-renamed"),
}
"""Operations on something that must be there."""
ALL: Mapping[str, Operation] = {
    **NEEDING,
    "write": lambda files, path: files.write(path, b"new"),
    "make_dirs": lambda files, path: files.make_dirs(path),
    "make_link": lambda files, path: files.make_link(path, "target"),
    "canonical_path": lambda files, path: files.canonical_path(path),
}

NAMING = ("remove", "rename", "read_link")
"""Operations on a name itself, be it a link."""


def each(operations: Mapping[str, Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", list(operations.values()), ids=list(operations))


async def refused(code: PortErrorCode, path: str, call: Awaitable[object]) -> PortError:
    """Await a call that must fail with this code and name this path."""
    with pytest.raises(PortError) as caught:
        await call
    assert (caught.value.code, caught.value.path) == (code, path)
    return caught.value


class FileContract:
    """Subclass it and give it a fixture ``host``."""

    pytestmark = pytest.mark.anyio

    @pytest.fixture(autouse=True)
    def _leave_out_what_need_not_be_there(self, request: pytest.FixtureRequest, host: Host) -> None:
        """Skip the operations that an adapter may do without."""
        if "operation" in request.fixturenames:
            operation = request.getfixturevalue("operation")
            if operation in (ALL["read_link"], ALL["make_link"]):
                host.require(host.capabilities.makes_links, "read_link and make_link")
            if operation is ALL["change_mode"]:
                host.require(host.capabilities.changes_modes, "change_mode")

    # ---------------------------------------------------------------- promises of every method

    @each(ALL)
    async def test_an_empty_path_is_invalid(self, host: Host, operation: Operation) -> None:
        await refused("invalid_path", "", operation(host.env.files, ""))

    @each(ALL)
    async def test_a_path_with_a_nul_is_invalid(self, host: Host, operation: Operation) -> None:
        path = host.path("a\0b")
        await refused("invalid_path", path, operation(host.env.files, path))

    @each(ALL)
    async def test_half_a_surrogate_pair_is_an_invalid_path(self, host: Host, operation: Operation) -> None:
        path = host.path("a\ud800b")
        await refused("invalid_path", path, operation(host.env.files, path))

    @each(ALL)
    async def test_a_component_can_be_too_long(self, host: Host, operation: Operation) -> None:
        path = host.path("x" * 5000)
        await refused("name_too_long", path, operation(host.env.files, path))

    @each({name: operation for name, operation in ALL.items() if name not in (*NAMING, "make_dirs", "make_link")})
    async def test_links_in_a_circle_are_a_loop(self, host: Host, operation: Operation) -> None:
        await host.symlink("loop_b", "loop_a")
        path = await host.symlink("loop_a", "loop_b")
        await refused("symlink_loop", path, operation(host.env.files, path))

    @each(ALL)
    async def test_links_in_a_circle_are_no_parent(self, host: Host, operation: Operation) -> None:
        await host.symlink("loop", "loop")
        path = host.path("loop", "below")
        await refused("symlink_loop", path, operation(host.env.files, path))

    @each({name: operation for name, operation in ALL.items() if name != "canonical_path"})
    async def test_a_file_is_no_parent(self, host: Host, operation: Operation) -> None:
        await host.write("file")
        path = host.path("file", "below")
        await refused("not_a_directory", path, operation(host.env.files, path))

    @each(NEEDING)
    async def test_what_is_missing_is_not_found(self, host: Host, operation: Operation) -> None:
        path = host.path("missing")
        await refused("not_found", path, operation(host.env.files, path))

    @each({name: operation for name, operation in NEEDING.items() if name not in NAMING})
    async def test_a_broken_link_leads_to_nothing(self, host: Host, operation: Operation) -> None:
        path = await host.symlink("missing", "broken")
        await refused("not_found", path, operation(host.env.files, path))

    @each({name: operation for name, operation in ALL.items() if name != "make_dirs"})
    async def test_a_directory_without_search_permission_hides_its_entries(
        self, host: Host, operation: Operation
    ) -> None:
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        path = await host.write("closed/file")
        await host.setup.set_mode(host.path("closed"), 0o600)
        await refused("permission_denied", path, operation(host.env.files, path))

    @each(ALL)
    async def test_a_closed_environment_refuses(self, host: Host, operation: Operation) -> None:
        path = await host.write("file")
        await host.env.aclose()
        # Batches name each path in its own answer or none at all.
        with pytest.raises(PortError) as caught:
            await operation(host.env.files, path)
        assert caught.value.code == "closed"

    @each(ALL)
    async def test_a_cancelled_call_raises_the_cancellation(self, host: Host, operation: Operation) -> None:
        path = await host.write("file")
        finished = False
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            await operation(host.env.files, path)
            finished = True
        assert not finished
        assert scope.cancelled_caught

    async def test_names_need_not_be_utf_8(self, host: Host) -> None:
        host.require(host.capabilities.undecodable_names, "names that are not UTF-8")
        path = await host.write("caf\udce9", b"latin")
        assert await host.names() == ["caf\udce9"]
        assert await host.content(path) == b"latin"
        assert await host.env.files.canonical_path(path) == path

    # ---------------------------------------------------------------- stat

    async def test_stat_describes_a_file(self, host: Host) -> None:
        path = await host.write("file", b"12345")
        stat = await host.env.files.stat(path)
        assert (stat.kind, stat.size) == ("file", 5)
        assert 0 <= stat.mode <= 0o7777
        age = host.env.clock.now().timestamp() - stat.mtime_ns / 1e9
        assert abs(age) < timedelta(minutes=10).total_seconds()

    async def test_stat_describes_a_directory(self, host: Host) -> None:
        stat = await host.env.files.stat(await host.make_dirs("directory"))
        assert (stat.kind, stat.size) == ("directory", 0)

    async def test_stat_describes_a_fifo(self, host: Host) -> None:
        host.require(host.capabilities.fifos, "named pipes")
        await host.setup.make_fifo(host.path("pipe"))
        stat = await host.env.files.stat(host.path("pipe"))
        assert (stat.kind, stat.size) == ("fifo", 0)

    async def test_stat_follows_links_unless_asked_not_to(self, host: Host) -> None:
        await host.write("file", b"12345")
        path = await host.symlink("file", "link")
        followed = await host.env.files.stat(path)
        itself = await host.env.files.stat(path, follow_symlinks=False)
        assert (followed.kind, followed.size) == ("file", 5)
        assert (itself.kind, itself.size) == ("symlink", 0)

    async def test_stat_describes_a_broken_link_itself(self, host: Host) -> None:
        path = await host.symlink("missing", "broken")
        assert (await host.env.files.stat(path, follow_symlinks=False)).kind == "symlink"

    async def test_stat_shows_the_mode(self, host: Host) -> None:
        host.require(host.capabilities.modes, "permission bits")
        path = await host.write("file")
        await host.setup.set_mode(path, 0o640)
        assert (await host.env.files.stat(path)).mode == 0o640

    async def test_a_version_changes_with_the_content(self, host: Host) -> None:
        path = await host.write("file", b"one")
        versions = {(await host.env.files.stat(path)).version}
        for data in (b"two", b"four", b"one"):
            await host.env.files.write(path, data)
            versions.add((await host.env.files.stat(path)).version)
        await host.env.files.append(path, b"!")
        versions.add((await host.env.files.stat(path)).version)
        assert len(versions) == 5

    async def test_a_version_stays_while_nothing_changes(self, host: Host) -> None:
        path = await host.write("file")
        assert (await host.env.files.stat(path)).version == (await host.env.files.stat(path)).version

    async def test_several_stats_come_in_the_order_asked(self, host: Host) -> None:
        await host.write("file", b"12345")
        await host.make_dirs("directory")
        names = ("file", "missing", "directory", "file")
        stats = await host.env.files.stat_many([host.path(name) for name in names])
        found = [(stat.kind, stat.size) if isinstance(stat, FileStat) else stat.code for stat in stats]
        assert found == [("file", 5), "not_found", ("directory", 0), ("file", 5)]
        assert stats[0] == await host.env.files.stat(host.path("file"))

    async def test_several_stats_follow_links_unless_asked_not_to(self, host: Host) -> None:
        await host.write("file", b"12345")
        paths = [await host.symlink("file", "link"), await host.symlink("missing", "broken")]
        followed = await host.env.files.stat_many(paths)
        themselves = await host.env.files.stat_many(paths, follow_symlinks=False)
        assert [stat.kind if isinstance(stat, FileStat) else stat.code for stat in followed] == ["file", "not_found"]
        assert [stat.kind for stat in themselves if isinstance(stat, FileStat)] == ["symlink", "symlink"]

    async def test_no_stats_are_asked(self, host: Host) -> None:
        assert list(await host.env.files.stat_many([])) == []

    # ---------------------------------------------------------------- list_dir, list_dirs

    async def test_a_listing_has_names_and_kinds(self, host: Host) -> None:
        await host.write("file")
        await host.write(".hidden")
        await host.make_dirs("directory")
        found = sorted(await host.env.files.list_dir(host.root), key=lambda entry: entry.name)
        assert found == [DirEntry(".hidden", "file"), DirEntry("directory", "directory"), DirEntry("file", "file")]

    async def test_a_listing_does_not_follow_links(self, host: Host) -> None:
        await host.make_dirs("directory")
        await host.symlink("directory", "link")
        await host.symlink("missing", "broken")
        found = {entry.name: entry.kind for entry in await host.env.files.list_dir(host.root)}
        assert found == {"broken": "symlink", "directory": "directory", "link": "symlink"}

    async def test_a_listing_names_fifos(self, host: Host) -> None:
        host.require(host.capabilities.fifos, "named pipes")
        await host.setup.make_fifo(host.path("pipe"))
        assert await host.env.files.list_dir(host.root) == [DirEntry("pipe", "fifo")]

    async def test_an_empty_directory_has_no_entries(self, host: Host) -> None:
        assert list(await host.env.files.list_dir(host.root)) == []

    async def test_a_link_to_a_directory_can_be_listed(self, host: Host) -> None:
        await host.write("directory/file")
        assert await host.names(await host.symlink("directory", "link")) == ["file"]

    @each(LISTING)
    async def test_only_a_directory_can_be_listed(self, host: Host, operation: Operation) -> None:
        path = await host.write("file")
        await refused("not_a_directory", path, operation(host.env.files, path))

    async def test_several_listings_come_in_the_order_asked(self, host: Host) -> None:
        await host.write("one/a")
        await host.write("two/b")
        paths = [host.path("two"), host.path("missing"), host.path("two", "b"), host.path("one")]
        listings = await host.env.files.list_dirs(paths)
        assert [listing.path for listing in listings] == paths
        assert [[entry.name for entry in listing.entries] for listing in listings] == [["b"], [], [], ["a"]]
        codes = [listing.error.code if listing.error else None for listing in listings]
        assert codes == [None, "not_found", "not_a_directory", None]

    async def test_no_listings_are_asked(self, host: Host) -> None:
        assert list(await host.env.files.list_dirs([])) == []

    async def test_a_directory_without_read_permission_cannot_be_listed(self, host: Host) -> None:
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        path = await host.make_dirs("closed")
        await host.setup.set_mode(path, 0o300)
        await refused("permission_denied", path, host.env.files.list_dir(path))

    # ---------------------------------------------------------------- read, read_many

    @pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)), b"x" * 300_000], ids=["0", "5", "256", "300k"])
    async def test_a_file_reads_as_it_was_written(self, host: Host, data: bytes) -> None:
        path = await host.write("file", data)
        content = await host.env.files.read(path)
        assert content.data == data
        assert content.complete
        assert (content.stat.kind, content.stat.size) == ("file", len(data))
        assert content.canonical_path == path

    @pytest.mark.parametrize(("max_bytes", "expected"), [(0, b""), (3, b"123"), (5, b"12345"), (9, b"12345")])
    async def test_reading_stops_at_the_limit(self, host: Host, max_bytes: int, expected: bytes) -> None:
        path = await host.write("file", b"12345")
        content = await host.env.files.read(path, max_bytes=max_bytes)
        assert content.data == expected
        assert content.stat.size == 5
        assert content.complete == (max_bytes >= 5)

    async def test_reading_tells_where_the_bytes_really_are(self, host: Host) -> None:
        path = await host.write("directory/file")
        link = await host.symlink("directory", "link")
        assert (await host.env.files.read(f"{link}/file")).canonical_path == path

    @each(READING)
    async def test_a_directory_cannot_be_read(self, host: Host, operation: Operation) -> None:
        path = await host.make_dirs("directory")
        await refused("is_a_directory", path, operation(host.env.files, path))

    @each({**READING, **FILLING})
    async def test_a_fifo_is_refused_at_once(self, host: Host, operation: Operation) -> None:
        host.require(host.capabilities.fifos, "named pipes")
        path = host.path("pipe")
        await host.setup.make_fifo(path)
        with anyio.fail_after(10):
            await refused("not_a_regular_file", path, operation(host.env.files, path))

    @each(READING)
    async def test_reading_needs_permission(self, host: Host, operation: Operation) -> None:
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        path = await host.write("secret")
        await host.setup.set_mode(path, 0o200)
        await refused("permission_denied", path, operation(host.env.files, path))

    async def test_several_files_come_in_the_order_asked(self, host: Host) -> None:
        await host.write("one", b"1111")
        await host.write("two", b"2222")
        await host.make_dirs("directory")
        names = ("two", "missing", "directory", "one")
        contents = await host.env.files.read_many([host.path(name) for name in names], max_bytes=3)
        found = [content.data if isinstance(content, FileContent) else content.code for content in contents]
        assert found == [b"222", "not_found", "is_a_directory", b"111"]

    async def test_starts_of_several_files_come_with_their_sizes(self, host: Host) -> None:
        await host.write("long", b"1234")
        await host.write("short", b"12")
        await host.make_dirs("directory")
        names = ("short", "missing", "directory", "long")
        starts = await host.env.files.read_starts([host.path(name) for name in names], max_bytes=3)
        found = [(s.data, s.size, s.complete) if isinstance(s, FileStart) else s.code for s in starts]
        assert found == [(b"12", 2, True), "not_found", "is_a_directory", (b"123", 4, False)]

    async def test_no_files_are_asked(self, host: Host) -> None:
        assert list(await host.env.files.read_many([], max_bytes=3)) == []

    # ---------------------------------------------------------------- read_chunks, scan

    @pytest.mark.parametrize(
        ("start", "end"),
        [(0, None), (0, 0), (0, 7), (3, 9), (5, 5), (9, None), (10, None), (11, None), (4, 99), (8, 2)],
    )
    async def test_chunks_cover_the_range(self, host: Host, start: int, end: int | None) -> None:
        path = await host.write("file", b"0123456789")
        chunks = [chunk async for chunk in host.env.files.read_chunks(path, start=start, end=end)]
        assert b"".join(chunks) == b"0123456789"[start:end]
        assert all(chunks)

    async def test_chunks_of_a_large_file_are_bounded_and_in_order(self, host: Host) -> None:
        data = bytes(range(251)) * 32_000
        path = await host.write("file", data)
        chunks = [chunk async for chunk in host.env.files.read_chunks(path, start=1, end=len(data) - 1)]
        assert b"".join(chunks) == data[1:-1]
        assert max(map(len, chunks)) <= 2 * 1024 * 1024

    async def test_an_empty_file_has_no_chunks(self, host: Host) -> None:
        path = await host.write("file", b"")
        assert [chunk async for chunk in host.env.files.read_chunks(path)] == []

    async def test_replacing_a_file_does_not_mix_its_chunks(self, host: Host) -> None:
        path = await host.write("file", b"a" * 8_000_000)
        chunks = host.env.files.read_chunks(path)
        async with aclosing(chunks):
            seen = await anext(chunks)
            await host.env.files.write(path, b"b" * 8_000_000)
            seen += b"".join([chunk async for chunk in chunks])
        assert seen == b"a" * 8_000_000

    async def test_closing_the_iterator_early_releases_the_file(self, host: Host) -> None:
        path = await host.write("file", b"x" * 8_000_000)
        async with aclosing(host.env.files.read_chunks(path)) as chunks:
            await anext(chunks)
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)
        await host.env.files.remove(path)
        assert await host.names() == []

    @pytest.mark.parametrize("start", [0, 1, 4_999_999, 5_000_000, 5_000_001])
    async def test_a_scan_hands_over_every_byte_in_order(self, host: Host, start: int) -> None:
        data = bytes(range(250)) * 20_000
        path = await host.write("file", data)
        seen = bytearray()

        def consume(piece: bytes | bytearray) -> bool:
            seen.extend(piece)
            return True

        stat = await host.env.files.scan(path, consume, start=start)
        assert bytes(seen) == data[start:]
        assert (stat.kind, stat.size) == ("file", len(data))

    async def test_a_scan_stops_when_it_is_told_to(self, host: Host) -> None:
        path = await host.write("file", b"x" * 5_000_000)
        sizes: list[int] = []

        def consume(piece: bytes | bytearray) -> bool:
            sizes.append(len(piece))
            return False

        await host.env.files.scan(path, consume)
        assert len(sizes) == 1
        assert 0 < sizes[0] < 5_000_000

    # ---------------------------------------------------------------- write

    @pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)), b"x" * 300_000], ids=["0", "5", "256", "300k"])
    async def test_a_new_file_is_created(self, host: Host, data: bytes) -> None:
        path = host.path("file")
        receipt = await host.env.files.write(path, data)
        assert receipt.created
        assert receipt.canonical_path == path
        assert receipt.previous is None
        assert receipt.stat == await host.env.files.stat(path)
        assert await host.content(path) == data
        assert await host.names() == ["file"]

    @pytest.mark.parametrize("data", [b"", b"s", b"longer than before"])
    async def test_an_existing_file_is_replaced(self, host: Host, data: bytes) -> None:
        path = await host.write("file", b"before")
        receipt = await host.env.files.write(path, data)
        assert not receipt.created
        assert receipt.stat == await host.env.files.stat(path)
        assert await host.content(path) == data
        assert await host.names() == ["file"]

    async def test_a_write_goes_through_links_and_keeps_them(self, host: Host) -> None:
        path = await host.write("directory/file", b"before")
        await host.symlink("directory/file", "inner")
        link = await host.symlink("inner", "outer")
        receipt = await host.env.files.write(link, b"after")
        assert (receipt.created, receipt.canonical_path) == (False, path)
        assert await host.content(path) == b"after"
        assert (await host.env.files.stat(link, follow_symlinks=False)).kind == "symlink"

    async def test_a_write_through_a_broken_link_creates_its_target(self, host: Host) -> None:
        await host.make_dirs("directory")
        link = await host.symlink("directory/new", "link")
        receipt = await host.env.files.write(link, b"data")
        assert (receipt.created, receipt.canonical_path) == (True, host.path("directory", "new"))
        assert await host.content(host.path("directory", "new")) == b"data"
        assert (await host.env.files.stat(link, follow_symlinks=False)).kind == "symlink"

    async def test_a_file_keeps_its_mode(self, host: Host) -> None:
        host.require(host.capabilities.modes, "permission bits")
        path = await host.write("file")
        await host.setup.set_mode(path, 0o751)
        receipt = await host.env.files.write(path, b"after")
        assert receipt.stat.mode == (await host.env.files.stat(path)).mode == 0o751

    async def test_a_file_keeps_its_owner_and_attributes(self, host: Host) -> None:
        host.require(host.capabilities.markings, "owners or attributes")
        path = await host.write("file")
        plain = await host.setup.marking(path)
        await host.setup.mark(path)
        marked = await host.setup.marking(path)
        await host.env.files.write(path, b"after")
        assert await host.setup.marking(path) == marked != plain

    async def test_a_new_file_gets_what_the_umask_leaves(self, host: Host) -> None:
        if host.capabilities.new_file_mode is None:
            pytest.skip("the mode of a new file is not known")
        receipt = await host.env.files.write(host.path("file"), b"")
        assert receipt.stat.mode == (await host.env.files.stat(host.path("file"))).mode
        assert receipt.stat.mode == host.capabilities.new_file_mode

    @pytest.mark.parametrize("mode", [0o600, 0o755])
    async def test_a_mode_can_be_asked_for(self, host: Host, mode: int) -> None:
        host.require(host.capabilities.modes, "permission bits")
        path = host.path("file")
        assert (await host.env.files.write(path, b"new", mode=mode)).stat.mode == mode
        await host.setup.set_mode(path, 0o640)
        assert (await host.env.files.write(path, b"old", mode=mode)).stat.mode == mode

    async def test_all_names_of_a_file_show_the_new_content(self, host: Host) -> None:
        host.require(host.capabilities.hard_links, "hard links")
        path = await host.write("one", b"before")
        await host.setup.make_hard_link(path, host.path("two"))
        for data in (b"much longer than before", b"short"):
            receipt = await host.env.files.write(path, data)
            assert receipt.stat.size == len(data)
            assert await host.content(path) == data
            assert await host.content(host.path("two")) == data
        assert await host.names() == ["one", "two"]

    async def test_a_read_only_file_is_refused(self, host: Host) -> None:
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        path = await host.write("file", b"before")
        await host.setup.set_mode(path, 0o444)
        await refused("permission_denied", path, host.env.files.write(path, b"after"))
        await refused("permission_denied", path, host.env.files.append(path, b"after"))
        assert await host.content(path) == b"before"
        assert await host.names() == ["file"]

    async def test_a_read_only_directory_takes_no_new_file(self, host: Host) -> None:
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        directory = await host.make_dirs("directory")
        await host.setup.set_mode(directory, 0o555)
        path = f"{directory}/file"
        await refused("permission_denied", path, host.env.files.write(path, b"new"))
        await refused("permission_denied", path, host.env.files.make_dirs(path))

    async def test_a_file_must_not_exist(self, host: Host) -> None:
        path = host.path("file")
        assert (await host.env.files.write(path, b"first", expect=ABSENT)).created
        await refused("conflict", path, host.env.files.write(path, b"second", expect=ABSENT))
        assert await host.content(path) == b"first"

    async def test_a_file_must_be_in_the_version_that_was_read(self, host: Host) -> None:
        path = await host.write("file", b"one")
        version = (await host.env.files.read(path)).stat.version
        await host.env.files.write(path, b"two", expect=version)
        await refused("conflict", path, host.env.files.write(path, b"three", expect=version))
        assert await host.content(path) == b"two"
        assert await host.names() == ["file"]

    async def test_the_versions_of_a_stat_and_a_receipt_are_good_too(self, host: Host) -> None:
        path = await host.write("file", b"one")
        receipt = await host.env.files.write(path, b"two", expect=(await host.env.files.stat(path)).version)
        await host.env.files.write(path, b"six", expect=receipt.stat.version)
        assert await host.content(path) == b"six"

    async def test_a_change_of_the_same_size_is_noticed(self, host: Host) -> None:
        path = await host.write("file", b"one")
        for _ in range(20):  # time stamps alone are too coarse for this
            version = (await host.env.files.read(path)).stat.version
            await host.env.files.write(path, b"two")
            await refused("conflict", path, host.env.files.write(path, b"mine", expect=version))
            await host.env.files.write(path, b"one")

    async def test_a_removed_file_is_in_no_version(self, host: Host) -> None:
        path = await host.write("file")
        version = (await host.env.files.read(path)).stat.version
        await host.env.files.remove(path)
        await refused("conflict", path, host.env.files.write(path, b"new", expect=version))
        assert await host.names() == []

    async def test_an_unknown_version_is_a_conflict(self, host: Host) -> None:
        path = await host.write("file")
        await refused("conflict", path, host.env.files.write(path, b"new", expect=Version("unknown")))

    async def test_of_many_writers_that_expect_one_version_one_wins(self, host: Host) -> None:
        path = await host.write("file", b"start")
        version = (await host.env.files.read(path)).stat.version
        answers = await self._write_at_once(host, path, version)
        winners = [data for data, answer in answers.items() if answer == "written"]
        assert [await host.content(path)] == winners
        assert sorted(answers.values()) == ["conflict"] * 19 + ["written"]

    async def test_of_many_creators_one_wins(self, host: Host) -> None:
        path = host.path("file")
        answers = await self._write_at_once(host, path, ABSENT)
        winners = [data for data, answer in answers.items() if answer == "written"]
        assert [await host.content(path)] == winners
        assert sorted(answers.values()) == ["conflict"] * 19 + ["written"]
        assert await host.names() == ["file"]

    async def _write_at_once(self, host: Host, path: str, expect: Version) -> Mapping[bytes, str]:
        """Let twenty writers expect one version; returns what each one wrote and was told."""
        answers: dict[bytes, str] = {}

        async def write(data: bytes) -> None:
            try:
                await host.env.files.write(path, data, expect=expect)
                answers[data] = "written"
            except PortError as error:
                answers[data] = error.code

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(write, b"writer %d" % number)
        return answers

    async def test_readers_see_the_old_or_the_new_content(self, host: Host) -> None:
        contents = (b"a" * 1_000_000, b"b" * 700_000)
        path = await host.write("file", contents[0])
        done = False

        async def write() -> None:
            nonlocal done
            for number in range(10):
                await host.env.files.write(path, contents[number % 2])
            done = True

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not done:
                content = await host.env.files.read(path)
                assert content.data in contents
                assert content.complete

    async def test_a_write_can_return_the_content_before(self, host: Host) -> None:
        path = await host.write("file", b"before")
        found = await host.env.files.read(path)
        whole = (await host.env.files.write(path, b"middle", previous_limit=100)).previous
        assert whole is not None
        assert (whole.data, whole.canonical_path, whole.complete) == (b"before", path, True)
        assert (whole.stat.size, whole.stat.mtime_ns) == (6, found.stat.mtime_ns)
        part = (await host.env.files.write(path, b"after", previous_limit=3)).previous
        assert part is not None
        assert (part.data, part.stat.size, part.complete) == (b"mid", 6, False)
        assert (await host.env.files.write(path, b"last")).previous is None

    async def test_a_new_file_has_no_content_before(self, host: Host) -> None:
        assert (await host.env.files.write(host.path("file"), b"new", previous_limit=100)).previous is None

    async def test_the_directory_of_a_file_must_exist(self, host: Host) -> None:
        path = host.path("missing", "file")
        await refused("not_found", path, host.env.files.write(path, b"new"))
        assert await host.names() == []

    @each(FILLING)
    async def test_a_directory_cannot_be_written(self, host: Host, operation: Operation) -> None:
        path = await host.make_dirs("directory")
        await refused("is_a_directory", path, operation(host.env.files, path))
        assert await host.names() == ["directory"]

    async def test_a_cancelled_write_happens_whole_or_not_at_all(self, host: Host) -> None:
        old, new = b"a" * 3_000_000, b"b" * 2_000_000
        for turns in range(8):
            path = await host.write("file", old)
            async with anyio.create_task_group() as group:
                group.start_soon(host.env.files.write, path, new)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            found = await host.content(path)
            assert found in (old, new)
            assert await host.names() == ["file"]
            await host.env.clock.sleep(0.02)
            assert await host.content(path) == found

    async def test_a_cancelled_rename_or_removal_happens_whole_or_not_at_all(self, host: Host) -> None:
        for turns in range(6):
            await host.write("old", b"old")
            await host.write("new", b"new")
            async with anyio.create_task_group() as group:
                group.start_soon(host.env.files.rename, host.path("old"), host.path("new"))
                group.start_soon(host.env.files.remove, await host.write("gone"))
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            names = await host.names()
            assert [name for name in names if name != "gone"] in (["new"], ["new", "old"])
            assert await host.content(host.path("new")) == (b"new" if "old" in names else b"old")
            await host.env.clock.sleep(0.02)
            assert await host.names() == names

    async def test_a_full_disk_leaves_the_old_content(self, host: Host) -> None:
        host.require(host.capabilities.limited_space, "small disk")
        await host.setup.make_small_disk(host.path("small"))
        path = await host.write("small/file", b"before")
        await refused("no_space", path, host.env.files.write(path, b"x" * 1_100_000))
        assert await host.content(path) == b"before"
        assert await host.names(host.path("small")) == ["file"]
        fresh = host.path("small", "new")
        await refused("no_space", fresh, host.env.files.write(fresh, b"x" * 1_100_000))
        assert await host.names(host.path("small")) == ["file"]

    async def test_a_full_disk_leaves_all_names_of_a_file(self, host: Host) -> None:
        host.require(host.capabilities.limited_space and host.capabilities.hard_links, "small disk with hard links")
        await host.setup.make_small_disk(host.path("small"))
        path = await host.write("small/one", b"before")
        await host.setup.make_hard_link(path, host.path("small", "two"))
        await refused("no_space", path, host.env.files.write(path, b"x" * 1_100_000))
        assert await host.content(path) == b"before"
        assert await host.content(host.path("small", "two")) == b"before"

    async def test_a_read_only_file_system_is_told_as_such(self, host: Host) -> None:
        host.require(host.capabilities.read_only_mounts, "read-only mounts")
        files, old = host.env.files, await host.write("mounted/old", b"before")
        await host.setup.make_read_only(host.path("mounted"))
        new = host.path("mounted", "new")
        await refused("read_only", old, files.write(old, b"after"))
        await refused("read_only", new, files.write(new, b"after"))
        await refused("read_only", old, files.append(old, b"after"))
        await refused("read_only", new, files.make_dirs(new))
        await refused("read_only", old, files.remove(old))
        await refused("read_only", old, files.rename(old, new))
        if host.capabilities.makes_links:
            await refused("read_only", new, files.make_link(new, "old"))
        if host.capabilities.changes_modes:
            await refused("read_only", old, files.change_mode(old, 0o600))
        assert await host.content(old) == b"before"
        assert list(await files.make_dirs(host.path("mounted"))) == []

    # ---------------------------------------------------------------- append

    async def test_appending_adds_to_the_end(self, host: Host) -> None:
        path = await host.write("file", b"one ")
        await host.env.files.append(path, b"two ")
        await host.env.files.append(path, b"")
        await host.env.files.append(path, b"x" * 300_000)
        assert await host.content(path) == b"one two " + b"x" * 300_000

    async def test_appending_goes_through_links(self, host: Host) -> None:
        path = await host.write("file", b"one ")
        await host.env.files.append(await host.symlink("file", "link"), b"two")
        assert await host.content(path) == b"one two"

    async def test_appending_to_a_full_disk_is_refused(self, host: Host) -> None:
        host.require(host.capabilities.limited_space, "small disk")
        await host.setup.make_small_disk(host.path("small"))
        path = await host.write("small/file", b"before")
        await refused("no_space", path, host.env.files.append(path, b"x" * 1_100_000))
        assert (await host.content(path)).startswith(b"before")

    # ---------------------------------------------------------------- make_dirs

    async def test_missing_parents_are_created_outermost_first(self, host: Host) -> None:
        await host.make_dirs("a")
        created = await host.env.files.make_dirs(host.path("a", "b", "c"))
        assert list(created) == [host.path("a", "b"), host.path("a", "b", "c")]
        assert (await host.env.files.stat(host.path("a", "b", "c"))).kind == "directory"

    async def test_an_existing_directory_is_no_error(self, host: Host) -> None:
        assert list(await host.env.files.make_dirs(await host.make_dirs("a"))) == []

    async def test_a_link_to_a_directory_is_a_directory(self, host: Host) -> None:
        await host.make_dirs("a")
        link = await host.symlink("a", "link")
        assert list(await host.env.files.make_dirs(link)) == []
        assert list(await host.env.files.make_dirs(f"{link}/b")) == [f"{link}/b"]
        assert await host.names(host.path("a")) == ["b"]

    async def test_a_directory_does_not_replace_a_file(self, host: Host) -> None:
        path = await host.write("file")
        await refused("already_exists", path, host.env.files.make_dirs(path))
        assert await host.content(path) == b"content"

    async def test_a_directory_does_not_replace_a_broken_link(self, host: Host) -> None:
        path = await host.symlink("missing", "broken")
        await refused("already_exists", path, host.env.files.make_dirs(path))

    async def test_a_broken_link_is_no_parent(self, host: Host) -> None:
        link = await host.symlink("missing", "broken")
        await refused("not_a_directory", f"{link}/a", host.env.files.make_dirs(f"{link}/a"))

    async def test_directories_of_a_failure_are_removed(self, host: Host) -> None:
        path = host.path("a", "b", "x" * 300, "c")
        await refused("name_too_long", path, host.env.files.make_dirs(path))
        assert await host.names() == []

    # ---------------------------------------------------------------- remove

    async def test_a_file_is_removed(self, host: Host) -> None:
        await host.env.files.remove(await host.write("file"))
        assert await host.names() == []

    async def test_a_link_itself_is_removed(self, host: Host) -> None:
        await host.write("directory/file")
        await host.env.files.remove(await host.symlink("directory", "link"))
        await host.env.files.remove(await host.symlink("missing", "broken"))
        await host.env.files.remove(await host.symlink("loop", "loop"))
        assert await host.names() == ["directory"]
        assert await host.names(host.path("directory")) == ["file"]

    async def test_an_empty_directory_is_removed(self, host: Host) -> None:
        await host.env.files.remove(await host.make_dirs("directory"))
        assert await host.names() == []

    async def test_a_fifo_is_removed(self, host: Host) -> None:
        host.require(host.capabilities.fifos, "named pipes")
        await host.setup.make_fifo(host.path("pipe"))
        await host.env.files.remove(host.path("pipe"))
        assert await host.names() == []

    async def test_a_full_directory_is_not_removed(self, host: Host) -> None:
        path = await host.write("directory/file")
        await refused("not_empty", host.path("directory"), host.env.files.remove(host.path("directory")))
        assert await host.content(path) == b"content"

    # ---------------------------------------------------------------- rename

    async def test_a_file_moves(self, host: Host) -> None:
        await host.make_dirs("directory")
        await host.env.files.rename(await host.write("old", b"data"), host.path("directory", "new"))
        assert await host.names() == ["directory"]
        assert await host.content(host.path("directory", "new")) == b"data"

    async def test_a_file_replaces_a_file(self, host: Host) -> None:
        target = await host.write("new", b"before")
        await host.env.files.rename(await host.write("old", b"after"), target)
        assert await host.names() == ["new"]
        assert await host.content(target) == b"after"

    async def test_a_directory_moves_with_what_is_in_it(self, host: Host) -> None:
        await host.write("old/deep/file", b"data")
        await host.env.files.rename(host.path("old"), host.path("new"))
        assert await host.content(host.path("new", "deep", "file")) == b"data"

    async def test_a_directory_replaces_an_empty_directory(self, host: Host) -> None:
        await host.write("old/file", b"data")
        await host.env.files.rename(host.path("old"), await host.make_dirs("new"))
        assert await host.names() == ["new"]
        assert await host.content(host.path("new", "file")) == b"data"

    async def test_a_link_itself_moves(self, host: Host) -> None:
        await host.write("file")
        await host.env.files.rename(await host.symlink("file", "link"), host.path("moved"))
        assert await host.names() == ["file", "moved"]
        assert (await host.env.files.stat(host.path("moved"), follow_symlinks=False)).kind == "symlink"

    async def test_a_file_does_not_move_over_a_directory(self, host: Host) -> None:
        source, target = await host.write("file"), await host.make_dirs("directory")
        await refused("is_a_directory", source, host.env.files.rename(source, target))
        assert await host.names() == ["directory", "file"]

    async def test_a_directory_does_not_move_over_a_file(self, host: Host) -> None:
        source, target = await host.make_dirs("directory"), await host.write("file")
        await refused("not_a_directory", source, host.env.files.rename(source, target))
        assert await host.content(target) == b"content"

    async def test_a_directory_does_not_move_over_a_full_one(self, host: Host) -> None:
        source = await host.make_dirs("empty")
        await host.write("full/file")
        await refused("not_empty", source, host.env.files.rename(source, host.path("full")))
        assert await host.names() == ["empty", "full"]

    async def test_the_directory_of_the_target_must_exist(self, host: Host) -> None:
        source = await host.write("file")
        with pytest.raises(PortError) as caught:  # either path may be the one concerned
            await host.env.files.rename(source, host.path("missing", "file"))
        assert caught.value.code == "not_found"
        assert await host.names() == ["file"]

    # ---------------------------------------------------------------- read_link, make_link

    @pytest.mark.parametrize("target", ["file", "directory", "./directory/../file", "missing/below", "link", "/"])
    async def test_a_link_says_what_it_was_made_with(self, host: Host, target: str) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        await host.write("file")
        await host.make_dirs("directory")
        path = host.path("link")
        try:
            await host.env.files.make_link(path, target)
        except PortError as error:
            if error.code != "outside_workspace" or target != "/":
                raise
            assert "link" not in await host.names()
            return
        assert await host.env.files.read_link(path) == target
        assert (await host.env.files.stat(path, follow_symlinks=False)).kind == "symlink"
        assert DirEntry("link", "symlink") in await host.env.files.list_dir(host.root)

    async def test_a_link_leads_on_from_its_own_directory(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        path = await host.write("a/file", b"data")
        await host.make_dirs("b")
        await host.env.files.make_link(host.path("b", "link"), "../a/file")
        await host.env.files.make_link(host.path("b", "whole"), path)
        assert await host.content(host.path("b", "link")) == b"data"
        assert await host.content(host.path("b", "whole")) == b"data"
        assert await host.env.files.canonical_path(host.path("b", "link")) == path

    async def test_a_link_that_was_made_otherwise_can_be_read(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        assert await host.env.files.read_link(await host.symlink("some/where", "link")) == "some/where"

    async def test_a_target_need_not_be_utf_8(self, host: Host) -> None:
        host.require(host.capabilities.makes_links and host.capabilities.undecodable_names, "names that are not UTF-8")
        await host.env.files.make_link(host.path("link"), "caf\udce9")
        assert await host.env.files.read_link(host.path("link")) == "caf\udce9"

    @pytest.mark.parametrize("target", ["", "a\0b", "a\ud800b"])
    async def test_a_target_must_be_a_path(self, host: Host, target: str) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        path = host.path("link")
        await refused("invalid_path", path, host.env.files.make_link(path, target))
        assert await host.names() == []

    async def test_a_link_replaces_nothing(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        file, directory = await host.write("file"), await host.make_dirs("directory")
        await host.env.files.make_link(host.path("broken"), "missing")
        for path in (file, directory, host.path("broken")):
            await refused("already_exists", path, host.env.files.make_link(path, "other"))
        assert await host.content(file) == b"content"
        assert await host.env.files.read_link(host.path("broken")) == "missing"

    async def test_the_directory_of_a_link_must_exist(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        path = host.path("missing", "link")
        await refused("not_found", path, host.env.files.make_link(path, "target"))

    async def test_a_read_only_directory_takes_no_link(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        host.require(host.capabilities.enforces_permissions, "permissions that bind the user")
        directory = await host.make_dirs("directory")
        await host.setup.set_mode(directory, 0o555)
        await refused("permission_denied", f"{directory}/link", host.env.files.make_link(f"{directory}/link", "x"))

    async def test_only_a_link_can_be_read_as_one(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        for path in (await host.write("file"), await host.make_dirs("directory")):
            await refused("invalid_path", path, host.env.files.read_link(path))

    async def test_of_many_that_make_one_link_one_wins(self, host: Host) -> None:
        host.require(host.capabilities.makes_links, "read_link and make_link")
        path, answers = host.path("link"), dict[str, str]()

        async def make(target: str) -> None:
            try:
                await host.env.files.make_link(path, target)
                answers[target] = "made"
            except PortError as error:
                answers[target] = error.code

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(make, f"target-{number}")
        assert sorted(answers.values()) == ["already_exists"] * 9 + ["made"]
        assert answers[await host.env.files.read_link(path)] == "made"

    # ---------------------------------------------------------------- change_mode

    @pytest.mark.parametrize("mode", [0o600, 0o751, 0o444, 0o000])
    async def test_the_mode_of_a_file_can_be_changed(self, host: Host, mode: int) -> None:
        host.require(host.capabilities.changes_modes, "change_mode")
        path = await host.write("file")
        before = await host.env.files.stat(path)
        await host.env.files.change_mode(path, mode)
        after = await host.env.files.stat(path)
        assert (after.mode, after.size, after.mtime_ns) == (mode, before.size, before.mtime_ns)

    async def test_the_mode_of_a_directory_can_be_changed(self, host: Host) -> None:
        host.require(host.capabilities.changes_modes, "change_mode")
        path = await host.make_dirs("directory")
        await host.env.files.change_mode(path, 0o500)
        assert (await host.env.files.stat(path)).mode == 0o500
        if host.capabilities.enforces_permissions:
            new = f"{path}/new"
            await refused("permission_denied", new, host.env.files.write(new, b""))
        await host.env.files.change_mode(path, 0o755)
        await host.env.files.write(f"{path}/new", b"")

    async def test_a_mode_goes_through_links(self, host: Host) -> None:
        host.require(host.capabilities.changes_modes, "change_mode")
        path = await host.write("file")
        link = await host.symlink("file", "link")
        before = await host.env.files.stat(link, follow_symlinks=False)
        await host.env.files.change_mode(link, 0o640)
        assert (await host.env.files.stat(path)).mode == 0o640
        assert (await host.env.files.stat(link, follow_symlinks=False)).mode == before.mode

    async def test_an_unreadable_file_can_be_made_readable_again(self, host: Host) -> None:
        host.require(host.capabilities.changes_modes, "change_mode")
        path = await host.write("file", b"data")
        await host.env.files.change_mode(path, 0o000)
        await host.env.files.change_mode(path, 0o600)
        assert await host.content(path) == b"data"

    # ---------------------------------------------------------------- canonical_path

    async def test_links_and_dots_are_resolved(self, host: Host) -> None:
        path = await host.write("a/b/file")
        await host.symlink("a/b", "link")
        for spelling in ("link/file", "link/../b/file", "a/./b/file", "a//b/file", "a/b/../b/file"):
            assert await host.env.files.canonical_path(host.path(spelling)) == path

    async def test_the_tail_may_be_missing(self, host: Host) -> None:
        await host.make_dirs("a")
        await host.symlink("a", "link")
        await host.symlink("a/nothing", "broken")
        files = host.env.files
        assert await files.canonical_path(host.path("link", "x", "y")) == host.path("a", "x", "y")
        assert await files.canonical_path(host.path("broken")) == host.path("a", "nothing")
        assert await files.canonical_path(host.path("broken", "z")) == host.path("a", "nothing", "z")
        assert await host.names() == ["a", "broken", "link"]

    async def test_case_makes_no_difference_where_the_host_ignores_it(self, host: Host) -> None:
        host.require(not host.capabilities.case_sensitive, "blindness for case")
        path = await host.write("Folder/File.txt", b"data")
        assert await host.content(host.path("folder", "FILE.TXT")) == b"data"
        assert await host.env.files.canonical_path(host.path("folder", "FILE.TXT")) == path
        assert await host.names() == ["Folder"]
        await host.env.files.rename(host.path("folder"), host.path("folder"))
        assert await host.names() == ["folder"]

    async def test_case_makes_a_difference_elsewhere(self, host: Host) -> None:
        host.require(host.capabilities.case_sensitive, "eye for case")
        await host.write("A", b"upper")
        await host.write("a", b"lower")
        assert await host.names() == ["A", "a"]

    async def test_normalisation_makes_no_difference_where_the_host_ignores_it(self, host: Host) -> None:
        host.require(host.capabilities.normalization is not None, "blindness for normalisation")
        await host.write("caf\u00e9", b"data")
        assert await host.content(host.path("cafe\u0301")) == b"data"
        stored = "cafe\u0301" if host.capabilities.normalization == "NFD" else "caf\u00e9"
        assert await host.names() == [stored]
        for spelling in ("caf\u00e9", "cafe\u0301"):
            assert await host.env.files.canonical_path(host.path(spelling)) == host.path(stored)

    async def test_normalisation_makes_a_difference_elsewhere(self, host: Host) -> None:
        host.require(host.capabilities.normalization is None, "eye for normalisation")
        await host.write("caf\u00e9", b"one")
        await host.write("cafe\u0301", b"two")
        assert await host.names() == sorted(["caf\u00e9", "cafe\u0301"])

    # ---------------------------------------------------------------- create_temp_file

    async def test_a_temporary_file_is_empty_private_and_new(self, host: Host) -> None:
        files = host.env.files
        paths = [await files.create_temp_file(prefix="pre-", suffix=".log") for _ in range(5)]
        try:
            assert len(set(paths)) == 5
            for path in paths:
                name = path.rpartition("/")[2]
                assert name.startswith("pre-")
                assert name.endswith(".log")
                assert len(name) > len("pre-.log")
                stat = await files.stat(path)
                assert (stat.kind, stat.size) == ("file", 0)
                if host.capabilities.modes:
                    assert stat.mode == 0o600
                await files.append(path, b"saved")
                assert await host.content(path) == b"saved"
        finally:
            for path in paths:
                await files.remove(path)

    async def test_a_closed_environment_makes_no_temporary_file(self, host: Host) -> None:
        await host.env.aclose()
        with pytest.raises(PortError) as caught:
            await host.env.files.create_temp_file(prefix="a", suffix="b")
        assert caught.value.code == "closed"
