"""What only the files in memory have: pictures, preparation from outside, kinds of file systems."""

from __future__ import annotations

import pytest
from hypothesis import given

from handrail.adapters.memory import (
    Directory,
    Entry,
    File,
    MemoryFiles,
    Special,
    Symlink,
    VirtualClock,
    memory_environment,
)
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry
from scenarios import SCENARIOS
from strategies import trees

pytestmark = pytest.mark.anyio


def test_a_new_environment_has_its_places_and_its_files() -> None:
    env = memory_environment({"a.py": "x = 1\n", "/etc/hosts": b"\xff"}, cwd="/work", home="/root")
    assert env.files.tree() == {
        "/etc/hosts": b"\xff",
        "/root": Directory(),
        "/tmp": Directory(),
        "/work/a.py": "x = 1\n",
    }
    assert (env.cwd, env.home) == ("/work", "/root")


def test_a_picture_shows_every_kind_of_entry() -> None:
    entries: dict[str, Entry] = {
        "/p/binary": b"\xff\x00",
        "/p/broken": Symlink("missing"),
        "/p/empty": Directory(),
        "/p/null": Special("device"),
        "/p/pipe": Special("fifo"),
        "/p/sub/text": "text\n",
        "/p/to_sub": Symlink("sub"),
    }
    files = memory_environment(entries, cwd="/p").files
    assert files.tree("/p") == entries
    assert list(files.tree("/p")) == sorted(entries)
    assert files.tree("/p/sub") == {"/p/sub/text": "text\n"}


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_picture_can_be_given_to_a_new_environment(name: str) -> None:
    first = memory_environment(SCENARIOS[name]).files
    second = memory_environment(first.tree()).files
    assert second.tree() == first.tree()


@given(trees())
def test_every_tree_comes_out_as_it_went_in(tree: dict[str, Entry]) -> None:
    files = memory_environment(tree).files
    assert files.tree("/project") == {path: entry for path, entry in tree.items() if path != "/project"}


def test_single_entries_are_looked_at_by_their_path() -> None:
    files = memory_environment({"a": "text", "b": b"\xff", "link": Symlink("a"), "run": File("x", mode=0o755)}).files
    assert files["/project/a"] == "text"
    assert files["/project/b"] == b"\xff"
    assert files["/project/link"] == Symlink("a")
    assert files["/project"] == Directory()
    assert files.read_text("/project/link") == "text"
    assert files.read_bytes("/project/a") == b"text"
    assert files.mode("/project/run") == 0o755
    assert "/project/a" in files
    assert "/project/missing" not in files
    with pytest.raises(PortError) as caught:
        files["/project/missing"]
    assert (caught.value.code, caught.value.path) == ("not_found", "/project/missing")


async def test_another_program_may_change_files_at_any_time() -> None:
    env = memory_environment({"a": "one"})
    version = (await env.files.read("/project/a")).stat.version
    env.files["/project/a"] = "two"
    with pytest.raises(PortError) as caught:
        await env.files.write("/project/a", b"mine", expect=version)
    assert caught.value.code == "conflict"
    env.files.delete("/project/a")
    env.files["/project/new/deep"] = "made"
    assert env.files.tree("/project") == {"/project/new/deep": "made"}
    env.files.delete("/project/new")
    assert env.files.tree("/project") == {}


async def test_a_closed_world_can_still_be_looked_at() -> None:
    async with memory_environment({"a": "text"}) as env:
        pass
    assert env.files.tree("/project") == {"/project/a": "text"}
    with pytest.raises(PortError) as caught:
        await env.files.read("/project/a")
    assert caught.value.code == "closed"


async def test_time_stamps_come_from_the_clock() -> None:
    env = memory_environment({"a": "old"}, clock=VirtualClock())
    start = env.clock.now_ns()
    await env.clock.advance(90)
    await env.files.write("/project/b", b"new")
    assert (await env.files.stat("/project/a")).mtime_ns == start
    assert (await env.files.stat("/project/b")).mtime_ns == start + 90 * 10**9
    assert (await env.files.stat("/project")).mtime_ns == start + 90 * 10**9
    env.files.set_mtime("/project/a", 5)
    assert (await env.files.stat("/project/a")).mtime_ns == 5


async def test_rights_bind_an_ordinary_user_and_not_the_superuser() -> None:
    for superuser in (False, True):
        env = memory_environment({"secret": File("text", mode=0o000)}, superuser=superuser)
        assert env.files.read_text("/project/secret") == "text"
        if superuser:
            assert (await env.files.read("/project/secret")).data == b"text"
        else:
            with pytest.raises(PortError) as caught:
                await env.files.read("/project/secret")
            assert caught.value.code == "permission_denied"


