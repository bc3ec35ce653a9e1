"""Other Python systems of the same kind, each with an interpreter of its own: ``python -m benchmarks.peers NAME``.

Their interpreters have nothing of ours installed: a module here uses the standard library and the peer that it drives.
"""

from __future__ import annotations

__all__: list[str] = []
