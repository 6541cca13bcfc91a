"""gdmm at any C: 96 small problems with cycles (6 seeds x 4 shapes x C = .1, 1, 10, 100), each to a gap of 1e-3.

usage: python -m bench learning_any_c [--passes 1000] [--seeds 6] [--first 0] [--graphs 20] [--labels 4] [--solver gdmm]
       [--option NAME=VALUE ...]

The labels of a graph agree with its features and with each other only in part, so that no weights fit them all and a
large C is hard. Prints a line for every problem that misses the gap, then a table by shape and C: how many reach it,
the passes they take (median and most), CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.common.edges import raster
from fginfer.commands.common import option
from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

COSTS = (0.1, 1.0, 10.0, 100.0)


def ring(n: int) -> list[tuple[int, int]]:
    return [(t, (t + 1) % n) for t in range(n)]


def complete(n: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(n) for b in range(a + 1, n)]


# tokens and edges of one graph, and how many kinds of edges it has
SHAPES: dict[str, tuple[int, list[tuple[int, int]], int]] = {
    "grid": (16, [(int(u), int(v)) for u, v in raster(4, 4)], 1),
    "ring": (8, ring(8), 1),
    "complete": (5, complete(5), 1),
    "wheel": (8, ring(7) + [(t, 7) for t in range(7)], 2),
}


def problem(shape: str, seed: int, n: int = 20, labels: int = 4, features: int = 6) -> Encoded:
    """n graphs: labels drawn with neighbours that agree, features that tell the label with much noise."""
    rng = np.random.default_rng(seed)
    tokens, edges, kinds = SHAPES[shape]
    mean = rng.normal(size=(labels, features))
    truth, rows = [], []
    for _ in range(n):
        y = rng.integers(0, labels, tokens)
        for u, v in rng.permutation(edges):
            if rng.random() < 0.5:
                y[v] = y[u]
        truth.append(y)
        rows.append(mean[y] + 1.5 * rng.normal(size=(tokens, features)))
    x = np.hstack([np.concatenate(rows), np.ones((n * tokens, 1))])
    begin = np.arange(n + 1, dtype=np.int64) * tokens
    data = Encoded(Kind.LABELS, Edges.LIST, begin, sp.csr_matrix(x), labels, np.concatenate(truth).astype(np.int32))
    data.edge_begin = np.arange(n + 1, dtype=np.int64) * len(edges)
    u, v = np.array(edges, np.int32).T
    data.edge_u, data.edge_v = np.tile(u, n), np.tile(v, n)
    if kinds > 1:
        kind = np.tile(np.arange(len(edges)) * kinds // len(edges), n)
        data.n_edge_features = kinds
        data.edge_rows = sp.csr_matrix((np.ones(len(kind)), (np.arange(len(kind)), kind)))
    return data


def run(solver: str, data: Encoded, C: float, passes: int, options: dict[str, Any]) -> tuple[Any, float]:
    """(last point, CPU seconds)."""
    start = time.process_time()
    made = make_solver(solver, Learner(data), None, C, 0, options)
    _, trace = drive(made, Limits(tol=1e-3, max_iter=passes))
    return trace[-1], time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--solver", default="gdmm")
    parser.add_argument("--option", action="append", default=[])
    args = parser.parse_args()
    options = dict(option(text) for text in args.option)
    table: dict[tuple[str, float], list[tuple[Any, float]]] = {}
    for shape in SHAPES:
        for C in COSTS:
            found = table[shape, C] = [
                run(args.solver, problem(shape, seed, args.graphs, args.labels), C, args.passes, options)
                for seed in range(args.first, args.first + args.seeds)
            ]
            for seed, (point, seconds) in enumerate(found, args.first):
                gap = (point.primal - point.dual) / abs(point.primal)
                if not gap <= 1e-3:
                    print(f"missed: {shape} seed {seed} C {C:g}: primal {point.primal:.6g} dual {point.dual:.6g} "
                          f"gap {gap:.1e} infeasibility {point.infeasibility:.1e} after {seconds:.1f} s")  # fmt: skip
    print(f"\n{'shape':<10}{'C':>6}{'reached':>9}{'passes':>8}{'most':>6}{'CPU s':>8}")
    total = 0
    for (shape, C), found in table.items():
        reached = [p for p, _ in found if (p.primal - p.dual) / abs(p.primal) <= 1e-3]
        total += len(reached)
        counts = [p.passes for p, _ in found]
        seconds = sum(s for _, s in found)
        print(
            f"{shape:<10}{C:>6g}{len(reached):>6}/{len(found)}{np.median(counts):>8.0f}{max(counts):>6}{seconds:>8.1f}"
        )
    print(f"{total} of {sum(map(len, table.values()))} to a gap of 1e-3 in {args.passes} passes")


if __name__ == "__main__":
    main()
