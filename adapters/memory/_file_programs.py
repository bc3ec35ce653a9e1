"""The small programs that look at and change files: ls mkdir rm cp mv ln chmod touch."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from handrail.adapters.memory._manners import options, polite
from handrail.adapters.memory.process import Handler, Process, describe
from handrail.ports.errors import PortError
from handrail.ports.files import FileKind

__all__ = ["FILE_PROGRAMS"]


async def _ls(process: Process) -> int:
    letters, names = options(process, "1aAl")
    status = 0
    files: list[tuple[str, str]] = []
    directories: list[str] = []
    for name in names or ["."]:
        try:
            kind = (await process.files.stat(process.path(name))).kind
        except PortError as error:
            status = await process.fail(f"cannot access '{name}': {describe(error)}", 2)
            continue
        if kind == "directory":
            directories.append(name)
        else:
            files.append((name, process.path(name)))
    blocks = [await _lines(process, files, letters)] if files else []
    for name in directories:
        heading = f"{name}:\n" if len(names) > 1 else ""
        blocks.append(heading + await _lines(process, await _entries(process, name, letters), letters))
    await process.write("\n".join(blocks))
    return status


async def _entries(process: Process, name: str, letters: str) -> list[tuple[str, str]]:
    """Return the names in a directory, each with its path."""
    path = process.path(name)
    names = [entry.name for entry in await process.files.list_dir(path)]
    shown = [each for each in names if not each.startswith(".") or "a" in letters.lower()]
    dots = [".", ".."] if "a" in letters else []
    return [(each, posixpath.join(path, each)) for each in sorted(dots + shown)]


async def _lines(process: Process, entries: Sequence[tuple[str, str]], letters: str) -> str:
    lines = [await _long(process, path, shown) if "l" in letters else shown for shown, path in entries]
    return "".join(f"{line}\n" for line in lines)


async def _long(process: Process, path: str, shown: str) -> str:
    stat = await process.files.stat(path, follow_symlinks=False)
    kind = {"directory": "d", "symlink": "l", "fifo": "p", "socket": "s", "device": "c"}.get(stat.kind, "-")
    bits = "".join(letter if stat.mode >> (8 - place) & 1 else "-" for place, letter in enumerate("rwxrwxrwx"))
    return f"{kind}{bits} {stat.size:>8} {shown}"


async def _mkdir(process: Process) -> int:
    letters, names = options(process, "p")
    if not names:
        return await process.fail("missing operand")
    status = 0
    for name in names:
        path = process.path(name.rstrip("/") or name)
        try:
            if "p" not in letters:
                await _require_vacant(process, path)
            await process.files.make_dirs(path)
        except PortError as error:
            status = await process.fail(f"cannot create directory '{name}': {describe(error)}")
    return status


async def _require_vacant(process: Process, path: str) -> None:
    await process.files.stat(posixpath.dirname(path))
    problem = await _missing(process, path)
    if problem is None or problem.code != "not_found":
        raise problem or PortError("already_exists", path)


async def _rm(process: Process) -> int:
    letters, names = options(process, "rRf")
    if not names and "f" not in letters:
        return await process.fail("missing operand")
    status = 0
    for name in names:
        path = process.path(name)
        try:
            if (await process.files.stat(path, follow_symlinks=False)).kind != "directory":
                await process.files.remove(path)
            elif "r" in letters.lower():
                await _remove_all(process, path)
            else:
                raise PortError("is_a_directory", path)
        except PortError as error:
            if error.code != "not_found" or "f" not in letters:
                status = await process.fail(f"cannot remove '{name}': {describe(error)}")
    return status


async def _remove_all(process: Process, path: str) -> None:
    for entry in await process.files.list_dir(path):
        below = posixpath.join(path, entry.name)
        if entry.kind == "directory":
            await _remove_all(process, below)
        else:
            await process.files.remove(below)
    await process.files.remove(path)


async def _cp(process: Process) -> int:
    letters, names = options(process, "rRafp")
    recursive = bool(set(letters) & set("rRa"))

    async def copy(name: str, source: str, target: str) -> int:
        stat = await process.files.stat(source, follow_symlinks=not recursive)
        if stat.kind == "directory" and not recursive:
            return await process.fail(f"-r not specified; omitting directory '{name}'")
        if stat.kind != "directory":
            await _copy(process, source, target, stat.kind, avoid=target)
            return 0
        # By their real paths: the target may lie inside, also behind a link.
        real, goal = await process.files.canonical_path(source), await process.files.canonical_path(target)
        await _copy(process, real, goal, "directory", avoid=goal)
        if goal.startswith(f"{real}/"):
            shown = posixpath.relpath(target, process.cwd)
            return await process.fail(f"cannot copy a directory, '{name}', into itself, '{shown}'")
        return 0

    return await _each_into(process, names, "cannot copy '{0}'", copy)


async def _copy(process: Process, source: str, target: str, kind: FileKind, *, avoid: str) -> None:
    """Copy one thing and all below it, but not the copy itself, which may lie inside."""
    if kind == "directory":
        await process.files.make_dirs(target)
        for entry in await process.files.list_dir(source):
            below = posixpath.join(source, entry.name)
            if below != avoid:
                await _copy(process, below, posixpath.join(target, entry.name), entry.kind, avoid=avoid)
    elif kind == "symlink":
        await process.files.make_link(target, await process.files.read_link(source))
    else:
        content = await process.files.read(source)
        await process.files.write(target, content.data, mode=content.stat.mode)


async def _mv(process: Process) -> int:
    _, names = options(process, "f")

    async def move(name: str, source: str, target: str) -> int:
        await process.files.rename(source, target)
        return 0

    return await _each_into(process, names, "cannot move '{0}' to '{1}'", move)


async def _each_into(
    process: Process, names: Sequence[str], complaint: str, work: Callable[[str, str, str], Awaitable[int]]
) -> int:
    """Do something with each but the last name, the last being the target or the directory it goes to.

    Args:
        process: The program.
        names: Its operands.
        complaint: What it says when the files refuse; ``{0}`` is the name, ``{1}`` the target.
        work: Gets the name, its path, and the target's path; returns a status.
    """
    if len(names) < 2:
        return await process.fail(_too_few(names))
    status = 0
    for name in names[:-1]:
        source = process.path(name)
        if problem := await _missing(process, source):
            status = await process.fail(f"cannot stat '{name}': {describe(problem)}")
            continue
        try:
            target = await _inside(process, process.path(names[-1]), source)
            status = await work(name, source, target) or status
        except PortError as error:
            status = await process.fail(f"{complaint.format(name, names[-1])}: {describe(error)}")
    return status


async def _ln(process: Process) -> int:
    letters, names = options(process, "sfn")
    if not names:
        return await process.fail("missing file operand")
    if "s" not in letters:
        return await process.fail("only symbolic links can be made here; use -s")
    targets, into = (names, ".") if len(names) == 1 else (names[:-1], names[-1])
    status = 0
    for target in targets:
        path = await _link_path(process, into, target, follow="n" not in letters)
        try:
            if "f" in letters and await _missing(process, path) is None:
                await process.files.remove(path)
            await process.files.make_link(path, target)
        except PortError as error:
            shown = posixpath.relpath(path, process.cwd) if not posixpath.isabs(into) else path
            status = await process.fail(f"failed to create symbolic link '{shown}': {describe(error)}")
    return status


async def _link_path(process: Process, into: str, target: str, *, follow: bool) -> str:
    path = process.path(into)
    if not follow and await _is_link(process, path):
        return path
    return await _inside(process, path, target)


async def _is_link(process: Process, path: str) -> bool:
    try:
        return (await process.files.stat(path, follow_symlinks=False)).kind == "symlink"
    except PortError:
        return False


async def _chmod(process: Process) -> int:
    names = list(process.arguments)
    recursive = names[:1] == ["-R"]
    names = names[1:] if recursive else names
    if len(names) < 2:
        return await process.fail(f"missing operand after '{names[0]}'" if names else "missing operand")
    change = _mode_change(names[0])
    status = 0
    for name in names[1:]:
        try:
            await _change_modes(process, process.path(name), change, recursive=recursive)
        except PortError as error:
            what = "cannot access" if error.code == "not_found" else "changing permissions of"
            status = await process.fail(f"{what} '{name}': {describe(error)}")
    return status


async def _change_modes(process: Process, path: str, change: Callable[[int, bool], int], *, recursive: bool) -> None:
    stat = await process.files.stat(path)
    await process.files.change_mode(path, change(stat.mode, stat.kind == "directory"))
    if recursive and stat.kind == "directory":
        for entry in await process.files.list_dir(path):
            if entry.kind != "symlink":
                await _change_modes(process, posixpath.join(path, entry.name), change, recursive=True)


def _mode_change(text: str) -> Callable[[int, bool], int]:
    """Understand ``755`` and ``u+x,go-w``; returns what makes the new mode of the old one and of "is a directory"."""
    if re.fullmatch(r"[0-7]{1,4}", text):
        return lambda mode, is_directory: int(text, 8)
    clauses = [re.fullmatch(r"([ugoa]*)([-+=])([rwxX]*)", clause) for clause in text.split(",")]
    if None in clauses:
        raise ValueError(f"invalid mode: '{text}'")

    def change(mode: int, is_directory: bool) -> int:
        for clause in clauses:
            assert clause is not None
            who, sign, rights = clause.groups()
            everyone = 0o777 if who else 0o777 & ~_UMASK  # where nobody is named, the umask counts
            classes = sum(mask for letter, mask in _CLASSES.items() if letter in who or not who or "a" in who)
            bits = sum(value for letter, value in _RIGHTS.items() if letter in rights)
            if "X" in rights and (is_directory or mode & 0o111):
                bits |= _RIGHTS["x"]
            chosen = bits * 0o111 & classes & everyone
            mode = mode | chosen if sign == "+" else mode & ~(chosen if sign == "-" else classes & everyone)
            mode |= chosen if sign == "=" else 0
        return mode

    return change


_UMASK: Final = 0o022
_CLASSES: Final = {"u": 0o700, "g": 0o070, "o": 0o007}
_RIGHTS: Final = {"r": 4, "w": 2, "x": 1}


def _too_few(names: Sequence[str]) -> str:
    """Return what ``cp`` and ``mv`` say without a source or a target."""
    return f"missing destination file operand after '{names[0]}'" if names else "missing file operand"


async def _missing(process: Process, path: str) -> PortError | None:
    """Return why there is nothing at a path, or ``None`` where there is something."""
    try:
        await process.files.stat(path, follow_symlinks=False)
    except PortError as error:
        return error
    return None


async def _inside(process: Process, target: str, source: str) -> str:
    """Return the target itself, or the source's name in it where it is a directory."""
    try:
        is_directory = (await process.files.stat(target)).kind == "directory"
    except PortError as error:
        if error.code != "not_found":
            raise
        is_directory = False
    return posixpath.join(target, posixpath.basename(source.rstrip("/"))) if is_directory else target


async def _touch(process: Process) -> int:
    status = 0
    for name in process.arguments:
        path = process.path(name)
        try:
            try:
                await process.files.append(path, b"")
            except PortError as error:
                if error.code == "is_a_directory":
                    continue
                if error.code != "not_found":
                    raise
                await process.files.write(path, b"")
        except PortError as error:
            status = await process.fail(f"cannot touch '{name}': {describe(error)}")
    return status


FILE_PROGRAMS: Final[Mapping[str, Handler]] = {
    "chmod": polite(_chmod),
    "cp": polite(_cp),
    "ln": polite(_ln),
    "ls": polite(_ls, 2),
    "mkdir": polite(_mkdir),
    "mv": polite(_mv),
    "rm": polite(_rm),
    "touch": _touch,
}
