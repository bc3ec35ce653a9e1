"""Writing real files: atomic, keeping what belongs to a file, refused clearly, and nothing left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from handrail.adapters.local.environment import local_environment
from handrail.adapters.local.files import LocalFiles
from handrail.core.toolbox import Toolbox
from handrail.core.tools.write import write_tool
from handrail.ports.errors import PortError
from handrail.ports.files import ABSENT

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="modes, owners and links are those of POSIX"),
]

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root may do this")


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


async def refusal(files: LocalFiles, path: Path, data: bytes = b"new") -> str:
    with pytest.raises(PortError) as caught:
        await files.write(str(path), data)
    return caught.value.code


# ------------------------------------------------------------------ what a file keeps


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664, 0o4755])
async def test_a_replaced_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(mode)
    await LocalFiles().write(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0, 0o666)])
async def test_a_new_file_gets_the_mode_that_the_umask_gives(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        receipt = await LocalFiles().write(str(tmp_path / "f"), b"new")
    finally:
        os.umask(before)
    assert receipt.created
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode
    assert (tmp_path / "f").stat().st_nlink == 1
    assert names(tmp_path) == ["f"]


@as_root
async def test_a_replaced_file_keeps_its_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o6755)
    await LocalFiles().write(str(path), b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o6755)


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes are copied on Linux")
async def test_a_replaced_file_keeps_its_extended_attributes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    if sys.platform == "linux":
        try:
            os.setxattr(path, "user.origin", b"somewhere")
        except OSError as error:
            pytest.skip(f"this file system has no extended attributes: {error}")
        await LocalFiles().write(str(path), b"new")
        assert os.getxattr(path, "user.origin") == b"somewhere"


async def test_readers_see_the_old_or_the_new_content_and_never_a_mixture(tmp_path: Path) -> None:
    path = tmp_path / "f"
    contents = [bytes([65 + n]) * (200_000 - n * 1000) for n in range(4)]
    path.write_bytes(contents[0])
    seen: set[bytes] = set()
    done = threading.Event()

    def keep_reading() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=keep_reading)
    reader.start()
    try:
        files = LocalFiles()
        for n in range(200):
            await files.write(str(path), contents[n % 4])
    finally:
        done.set()
        reader.join()
    assert seen <= set(contents)


async def test_an_open_file_goes_on_showing_its_old_content(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with path.open("rb") as stream:
        await LocalFiles().write(str(path), b"new")
        assert stream.read() == b"old"


# ------------------------------------------------------------------ links


async def test_a_chain_of_links_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real").write_bytes(b"old")
    (tmp_path / "two").symlink_to("deep/real")
    (tmp_path / "one").symlink_to(tmp_path / "two")
    receipt = await LocalFiles().write(str(tmp_path / "one"), b"new")
    assert receipt.canonical_path == str(tmp_path / "deep" / "real")
    assert (tmp_path / "one").is_symlink()
    assert os.readlink(tmp_path / "two") == "deep/real"
    assert (tmp_path / "deep" / "real").read_bytes() == b"new"
    assert names(tmp_path / "deep") == ["real"]


async def test_a_link_to_a_file_that_does_not_exist_yet_makes_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    receipt = await LocalFiles().write(str(tmp_path / "link"), b"new")
    assert receipt.created
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


async def test_a_link_into_a_missing_directory_is_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone/target")
    assert await refusal(LocalFiles(), tmp_path / "link") == "not_found"
    async with local_environment(tmp_path) as env, Toolbox(env, [write_tool()]) as toolbox:
        result = await toolbox.call("write", {"path": "link", "content": "new"})
    assert result.error_code == "missing_file"
    assert names(tmp_path) == ["link"]


async def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert await refusal(LocalFiles(), tmp_path / "a") == "symlink_loop"


async def test_a_hard_linked_file_is_written_in_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a longer old content")
    os.link(tmp_path / "a", tmp_path / "b")
    inode = (tmp_path / "a").stat().st_ino
    await LocalFiles().write(str(tmp_path / "a"), b"new")
    assert (tmp_path / "b").read_bytes() == b"new"
    assert (tmp_path / "b").stat().st_ino == inode
    assert names(tmp_path) == ["a", "b"]


# ------------------------------------------------------------------ refusals


async def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "pipe")
    files = LocalFiles()
    assert await refusal(files, tmp_path / "dir") == "is_a_directory"
    assert await refusal(files, tmp_path / "pipe") == "not_a_regular_file"
    assert await refusal(files, tmp_path / "missing" / "f") == "not_found"
    (tmp_path / "f").write_bytes(b"")
    assert await refusal(files, tmp_path / "f" / "g") == "not_a_directory"


async def test_names_may_be_as_long_as_the_system_takes(tmp_path: Path) -> None:
    files = LocalFiles()
    longest = tmp_path / ("n" * 255)
    await files.write(str(longest), b"one")
    await files.write(str(longest), b"two")
    assert longest.read_bytes() == b"two"
    assert await refusal(files, tmp_path / ("n" * 256)) == "name_too_long"
    assert await refusal(files, tmp_path / ("d/" * 3000) / "f") == "name_too_long"
    assert names(tmp_path) == [longest.name]


async def test_only_the_expected_version_is_replaced(tmp_path: Path) -> None:
    files, path = LocalFiles(), tmp_path / "f"
    path.write_bytes(b"one")
    version = (await files.read(str(path))).stat.version
    path.write_bytes(b"two")  # as long, and perhaps within the same tick of the clock
    for expect in (version, ABSENT):
        with pytest.raises(PortError) as caught:
            await files.write(str(path), b"new", expect=expect)
        assert caught.value.code == "conflict"
    with pytest.raises(PortError) as caught:
        await files.write(str(tmp_path / "gone"), b"new", expect=version)
    assert caught.value.code == "conflict"
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("lacking", ["a file without a name", "a name for it", "hard links too"])
async def test_new_files_are_whole_also_where_the_file_system_is_poorer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    real_open, real_link = os.open, os.link

    def open_(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real_open(path, flags, mode)

    def link(source: str, target: str, *, src_dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        if lacking == "hard links too" or source.startswith("/proc/"):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        real_link(source, target, src_dir_fd=src_dir_fd, follow_symlinks=follow_symlinks)

    if lacking == "a file without a name":
        monkeypatch.setattr(os, "open", open_)
    else:
        monkeypatch.setattr(os, "link", link)
    receipt = await LocalFiles().write(str(tmp_path / "f"), b"new", mode=0o640)
    assert receipt.created
    assert ((tmp_path / "f").read_bytes(), names(tmp_path)) == (b"new", ["f"])
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    with pytest.raises(PortError) as caught:
        await LocalFiles().write(str(tmp_path / "f"), b"other", expect=ABSENT)
    assert caught.value.code == "conflict"


async def test_a_file_system_without_locks_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / "f").write_bytes(b"old")
    await LocalFiles().write(str(tmp_path / "f"), b"new")
    assert (tmp_path / "f").read_bytes() == b"new"


async def test_a_file_that_another_program_keeps_locked_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from handrail.adapters.local import _locking

    monkeypatch.setattr(_locking, "_PATIENCE_SECONDS", 0.05)
    (tmp_path / "f").write_bytes(b"old")
    with (tmp_path / "f").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert await refusal(LocalFiles(), tmp_path / "f") == "conflict"
    await LocalFiles().write(str(tmp_path / "f"), b"new")


@pytest.mark.parametrize("fsync", [True, False])
async def test_flushing_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool) -> None:
    flushed: list[str] = []
    real = os.fsync

    def watched(handle: int) -> None:
        flushed.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real(handle)

    monkeypatch.setattr(os, "fsync", watched)
    files = LocalFiles(fsync=fsync)
    for content in (b"created", b"replaced"):
        await files.write(str(tmp_path / "f"), content)
    assert flushed == (["file", "directory"] * 2 if fsync else [])


async def test_a_cancelled_write_has_happened_whole_or_not_at_all(tmp_path: Path) -> None:
    files = LocalFiles()
    old, new = b"o" * 3_000_000, b"n" * 3_000_001
    for checkpoints in range(24):
        for exists in (True, False):
            path = tmp_path / "f"
            path.unlink(missing_ok=True)
            if exists:
                path.write_bytes(old)
            async with anyio.create_task_group() as group:
                group.start_soon(files.write, str(path), new)
                for _ in range(checkpoints):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            assert not path.exists() if not exists and not names(tmp_path) else path.read_bytes() in (old, new)
            assert set(names(tmp_path)) <= {"f"}


# ------------------------------------------------------------------ other users, other file systems


PRELUDE = """\
import errno, os, resource, sys
from pathlib import Path
import anyio
from handrail.adapters.local.files import LocalFiles
from handrail.ports.errors import PortError

