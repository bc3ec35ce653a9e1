"""The usual small programs, played in memory: the options that scripts use most, and errors as they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.adapters.memory._file_programs import FILE_PROGRAMS
from handrail.adapters.memory._text_programs import TEXT_PROGRAMS
from handrail.adapters.memory.process import Handler

__all__ = ["PROGRAMS"]

PROGRAMS: Final[Mapping[str, Handler]] = {**FILE_PROGRAMS, **TEXT_PROGRAMS}
