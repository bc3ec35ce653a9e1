"""A tree walk over the FilePort: what a search may look at, in order, with as few port calls as needed.

The order is that of paths compared name by name (by code point); a directory comes before what is in it. The walk
lists directories in batches, ahead of where it is, and starts small: a search that soon has enough lists little.

Ignore rules are git's (``core.ignores``); symbolic links are reported and never followed, so there are no loops.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from attrs import define, field, frozen

from handrail.core.globs import Glob, State
from handrail.core.ignores import IGNORE_FILES, IgnoreRules, RuleFile, parse_rules
from handrail.core.paths import join, parent, relative_to
from handrail.ports.errors import PortError
from handrail.ports.files import DirEntry, DirListing, FileContent, FileKind, FilePort

__all__ = ["Entry", "Listed", "Round", "TreeWalk"]

_MAX_RULE_FILE_BYTES: Final = 1024 * 1024
"""How much of an ignore file is read."""

_MAX_BATCH: Final = 256
"""How many directories are listed in one call at most."""


@frozen
class Entry:
    """Something that the walk has come to."""

    path: str
    kind: FileKind


@frozen
class Listed:
    """A directory whose entries are known now."""

    path: str
    files: Sequence[str]
    """Paths of its regular files that are wanted, in order."""
    has_others: bool
    """Whether it has regular files that are not wanted."""


@frozen
class Round:
    """What one batch of listings brought."""

    listed: Sequence[Listed]
    """Directories that were listed in this batch; their files may be reached only later."""
    entries: Sequence[Entry]
    """What the walk has come to, in order."""


@define(eq=False)
class _Node:
    """A directory of the walk."""

    path: str
    depth: int
    rules: IgnoreRules
    state: State
    items: list[Entry | _Node] | None = None
    """Wanted entries and directories to go into, in order; ``None`` until it is listed."""


@define(eq=False)
class _Place:
    """How far the walk has come in the items of one directory."""

    items: Sequence[Entry | _Node]
    next: int = 0


_DONE: Final[list[Entry | _Node]] = []


@define(eq=False)
class TreeWalk:
    """One walk; create it, iterate ``rounds`` once, then look at the counts.

    Attributes:
        files: The port.
        root: Absolute path of the directory to start in.
        glob: What is wanted; ``None`` wants everything. A negated one says what is not wanted, with all below it.
        want_directories: Whether directories are reported too.
        ignored_files: Wanted files that ignore rules left out, as far as they were seen.
        ignored_directories: Directories that ignore rules left out.
        unreadable: Paths of directories that could not be listed, with the reason.
    """

    files: FilePort
    root: str
    glob: Glob | None = None
    want_directories: bool = False
    ignored_files: int = 0
    ignored_directories: int = 0
    unreadable: list[tuple[str, PortError]] = field(factory=list[tuple[str, PortError]])
    _git_is_wanted: bool = False
    _prefix: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._prefix = join(self.root, "")

    def relative(self, path: str) -> str:
        """A path that the walk gave, relative to its start, with ``/``."""
        return path[len(self._prefix) :] if self._prefix[-1] == "/" else relative_to(path, self.root)

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
        size = 1
        while pending:
            batch = pending[-size:]
            del pending[-size:]
            batch.reverse()
            listed = await self._list(batch)
            for node in reversed(batch):
                pending.extend(item for item in reversed(node.items or ()) if isinstance(item, _Node))
            yield Round(listed, list(self._advance(cursor)))
            size = min(size * 4, _MAX_BATCH)

    def _advance(self, cursor: list[_Place]) -> Iterator[Entry]:
        """Go on in order up to the first directory that is not listed yet."""
        while cursor:
            place = cursor[-1]
            if place.next == len(place.items):
                cursor.pop()
                continue
            item = place.items[place.next]
            if isinstance(item, Entry):
                yield item
            elif item.items is None:
                return
            else:
                cursor.append(_Place(item.items))
                item.items = _DONE
            place.next += 1

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
            listed.append(self._take(node, sorted(listing.entries, key=attrgetter("name"))))
        return listed

    def _take(self, node: _Node, entries: Sequence[DirEntry]) -> Listed:
        """Sort the entries of a directory into wanted, to go into, and left out."""
        prefix = join(node.path, "")
        suspects = set[str]() if node.rules.are_empty else node.rules.suspects([entry.name for entry in entries])
        wants = self._test(node.state)
        files: list[str] = []
        others = False
        items: list[Entry | _Node] = []
        for entry in entries:
            name, kind = entry.name, entry.kind
            if name == ".git" and not self._git_is_wanted:
                others = others or kind == "file"
            elif kind == "directory":
                self._take_directory(node, prefix, name, items)
            elif not wants(name) or (name in suspects and self._is_ignored(node, name)):
                others = others or kind == "file"
            else:
                items.append(Entry(prefix + name, kind))
                if kind == "file":
                    files.append(prefix + name)
        node.items = items
        return Listed(node.path, files, others)

    def _take_directory(self, node: _Node, prefix: str, name: str, items: list[Entry | _Node]) -> None:
        wanted = self.want_directories and (self.glob is None or self.glob.matches(node.state, name))
        if node.rules.ignores(name, True):
            self.ignored_directories += wanted or not self.want_directories
            return
        if wanted:
            items.append(Entry(prefix + name, "directory"))
        child = self._child(node, prefix, name)
        if child is not None:
            items.append(child)

    def _is_ignored(self, node: _Node, name: str) -> bool:
        is_ignored = node.rules.ignores(name, False)
        self.ignored_files += is_ignored
        return is_ignored

    def _test(self, state: State) -> Callable[[str], object]:
        """The test of files in a directory with a state."""
        glob = self.glob
        if glob is None:
            return _always
        if glob.directory_only:
            return _always if glob.negated else _never
        test = glob.test(state)
        return (lambda name: not test(name)) if glob.negated else test

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
        for path, content in zip(paths, await self.files.read_many(paths, max_bytes=_MAX_RULE_FILE_BYTES), strict=True):
            if isinstance(content, FileContent):
                found[path] = content.data
            elif content.code == "is_a_directory":
                found[path] = b""
        return found


def _always(name: str) -> object:
    return True


def _never(name: str) -> object:
    return False


def _special_names(listing: DirListing) -> list[str]:
    """Which of the names that matter for rules a directory has. Git does not follow a link that is an ignore file."""
    return [
        entry.name
        for entry in listing.entries
        if entry.name == ".git" or (entry.name in IGNORE_FILES and entry.kind == "file")
    ]


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