directory = Path(sys.argv[1])

def write(path, data):
    async def attempt():
        try:
            await LocalFiles().write(str(path), data)
        except PortError as error:
            return error.code
    return anyio.run(attempt)

def drop_rights():
    write(directory / "warm-up", b"")  # everything is imported while files of root can be read
    (directory / "warm-up").unlink()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)

def names(directory=directory):
    return sorted(os.listdir(directory))
"""


@pytest.fixture
def shared_directory() -> Iterator[Path]:
    """A directory that every user may write in."""
    directory = Path(tempfile.mkdtemp(prefix="handrail-test-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


def run(script: str, directory: Path, *, own_mounts: bool = False) -> None:
    """Run a script in a process of its own, with mounts that end with it if asked; it asserts by itself."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(directory)]
    if own_mounts:
        command = ["unshare", "--mount", *command]
        probe = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
        if probe.returncode:
            pytest.skip("no right to mount")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_read_only_file_is_refused_though_a_rename_would_succeed(shared_directory: Path) -> None:
    run(
        """
        path = directory / "f"
        drop_rights()
        path.write_bytes(b"old")
        path.chmod(0o444)
        assert write(path, b"new") == "permission_denied"
        assert (path.read_bytes(), names()) == (b"old", ["f"])
        """,
        shared_directory,
    )


