"""Dense models of pairs whose local relaxation is far off: `auto` with bounds from triples and without, at equal work.

usage: python -m bench loose [--seconds 3] [--only crowd] [--file MODEL ...]

Families made at random with fixed seeds, and the given files. Both runs get the same CPU seconds, set-up not counted,
and no more: a run ends at the first look at the clock after them. The last column is the gap with triples divided by
that without; it is 1 where triples do not join.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

import fginfer
from fginfer import FactorGraph, Progress

WITHOUT = {"triples_degree": 1e9}


def crowd(n: int, labels: int, density: float) -> FactorGraph:
    """Scores of pairs are noise."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        graph.add_factor([i], 2 * rng.normal(size=labels))
    for pair in combinations(range(n), 2):
        if rng.random() < density:
            graph.add_factor(list(pair), rng.normal(size=(labels, labels)))
    return graph


def clusters(n: int, labels: int, density: float) -> FactorGraph:
    """Pairs want to be alike or to differ, more or less."""
    rng = np.random.default_rng(0)
    graph = FactorGraph([labels] * n)
    for i in range(n):
        graph.add_factor([i], rng.normal(size=labels))
    for pair in combinations(range(n), 2):
        if rng.random() < density:
            graph.add_factor(list(pair), rng.normal() * np.eye(labels))
    return graph


def side_chains(n: int, most: int, density: float) -> FactorGraph:
    """Energies in kcal/mol: attraction that falls with the distance, and clashes; near pairs alone have a table."""
    rng = np.random.default_rng(0)
    cards, place = rng.integers(3, most + 1, n), rng.normal(size=(n, 3))
    graph = FactorGraph(cards)
    far = np.linalg.norm(place[:, None] - place, axis=2)
    reach = np.quantile(far[np.triu_indices(n, 1)], density)
    for i in range(n):
        graph.add_factor([i], -rng.gamma(2.0, 1.0, cards[i]))
    for i, j in combinations(range(n), 2):
        if far[i, j] < reach:
            shape = (cards[i], cards[j])
            clash = rng.gamma(2.0, 5.0, shape) * (rng.random(shape) < 0.05)
            graph.add_factor([i, j], 2 * np.exp(-far[i, j] / 1.5) * rng.normal(size=shape) - clash)
    return graph


def families() -> Iterator[tuple[str, FactorGraph]]:
    yield "side chains 40 x 12", side_chains(40, 12, 0.5)
    yield "side chains 60 x 20", side_chains(60, 20, 0.3)
    yield "side chains 80 x 30", side_chains(80, 30, 0.12)
    yield "crowd 30 x 10", crowd(30, 10, 1.0)
    yield "crowd 80 x 6", crowd(80, 6, 0.3)
    yield "crowd 60 x 4, sparse", crowd(60, 4, 0.08)
    yield "clusters 60 x 5", clusters(60, 5, 0.3)


def run(graph: FactorGraph, seconds: float, rules: dict[str, float]) -> fginfer.Result:
    end = time.process_time() + seconds

    def over(progress: Progress) -> bool:
        return time.process_time() > end

    return fginfer.solve(graph, rules=rules, callback=over, gap=0.0, dual=False)


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench loose", description=__doc__, formatter_class=shown)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default="", help="families whose name has this in it")
    parser.add_argument("--file", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    made = [(name, graph) for name, graph in families() if asked.only in name]
    made += [(path.name[:24], fginfer.read(path)) for path in asked.file]
    print(f"{'model':24} {'score':>12} {'bound':>12} {'score':>12} {'bound':>12} {'gap':>8} {'gap':>8} {'ratio':>6}")
    print(f"{'':24} {'without triples':>25} {'with them':>25} {'without':>8} {'with':>8}")
    for name, graph in made:
        before, now = run(graph, asked.seconds, WITHOUT), run(graph, asked.seconds, {})
        numbers = " ".join(f"{x:12.6g}" for r in (before, now) for x in (r.score, r.bound))
        ratio = "-" if not before.gap else f"{now.gap / before.gap:6.2f}"
        print(f"{name:24} {numbers} {before.gap:8.3g} {now.gap:8.3g} {ratio:>6}", flush=True)


if __name__ == "__main__":
    main()
