#!/usr/bin/env python3
"""Models whose relaxation is tight, or nearly: what `auto` costs beside our own methods, in CPU
seconds to a gap of 1e-6.

usage: python -m bench tight [--seconds 4] [--only grid] [--methods trws auto ...] [--file MODEL ...]

Families made at random with fixed seeds (here and in tight_models.py), and the given files. The best of two runs each,
of one where that takes half a second; `-`: not within the limit. The last column is auto's time divided by that of the
best of the others.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import inf

import numpy as np

import fginfer
from bench.common.edges import noisy_blocks
from bench.map import tight_models
from fginfer import AbsDiff, FactorGraph, Potts

METHODS = ("trws", "gdmm", "bnb", "edac", "mplp", "ad3", "auto")


def grid(side: int, labels: int, signal: float, table: Potts | AbsDiff) -> FactorGraph:
    """Blocks of one label under noise."""
    unary = noisy_blocks(np.random.default_rng(0), side, labels, block=10, signal=signal)
    return FactorGraph.grid((side, side), unary, table)


def shared(edges: list[tuple[int, int]], n: int, labels: int, tables: int, strength: float = 1.0) -> FactorGraph:
    """Random unaries of this strength, a few random tables."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, tables, len(edges)).astype(np.int32)
    unary = strength * rng.normal(size=(n, labels))
    scores = rng.normal(size=(tables, labels, labels))
    return FactorGraph.from_arrays(np.full(n, labels), unary, np.array(edges, np.int32), ids, scores)


def chain(n: int, labels: int) -> FactorGraph:
    return shared([(i, i + 1) for i in range(n - 1)], n, labels, 1)


def tree(n: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(2)
    return shared([(int(rng.integers(0, i)), i) for i in range(1, n)], n, labels, 4)


def skip_chain(n: int, labels: int) -> FactorGraph:
    return shared([(i, i + 1) for i in range(n - 1)] + [(i, i + 7) for i in range(0, n - 7, 5)], n, labels, 1, 4.0)


def sparse(n: int, labels: int) -> FactorGraph:
    rng = np.random.default_rng(3)
    edges = [(int(i), int(j)) for i, j in rng.integers(0, n, (2 * n, 2)) if i != j]
    return shared(edges, n, labels, 5, 6.0)


def matching(n: int) -> FactorGraph:
    """Points in the plane against the same points moved a little: distances of neighbours."""
    rng = np.random.default_rng(4)
    points = rng.random((n, 2))
    moved = points[rng.permutation(n)] + 0.002 * rng.normal(size=(n, 2))
    here = np.linalg.norm(points[:, None] - points[None], axis=2)
    there = np.linalg.norm(moved[:, None] - moved[None], axis=2)
    edges = [(i, int(j)) for i in range(n) for j in np.argsort(here[i])[1:5] if i < j]
    tables = np.array([-50 * np.abs(there - here[i, j]) for i, j in edges])
    return FactorGraph.from_arrays(
        np.full(n, n), 0.1 * rng.normal(size=(n, n)), np.array(edges, np.int32), tables=tables
    )


def triples(n: int) -> FactorGraph:
    rng = np.random.default_rng(5)
    graph = FactorGraph([4] * n)
    for i in range(n):
        graph.add_factor([i], 3 * rng.normal(size=4))
    for i in range(n - 2):
        graph.add_factor([i, i + 1, i + 2], rng.normal(size=(4, 4, 4)))
    return graph


FAMILIES: dict[str, Callable[[], FactorGraph]] = {
    "grid 60, 4 labels": lambda: grid(60, 4, 2.0, Potts(0.0, -0.75)),
    "grid 150, 8 labels": lambda: grid(150, 8, 3.0, Potts(0.0, -0.75)),
    "grid 50, 16 labels, distances": lambda: grid(50, 16, 2.0, AbsDiff(0.2)),
    "grid 120, binary": lambda: grid(120, 2, 0.5, Potts(0.0, -0.4)),
    "chain 500, 100 labels": lambda: chain(500, 100),
    "chain 60, 1000 labels": lambda: chain(60, 1000),
    "tree 5000, 10 labels": lambda: tree(5000, 10),
    "skip chain 300, 50 labels": lambda: skip_chain(300, 50),
    "matching 60": lambda: matching(60),
    "triples 300": lambda: triples(300),
    "random 2000, 3 labels": lambda: sparse(2000, 3),
    "random 20000, 3 labels": lambda: sparse(20000, 3),
}


def best_time(graph: FactorGraph, method: str, limit: float) -> float:
    took = seconds_to_gap(graph, method, limit)
    return min(took, seconds_to_gap(graph, method, limit)) if took < 0.5 else took


def seconds_to_gap(graph: FactorGraph, method: str, limit: float) -> float:
    """CPU seconds; inf if the gap was not reached, or the method cannot take the model."""
    try:
        return _seconds_to_gap(graph, method, limit)
    except fginfer.SolverError:
        return inf


def _seconds_to_gap(graph: FactorGraph, method: str, limit: float) -> float:
    begun = time.process_time()
    with fginfer.Solver(graph, method, gap=1e-6) as solver:
        solver.run(callback=lambda _: time.process_time() - begun > limit)
        gap = solver.result(dual=False).gap
        return time.process_time() - begun if gap is not None and gap <= 1e-6 else inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="", help="families with this in their name")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--file", nargs="*", default=[])
    options = parser.parse_args()
    every = FAMILIES | tight_models.FAMILIES
    families = {name: make for name, make in every.items() if options.only in name}
    families |= {path: lambda path=path: fginfer.read(path) for path in options.file}
    print(f"{'family':<32}" + "".join(f"{m:>10}" for m in options.methods) + f"{'auto/best':>11}")
    for name, make in families.items():
        graph = make()
        graph.snapshot()
        took = {m: best_time(graph, m, options.seconds) for m in options.methods}
        best = min(took[m] for m in options.methods if m != "auto")
        ratio = f"{took['auto'] / best:.2f}" if best < inf and "auto" in took else "-"
        cells = "".join(f"{took[m]:>10.4f}" if took[m] < inf else f"{'-':>10}" for m in options.methods)
        print(f"{name[-31:]:<32}{cells}{ratio:>11}", flush=True)


if __name__ == "__main__":
    main()
