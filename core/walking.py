"""A tree walk over the FilePort: what a search may look at, in order, with as few port calls as needed.

The order is that of paths compared name by name (by code point); a directory comes before what is in it. The walk
lists directories in batches, ahead of where it is, and starts small: a search that soon has enough lists little.

Ignore rules are git's (``core.ignores``); symbolic links are reported and never followed, so there are no loops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final

from attrs import define, field, frozen

from handrail.core.globs import Glob, State
from handrail.core.ignores import IGNORE_FILES, IgnoreRules, RuleFile, parse_rules
from handrail.core.paths import join, parent, relative_to
from handrail.ports.errors import PortError
from handrail.ports.files import DirListing, FilePort, FileStart

__all__ = ["Listed", "Round", "TreeWalk"]

_MAX_RULE_FILE_BYTES: Final = 1024 * 1024
"""How much of an ignore file is read."""

_MIN_BATCH: Final = 16
_MAX_BATCH: Final = 256
"""How many directories are listed in one call."""


@frozen
class Listed:
    """A directory whose entries are known now."""

    path: str
    files: Sequence[str]
    """Paths of what is wanted in it, directories apart, in order."""
    has_others: bool
    """Whether it has files that are not wanted."""


@frozen
class Round:
    """What one batch of listings brought."""

    listed: Sequence[Listed]
    """Directories that were listed in this batch; their files may be reached only later."""
    paths: Sequence[str]
    """What the walk has come to, in order; directories end in ``/``."""


@define(eq=False)
class _Node:
    """A directory of the walk."""

    path: str
    depth: int
    rules: IgnoreRules
    state: State
    items: list[list[str] | _Node] | None = None
    """Runs of wanted paths, and between them the directories to go into, in order; ``None`` until it is listed."""


@define(eq=False)
class _Place:
    """How far the walk has come in the items of one directory."""

    items: Sequence[list[str] | _Node]
    next: int = 0


_DONE: Final[list[list[str] | _Node]] = []


@define(eq=False)
class TreeWalk:
    """One walk; create it, iterate ``rounds`` once, then look at the counts.

    Attributes:
        files: The port.
        root: Absolute path of the directory to start in.
        glob: What is wanted; ``None`` wants everything. A negated one says what is not wanted, with all below it.
        files_only: Whether only regular files are wanted; directories, links and all else are then passed over.
        ignored_files: Wanted files that ignore rules left out, as far as they were seen.
        ignored_directories: Directories that ignore rules left out.
        unreadable: Paths of directories that could not be listed, with the reason.
    """

    files: FilePort
    root: str
    glob: Glob | None = None
    files_only: bool = False
    ignored_files: int = 0
    ignored_directories: int = 0
    unreadable: list[tuple[str, PortError]] = field(factory=list[tuple[str, PortError]])
    _git_is_wanted: bool = False
    _prefix: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._prefix = join(self.root, "")

    def relative(self, paths: Iterable[str]) -> list[str]:
        """Paths that the walk gave, relative to its start, with ``/``."""
        if self._prefix[-1] != "/":
            return [relative_to(path, self.root) for path in paths]
        length = len(self._prefix)
        return [path[length:] for path in paths]

    async def rounds(self) -> AsyncGenerator[Round, None]:
        """Yield what is found, batch by batch.

        Raises:
            PortError: The start cannot be listed.
        """
        self._git_is_wanted = ".git" in self.root.replace("\\", "/").split("/") or (
            self.glob is not None and not self.glob.negated and self.glob.names_git
        )
        state = self.glob.start() if self.glob is not None else ()
        root = _Node(self.root, 0, await self._rules_from_above(), state)
        pending = [root]  # directories that are not listed yet, in reverse order
        cursor = [_Place([root])]
        size, entered = 1, 0
        while pending:
            batch = pending[-size:]
            del pending[-size:]
            batch.reverse()
            listed = await self._list(batch)
            for node in reversed(batch):
                pending.extend(item for item in reversed(node.items or ()) if isinstance(item, _Node))
            passed, count = _advance(cursor)
            entered += count
            yield Round(listed, passed)
            # As much again as was of use: a search that soon has enough has not listed much for nothing.
            size = min(max(entered, _MIN_BATCH), _MAX_BATCH)

    # ---------------------------------------------------------------- one batch

    async def _list(self, nodes: Sequence[_Node]) -> list[Listed]:
        listings = await self.files.list_dirs([node.path for node in nodes])
        rules = await self._own_rules(nodes, listings)
        listed: list[Listed] = []
        for node, listing, own in zip(nodes, listings, rules, strict=True):
            if listing.error is not None:
                if node.depth == 0:
                    raise listing.error
                self.unreadable.append((node.path, listing.error))
                node.items = []
                continue
            node.rules = own
            listed.append(self._take(node, listing))
        return listed

    def _take(self, node: _Node, listing: DirListing) -> Listed:
        """Sort the entries of a directory into wanted, to go into, and left out."""
        names = list(listing.files)
        if not self.files_only:
            names += [entry.name for entry in listing.others if entry.kind != "directory"]
        names.sort()
        directories = sorted(entry.name for entry in listing.others if entry.kind == "directory")
        suspects = node.rules.suspects([*names, *directories])
        kept = self._kept(node, names, suspects)
        prefix = join(node.path, "")
        paths = [prefix + name for name in kept]
        run: list[str] = []
        items: list[list[str] | _Node] = [run]
        done = 0
        for name in directories:
            end = bisect_left(kept, name, done)
            run += paths[done:end]
            done = end
            child = self._take_directory(node, prefix, name, run, name in suspects)
            if child is not None:
                run = []
                items += (child, run)
        run += paths[done:]
        node.items = items
        return Listed(node.path, paths, len(kept) < len(names))

    def _kept(self, node: _Node, names: Sequence[str], suspects: set[str]) -> Sequence[str]:
        """Which names in a directory are wanted, of those that are no directories."""
        kept = self._matching(node.state, names)
        left_out = set[str]() if self._git_is_wanted else {".git"}.intersection(kept)
        ignored = {name for name in suspects.intersection(kept) - left_out if node.rules.ignores(name, False)}
        self.ignored_files += len(ignored)
        left_out |= ignored
        return [name for name in kept if name not in left_out] if left_out else kept

    def _matching(self, state: State, names: Sequence[str]) -> Sequence[str]:
        """Which of some names of files the glob wants."""
        glob = self.glob
        if glob is None:
            return names
        if glob.directory_only:
            return names if glob.negated else []
        test = glob.test(state)
        return [name for name in names if not test(name)] if glob.negated else [name for name in names if test(name)]

    def _take_directory(self, node: _Node, prefix: str, name: str, run: list[str], is_suspect: bool) -> _Node | None:
        """Report a directory, where it is wanted; return it, where something below it can be."""
        if name == ".git" and not self._git_is_wanted:
            return None
        wanted = not self.files_only and (self.glob is None or self.glob.matches(node.state, name))
        if is_suspect and node.rules.ignores(name, True):
            self.ignored_directories += wanted or self.files_only
            return None
        if wanted:
            run.append(f"{prefix}{name}/")
        return self._child(node, prefix, name)

    def _child(self, node: _Node, prefix: str, name: str) -> _Node | None:
        """The node of a sub-directory; ``None`` where nothing below it can be wanted."""
        state: State = ()
        if self.glob is not None:
            if self.glob.negated and self.glob.matches(node.state, name):
                return None
            state = self.glob.enter(node.state, name)
            if not state and not self.glob.negated:
                return None
        return _Node(prefix + name, node.depth + 1, node.rules.enter(name), state)

    # ---------------------------------------------------------------- ignore files

    async def _own_rules(self, nodes: Sequence[_Node], listings: Sequence[DirListing]) -> list[IgnoreRules]:
        """The rules in each of some directories: those from above and those of its own ignore files."""
        present = [_special_names(listing) for listing in listings]
        wanted = [join(node.path, name) for node, names in zip(nodes, present, strict=True) for name in names]
        contents = await self._read(wanted)
        rules: list[IgnoreRules] = []
        for node, names in zip(nodes, present, strict=True):
            own = node.rules
            if ".git" in names and node.depth > 0:
                own = own.at_border(await self._exclude(node.path, contents))
            rules.append(_with_files(own, node.path, contents) if names else own)
        return rules

    async def _rules_from_above(self) -> IgnoreRules:
        """The rules that hold in the start because of the directories above it, and of the repository it is in.

        Git's rules begin at the top of the innermost repository; outside of one, at the top of the file system.
        """
        chain = [self.root]
        while (above := parent(chain[-1])) != chain[-1]:
            chain.append(above)
        names = (".git", *IGNORE_FILES)
        contents = await self._read([join(directory, name) for directory in chain for name in names])
        rules = IgnoreRules()
        for directory in reversed(chain):
            if join(directory, ".git") in contents:
                rules = rules.at_border(await self._exclude(directory, contents))
            if directory != self.root:
                rules = _with_files(rules, directory, contents)
            child = chain[chain.index(directory) - 1] if directory != self.root else None
            if child is not None:
                rules = rules.enter(child[len(join(directory, "")) :])
        return rules

    async def _exclude(self, directory: str, contents: dict[str, bytes]) -> RuleFile | None:
        """The ``info/exclude`` of the repository whose work tree starts in a directory."""
        git = join(directory, ".git")
        link = contents.get(git, b"")
        if link.startswith(b"gitdir:"):  # a work tree or submodule; its git directory is elsewhere
            git = join(directory, _path_in(link[7:]))
            common = (await self._read([join(git, "commondir")])).get(join(git, "commondir"))
            git = join(git, _path_in(common)) if common is not None else git
        path = join(join(git, "info"), "exclude")
        found = (await self._read([path])).get(path)
        return parse_rules(found) if found is not None else None

    async def _read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The content of those of some files that there are; a directory stands as empty."""
        if not paths:
            return {}
        found: dict[str, bytes] = {}
        for path, content in zip(
            paths, await self.files.read_starts(paths, max_bytes=_MAX_RULE_FILE_BYTES), strict=True
        ):
            if isinstance(content, FileStart):
                found[path] = content.data
            elif content.code == "is_a_directory":
                found[path] = b""
        return found


