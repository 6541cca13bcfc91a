"""Draws the pictures of docs/mathematics.md from runs of the present build, as conf.py does: `python docs/pictures.py`.

The folder docs/_static then has regions.svg (what the sorted oracle reads), active.svg (active states), trace.svg
(score and bound) and growth.svg (entries read against labels).
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fginfer

HERE = Path(__file__).resolve().parent
BLUE, ORANGE, GREY = "#1e6fb3", "#b3541e", "#8a8a8a"
SPARSE = {"access": "sorted", "sweep": "off", "search": "off"}  # Algorithm 8 with its sorted lists, and nothing beside


def _save(name: str) -> None:
    plt.savefig(HERE / "_static" / name, bbox_inches="tight")
    plt.close()


def regions() -> None:
    """A table whose labels with messages stand first, and the entries that each region looks at."""
    rng = np.random.default_rng(3)
    n, rows, columns = 14, 4, 3
    table = rng.normal(size=(n, n))
    read = np.zeros((n, n), bool)
    read[np.unravel_index(np.argmax(np.where(_outside(n, rows, columns), table, -np.inf)), (n, n))] = True
    for a in range(rows):
        read[a, columns + int(np.argmax(table[a, columns:]))] = True
    for b in range(columns):
        read[rows + int(np.argmax(table[rows:, b])), b] = True
    bounds = table.max(axis=1)[:rows]
    read[np.argsort(-bounds)[:2], :columns] = True  # the other rows cannot hold the best of this region
    _, axes = plt.subplots(figsize=(6.4, 4.6))
    axes.imshow(table, cmap="Greys", alpha=0.45, vmin=-3, vmax=3)
    for a, b in np.argwhere(read):
        axes.add_patch(plt.Rectangle((b - 0.5, a - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=2))
    axes.axhline(rows - 0.5, color=BLUE)
    axes.axvline(columns - 0.5, color=BLUE)
    notes = (
        (1.5, "both labels carry a message:\nrows in the order of their bound,\nuntil no row can be better"),
        (5.5, "the row's label carries one:\nthe first entry of each row's list"),
        (9.0, "the column's label carries one:\nthe first entry of each column's list"),
        (12.5, "no message: the first entry\nof the table's list"),
    )
    for (height, text), (x, y) in zip(notes, ((1, 1.5), (9, 2), (1.5, 9), (9, 10)), strict=True):
        axes.annotate(text, (x, y), (n + 0.7, height), va="center", arrowprops={"arrowstyle": "-", "color": GREY})
    axes.set_xlabel("labels of the second variable")
    axes.set_ylabel("labels of the first")
    axes.set_xticks([])
    axes.set_yticks([])
    _save("regions.svg")


def _outside(n: int, rows: int, columns: int) -> np.ndarray:
    inside = np.zeros((n, n), bool)
    inside[rows:, columns:] = True
    return inside


def active() -> None:
    """A template of points is looked for among 400: the active states of Algorithm 8 after each iteration."""
    from bench.papers.growth import crowded

    graph, states = crowded(400), []
    with fginfer.Solver(graph, "gdmm", gap=1e-9, **SPARSE) as solver:
        while solver.run(iterations=1) == "running" and len(states) < 300:
            progress = solver.progress()
            if progress.active is not None:
                states.append((progress.iterations, progress.active))
    _, axes = plt.subplots(figsize=(6.4, 3))
    axes.plot(*zip(*states, strict=True), color=BLUE)
    axes.set_ylim(0, None)
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"active states of a factor\n(it has {graph.max_labels**2:,} states)")
    _save("active.svg")


def trace() -> None:
    """A run of gdmm as it is by default, on an image of 60 x 60 pixels with eight labels."""
    rng = np.random.default_rng(0)
    image = fginfer.FactorGraph.grid((60, 60), rng.normal(size=(60, 60, 8)), fginfer.Potts(0, -0.8))
    result = fginfer.solve(image, "gdmm", gap=1e-5, max_iterations=200)
    points = [(p.seconds, p.score, p.bound) for p in result.trace if p.score is not None and p.bound is not None]
    steps = np.array(points, float)
    _, axes = plt.subplots(figsize=(6.4, 3))
    axes.step(1000 * steps[:, 0], steps[:, 2], where="post", color=ORANGE, label="bound")
    axes.step(1000 * steps[:, 0], steps[:, 1], where="post", color=BLUE, label="score")
    low, high = np.quantile(steps[:, 1], 0.2), np.quantile(steps[:, 2], 0.8)
    axes.set_ylim(low - 0.2 * (high - low), high + 0.2 * (high - low))
    axes.set_xlabel("milliseconds")
    axes.legend(frameon=False)
    _save("trace.svg")


def growth() -> None:
    """A family that suits sorted lists, one that does not, and the tables themselves."""
    from bench.papers.growth import complete, matching

    _, axes = plt.subplots(figsize=(6.4, 3.4))
    axes.loglog((64, 512), (64**2, 512**2), "--", color=ORANGE, label="entries of a table")
    for make, sizes, color, name in (
        (matching, (64, 128, 256, 512), BLUE, "graph matching"),
        (complete, (64, 128, 256), GREY, "random tables: the unfavourable case"),
    ):
        axes.loglog(sizes, [_entries_of_a_call(make(k)) for k in sizes], "o-", color=color, label=name)
    axes.set_xlabel("labels")
    axes.set_ylabel("entries read in a call")
    axes.legend(frameon=False)
    _save("growth.svg")


def _entries_of_a_call(graph: fginfer.FactorGraph) -> float:
    counts = fginfer.solve(graph, "gdmm", gap=1e-6, max_iterations=50, **SPARSE).statistics
    return counts["entries_touched"] / max(1.0, counts["oracle_calls"])


def write() -> None:
    """All of them."""
    sys.path.append(str(HERE.parent))  # for the generators of bench
    for draw in (regions, trace, active, growth):
        draw()


if __name__ == "__main__":
    write()