async def test_the_umask_decides_the_modes_of_new_entries() -> None:
    env = memory_environment(umask=0o077)
    await env.files.write("/project/file", b"")
    await env.files.make_dirs("/project/directory")
    assert env.files.mode("/project/file") == 0o600
    assert env.files.mode("/project/directory") == 0o700


async def test_a_chain_of_forty_links_is_followed_and_no_longer_one() -> None:
    links: dict[str, Entry] = {f"link{number}": Symlink(f"link{number - 1}") for number in range(1, 42)}
    env = memory_environment({**links, "link0": "end"})
    assert (await env.files.read("/project/link40")).data == b"end"
    with pytest.raises(PortError) as caught:
        await env.files.read("/project/link41")
    assert caught.value.code == "symlink_loop"


async def test_a_relative_path_is_no_path() -> None:
    env = memory_environment({"a": "text"})
    with pytest.raises(PortError) as caught:
        await env.files.read("a")
    assert caught.value.code == "invalid_path"


async def test_a_removed_file_gives_its_space_back() -> None:
    files = memory_environment().files
    files.limit_space(10)
    await files.write("/project/a", b"12345678")
    with pytest.raises(PortError) as caught:
        await files.write("/project/b", b"123")
    assert (caught.value.code, caught.value.path) == ("no_space", "/project/b")
    await files.remove("/project/a")
    await files.write("/project/b", b"1234567890")
    with pytest.raises(PortError):
        await files.append("/project/b", b"1")
    files.limit_space(None)
    await files.append("/project/b", b"1")
    assert files.read_bytes("/project/b") == b"12345678901"


async def test_replacing_a_file_needs_room_for_both_contents() -> None:
    files = memory_environment({"a": "12345678"}).files
    files.limit_space(6)
    with pytest.raises(PortError):
        await files.write("/project/a", b"1234567")
    await files.write("/project/a", b"123456")  # frees eight, takes six
    await files.write("/project/a", b"12345678")
    assert files.read_bytes("/project/a") == b"12345678"


async def test_a_read_only_mount_covers_what_is_below_it_only() -> None:
    files = memory_environment({"ro/a": "x", "rock/b": "y"}).files
    files.mount_read_only("/project/ro")
    with pytest.raises(PortError) as caught:
        await files.write("/project/ro/a", b"new")
    assert caught.value.code == "read_only"
    await files.write("/project/rock/b", b"new")
    files["/project/ro/a"] = "changed by its owner"
    assert (await files.read("/project/ro/a")).data == b"changed by its owner"


async def test_both_kinds_of_blindness_may_come_together() -> None:
    env = memory_environment({"Caf\u00e9": "x"}, case_sensitive=False, normalization="NFD")
    assert await env.files.list_dir("/project") == [DirEntry("Cafe\u0301", "file")]
    for spelling in ("caf\u00e9", "CAF\u00c9", "cafe\u0301", "CAFE\u0301"):
        assert (await env.files.read(f"/project/{spelling}")).data == b"x"
        assert await env.files.canonical_path(f"/project/{spelling}") == "/project/Cafe\u0301"


async def test_temporary_files_have_the_same_names_in_every_run() -> None:
    async def names(files: MemoryFiles) -> list[str]:
        return [await files.create_temp_file(prefix="a-", suffix=".log") for _ in range(3)]

    first, second = memory_environment().files, memory_environment().files
    assert await names(first) == await names(second)
    # Where a name is taken, the next one is used.
    third = memory_environment(first.tree()).files
    assert not set(await names(third)) & set(first.tree())


async def test_the_place_of_temporary_files_may_be_missing_or_read_only() -> None:
    files = memory_environment().files
    files.mount_read_only("/tmp")
    with pytest.raises(PortError) as caught:
        await files.create_temp_file(prefix="a", suffix="b")
    assert caught.value.code == "read_only"
    files.delete("/tmp")
    with pytest.raises(PortError) as caught:
        await files.create_temp_file(prefix="a", suffix="b")
    assert caught.value.code == "not_found"
    assert "/tmp" not in files


async def test_appending_many_times_is_cheap_and_keeps_open_readers_safe() -> None:
    files = memory_environment({"log": "start"}).files
    chunks = files.read_chunks("/project/log")
    assert await anext(chunks) == b"start"
    for _ in range(1000):
        await files.append("/project/log", b"x")
    assert b"".join([chunk async for chunk in chunks]) in (b"", b"x" * 1000)
    assert files.read_bytes("/project/log") == b"start" + b"x" * 1000
