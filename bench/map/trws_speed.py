"""TRW-S: nanoseconds per table entry and iteration, memory bandwidth used, and the original's results next to ours.

    python -m bench trws_speed                         random models in and out of cache, double and single precision;
                                                       grids with few labels: nanoseconds per edge
    python -m bench trws_speed DIR                     also the instances of PEERS.tsv, against `trws` and `srmp` there

An iteration is one forward and one backward sweep: every table is read twice. `stream` is what a plain read of a large
array reaches in the same moment; `used` is the share of it that the sweeps reach where tables come from memory. CPU
times, one thread.
"""

from __future__ import annotations

import argparse
import csv
import gc
import time
from math import inf, isnan, nan
from pathlib import Path

import numpy as np

import fginfer
from bench.common.edges import raster
from bench.common.files import load, number
from fginfer import AbsDiff, FactorGraph, Potts, Solver

BUFFER = np.ones(12_000_000)


def stream_bandwidth() -> float:
    """GB/s of the fastest of a few reads of 96 MB by numpy's vectorised maximum."""
    best = inf
    for _ in range(4):
        start = time.process_time()
        BUFFER.max()
        best = min(best, time.process_time() - start)
    return BUFFER.nbytes / best / 1e9


def random_graph(labels: int, entries: int) -> FactorGraph:
    """A random graph with about `entries` table entries, none shared; frustrated, so that nothing converges soon."""
    rng = np.random.default_rng(labels)
    n_edges = max(4, entries // labels**2)
    n = max(4, n_edges // 4)
    first = rng.integers(0, n, n_edges)
    pairs = np.sort(np.column_stack((first, (first + rng.integers(1, n, n_edges)) % n)), axis=1)
    pairs = pairs[np.lexsort(pairs.T[::-1])]  # as files list them
    tables = rng.standard_normal((n_edges, labels, labels))
    return FactorGraph.from_arrays([labels] * n, [np.zeros(labels)] * n, pairs, tables=list(tables))


def speed(graph: FactorGraph, precision: int, seconds: float) -> float:
    """CPU seconds of an iteration once all is set up: the best of some runs."""
    best = inf
    with Solver(graph, method="trws", gap=0.0, precision=precision) as solver:
        solver.run(iterations=12)
        end = time.process_time() + seconds
        while time.process_time() < end:
            before = solver.result().iterations
            start = time.process_time()
            status = solver.run(iterations=8)
            elapsed = time.process_time() - start
            done = solver.result().iterations - before
            if done:
                best = min(best, elapsed / done)
            if status != "running":
                break
    return best


def report_speed(seconds: float) -> None:
    print("labels  table MB  bits  ns/entry/iteration   GB/s  stream   used")
    for entries in (64_000, 16_000_000):
        for labels in (2, 4, 8, 21, 64, 256):
            if entries > 1_000_000 and labels < 8:
                continue  # not a matter of bandwidth
            graph = random_graph(labels, entries)
            size = len(graph.to_arrays().values)
            for precision, width in ((1, 8), (2, 4)):
                before = stream_bandwidth()
                cost = speed(graph, precision, seconds)
                stream = max(before, stream_bandwidth())
                rate = 2 * width * size / cost / 1e9
                used = f"{rate / stream:5.0%}" if entries > 1_000_000 else "cache"
                cost *= 1e9 / size
                line = f"{labels:6} {size * 8e-6:9.1f} {8 * width:5} {cost:19.3f} {rate:6.1f} {stream:7.1f}  {used}"
                print(line, flush=True)
            del graph
            gc.collect()


def grid(labels: int, side: int, kind: str) -> FactorGraph:
    """A square grid whose edges have weighted implicit tables, share four dense tables, or have one each."""
    rng = np.random.default_rng(labels)
    edges = raster(side, side)
    edges = edges[np.lexsort(edges.T[::-1])]
    unaries = rng.uniform(0, 2, (side * side, labels))
    implicit = {"Potts": Potts(0, -0.7), "truncated": AbsDiff(0.3, 2)}.get(kind)
    if implicit is not None:
        weights = rng.uniform(0.5, 1.5, len(edges))
        return FactorGraph.from_arrays([labels] * side**2, unaries, edges, tables=[implicit], weights=weights)
    ids = rng.integers(0, 4, len(edges)) if kind == "shared" else np.arange(len(edges))
    tables = rng.uniform(-1, 1, (ids.max() + 1, labels, labels))
    return FactorGraph.from_arrays([labels] * side**2, unaries, edges, ids, list(tables))


def report_grids(seconds: float, side: int = 200) -> None:
    print(f"\n{side} x {side} grids: ns/edge/iteration, double precision")
    print("labels     Potts truncated    shared       own")
    for labels in (2, 3, 4, 8, 16, 64):
        costs = [f"{labels:6}"]
        for kind in ("Potts", "truncated", "shared", "own"):
            size = side if labels < 64 or kind != "own" else side // 2  # 0.65 GB of tables
            graph = grid(labels, size, kind)
            costs.append(f"{speed(graph, 1, seconds) * 1e9 / (2 * size * (size - 1)):9.1f}")
        print(" ".join(costs), flush=True)


def relative(ours: float | None, theirs: float) -> float:
    return nan if ours is None or isnan(theirs) else (ours - theirs) / max(1.0, abs(theirs))


def report_peers(folder: Path, seconds: float, only: str) -> None:
    with open(folder / "PEERS.tsv") as stream:
        rows = [r for r in csv.DictReader(stream, delimiter="\t") if r["solver"] in ("trws", "srmp")]
    with open(folder / "INDEX.tsv") as stream:
        evidence = {r["file"]: r["evidence"] for r in csv.DictReader(stream, delimiter="\t")}
    print(f"\n{'instance':42}  peer         score   vs peer         bound   vs peer     time     peer  status")
    rows = [r for r in rows if r["seconds"] != "-" and only in r["file"]]
    for name in dict.fromkeys(r["file"] for r in rows):
        graph = load(folder, name, evidence[name])
        start = time.process_time()
        result = fginfer.solve(graph, "trws", gap=1e-9, time_limit=seconds, dual=False)
        elapsed = time.process_time() - start
        for row in (r for r in rows if r["file"] == name):
            score, bound = (relative(getattr(result, k), number(row[f"{k}_ln"])) for k in ("score", "bound"))
            print(
                f"{name[-42:]:42} {row['solver']:>5} {result.score or -inf:13.5f} {score:9.1e} "
                f"{result.bound:13.5f} {bound:9.1e} {elapsed:8.3f} {number(row['seconds']):8.3f}  "
                f"{result.status} ({result.iterations} iterations, peer {row['iterations']})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="instances with INDEX.tsv and PEERS.tsv")
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of an instance")
    parser.add_argument("--measure", type=float, default=1.0, help="seconds of a speed measurement; 0: none")
    parser.add_argument("--only", default="", help="part of the instances' names")
    options = parser.parse_args()
    if options.measure > 0:
        report_speed(options.measure)
        report_grids(options.measure)
    if options.folder:
        report_peers(options.folder, options.seconds, options.only)


if __name__ == "__main__":
    main()
