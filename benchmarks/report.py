"""The outcome of a run as a table, as JSON, and as a figure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from attrs import define, field

from benchmarks.workloads import Workload

__all__ = ["Row", "figure", "table", "to_json"]


@define
class Row:
    """The measurements of one workload, by subject."""

    workload: Workload
    seconds: dict[str, list[float]] = field(factory=dict)
    added_bytes: dict[str, list[int]] = field(factory=dict)
    errors: dict[str, str] = field(factory=dict)

    def add(self, subject: str, answer: dict[str, Any]) -> None:
        """Note one answer."""
        if "error" in answer:
            self.errors[subject] = answer["error"]
            return
        self.seconds.setdefault(subject, []).append(answer["seconds"])
        if answer["added_bytes"] is not None:
            self.added_bytes.setdefault(subject, []).append(answer["added_bytes"])

    def median(self, subject: str) -> float | None:
        """Return the median seconds of a subject."""
        measured = self.seconds.get(subject)
        return statistics.median(measured) if measured else None

    def ratio(self, over: str, under: str) -> float | None:
        """Return how many times longer one subject takes than another, by medians."""
        above, below = self.median(over), self.median(under)
        return above / below if above and below else None

    def meets_goal(self) -> bool | None:
        """Return whether every part of the goal that could be measured holds; ``None`` without any."""
        goal, ours = self.workload.goal, self.median("handrail")
        ahead, behind = self.ratio("reference", "handrail"), self.ratio("handrail", "limit")
        held: list[bool] = []
        if goal.reference and ahead:
            held.append(ahead >= goal.reference)
        if goal.limit and behind:
            held.append(behind <= goal.limit)
        if goal.milliseconds and ours:
            held.append((ours - (self.median("limit") or 0)) * 1000 <= goal.milliseconds)
        return all(held) if held else None

    def spread(self, over: str, under: str) -> tuple[float, float] | None:
        """Return the smallest and largest ratio of rounds that ran next to each other."""
        ratios = [a / b for a, b in zip(self.seconds.get(over, ()), self.seconds.get(under, ()), strict=False) if b]
        return (min(ratios), max(ratios)) if ratios else None


def table(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| workload | handrail | reference | times as fast | goal "
        "| limit | times the limit | goal | added memory | met |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        goal = row.workload.goal
        least = f"≥ {goal.reference:g}" if goal.reference else ""
        most = f"≤ {goal.limit:g}" if goal.limit else f"≤ +{goal.milliseconds:g} ms" if goal.milliseconds else ""
        met = {True: "yes", False: "no", None: ""}[row.meets_goal()]
        memory = row.added_bytes.get("handrail")
        lines.append(
            f"| {row.workload.name} | {_time(row, 'handrail')} | {_time(row, 'reference')} "
            f"| {_ratio(row, 'reference', 'handrail')} | {least} "
            f"| {_time(row, 'limit')} | {_ratio(row, 'handrail', 'limit')} | {most} "
            f"| {f'{max(memory) / 1048576:.0f} MiB' if memory else '–'} | {met} |"
        )
    lines += _peer_table(rows)
    failed = [
        f"- {row.workload.name}, {name}: {' '.join(text.split())}" for row in rows for name, text in row.errors.items()
    ]
    return "\n".join([*lines, *(["", "Failed:", *failed] if failed else [])])


def _peer_table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table of the other systems against handrail; none without any."""
    peers = sorted({name for row in rows for name in row.seconds} - {"handrail", "reference", "limit"})
    if not peers:
        return []
    return [
        "",
        f"| workload | handrail | {' | '.join(peers)} |",
        f"|---|---|{'---|' * len(peers)}",
        *(
            f"| {row.workload.name} | {_time(row, 'handrail')} | {' | '.join(_against(row, name) for name in peers)} |"
            for row in rows
            if any(name in row.seconds for name in peers)
        ),
    ]


def to_json(rows: Sequence[Row]) -> str:
    """Return everything that was measured."""
    return json.dumps(
        [
            {
                "workload": row.workload.name,
                "seconds": row.seconds,
                "added_bytes": row.added_bytes,
                "errors": row.errors,
            }
            for row in rows
        ],
        indent=1,
    )


_BAR: Final = 14
_LABEL: Final = 260
_WIDTH: Final = 420


def figure(rows: Sequence[Row], path: Path) -> None:
    """Draw bars of each workload as ratios to the bare system work; the longest are cut."""
    shown = [row for row in rows if row.ratio("handrail", "limit")]
    height = 46 + len(shown) * (2 * _BAR + 12)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH + 80}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="20" font-size="14">Time as a multiple of the bare system work (shorter is better)</text>',
    ]
    most = 12.0
    for number, row in enumerate(shown):
        y = 36 + number * (2 * _BAR + 12)
        parts.append(f'<text x="{_LABEL - 8}" y="{y + _BAR + 4}" text-anchor="end">{escape(row.workload.name)}</text>')
        for offset, (subject, colour) in enumerate((("handrail", "#2a6f97"), ("reference", "#b8b8b8"))):
            ratio = row.ratio(subject, "limit")
            if ratio is None:
                continue
            width = min(ratio, most) / most * _WIDTH
            top = y + offset * _BAR
            parts.append(f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" fill="{colour}"/>')
            parts.append(
                f'<text x="{_LABEL + width + 4:.1f}" y="{top + _BAR - 4}" font-size="10">{subject} {ratio:.1f}</text>'
            )
    parts.append("</svg>")
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _time(row: Row, subject: str) -> str:
    seconds = row.median(subject)
    if seconds is None:
        return "–"
    return (
        f"{seconds:.2f} s"
        if seconds >= 1
        else f"{seconds * 1000:.1f} ms"
        if seconds >= 0.001
        else f"{seconds * 1e6:.0f} µs"
    )


def _ratio(row: Row, over: str, under: str) -> str:
    ratio, spread = row.ratio(over, under), row.spread(over, under)
    return f"{ratio:.2f} ({spread[0]:.2f}–{spread[1]:.2f})" if ratio and spread else "–"


def _against(row: Row, peer: str) -> str:
    ratio = row.ratio(peer, "handrail")
    if ratio is None:
        return _time(row, peer)
    factor, word = (ratio, "slower") if ratio >= 1 else (1 / ratio, "faster")
    return f"{_time(row, peer)}, {factor:.{0 if factor >= 100 else 1}f} times {word}"
