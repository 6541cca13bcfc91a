"""Layers: the losses of fginfer.nn on one task, and SparseMAP beside a general solver of quadratic programs.

usage: python -m bench layers [--part losses sparsemap] [--epochs N] [--seed N]

losses: chains of noisy observations (12 variables of 5 labels, 200 to learn from, 200 to test), a linear model, plain
gradient descent with the same steps for all. Per loss: CPU seconds an epoch, the mean loss at the end, and labels that
are right. "network alone" has no factors.

sparsemap: the quadratic program over the local polytope on chains and grids, by us from scratch, by us again after the
scores moved by 1 %, and by HiGHS. Per structure: CPU milliseconds a problem, and how far our value lies from HiGHS's.
The package lp-sparsemap cannot be built from PyPI: its archive lacks the Cython files that its set-up names.
"""

from __future__ import annotations

import argparse
from time import process_time

import highspy
import numpy as np

from fginfer import nn
from fginfer.nn.scores import check_scores

LOSSES = ("network alone", "perceptron", "hinge", "perturbed_loss", "sparse_loss", "crf_loss")
LENGTH, LABELS, EXAMPLES, STEP = 12, 5, 200, 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=["losses", "sparsemap"], choices=["losses", "sparsemap"])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if "losses" in args.part:
        losses(args.epochs, args.seed)
    if "sparsemap" in args.part:
        programs(args.seed)


# -- losses ----------------------------------------------------------------------------------------------------


def chains(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels that mostly go on to the next one, and observations that tell them from each other in one of two cases."""
    truth = np.zeros((count, LENGTH), int)
    truth[:, 0] = rng.integers(0, LABELS, count)
    for k in range(1, LENGTH):
        follows = rng.random(count) < 0.8
        truth[:, k] = np.where(follows, (truth[:, k - 1] + 1) % LABELS, rng.integers(0, LABELS, count))
    return np.eye(LABELS)[truth] + rng.normal(0, 0.8, (count, LENGTH, LABELS)), truth


def losses(epochs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = chains(EXAMPLES, rng)
    test, right = chains(EXAMPLES, rng)
    print(f"{'loss':16} {'s an epoch':>10} {'mean loss':>10} {'right':>7}")
    for name in LOSSES:
        alone = name == "network alone"
        structure = nn.Structure([LABELS] * LENGTH) if alone else nn.Structure.chain(LENGTH, LABELS)
        layer = nn.Layer(structure)
        loss_of = layer.crf_loss if alone else getattr(layer, name)
        weights, table = np.zeros((LABELS, LABELS)), None if alone else np.zeros((LABELS, LABELS))
        more = {} if alone or name == "crf_loss" else {"keys": range(20)}
        began = process_time()
        for _ in range(epochs):
            total = 0.0
            for k in range(0, EXAMPLES, 20):
                given = more and {"keys": range(k, k + 20)}
                loss = loss_of(y[k : k + 20], x[k : k + 20] @ weights, table, **given)
                weights -= STEP * np.einsum("nvf,nvl->fl", x[k : k + 20], loss.gradients.unaries)
                table = None if table is None else table - STEP * loss.gradients.tables
                total += loss.values.sum()
        seconds = (process_time() - began) / epochs
        share = (layer.labels(test @ weights, table) == right).mean()
        print(f"{name:16} {seconds:10.4f} {total / EXAMPLES:10.4f} {share:7.1%}")


# -- SparseMAP -------------------------------------------------------------------------------------------------


def programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = {
        "chain 20 x 5": nn.Structure.chain(20, 5, shared=False),
        "chain 100 x 10": nn.Structure.chain(100, 10, shared=False),
        "grid 6 x 6 x 3": nn.Structure.grid((6, 6), 3, shared=False),
        "grid 20 x 20 x 3": nn.Structure.grid((20, 20), 3, shared=False),
    }
    print(f"\n{'structure':18} {'ours ms':>8} {'again ms':>8} {'HiGHS ms':>9} {'ratio':>7} {'value - HiGHS':>14}")
    for name, structure in kinds.items():
        count = 3 if structure.n_labels < 1000 else 1
        unaries = rng.normal(size=(count, structure.n_labels))
        tables = rng.normal(size=(count, structure.n_values))
        layer = nn.Layer(structure)
        scores = check_scores(structure, unaries, tables)[0]
        cold, (values, _) = timed(lambda layer=layer, s=scores, n=count: layer.work._sparse(s, range(n)))
        near = check_scores(structure, unaries * (1 + 0.01 * rng.normal(size=unaries.shape)), tables)[0]
        warm, _ = timed(lambda layer=layer, s=near, n=count: layer.work._sparse(s, range(n)))
        theirs, found = timed(
            lambda s=structure, u=unaries, t=tables: [highs(s, *each) for each in zip(u, t, strict=True)]
        )
        times = [1e3 * seconds / count for seconds in (cold, warm, theirs)]
        apart = max(abs(values - np.array(found)))
        print(f"{name:18} {times[0]:8.2f} {times[1]:8.2f} {times[2]:9.1f} {times[2] / times[0]:7.0f} {apart:14.1e}")


def timed(work):
    began = process_time()
    out = work()
    return process_time() - began, out


def highs(s: nn.Structure, unary: np.ndarray, tables: np.ndarray) -> float:
    """The value of the program by HiGHS, over labels and states."""
    n, m = s.n_labels, int(s.state_begin[-1])
    rows: list[tuple[np.ndarray, np.ndarray, float]] = []
    for v in range(s.n_variables):
        own = np.arange(s.label_begin[v], s.label_begin[v + 1])
        rows.append((own, np.ones(len(own)), 1.0))
    for f, scope in enumerate(s.scopes):
        where = n + np.arange(s.state_begin[f], s.state_begin[f + 1]).reshape(s.table_shapes[s.table_ids[f]])
        for q, v in enumerate(scope):
            for a in range(where.shape[q]):
                states = np.take(where, a, q).reshape(-1)
                at = np.concatenate([states, [s.label_begin[v] + a]])
                rows.append((at, np.concatenate([np.ones(len(states)), [-1.0]]), 0.0))
    model = highspy.HighsModel()
    lp, hessian = model.lp_, model.hessian_
    lp.num_col_, lp.num_row_ = n + m, len(rows)
    lp.col_cost_ = -np.concatenate([unary, tables[s.state_value]])
    lp.col_lower_, lp.col_upper_ = np.zeros(n + m), np.ones(n + m)
    lp.row_lower_ = lp.row_upper_ = np.array([b for _, _, b in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(at) for at, _, _ in rows])])
    lp.a_matrix_.index_ = np.concatenate([at for at, _, _ in rows])
    lp.a_matrix_.value_ = np.concatenate([values for _, values, _ in rows])
    hessian.dim_, hessian.format_ = n + m, highspy.HessianFormat.kTriangular
    hessian.start_ = np.concatenate([np.arange(n), np.full(m + 1, n)])
    hessian.index_, hessian.value_ = np.arange(n), np.ones(n)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", 60.0)
    solver.passModel(model)
    solver.run()
    return -float(solver.getInfo().objective_function_value)


if __name__ == "__main__":
    main()