def _advance(cursor: list[_Place]) -> tuple[list[str], int]:
    """Go on in order up to the first directory that is not listed yet; return what was passed, in how many of them."""
    passed: list[str] = []
    entered = 0
    while cursor:
        place = cursor[-1]
        if place.next == len(place.items):
            cursor.pop()
            continue
        item = place.items[place.next]
        if isinstance(item, list):
            passed += item
        elif item.items is None:
            break
        else:
            cursor.append(_Place(item.items))
            item.items = _DONE
            entered += 1
        place.next += 1
    return passed, entered


def _special_names(listing: DirListing) -> list[str]:
    """Which of the names that matter for rules a directory has. Git does not follow a link that is an ignore file."""
    found = set(_SPECIAL_NAMES.intersection(listing.files))
    found.update(entry.name for entry in listing.others if entry.name == ".git")
    return sorted(found)


_SPECIAL_NAMES: Final = frozenset((".git", *IGNORE_FILES))


def _with_files(rules: IgnoreRules, directory: str, contents: dict[str, bytes]) -> IgnoreRules:
    git, *tools = (contents.get(join(directory, name)) for name in IGNORE_FILES)
    if git is None and not any(tools):
        return rules
    return rules.with_files(
        git=None if git is None else parse_rules(git),
        tools=[parse_rules(data) for data in tools if data is not None],
    )


def _path_in(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").strip()
