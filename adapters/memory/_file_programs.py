"""The small programs that look at and change files: ls mkdir rm cp mv touch."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from handrail.adapters.memory._manners import options, polite
from handrail.adapters.memory.process import Handler, Process, describe
from handrail.ports.errors import PortError

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
            if (await process.files.stat(source)).kind != "directory":
                await _copy_file(process, source, target)
            elif "r" in letters.lower() or "a" in letters:
                await _copy_all(process, source, target)
            else:
                status = await process.fail(f"-r not specified; omitting directory '{name}'")
        except PortError as error:
            status = await process.fail(f"cannot copy '{name}': {describe(error)}")
    return status


async def _copy_file(process: Process, source: str, target: str) -> None:
    content = await process.files.read(source)
    await process.files.write(target, content.data, mode=content.stat.mode)


async def _copy_all(process: Process, source: str, target: str) -> None:
    entries = await process.files.list_dir(source)  # before the target exists: it may lie inside
    await process.files.make_dirs(target)
    for entry in entries:
        below = posixpath.join(source, entry.name)
        copy = _copy_all if entry.kind == "directory" else _copy_file
        await copy(process, below, posixpath.join(target, entry.name))


async def _mv(process: Process) -> int:
    _, names = options(process, "f")
    if len(names) < 2:
        return await process.fail(_too_few(names))
    status = 0
    for name in names[:-1]:
        source = process.path(name)
        if problem := await _missing(process, source):
            status = await process.fail(f"cannot stat '{name}': {describe(problem)}")
            continue
        try:
            await process.files.rename(source, await _inside(process, process.path(names[-1]), source))
        except PortError as error:
            status = await process.fail(f"cannot move '{name}' to '{names[-1]}': {describe(error)}")
    return status


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
    "cp": polite(_cp),
    "ls": polite(_ls, 2),
    "mkdir": polite(_mkdir),
    "mv": polite(_mv),
    "rm": polite(_rm),
    "touch": _touch,
}
