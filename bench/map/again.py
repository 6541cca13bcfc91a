"""Solving again: what a change costs beside a new solve of the same model, in CPU time, favourable or not.

    python -m bench again [--repeats 5] [--large]

Segmentations (Potts grids with noise) with some unary scores turned round, all of them with noise (a video), a factor
that comes or goes; the last rows are loose, so that the portfolio has to start anew. Printed: medians in ms of changing
the graph, of update, run and result, of a fresh solve; their ratio; how many updates the keeper closed by itself; and
how many scores or statuses were not those of the fresh solve (to be 0). The first update, which makes the keeper, has a
column of its own. With PyMaxflow installed, its time for binary grids, built and solved afresh.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import process_time

import numpy as np

from fginfer import FactorGraph, Potts, Solver, solve


def scores(shape: tuple[int, int], labels: int, noise: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    coarse = rng.integers(labels, size=(shape[0] // 20 + 1, shape[1] // 20 + 1))
    truth = np.kron(coarse, np.ones((20, 20), int))[: shape[0], : shape[1], None]
    return (truth == np.arange(labels)) + noise * rng.standard_normal((*shape, labels))


def cut_ms(unary: np.ndarray, smooth: float) -> str:
    """A minimum cut of the same binary grid."""
    try:
        import maxflow  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return "-"
    begin = process_time()
    cut = maxflow.Graph[float]()
    nodes = cut.add_grid_nodes(unary.shape[:2])
    cut.add_grid_edges(nodes, smooth, symmetric=True)
    cut.add_grid_tedges(nodes, -unary[..., 0], -unary[..., 1])
    cut.maxflow()
    return f"{1e3 * (process_time() - begin):.1f}"


def measure(
    shape: tuple[int, int], labels: int, noise: float, part: float | str, repeats: int, smooth: float = 0.5
) -> None:
    rng, unary = np.random.default_rng(1), scores(shape, labels, noise)
    graph = FactorGraph.grid(shape, unary, Potts(0, -smooth))
    solver, n = Solver(graph), shape[0] * shape[1]
    solver.run()
    rows, kept, wrong, handle = [], 0, 0, None
    flat = unary.reshape(n, labels).copy()
    for _ in range(repeats + 1):
        begin = process_time()
        if part == "factor":
            if handle is None:
                handle = graph.add_factor(rng.choice(n, size=2, replace=False), 0.5 * np.eye(labels))
            else:
                graph.remove_factor(handle)
                handle = None
        elif part == "video":
            graph.set_unaries(flat + 0.02 * rng.standard_normal(flat.shape))
        else:
            which = rng.choice(n, size=max(1, round(float(part) * n)), replace=False)
            flat[which] = np.roll(flat[which], 1, axis=1)
            graph.set_unaries(flat[which], which)
        changed = process_time()
        solver.update()
        solver.run()
        found = solver.result(dual=False)
        solved = process_time()
        fresh = solve(graph, dual=False)
        rows.append((changed - begin, solved - changed, process_time() - solved))
        kept += found.proved_by == "again"
        assert found.score is not None
        assert fresh.score is not None
        wrong += found.status != fresh.status or abs(found.score - fresh.score) > 1e-9 * abs(fresh.score)
    first, (change, again, new) = rows[0][1], (1e3 * median(column) for column in zip(*rows[1:], strict=True))
    name = f"{shape[0]}x{shape[1]}x{labels} noise {noise}"
    other = cut_ms(unary, smooth) if labels == 2 else "-"
    print(f"{name:24} {part!s:>8} {change:8.2f} {again:8.2f} {1e3 * first:8.1f} {new:9.1f} {new / again:7.1f}x"
          f" {new / (change + again):7.1f}x {kept:3}/{repeats + 1} {wrong:5} {other:>9}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench again", description="what a change costs, see the docstring")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="320x240x8, too, and more changes")
    given = parser.parse_args()
    names = ("changed", "setters", "again", "first", "fresh", "ratio", "with set", "kept", "wrong", "maxflow")
    widths = (8, 8, 8, 8, 9, 8, 8, 5, 5, 9)
    print(f"{'model':24}", *(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)))
    grids = [((200, 200), 8), ((300, 300), 2)]
    grids += [((320, 240), 8)] if given.large else []
    for shape, labels in grids:
        for part in (0.0005, 0.01, "video", "factor"):
            measure(shape, labels, 0.6, part, given.repeats)
    measure((60, 60), 4, 1.0, 0.01, given.repeats)
    measure((25, 25), 3, 0.5, 0.01, given.repeats, smooth=-1.0)  # neighbours want to differ
    measure((25, 25), 3, 0.5, "video", given.repeats, smooth=-1.0)


if __name__ == "__main__":
    main()
