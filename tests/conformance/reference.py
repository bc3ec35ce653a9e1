"""The vectors of the reference and the library that reads and compares them; both live beside the repository."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

__all__ = ["MISSING", "SHARED", "Vector", "load_module", "vectorlib", "vectors"]

Vector = dict[str, Any]

SHARED: Final = Path(__file__).resolve().parents[3] / "shared"

MISSING: Final = (
    None if (SHARED / "conformance").is_dir() else "there is no ../shared/conformance beside the repository"
)
"""Why there are no vectors, where there are none."""


def load_module(path: Path) -> ModuleType:
    """Import a module by its path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def vectorlib() -> ModuleType:
    """The vectors' own library."""
    return load_module(SHARED / "conformance" / "vectorlib.py")


@cache
def vectors(*groups: str) -> Sequence[Vector]:
    """The vectors of some groups (``read``, ``paths``, …), in the order of the files; none where they are missing."""
    if MISSING:
        return ()
    # The vectors lie in the folder itself, not in one folder for each split.
    return tuple(vector for group in groups for vector in vectorlib().load("", group))