@as_root
def test_a_file_of_somebody_else_is_refused_or_keeps_its_owner_in_place(shared_directory: Path) -> None:
    run(
        """
        closed, opened = directory / "closed", directory / "opened"
        closed.write_bytes(b"old"); closed.chmod(0o644)
        opened.write_bytes(b"old"); opened.chmod(0o666)
        directory.chmod(0o1777)  # sticky: only the owner may rename over it
        drop_rights()
        assert write(closed, b"new") == "permission_denied"
        assert write(opened, b"new") is None
        assert (opened.read_bytes(), opened.stat().st_uid) == (b"new", 0)
        assert names() == ["closed", "opened"]
        """,
        shared_directory,
    )


def test_a_closed_directory_takes_no_new_file_but_its_files_can_be_written(shared_directory: Path) -> None:
    run(
        """
        drop_rights()
        inner = directory / "inner"
        inner.mkdir()
        (inner / "f").write_bytes(b"a longer old content")
        inner.chmod(0o555)
        assert write(inner / "new", b"x") == "permission_denied"
        assert write(inner / "f", b"new") is None
        assert (inner / "f").read_bytes() == b"new"
        assert names(inner) == ["f"]
        inner.chmod(0o755)
        """,
        shared_directory,
    )


@as_root
def test_rights_for_another_owner_are_not_given_to_the_writer(shared_directory: Path) -> None:
    run(
        """
        path = directory / "f"
        path.write_bytes(b"old")
        os.chown(path, 12345, 12345)
        path.chmod(0o6777)
        drop_rights()
        assert write(path, b"new") is None
        found = path.stat()
        assert path.read_bytes() == b"new"
        assert found.st_uid == 12345 or not found.st_mode & 0o6000
        """,
        shared_directory,
    )


