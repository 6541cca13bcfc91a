"""How gdmm begins: what it chooses by itself, beside sparse iterations alone and sweeps alone, at equal CPU time.

    python -m bench gdmm_start [--families matching,flow] [--sizes 32,64] [--seconds 2]

Six families at twelve sizes. A run ends when it is done or has used its CPU seconds; the gap is looked at after a
tenth, three tenths and all of the time that the slowest of the three needs, and a cell is what gdmm by itself has
over the better of the two (1: level; above 1.2: a cliff). The last line counts the cells that are worse.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fginfer
from bench.map import gdmm_models as models
from bench.papers.matching import distances

RUNS: dict[str, dict[str, str]] = {
    "itself": {},
    "sparse": {"access": "sorted", "sweep": "off"},
    "sweeps": {"sweep": "on"},
}
SIZES = (16, 32, 48, 64, 96, 128, 192, 256, 512, 768, 1024, 2048)
ALMOST = 1e-6  # below this gap two runs are level
Make = Callable[[int], fginfer.FactorGraph]


def network(rng: np.random.Generator, nodes: int) -> NDArray[np.bool_]:
    """A network that grows by nodes which join some neighbourhood, as friends of friends do."""
    adjacent = np.zeros((nodes, nodes), bool)
    for new in range(1, nodes):
        around = np.append(np.flatnonzero(adjacent[rng.integers(new)]), rng.integers(new))
        chosen = np.unique(rng.choice(around, 4))
        adjacent[new, chosen] = adjacent[chosen, new] = True
    return adjacent


def matching(size: int) -> fginfer.FactorGraph:
    """bench/papers/matching.py on a network of our own: places are nodes of a part of it, labels all of its nodes."""
    rng = np.random.default_rng([1, size])
    adjacent = network(rng, size)
    here = np.sort(rng.choice(size, max(4, size // 6), replace=False))
    features = (rng.random((size, 64)) < 0.15).astype(float)
    edges = np.argwhere(np.triu(adjacent[np.ix_(here, here)]))
    scores = features[here] @ features.T
    return fginfer.FactorGraph.from_arrays([size] * len(here), scores, edges, tables=[distances(adjacent)])


def rewired(size: int) -> fginfer.FactorGraph:
    """The same where part of the network has changed, so that no labeling fits everywhere."""
    rng = np.random.default_rng([2, size])
    before, after = network(rng, size), network(rng, size)
    there = np.where(rng.random((size, size)) < 0.8, before, after)
    there = np.triu(there, 1)
    here = np.sort(rng.choice(size, max(4, size // 6), replace=False))
    features = (rng.random((size, 64)) < 0.15).astype(float)
    edges = np.argwhere(np.triu(before[np.ix_(here, here)]))
    scores = 0.3 * features[here] @ features.T
    return fginfer.FactorGraph.from_arrays([size] * len(here), scores, edges, tables=[distances(there | there.T)])


def text(size: int) -> fginfer.FactorGraph:
    """A chain of places whose labels follow each other by a law of few likely successors, read through noise."""
    rng = np.random.default_rng([3, size])
    table = rng.gumbel(size=(size, size)) + 3.0 * (rng.random((size, size)) < 3 / size)
    scores = rng.normal(0, 0.5, (80, size)) + 3.0 * (rng.random((80, size)) < 4 / size)
    edges = np.stack([np.arange(79), np.arange(1, 80)], 1)
    return fginfer.FactorGraph.from_arrays([size] * 80, scores, edges, tables=[table])


def loose(size: int) -> fginfer.FactorGraph:
    """A sparse random graph whose edges share one table of random scores."""
    rng = np.random.default_rng([4, size])
    edges = np.unique(np.sort(rng.integers(0, 60, (150, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] < edges[:, 1]]
    table = rng.normal(size=(size, size))
    return fginfer.FactorGraph.from_arrays([size] * 60, rng.normal(size=(60, size)), edges, tables=[table])


FAMILIES: dict[str, Make] = {
    "matching": matching,
    "rewired": rewired,
    "text": text,
    "flow": models.flow,
    "loose": loose,
    "complete": models.complete,
}


def curve(graph: fginfer.FactorGraph, settings: dict[str, Any], limit: float) -> list[tuple[float, float]]:
    """CPU seconds, those of the set-up included, and the gap then."""
    begin = time.process_time()
    out: list[tuple[float, float]] = []
    with fginfer.Solver(graph, "gdmm", **settings) as solver:
        while solver.status == "running" and (not out or out[-1][0] < limit):
            solver.run(seconds=0.004, iterations=1)
            now = solver.progress()
            out.append((time.process_time() - begin, inf if now.gap is None else now.gap))
    return out


def gap_at(points: list[tuple[float, float]], seconds: float) -> float:
    return min((gap for at, gap in points if at <= seconds), default=inf)


def compare(name: str, make: Make, size: int, limit: float) -> list[float]:
    curves = {run: curve(make(size), settings, limit) for run, settings in RUNS.items()}  # afresh: nothing is sorted
    end = max(points[-1][0] for points in curves.values())
    cells, shown = [], []
    for share in (0.1, 0.3, 1.0):
        own, *others = (gap_at(curves[run], share * end) for run in RUNS)
        best = min(others)
        cells.append(1.0 if own <= max(best, ALMOST) else own / max(best, ALMOST))
        shown.append(f"{own:.2g} {others[0]:.2g} {others[1]:.2g}")
    times = " ".join(f"{points[-1][0]:.3f}" for points in curves.values())
    print(f"{name:<9}{size:>5}  seconds {times}  gaps " + " | ".join(shown) + f"  worst {max(cells):.2f}", flush=True)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print("seconds and gaps: itself, sparse, sweeps")
    cells: list[float] = []
    for name in options.families.split(","):
        for size in map(int, options.sizes.split(",")):
            cells += compare(name, FAMILIES[name], size, options.seconds)
    print(f"{sum(cell > 1.2 for cell in cells)} of {len(cells)} cells are worse than 1.2 times the better of the two")


if __name__ == "__main__":
    main()
