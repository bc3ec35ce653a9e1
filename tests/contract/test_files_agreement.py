"""The files in memory and the real disk get the same random operations and must give the same answers.

Both work below the same absolute path, so that answers compare as they are. What cannot be the same is left out:
time stamps and version tokens (a token is only handed back to the side that made it).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from attrs import frozen
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

from contract.hosts import unprivileged
from handrail.adapters.local.files import LocalFiles
from handrail.adapters.memory import Directory, Entry, MemoryFiles, Special, Symlink, VirtualClock
from handrail.ports.errors import PortError
from handrail.ports.files import ABSENT, FileContent, FilePort, FileStat, Version, WriteReceipt
from scenarios import plant

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rules in memory are those of Linux")

DEPTH = 12
"""How many directories lie above the one that is worked in, so that ``..`` leads to none but our own."""

NAMES = ("a", "b", "c", "link")
LONG_NAME = "n" * 256
USUAL = ["a", "b", "c", "link", "a/a", "a/b", "a/link", "a/b/c", "b/a", "c/a", "link/a", "link/b/c"]
ODD = ["a/", "b/", "link/", "missing", "missing/a", "b/missing", "a/../b", "a/./a", "link/../c", "..", "../a", "."]
ODDER = st.lists(st.sampled_from([*NAMES, ".", "..", "missing", LONG_NAME, ""]), min_size=1, max_size=4).map("/".join)
PATHS = st.one_of(st.sampled_from(USUAL * 3 + ODD), st.sampled_from(USUAL), ODDER)
START: Mapping[str, Entry] = {
    "a/a": "text\n",
    "a/b/c": "deep\n",
    "b": "top\n",
    "c": Directory(),
    "link": Symlink("a"),
    "a/link": Symlink("../b"),
}
LINK_TARGETS = st.one_of(
    st.sampled_from(["a", "b", "link", "a/b", "../a", "../link", "missing", "missing/a", "a/", ".", "a/../b"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda parts: "ROOT/" + "/".join(parts)),
)
DATA = st.sampled_from([b"", b"x", b"some text\n", b"y" * 30])
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o000, 0o200, 0o300, 0o500])
LIMITS = st.sampled_from([0, 1, 2, 5, 20, 4096])


@frozen
class Token:
    """A version of one file, as each side spells it, and the content it stands for."""

    path: str
    data: bytes
    local: Version
    memory: Version


class Machine(RuleBasedStateMachine):
    """Two file ports and one history."""

    portal: ClassVar[BlockingPortal]
    directory: ClassVar[Path]
    operations: ClassVar[int] = 0

    tokens = Bundle[Token]("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.root = "/".join([str(self.directory), *["r"] * DEPTH])
        self.written = 0
        self.local = LocalFiles()
        umask = os.umask(0o022)
        os.umask(umask)
        self.memory = MemoryFiles(VirtualClock(), {self.root: Directory()}, umask=umask, superuser=os.geteuid() == 0)

    @initialize()
    def make_start(self) -> None:
        os.makedirs(self.root)
        plant(START, Path(self.root))
        for name, entry in START.items():
            self.memory[self.path(name)] = entry

    def teardown(self) -> None:
        # A directory without rights hides its entries from the real walk, but not from the test's look.
        for path, names, _ in os.walk(self.directory):
            for name in names:
                below = os.path.join(path, name)
                if not os.path.islink(below):
                    os.chmod(below, 0o700)
        try:
            assert dict(pictures(str(self.directory))) == self.memory.tree(str(self.directory))
        finally:
            shutil.rmtree(os.path.join(self.directory, "r"), ignore_errors=True)

    # ---------------------------------------------------------------- both sides

    def both(self, call: Callable[[FilePort], Awaitable[object]]) -> tuple[Any, Any]:
        """Make a call on both sides and demand the same answer; returns what each side said."""
        type(self).operations += 1
        local = self.portal.call(answer, call, self.local)
        memory = self.portal.call(answer, call, self.memory)
        assert comparable(memory) == comparable(local)
        return local, memory

    def set_up(self, local: Callable[[], object], memory: Callable[[], object]) -> None:
        """Change both worlds from outside, where rights do not matter; both can, or both cannot."""
        outcomes: list[bool] = []
        for change in (local, memory):
            try:
                change()
                outcomes.append(True)
            except (OSError, PortError):
                outcomes.append(False)
        assert outcomes[0] == outcomes[1]

    def path(self, relative: str) -> str:
        return f"{self.root}/{relative}"

    def fresh(self, data: bytes) -> bytes:
        """Make content different from all before, so that a version never comes back."""
        self.written += 1
        return data and data + str(self.written).encode()

    # ---------------------------------------------------------------- looking

    @rule(path=PATHS, follow=st.booleans())
    def stat(self, path: str, follow: bool) -> None:
        self.both(lambda files: files.stat(self.path(path), follow_symlinks=follow))

    @rule(path=PATHS)
    def list_dir(self, path: str) -> None:
        self.both(lambda files: files.list_dir(self.path(path)))

    @rule(paths=st.lists(PATHS, max_size=3))
    def list_dirs(self, paths: list[str]) -> None:
        self.both(lambda files: files.list_dirs([self.path(path) for path in paths]))

    @rule(target=tokens, path=PATHS)
    def read(self, path: str) -> Any:
        local, memory = self.both(lambda files: files.read(self.path(path)))
        if isinstance(local, FileContent):
            return Token(self.path(path), local.data, local.stat.version, memory.stat.version)
        return cast(Any, multiple())

    @rule(path=PATHS, max_bytes=LIMITS)
    def read_start(self, path: str, max_bytes: int) -> None:
        self.both(lambda files: files.read(self.path(path), max_bytes=max_bytes))

    @rule(paths=st.lists(PATHS, max_size=3), max_bytes=LIMITS)
    def read_many(self, paths: list[str], max_bytes: int) -> None:
        self.both(lambda files: files.read_many([self.path(path) for path in paths], max_bytes=max_bytes))

    @rule(path=PATHS, start=LIMITS, end=st.none() | LIMITS)
    def read_chunks(self, path: str, start: int, end: int | None) -> None:
        async def join(files: FilePort) -> bytes:
            chunks: AsyncGenerator[bytes, None] = files.read_chunks(self.path(path), start=start, end=end)
            async with aclosing(chunks):
                return b"".join([chunk async for chunk in chunks])

        self.both(join)

    @rule(path=PATHS, start=LIMITS)
    def scan(self, path: str, start: int) -> None:
        async def collect(files: FilePort) -> tuple[bytes, FileStat]:
            seen = bytearray()

            def consume(piece: bytes | bytearray) -> bool:
                seen.extend(piece)
                return True

            found = await files.scan(self.path(path), consume, start=start)
            return bytes(seen), found

        self.both(collect)

    @rule(path=PATHS)
    def canonical_path(self, path: str) -> None:
        self.both(lambda files: files.canonical_path(self.path(path)))

    # ---------------------------------------------------------------- changing

    @rule(
        path=PATHS,
        data=DATA,
        expect=st.sampled_from([None, None, ABSENT, Version("unknown")]),
        mode=st.none() | MODES,
        previous_limit=LIMITS,
    )
    def write(self, path: str, data: bytes, expect: Version | None, mode: int | None, previous_limit: int) -> None:
        content = self.fresh(data)
        self.both(
            lambda files: files.write(self.path(path), content, expect=expect, mode=mode, previous_limit=previous_limit)
        )

    @rule(token=tokens, data=DATA)
    def write_expecting(self, token: Token, data: bytes) -> None:
        content = self.fresh(data)

        def call(files: FilePort) -> Awaitable[WriteReceipt]:
            version = token.local if files is self.local else token.memory
            return files.write(token.path, content, expect=version, previous_limit=4096)

        local, memory = (self.portal.call(answer, call, files) for files in (self.local, self.memory))
        if isinstance(local, WriteReceipt) and isinstance(memory, PortError):
            # Within one tick of its clock a disk may show an old version again, with its old content only.
            assert memory.code == "conflict"
            assert local.previous is not None
            assert local.previous.data == token.data
            memory = self.portal.call(lambda: self.memory.write(token.path, content, previous_limit=4096))
        assert comparable(memory) == comparable(local)

    @rule(path=PATHS, data=DATA)
    def append(self, path: str, data: bytes) -> None:
        content = self.fresh(data)
        self.both(lambda files: files.append(self.path(path), content))

    @rule(path=PATHS)
    def make_dirs(self, path: str) -> None:
        self.both(lambda files: files.make_dirs(self.path(path)))

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        self.both(lambda files: files.remove(self.path(path)))

    @rule(old=PATHS, new=PATHS)
    def rename(self, old: str, new: str) -> None:
        self.both(lambda files: files.rename(self.path(old), self.path(new)))

    # ---------------------------------------------------------------- from outside

    @rule(name=st.sampled_from(NAMES), directory=st.sampled_from(["", "a/", "b/"]), points_to=LINK_TARGETS)
    def make_symlink(self, name: str, directory: str, points_to: str) -> None:
        path, real = self.path(directory + name), points_to.replace("ROOT", self.root)
        if os.access(os.path.dirname(path), os.W_OK | os.X_OK, effective_ids=True):
            self.set_up(lambda: os.symlink(real, path), lambda: self.memory.__setitem__(path, Symlink(real)))

    @rule(source=st.sampled_from(NAMES), name=st.sampled_from(NAMES))
    def make_hard_link(self, source: str, name: str) -> None:
        old, new = self.path(source), self.path(name)
        if os.path.isfile(old) and not os.path.islink(old):
            self.set_up(lambda: os.link(old, new), lambda: self.memory.make_hard_link(old, new))

    @rule(name=st.sampled_from(NAMES))
    def make_fifo(self, name: str) -> None:
        path = self.path(name)
        if not os.path.isdir(self.root):
            return  # the memory's bench makes missing parents
        self.set_up(lambda: os.mkfifo(path), lambda: self.memory.__setitem__(path, Special("fifo")))

    @rule(name=st.sampled_from(NAMES), mode=MODES)
    def set_mode(self, name: str, mode: int) -> None:
        path = self.path(name)
        self.set_up(lambda: os.chmod(path, mode), lambda: self.memory.set_mode(path, mode))


async def answer(call: Callable[[FilePort], Awaitable[object]], files: FilePort) -> object:
    """Return what a port says, errors too."""
    try:
        return await call(files)
    except PortError as error:
        return error


def comparable(value: Any) -> object:
    """Return the part of an answer that both sides must share."""
    match value:
        case PortError():
            return value.code
        case FileStat():
            return value.kind, value.size, value.mode
        case FileContent():
            return value.data, comparable(value.stat), value.canonical_path
        case bytes() | None:
            return value
        case str():
            return re.sub("/+", "/", value)
        case list() | tuple():
            parts = cast(Sequence[Any], value)
            shown = [comparable(part) for part in parts]
            return sorted(shown, key=repr) if parts and hasattr(parts[0], "kind") else shown
        case _ if hasattr(value, "entries"):
            return value.path, comparable(list(value.entries)), comparable(value.error)
        case _ if hasattr(value, "created"):
            return comparable(value.stat), value.created, value.canonical_path, comparable(value.previous)
        case _:
            return value.name, value.kind


def pictures(directory: str) -> Iterator[tuple[str, object]]:
    """Show the real disk as ``MemoryFiles.tree`` shows the one in memory."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if os.path.islink(path):
            yield path, Symlink(os.readlink(path))
        elif os.path.isdir(path):
            below = dict(pictures(path))
            yield from below.items() if below else [(path, Directory())]
        elif os.path.isfile(path):
            os.chmod(path, 0o600)
            yield path, Path(path).read_text()
        else:
            yield path, Special("fifo")


@contextmanager
def ordinary_user(directory: Path) -> Generator[None, None, None]:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with unprivileged(directory):
        yield


@pytest.mark.parametrize(
    ("user", "share"), [(nullcontext, 1.0), (ordinary_user, 0.3)], ids=["this_user", "ordinary_user"]
)
def test_memory_agrees_with_the_real_disk(user: Callable[[Path], Any], share: float) -> None:
    profile = settings.default
    assert profile is not None
    examples = int(profile.max_examples * share)
    with ExitStack() as stack:
        Machine.portal = stack.enter_context(start_blocking_portal())
        Machine.directory = Path(os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory())))
        Machine.operations = 0
        stack.enter_context(user(Machine.directory))
        run_state_machine_as_test(Machine, settings=settings(profile, max_examples=examples, stateful_step_count=75))
    assert Machine.operations >= examples * 25  # 10 000 in the thorough profile
