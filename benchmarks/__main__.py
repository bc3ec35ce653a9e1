"""``python -m benchmarks``: run the workloads, interleaved, and report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report, subjects
from benchmarks.corpus import Corpus, make_corpus
from benchmarks.workloads import Workload, workloads


def main() -> int:
    """Run the benchmarks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, 1 is full size (default: 1)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each workload (default: 7)")
    parser.add_argument("--only", help="run workloads whose name contains this")
    parser.add_argument("--peers", action="store_true", help="compare with other Python systems too (installs them)")
    parser.add_argument("--no-reference", action="store_true", help="leave the reference out")
    parser.add_argument("--corpus", type=Path, help="where to keep the data (default: the user's cache directory)")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    parser.add_argument("--figure", type=Path, help="draw the figure (SVG) into this file")
    options = parser.parse_args()

    corpus = make_corpus(options.scale, options.corpus)
    systems = _subjects(corpus.root.parent, options.peers, not options.no_reference)
    chosen = [one for one in workloads(corpus) if not options.only or options.only in one.name]
    try:
        rows = [_measure(workload, corpus, systems, options.rounds) for workload in chosen]
    finally:
        for system in systems:
            system.close()
    print(report.table(rows))
    if options.json:
        options.json.write_text(report.to_json(rows), encoding="utf-8")
    if options.figure:
        report.figure(rows, options.figure)
    return 0


def _subjects(cache: Path, with_peers: bool, with_reference: bool) -> list[subjects.Subject]:
    systems = [subjects.ours(), subjects.limit()]
    if with_reference:
        try:
            systems.append(subjects.reference(cache))
        except subjects.Unavailable as reason:
            print(f"The reference is left out: {reason}", file=sys.stderr)
    for peer in subjects.peers(cache) if with_peers else ():
        if isinstance(peer, subjects.Unavailable):
            print(f"A peer is left out: {peer}", file=sys.stderr)
        else:
            systems.append(peer)
    return systems


def _own(cwd: str, corpus: Corpus, system: subjects.Subject) -> str:
    """The working directory of a system: what it writes is its own."""
    if cwd != str(corpus.scratch):
        return cwd
    directory = corpus.scratch / system.name
    directory.mkdir(exist_ok=True)
    return str(directory)


def _takes_part(system: str, workload: Workload) -> bool:
    if system == "limit":
        return workload.limit is not None
    return system == "handrail" or not workload.only_ours


def _measure(workload: Workload, corpus: Corpus, systems: Sequence[subjects.Subject], rounds: int) -> report.Row:
    """Run a workload on all systems in turn, one round after another; the first round only warms up."""
    row = report.Row(workload)
    request = workload.to_json()
    for number in range(rounds + 1):
        for system in systems:
            if system.name in row.errors or not _takes_part(system.name, workload):
                continue
            answer = system.run({**request, "cwd": _own(workload.cwd, corpus, system)}, number)
            if number or "error" in answer:
                row.add(system.name, answer)
    print(f"{workload.name}: done", file=sys.stderr)
    return row


if __name__ == "__main__":
    sys.exit(main())
