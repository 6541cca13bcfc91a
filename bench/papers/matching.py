"""Graph matching on a SNAP ego network (Yan 2018, section 3.2.3).

    python -m bench matching DIR/facebook [--ego 107] [--sub 85,188] [--threads 1]

Variables are the nodes of a sampled subgraph, labels all nodes of the network. The unary score is the inner product of
feature rows; every induced edge carries the *same* table, 1 / shortest-path distance (0 if unreachable, -inf on the
diagonal). The bound at mu = 0 is tight here, so any method proves it: sorted_oracles.py has harder ones. Printed:
time to the best labeling and to a gap of 1e-6, table entries touched per oracle call, peak memory.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import fginfer


def distances(adjacency: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 / shortest-path distance between all pairs, 0 if unreachable, -inf on the diagonal."""
    n = len(adjacency)
    steps = adjacency.astype(np.float32)
    reached, frontier = np.eye(n, dtype=bool), np.eye(n, dtype=bool)
    table = np.zeros((n, n))
    for d in range(1, n):
        frontier = (frontier.astype(np.float32) @ steps > 0) & ~reached
        if not frontier.any():
            break
        table[frontier] = 1.0 / d
        reached |= frontier
    np.fill_diagonal(table, -np.inf)
    return table


def build(folder: Path, ego: str, sub: str) -> fginfer.FactorGraph:
    features = np.loadtxt(folder / f"{ego}.feat", dtype=np.int64)
    names = {int(name): k for k, name in enumerate(features[:, 0])}
    features = features[:, 1:].astype(np.float64)
    n = len(names)
    adjacency = np.zeros((n, n), bool)
    for a, b in np.loadtxt(folder / f"{ego}.edges", dtype=np.int64):
        adjacency[names[a], names[b]] = adjacency[names[b], names[a]] = True
    nodes = [names[int(v)] for v in (folder / f"{ego}.sub{sub}.txt").read_text().split()]
    edges = np.argwhere(np.triu(adjacency[np.ix_(nodes, nodes)]))
    unary = features[nodes] @ features.T
    return fginfer.FactorGraph.from_arrays([n] * len(nodes), unary, edges, tables=[distances(adjacency)])


def report(name: str, graph: fginfer.FactorGraph, r: fginfer.Result, cpu: float, memory: float) -> None:
    score = -np.inf if r.score is None else r.score
    best = next((p.seconds for p in r.trace if p.score is not None and p.score >= score - 1e-9), np.nan)
    s, calls = r.statistics, r.statistics["oracle_calls"]
    times = ", ".join(f"{k[8:]} {v:.3f}" for k, v in s.items() if k.startswith("seconds_"))
    print(f"{name}: {graph.n_variables} variables, {graph.max_labels} labels")
    print(f"  {r.status}: score {r.score}, bound {r.bound}, {r.iterations} iterations")
    print(f"  best labeling after {best:.3f} s, end after {r.seconds:.3f} s ({cpu:.3f} s of CPU)")
    by_calls = s["entries_touched"] - s["sweep_entries"]
    print(f"  {by_calls / max(calls, 1):.1f} entries touched per oracle call ({calls:.0f} calls)", end="")
    print(f", {s['sweep_entries']:.3g} by {s['sweeps']:.0f} sweeps")
    print(f"  seconds: {times}; peak memory {memory:.0f} MB (the process, Python included)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ego", default="107")
    parser.add_argument("--sub", default="85,188")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    for sub in options.sub.split(","):
        name = f"{options.ego}.sub{sub}"
        graph = build(options.folder, options.ego, sub)
        before = resource.getrusage(resource.RUSAGE_SELF)
        r = fginfer.solve(graph, "gdmm", time_limit=options.seconds, threads=options.threads, dual=False)
        after = resource.getrusage(resource.RUSAGE_SELF)
        report(name, graph, r, after.ru_utime - before.ru_utime, after.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