def test_a_limit_of_file_size_leaves_the_old_content_whole(shared_directory: Path) -> None:
    run(
        """
        single, linked = directory / "single", directory / "linked"
        single.write_bytes(b"old")
        linked.write_bytes(b"old")
        os.link(linked, directory / "other")
        write(directory / "warm-up", b""); (directory / "warm-up").unlink()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for path in (single, linked, directory / "new"):
            assert write(path, b"x" * 200_000) == "no_space"
        assert single.read_bytes() == linked.read_bytes() == b"old"
        assert names() == ["linked", "other", "single"]
        """,
        shared_directory,
    )


@as_root
def test_a_full_disk_leaves_the_old_content_whole(shared_directory: Path) -> None:
    run(
        """
        import subprocess
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", directory], check=True)
        path, linked = directory / "f", directory / "linked"
        path.write_bytes(b"o" * 100_000)
        linked.write_bytes(b"o" * 50_000)
        os.link(linked, directory / "other")
        assert write(path, b"n" * 150_000) == "no_space"
        assert write(directory / "new", b"n" * 300_000) == "no_space"
        assert write(linked, b"n" * 300_000) == "no_space"
        assert path.read_bytes() == b"o" * 100_000
        assert linked.read_bytes() == b"o" * 50_000
        assert names() == ["f", "linked", "other"]
        assert write(path, b"small") is None
        """,
        shared_directory,
        own_mounts=True,
    )


@as_root
def test_a_read_only_file_system_is_named_as_such(shared_directory: Path) -> None:
    run(
        """
        import subprocess
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", directory], check=True)
        (directory / "f").write_bytes(b"old")
        subprocess.run(["mount", "-o", "remount,ro", directory], check=True)
        assert write(directory / "f", b"new") == "read_only"
        assert write(directory / "new", b"new") == "read_only"
        """,
        shared_directory,
        own_mounts=True,
    )


@as_root
def test_a_file_that_is_a_mount_point_is_written_in_place(shared_directory: Path) -> None:
    run(
        """
        import subprocess
        source, mounted = directory / "source", directory / "mounted"
        source.write_bytes(b"a longer old content")
        mounted.write_bytes(b"")
        subprocess.run(["mount", "--bind", source, mounted], check=True)
        assert write(mounted, b"new") is None
        assert source.read_bytes() == b"new"
        assert names() == ["mounted", "source"]
        """,
        shared_directory,
        own_mounts=True,
    )


# ------------------------------------------------------------------ crashes


CRASHES = """
import random, select, signal, time
from handrail.adapters.local._writing import write_file

rounds, create = int(sys.argv[2]), sys.argv[3] == "create"
path = directory / "f"
contents = [bytes([97 + n]) * (300_000 + 7919 * n) for n in range(4)]
rng = random.Random(rounds)
counts = {"whole": 0, "absent": 0, "left": 0}
if not create:
    path.write_bytes(contents[0])
for number in range(rounds):
    ready, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(start, b"x")
        turn = number
        while True:
            if create:
                path.unlink(missing_ok=True)
            write_file(str(path), contents[turn % 4], None, None, 0, fsync=False)
            turn += 1
    os.read(ready, 1)
    os.close(ready); os.close(start)
    select.select([], [], [], rng.random() * 0.004)  # a random moment of its work
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if path.exists():
        assert path.read_bytes() in contents, f"a mixture after kill {number}"
        counts["whole"] += 1
    else:
        assert create, f"the file is gone after kill {number}"
        counts["absent"] += 1
    # The next writer finds nothing in its way, and one name for the file, so that it replaces it whole.
    write_file(str(path), contents[0], None, None, 0, fsync=False)
    assert path.read_bytes() == contents[0]
    assert path.stat().st_nlink == 1
    for name in names():
        if name != "f":
            counts["left"] += 1
            (directory / name).unlink()
print(f"{rounds} kills: {counts}")
"""


@pytest.mark.parametrize("what", ["replace", "create"])
def test_a_killed_writer_leaves_the_old_or_the_new_content(tmp_path: Path, what: str) -> None:
    rounds = os.environ.get("HANDRAIL_CRASH_ROUNDS", "100")
    command = [sys.executable, "-c", PRELUDE + CRASHES, str(tmp_path), rounds, what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
