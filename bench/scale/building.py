"""Seconds and memory to build large models.

    python -m bench building [--pairs 7500000]

Printed: one million pairwise factors from arrays, many binary pairs with weights (as in large multilabel models), and
factors added one by one; each with CPU seconds and peak memory, in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np

from fginfer import FactorGraph, Potts


def grid_factors(n: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(n), np.arange(1, n + 1)], 1)
    return FactorGraph.from_arrays(np.full(n + 1, 4), rng.normal(size=(n + 1, 4)), edges, tables=[np.eye(4)])


def binary_pairs(n: int) -> FactorGraph:
    rng = np.random.default_rng(0)
    k = int(np.sqrt(2 * n)) + 2
    first, second = np.triu_indices(k, 1)
    edges = np.stack([first[:n], second[:n]], 1).astype(np.int32)
    del first, second
    table = np.array([[0.0, 0.0], [0.0, 1.0]])
    return FactorGraph.from_arrays(np.full(k, 2), None, edges, tables=[table], weights=rng.normal(size=n))


def one_by_one(n: int) -> FactorGraph:
    graph = FactorGraph(np.full(n + 1, 4))
    table, potts = np.arange(16.0).reshape(4, 4), Potts(0, -1)
    for i in range(n):
        graph.add_factor([i, i + 1], table if i % 2 else potts)
    return graph


def measure(name: str, build: Callable[[int], FactorGraph], n: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    graph = build(n)
    score = graph.score(np.zeros(graph.n_variables, np.int32))
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = f"{peak / 1024:8.0f} MB (before: {before / 1024:.0f})"
    print(f"{name:28} {n:>9} factors {seconds:8.2f} s {size}, score {score:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7_500_000)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    cases = [
        ("from_arrays, shared table", grid_factors, 1_000_000),
        ("from_arrays, weighted pairs", binary_pairs, args.pairs),
        ("add_factor", one_by_one, 100_000),
    ]
    for case in cases:
        process = context.Process(target=measure, args=case)
        process.start()
        process.join()


if __name__ == "__main__":
    main()
