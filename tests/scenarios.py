"""Named file trees that several suites use, as values for ``memory_environment`` or, planted, on a real disk.

Paths are relative: to the working directory of the environment, or to the directory where they are planted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from handrail.adapters.memory import Directory, Entry, File, Special, Symlink

__all__ = ["IGNORED", "LINE_ENDINGS", "LINKS", "ODD_NAMES", "SCENARIOS", "SMALL_PROJECT", "plant"]

SMALL_PROJECT: Final[Mapping[str, Entry]] = {
    "README.md": "# Sample\n\nA small project.\n",
    ".editorconfig": "root = true\n",
    "src/app.py": "import util\n\n\ndef main() -> int:\n    print(util.greet('world'))\n    return 0\n",
    "src/util.py": "def greet(name: str) -> str:\n    return f'hello {name}'\n",
    "tests/test_util.py": "from util import greet\n\n\ndef test_greet() -> None:\n    assert greet('x') == 'hello x'\n",
    "run.sh": File("#!/bin/sh\nexec python src/app.py\n", mode=0o755),
    "build": Directory(),
}
"""
README.md  .editorconfig  run.sh (executable)  build/ (empty)
src/   app.py  util.py
tests/ test_util.py
"""

IGNORED: Final[Mapping[str, Entry]] = {
    ".gitignore": "*.log\n/build/\n!keep.log\n",
    "app.py": "needle\n",
    "debug.log": "needle\n",
    "keep.log": "needle\n",
    "build/out.txt": "needle\n",
    "docs/.gitignore": "draft*\n!draft-final.md\n",
    "docs/draft.md": "needle\n",
    "docs/draft-final.md": "needle\n",
    "docs/build/page.md": "needle\n",
    "vendor/.ignore": "*.min.js\n",
    "vendor/lib.js": "needle\n",
    "vendor/lib.min.js": "needle\n",
    ".hidden/notes.txt": "needle\n",
    ".git/config": "needle\n",
}
"""Every file holds ``needle``; a search that respects ignore rules and skips ``.git`` finds it in
``app.py keep.log docs/draft-final.md docs/build/page.md vendor/lib.js .hidden/notes.txt``."""

LINKS: Final[Mapping[str, Entry]] = {
    "real/file.txt": "content\n",
    "real/deep/leaf.txt": "leaf\n",
    "to_file": Symlink("real/file.txt"),
    "to_directory": Symlink("real"),
    "to_link": Symlink("to_file"),
    "broken": Symlink("missing/target"),
    "loop_a": Symlink("loop_b"),
    "loop_b": Symlink("loop_a"),
    "real/up": Symlink(".."),
}

_ODD_NAMES: Final = [
    " lead",
    "-dash",
    "a b.txt",
    "caf\u00e9.txt",
    "it\u2019s.txt",
    "line\nbreak.txt",
    "Shot 10.32.05\u202fAM.png",
    "undecodable-\udcff.txt",
    "[x]*?.txt",
    "~",
    "@home",
]
ODD_NAMES: Final[Mapping[str, Entry]] = dict.fromkeys(_ODD_NAMES, "odd\n")

LINE_ENDINGS: Final[Mapping[str, Entry]] = {
    "lf.txt": "one\ntwo\nthree\n",
    "crlf.txt": "one\r\ntwo\r\nthree\r\n",
    "cr.txt": "one\rtwo\rthree\r",
    "mixed.txt": "one\ntwo\r\nthree\n",
    "no_final.txt": "one\ntwo\nthree",
    "bom.txt": "\ufeffone\ntwo\n",
    "bom_crlf.txt": "\ufeffone\r\ntwo\r\n",
    "utf16.txt": "one\ntwo\n".encode("utf-16"),
    "latin1.txt": "caf\u00e9\n".encode("latin-1"),
    "empty.txt": "",
}

SCENARIOS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "small_project": SMALL_PROJECT,
    "ignored": IGNORED,
    "links": LINKS,
    "odd_names": ODD_NAMES,
    "line_endings": LINE_ENDINGS,
}


def plant(entries: Mapping[str, Entry], root: Path) -> None:
    """Create a tree on the real disk below a directory."""
    for name, entry in entries.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match entry:
            case str():
                path.write_bytes(entry.encode("utf-8", "surrogateescape"))
            case bytes():
                path.write_bytes(entry)
            case File():
                plant({name: entry.content}, root)
                path.chmod(entry.mode)
            case Directory():
                path.mkdir(exist_ok=True)
            case Symlink():
                path.symlink_to(entry.target)
            case Special():
                os.mkfifo(path)
