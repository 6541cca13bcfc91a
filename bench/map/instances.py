"""The real instances: score, bound, time to best, time to gap and memory of one method, next to the peers of PEERS.tsv.

    python -m bench instances DIR [--method gdmm] [--seconds 10] [--only grids,dbn]

INDEX.tsv of the folder lists the files with the best known scores, PEERS.tsv what other solvers found. Times are
those of the solver, reading the file excluded. A line ends with what is to be said about the score: how far it misses
the best known one, and the better of toulbar2's two runs.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from math import inf
from pathlib import Path

import fginfer
from bench.common.clock import peak_mb
from bench.common.files import indexed, load, number

READABLE = (".uai.gz", ".LG.gz", ".h5", ".wcsp.gz", ".cfn.gz")


@dataclass
class Peer:
    score: float
    bound: float
    to_best: float


def peers(folder: Path) -> dict[tuple[str, str], Peer]:
    with open(folder / "PEERS.tsv") as stream:
        rows = list(csv.reader(stream, delimiter="\t"))[1:]
    return {(r[0], r[1]): Peer(number(r[2]), number(r[3]), number(r[4])) for r in rows}


def time_to(trace: fginfer.Trace, test: object) -> float:
    assert callable(test)
    return next((p.seconds for p in trace if test(p)), float("nan"))


def line(folder: Path, row: dict[str, str], known: dict[tuple[str, str], Peer], options: argparse.Namespace) -> str:
    name, best = row["file"], number(row["best_score_ln"])
    graph = load(folder, name, row["evidence"])
    r = fginfer.solve(graph, options.method, time_limit=options.seconds, threads=options.threads, gap=options.gap)
    score = -inf if r.score is None else r.score
    bound = inf if r.bound is None else r.bound
    scale = max(1.0, abs(score))
    to_best = time_to(r.trace, lambda p: p.score is not None and p.score >= score - 1e-9 * scale)
    to_gap = time_to(
        r.trace, lambda p: p.score is not None and p.bound is not None and p.bound - p.score <= 1e-5 * scale
    )
    trws = known.get((name, "trws"), Peer(*[float("nan")] * 3))
    tb2 = max(
        (known[key].score for key in ((name, "toulbar2-new"), (name, "toulbar2-new-vns")) if key in known),
        default=float("nan"),
    )
    notes = []
    if score < best - 1e-6 * max(1.0, abs(best)):
        notes.append(f"miss {best - score:.4g}")
    if score < trws.score - 1e-6 * scale:
        notes.append("BELOW TRW-S")
    if score < tb2 - 1e-6 * scale:
        notes.append(f"toulbar2 +{tb2 - score:.4g}")
    if bound < best - 1e-6 * scale:
        notes.append("BOUND TOO LOW")
    if r.labels is not None and abs(graph.score(r.labels) - score) > 1e-9 * scale:
        notes.append("WRONG SCORE")
    memory = peak_mb()
    short = Path(name).name.replace(".uai.gz", "")[:30]
    gap = inf if r.gap is None else r.gap
    return (
        f"{short:30} {score:14.6f} {bound:14.6f} {gap:8.1e} {to_best:7.3f} {to_gap:7.3f} {r.seconds:6.2f} "
        f"{r.iterations:6d} {memory:5.0f}M {r.status:12} {trws.score:14.6f} {trws.bound:14.6f} {trws.to_best:6.2f}  "
        f"{'; '.join(notes)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="gdmm")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1e-6)
    parser.add_argument("--only", default="", help="comma-separated parts of file names")
    options = parser.parse_args()
    known = peers(options.folder)
    print(
        f"{'instance':30} {'score':>14} {'bound':>14} {'gap':>8} {'best s':>7} {'1e-5 s':>7} {'total':>6} "
        f"{'iter':>6} {'mem':>6} {'status':12} {'trws score':>14} {'trws bound':>14} {'best s':>6}"
    )
    rows = [r for r in indexed(options.folder) if r["file"].endswith(READABLE)]
    for row in rows:
        if options.only and not any(part in row["file"] for part in options.only.split(",")):
            continue
        try:
            print(line(options.folder, row, known, options), flush=True)
        except fginfer.FginferError as error:
            print(f"{Path(row['file']).name[:30]:30} {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
