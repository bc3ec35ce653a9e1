"""Where a vector runs: a fresh tree on disk or in memory, laid out by its files, and what is in it afterwards.

Vectors name places by tokens: ``$CWD`` the working directory, ``$ROOT`` its parent, ``$HOME`` the home
directory, ``$TMP`` a saved output file. Reading a vector puts the real paths in, reading an answer takes
them out again.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import evolve, frozen

from conformance.reference import Vector, vectorlib
from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory.entries import Directory, Entry, File, Symlink
from handrail.adapters.memory.environment import MemoryEnvironment, memory_environment
from handrail.ports.environment import Environment, Session

__all__ = ["LocalWorld", "MemoryWorld", "World"]


class World(Protocol):
    """A file tree and an environment on it."""

    @property
    def env(self) -> Environment:
        """The environment."""
        ...

    @property
    def tokens(self) -> Mapping[str, str]:
        """Token -> path; longer paths before the paths that contain them."""
        ...

    def after(self) -> dict[str, Any]:
        """What is in the working directory now, as vectors describe it."""
        ...

    def after_home(self) -> dict[str, Any]:
        """What is in the home directory now."""
        ...

    def saved(self, path: str) -> dict[str, Any]:
        """Size, hash and mode of a saved output file."""
        ...


def _described(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _shown(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _session(vector: Vector) -> Session:
    model = vector.get("options", {}).get("context", {}).get("model", {})
    return Session(model=model.get("id"))


# ------------------------------------------------------------------ on disk


@frozen
class LocalWorld:
    """A world below a directory of the real disk, which must be empty and its caller's own."""

    env: Environment
    root: Path

    @staticmethod
    def build(vector: Vector, root: Path) -> LocalWorld:
        """Lay out the files of a vector."""
        cwd, home, temp = root / "root" / "work", root / "home", root / "tmp"
        for directory in (cwd, home, temp):
            directory.mkdir(parents=True)
        options = vector.get("options", {})
        vectorlib().lay_files(cwd, vector.get("files"))
        vectorlib().lay_files(home, options.get("homeFiles"))
        env = local_environment(cwd / options.get("cwd", ""), home=home, session=_session(vector), temp_directory=temp)
        return LocalWorld(env, root)

    @property
    def tokens(self) -> Mapping[str, str]:
        root = str(self.root)
        return {"$CWD": f"{root}/root/work", "$ROOT": f"{root}/root", "$HOME": f"{root}/home"}

    def after(self) -> dict[str, Any]:
        return dict(self._tree(self.root / "root" / "work"))

    def after_home(self) -> dict[str, Any]:
        return dict(self._tree(self.root / "home"))

    def saved(self, path: str) -> dict[str, Any]:
        return {**_described(Path(path).read_bytes()), "mode": f"{stat.S_IMODE(os.stat(path).st_mode):04o}"}

    def _tree(self, top: Path, prefix: str = "") -> Iterator[tuple[str, Any]]:
        with _opened(top):
            for path in sorted(top.iterdir()):
                name = f"{prefix}{_shown(path.name)}"
                mode = f"{stat.S_IMODE(path.lstat().st_mode):04o}"
                if path.is_symlink():
                    yield name, {"symlink": os.readlink(path).replace(self.tokens["$CWD"], "$CWD")}
                elif path.is_dir():
                    yield name, {"dir": True, "mode": mode}
                    yield from self._tree(path, f"{name}/")
                else:
                    with _opened(path):
                        yield name, {"b64": base64.b64encode(path.read_bytes()).decode(), "mode": mode}


@contextmanager
def _opened(path: Path) -> Generator[None]:
    """Give ourselves the right to look into a file or directory, and take it back."""
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode | 0o700)
    try:
        yield
    finally:
        path.chmod(mode)


# ------------------------------------------------------------------ in memory


# No part of these paths occurs in any text of a vector.
_MEMORY_ROOT: Final = "/memory-world"
_MEMORY_CWD: Final = f"{_MEMORY_ROOT}/work"
_MEMORY_HOME: Final = "/memory-home"


@frozen
class MemoryWorld:
    """A world in memory; its user is root, like the one of most vectors, unless the vector says otherwise."""

    env: MemoryEnvironment

    @staticmethod
    def build(vector: Vector) -> MemoryWorld:
        """Lay out the files of a vector."""
        options = vector.get("options", {})
        env = memory_environment(
            cwd=_MEMORY_CWD, home=_MEMORY_HOME, session=_session(vector), superuser="user" not in vector
        )
        home_files: dict[str, Any] = options.get("homeFiles") or {}
        files: dict[str, Any] = vector.get("files") or {}
        for top, specs in ((_MEMORY_CWD, files), (_MEMORY_HOME, home_files)):
            for name, spec in specs.items():
                env.files[f"{top}/{name}"] = _entry_of(spec)
            for name, spec in reversed(list(specs.items())):
                if "mode" in spec and "symlink" not in spec:
                    env.files.set_mode(f"{top}/{name}", int(spec["mode"], 8))
        # A working directory is created with its environment; that of a vector may be missing.
        return MemoryWorld(evolve(env, cwd=f"{_MEMORY_CWD}/{options['cwd']}") if "cwd" in options else env)

    @property
    def tokens(self) -> Mapping[str, str]:
        return {"$CWD": _MEMORY_CWD, "$ROOT": _MEMORY_ROOT, "$HOME": _MEMORY_HOME}

    def after(self) -> dict[str, Any]:
        return self._tree(_MEMORY_CWD)

    def after_home(self) -> dict[str, Any]:
        return self._tree(_MEMORY_HOME)

    def saved(self, path: str) -> dict[str, Any]:
        return {**_described(self.env.files.read_bytes(path)), "mode": f"{self.env.files.mode(path):04o}"}

    def _tree(self, top: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, entry in self.env.files.tree(top).items():
            parts = path.removeprefix(f"{top}/").split("/")
            for depth in range(1, len(parts)):
                name = "/".join(parts[:depth])
                found[_shown(name)] = {"dir": True, "mode": f"{self.env.files.mode(f'{top}/{name}'):04o}"}
            found[_shown("/".join(parts))] = self._entry(path, entry)
        return found

    def _entry(self, path: str, entry: Entry) -> dict[str, Any]:
        if isinstance(entry, Symlink):
            return {"symlink": entry.target.replace(_MEMORY_CWD, "$CWD")}
        mode = f"{self.env.files.mode(path):04o}"
        if isinstance(entry, Directory):
            return {"dir": True, "mode": mode}
        return {"b64": base64.b64encode(self.env.files.read_bytes(path)).decode(), "mode": mode}


def _entry_of(spec: dict[str, Any]) -> Entry:
    if spec.get("dir"):
        return Directory()
    if "symlink" in spec:
        return Symlink(spec["symlink"].replace("$CWD", _MEMORY_CWD))
    return File(vectorlib().file_bytes(spec), 0o644)
