"""Solving again: what a change costs beside a new solve of the same model, in CPU time, favourable or not.

    python -m bench again [--repeats 5] [--large] [--frames 1000]

Segmentations (Potts grids with noise) with some unary scores turned round, all of them with noise (a video), a factor
that comes or goes; the last rows are loose, so that the portfolio has to start anew. Printed: medians in ms of changing
the graph, of update, run and result, of a fresh solve; their ratio; how many updates the keeper closed by itself; and
how many scores or statuses were not those of the fresh solve (to be 0). The first update, which makes the keeper, has a
column of its own. `--frames` is a video of 320 x 240 pixels and 8 labels instead: a square that moves, or noise of 2 %
everywhere; frames a second (CPU), and the peak of memory beside that of a fresh solve. With PyMaxflow installed, its
times for binary grids: built and solved afresh, and after a change of scores with its search trees reused.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from resource import RUSAGE_SELF, getrusage
from statistics import median
from time import process_time

import numpy as np

from fginfer import FactorGraph, Potts, Solver, solve


def scores(shape: tuple[int, int], labels: int, noise: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    coarse = rng.integers(labels, size=(shape[0] // 20 + 1, shape[1] // 20 + 1))
    truth = np.kron(coarse, np.ones((20, 20), int))[: shape[0], : shape[1], None]
    return (truth == np.arange(labels)) + noise * rng.standard_normal((*shape, labels))


class Cut:
    """A minimum cut of the same binary grid by PyMaxflow: afresh, and then with the search trees of the last one."""

    def __init__(self, unary: np.ndarray, smooth: float) -> None:
        import maxflow  # type: ignore[import-not-found, unused-ignore]

        begin = process_time()
        self._cut = maxflow.Graph[float]()
        self._nodes = self._cut.add_grid_nodes(unary.shape[:2])
        self._cut.add_grid_edges(self._nodes, smooth, symmetric=True)
        self._cut.add_grid_tedges(self._nodes, -unary[..., 0], -unary[..., 1])
        self._cut.maxflow()
        self.fresh = process_time() - begin
        self._last = unary.reshape(-1, 2).copy()
        self.again: list[float] = []

    def update(self, now: np.ndarray) -> None:
        """What has changed is found before the clock begins."""
        where = np.flatnonzero((now != self._last).any(axis=1))
        costs = self._last[where] - now[where]
        costs -= costs.min(axis=1, keepdims=True)
        nodes = self._nodes.reshape(-1)[where]
        begin = process_time()
        self._cut.add_grid_tedges(nodes, costs[:, 0], costs[:, 1])
        self._cut.mark_grid_nodes(nodes)
        self._cut.maxflow(reuse_trees=True)
        self.again.append(process_time() - begin)
        self._last = now.copy()

    def __str__(self) -> str:
        again = f"{1e3 * median(self.again[1:]):.2f}" if len(self.again) > 1 else "-"
        return f"{1e3 * self.fresh:9.1f} {again:>9}"


def measure(
    shape: tuple[int, int], labels: int, noise: float, part: float | str, repeats: int, smooth: float = 0.5
) -> None:
    rng, unary = np.random.default_rng(1), scores(shape, labels, noise)
    graph = FactorGraph.grid(shape, unary, Potts(0, -smooth))
    solver, n = Solver(graph), shape[0] * shape[1]
    solver.run()
    rows, kept, wrong, handle = [], 0, 0, None
    flat = unary.reshape(n, labels).copy()
    cut = Cut(unary, smooth) if labels == 2 and find_spec("maxflow") is not None else None
    for _ in range(repeats + 1):
        noise_now = 0.02 * rng.standard_normal(flat.shape) if part == "video" else None
        begin = process_time()
        if part == "factor":
            if handle is None:
                handle = graph.add_factor(rng.choice(n, size=2, replace=False), 0.5 * np.eye(labels))
            else:
                graph.remove_factor(handle)
                handle = None
        elif part == "video":
            graph.set_unaries(flat + noise_now)
        else:
            which = rng.choice(n, size=max(1, round(float(part) * n)), replace=False)
            flat[which] = np.roll(flat[which], 1, axis=1)
            graph.set_unaries(flat[which], which)
        setting = process_time() - begin
        if cut is not None and part != "factor":
            cut.update(flat if noise_now is None else flat + noise_now)
        changed = process_time()
        solver.update()
        solver.run()
        found = solver.result(dual=False)
        solved = process_time()
        fresh = solve(graph, dual=False)
        rows.append((setting, solved - changed, process_time() - solved))
        kept += found.proved_by == "again"
        assert found.score is not None
        assert fresh.score is not None
        wrong += found.status != fresh.status or abs(found.score - fresh.score) > 1e-9 * abs(fresh.score)
    first, (change, again, new) = rows[0][1], (1e3 * median(column) for column in zip(*rows[1:], strict=True))
    name = f"{shape[0]}x{shape[1]}x{labels} noise {noise}"
    other = f"{'-':>9} {'-':>9}" if cut is None else str(cut)
    print(f"{name:24} {part!s:>8} {change:8.2f} {again:8.2f} {1e3 * first:8.1f} {new:9.1f} {new / again:7.1f}x"
          f" {new / (change + again):7.1f}x {kept:3}/{repeats + 1} {wrong:5} {other}", flush=True)  # fmt: skip


def peak() -> int:
    """Megabytes, of the process so far."""
    return getrusage(RUSAGE_SELF).ru_maxrss >> 10


def film(frames: int, moving: bool) -> None:
    """A video: a square of 30 x 30 pixels on its way over a still picture, or noise that is new in every frame."""
    shape, labels = (240, 320), 8
    rng, still = np.random.default_rng(1), scores(shape, labels, 0.6)
    graph = FactorGraph.grid(shape, still, Potts(0, -0.5))
    before = peak()
    begin = process_time()
    solve(graph, dual=False)
    fresh, alone = process_time() - begin, peak()
    solver = Solver(graph)
    solver.run()
    last, spent, kept, where = still, 0.0, 0, np.zeros(shape[0] * shape[1], np.int32)
    for k in range(frames):
        if moving:
            now = still.copy()
            row, column = k % 200, (3 * k) % 280
            now[row : row + 30, column : column + 30, k // 200 % labels] += 2.0
            where = np.flatnonzero((now != last).any(axis=-1)).astype(np.int32)
        else:
            now = still + 0.02 * rng.standard_normal(still.shape)
        begin = process_time()
        if moving:
            graph.set_unaries(now.reshape(-1, labels)[where], where)
        else:
            graph.set_unaries(now.reshape(-1, labels))
        solver.update()
        solver.run()
        kept += solver.result(dual=False).proved_by == "again"
        spent += process_time() - begin
        last = now
    name = "square" if moving else "noise"
    print(f"{name:8} {frames:6} frames {frames / spent:8.1f} a second, fresh {1 / fresh:6.1f}; kept {kept};"
          f" peak {peak()} MB, fresh {alone} MB, before {before} MB", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench again", description="what a change costs, see the docstring")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="320x240x8, too, and more changes")
    parser.add_argument("--frames", type=int, default=0, help="a video of 320x240x8 instead, of so many frames")
    given = parser.parse_args()
    if given.frames:
        film(given.frames, True)
        film(given.frames, False)
        return
    names = (
        "changed",
        "setters",
        "again",
        "first",
        "fresh",
        "ratio",
        "with set",
        "kept",
        "wrong",
        "maxflow",
        "its again",
    )
    widths = (8, 8, 8, 8, 9, 8, 8, 5, 5, 9, 9)
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
