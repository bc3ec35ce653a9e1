"""Unit tests run in memory: code of the core or the ports that touches the operating system fails its test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from io_guard import guarded


@pytest.fixture(autouse=True)
def no_operating_system() -> Generator[None, None, None]:
    with guarded():
        yield
