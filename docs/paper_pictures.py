"""Draws the pictures of docs/papers.md from runs of the present build, as conf.py does.

Small data, so that the manual is made in seconds; `python -m bench papers NAME` runs the sizes of the tables. The
folder docs/_static then has paper_score.svg (Figure 3.4), paper_learning.svg (Figure 3.3), paper_faces.svg (3.5),
paper_features.svg (4.1) and paper_curves.svg (4.6).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import fginfer
from fginfer.learn import EmbeddingClassifier, StructuredSVM

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # for the generators of bench


def _save(name: str) -> None:
    plt.savefig(HERE / "_static" / name, bbox_inches="tight")
    plt.close()


def score() -> None:
    """How far the best labeling so far is from the best of all, for the methods of Table 3.2."""
    rng = np.random.default_rng(0)
    cells, labels = rng.integers(0, 25, (300, 2)), 12
    edges = np.unique(np.sort(cells[cells[:, 0] != cells[:, 1]], axis=1), axis=0)
    tables = rng.normal(size=(len(edges), labels, labels))
    graph = fginfer.FactorGraph.from_arrays([labels] * 25, rng.normal(size=(25, labels)), edges, tables=tables)
    runs: dict[str, Any] = {
        name: fginfer.solve(graph, method, gap=0, max_iterations=200, time_limit=2.0, **options)
        for name, method, options in (
            ("gdmm, as printed", "gdmm", {"variant": "published"}), ("gdmm", "gdmm", {}), ("trws", "trws", {}),
            ("ad3", "ad3", {}), ("mplp", "mplp", {}), ("bp", "bp", {}), ("auto", "auto", {}),
        )
    }  # fmt: skip
    best = max(r.score for r in runs.values())
    _, axes = plt.subplots(figsize=(6.4, 3.4))
    for name, run in runs.items():
        points = [(1000 * p.seconds, best - p.score) for p in run.trace if p.score is not None]
        axes.step(*zip(*points, strict=True), where="post", label=name)
    axes.set(xscale="log", xlabel="milliseconds", ylabel="best score less its own")
    axes.legend(frameon=False, ncols=2, fontsize="small")
    _save("paper_score.svg")


def learning() -> None:
    """Objectives of structural support vector machines against passes over the data."""
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 12, 8) for _ in range(60)]
    weights = rng.normal(size=(12, 20))
    X = [weights[labels] + 1.5 * rng.normal(size=(8, 20)) for labels in y]
    _, axes = plt.subplots(figsize=(6.4, 3.2))
    runs = {
        solver: StructuredSVM(solver=solver, C=0.3, tol=0, max_iter=40, eval_every=1, random_state=0).fit(X, y).trace_
        for solver in ("gdmm", "bcfw", "cutting-plane", "fw", "ssg")
    }
    least = max(p.dual for trace in runs.values() for p in trace if p.dual is not None)
    for solver, trace in runs.items():
        points = [(p.passes, max(p.primal / least - 1, 1e-6)) for p in trace if p.primal is not None and p.passes]
        axes.plot(*zip(*points, strict=True), label=solver)
    axes.set(yscale="log", xlabel="passes over the examples", ylabel="objective above the best bound, relative")
    axes.legend(frameon=False)
    _save("paper_learning.svg")


def faces() -> None:
    """The exact loss, the loss by search, and by search in two blocks, on synthetic faces."""
    from bench.learn.inner_products_data import faces as identities

    data = identities(4_000, 64, 4)
    _, axes = plt.subplots(figsize=(6.4, 3.2))
    for name, method in (("all labels", "exact"), ("search by codes", "search"), ("two blocks by codes", "decomposed")):
        model = EmbeddingClassifier(
            method=method, eta0=4.0, batch_size=64, max_iter=3, eval_every=1, fit_intercept=False, random_state=0
        )
        right = model.fit(data.X, data.y).score(data.X_test[:1000], data.y_test[:1000])
        points = [(p.seconds, p.primal) for p in model.trace_ if p.passes]
        axes.plot(*zip(*points, strict=True), "o-", label=f"{name}: {100 * right:.1f} % right at the end")
    axes.set(yscale="log", xlabel="seconds", ylabel="mean loss of training samples")
    axes.legend(frameon=False)
    _save("paper_faces.svg")


def features() -> None:
    """Rows that are sums of seven by seven patches: a row, a true patch and the one found, five times."""
    from scipy.optimize import linear_sum_assignment

    from bench.papers.latent import make_features
    from fginfer.latent import LatentFeatureLasso

    X, Z, W = make_features("Syn2", 0.5, 0)
    model = LatentFeatureLasso(len(W), random_state=0).fit(X)
    differ = (model.assignments_[:, :, None] != Z[:, None, :]).mean(0)
    found, true = linear_sum_assignment(differ)
    side = int(np.sqrt(W.shape[1]))
    figure, axes = plt.subplots(3, 5, figsize=(6.4, 3.9))
    for k, column in enumerate(axes.T):
        for axis, image in zip(column, (X[k], W[true[k]], model.components_[found[k]]), strict=True):
            axis.imshow(image.reshape(side, side), cmap="Greys")
            axis.set(xticks=[], yticks=[])
    for axis, name in zip(axes[:, 0], ("a row", "a feature", "found"), strict=True):
        axis.set_ylabel(name)
    figure.tight_layout()
    _save("paper_features.svg")


def curves() -> None:
    """Points of four polynomials, told apart without knowing which is whose."""
    from bench.papers.mixture import GRID, fit_curves, make_curves

    x, y, _, _ = make_curves(200, 0.1, 0)
    model, fits = fit_curves(x, y, 6)
    _, axes = plt.subplots(figsize=(6.4, 3.4))
    outputs = fits["lasso"](GRID)
    for k in range(outputs.shape[1]):
        own = model.assignments_[:, k] == 1
        axes.scatter(x[own, 0], y[own], color=f"C{k}", s=6)
        axes.plot(GRID[:, 0], outputs[:, k], color=f"C{k}", linewidth=1)
    axes.set(xlabel="x", ylabel="y", ylim=(1.2 * y.min(), 1.2 * y.max()))
    _save("paper_curves.svg")


def write() -> None:
    """All of them."""
    for draw in (score, learning, faces, features, curves):
        draw()


if __name__ == "__main__":
    write()
