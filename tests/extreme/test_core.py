"""The core against independent solvers and brute force."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fginfer.core.extreme import SEARCHES, Lines, PdSolver, PpdTrainer, Scorer, project
from fginfer.errors import DataError, ModelError, SettingsError
from fginfer.extreme.data import rows_of
from fginfer.extreme.model import bias_order

from .problems import data_of, random_problem, same_lines, settings

numbers = st.floats(-5, 5, allow_nan=False, width=32)


def by_bisection(p, q, size):
    """The projection through its optimality condition: the imbalance falls in theta."""
    if np.max(p) + np.max(q) <= 0:
        return 0 * p, 0 * q
    low, high = -20.0, 20.0
    for _ in range(200):
        theta = (low + high) / 2
        if np.maximum(p - theta, 0).sum() > np.maximum(q + theta, 0).sum():
            low = theta
        else:
            high = theta
    if np.maximum(p - theta, 0).sum() <= size:
        return np.maximum(p - theta, 0), np.maximum(q + theta, 0)

    def simplex(v):
        a, b = v.min() - size - 1, v.max()
        for _ in range(200):
            m = (a + b) / 2
            a, b = (m, b) if np.maximum(v - m, 0).sum() > size else (a, m)
        return np.maximum(v - a, 0)

    return simplex(p), simplex(q)


@given(st.lists(numbers, min_size=1, max_size=8), st.lists(numbers, min_size=1, max_size=8), st.floats(0.05, 4))
def test_projection_agrees_with_bisection(p, q, size):
    p, q = np.array(p), np.array(q)
    for found, expected in zip(project(p, q, size), by_bisection(p, q, size), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_projection_of_nothing():
    p, q = project(np.zeros(0), np.array([1.0, 2.0]), 1.0)
    assert len(p) == 0
    assert np.array_equal(q, [0.0, 0.0])


# ---- ppd-sparse


def ppd_optimum(X, y, s):
    """The optimum of one label, from the dual by scipy's bounded quasi-Newton."""
    C = np.where(y > 0, s["C"] * s["positive_weight"], s["C"])

    def dual(alpha):
        v = X.T @ (y * alpha)
        w = np.sign(v) * np.maximum(np.abs(v) - s["lambda"], 0)
        shift = s["learn_bias"] * (y @ alpha)
        ridge = s["loss"] * alpha / (2 * C)
        value = 0.5 * w @ w + 0.5 * shift**2 - alpha @ (1 - y * s["bias"]) + 0.5 * alpha @ ridge
        return value, y * (X @ w + shift + s["bias"]) - 1 + ridge

    bounds = [(0, c if s["loss"] == 0 else None) for c in C]
    found = minimize(dual, np.zeros(len(y)), jac=True, bounds=bounds, method="L-BFGS-B",
                     options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    return -found.fun


def ppd_primal(X, y, w, b, s):
    C = np.where(y > 0, s["C"] * s["positive_weight"], s["C"])
    short = np.maximum(0, 1 - y * (X @ w + b))
    loss = C @ (short if s["loss"] == 0 else short**2)
    return s["lambda"] * np.abs(w).sum() + 0.5 * w @ w + s["learn_bias"] * 0.5 * (b - s["bias"]) ** 2 + loss


@pytest.mark.parametrize("loss", [0, 1])
@pytest.mark.parametrize(("learn_bias", "bias"), [(1, 0.0), (1, -1.0), (0, -1.0), (0, 0.0)])
def test_ppd_reaches_the_optimum(loss, learn_bias, bias):
    X, y = random_problem(3, n=50, d=20, k=5)
    s = settings(loss=loss, learn_bias=learn_bias, bias=bias, lam=0.1, C=0.7, positive_weight=1.5)
    columns = PpdTrainer(data_of(X, y, 5), 1, **s).train(np.arange(5))
    dense = X.toarray().astype(float)
    for k in range(5):
        sign = np.array([1.0 if k in labels else -1.0 for labels in y])
        best, info = ppd_optimum(dense, sign, s), columns.info[k]
        assert info["converged"] == 1
        assert info["dual"] <= best * (1 + 1e-9)
        assert info["primal"] >= best * (1 - 1e-9)
        assert info["primal"] - info["dual"] <= 1e-6 * info["primal"]
        w = np.zeros(20)
        at = slice(columns.weights.begin[k], columns.weights.begin[k + 1])
        w[columns.weights.index[at]] = columns.weights.value[at]
        assert ppd_primal(dense, sign, w, columns.bias[k], s) == pytest.approx(info["primal"], rel=1e-5)
        assert info["weights"] == np.count_nonzero(w)
        assert info["positives"] == (sign > 0).sum()


def test_sampled_search_does_not_change_the_end():
    X, y = random_problem(5, n=400, d=300, k=6, density=0.1)
    data = data_of(X, y, 6)
    exact = PpdTrainer(data, 1, **settings(lam=0.3, tol=1e-5)).train(np.arange(6))
    sampled = PpdTrainer(data, 1, **settings(lam=0.3, tol=1e-5, sparsify=2.0)).train(np.arange(6))
    assert (sampled.info["exact_searches"] < sampled.info["searches"]).any()  # it was used
    assert (sampled.info["exact_searches"] > 0).all()  # and an exact one decided
    assert sampled.info["converged"].all()
    np.testing.assert_allclose(sampled.info["primal"], exact.info["primal"], rtol=2e-5)


def test_threads_and_order_do_not_matter():
    X, y = random_problem(7, n=200, d=100, k=30)
    data = data_of(X, y, 30)
    s = settings(learn_bias=0, bias=-1.0, tol=1e-3)
    one = PpdTrainer(data, 1, **s).train(np.arange(30))
    three = PpdTrainer(data, 3, **s).train(np.arange(30))
    assert same_lines(one.weights, three.weights)
    assert np.array_equal(one.bias, three.bias)
    trainer = PpdTrainer(data, 1, **s)
    trainer.train(np.arange(10, 20))  # what was trained before leaves nothing behind
    back = trainer.train(np.arange(29, -1, -1))
    for k in range(30):
        a, b = (slice(c.weights.begin[i], c.weights.begin[i + 1]) for c, i in ((one, k), (back, 29 - k)))
        assert np.array_equal(one.weights.index[a], back.weights.index[b])
        assert np.array_equal(one.weights.value[a], back.weights.value[b])


def test_a_stopped_trainer_returns_finished_labels_only():
    X, y = random_problem(7)
    trainer = PpdTrainer(data_of(X, y, 12), 1, **settings())
    trainer.stop()
    assert len(trainer.train(np.arange(12)).labels) == 0


def test_labels_without_rows_and_rows_without_features():
    X = rows_of(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))
    data = data_of(X, [[0], [0, 2], []], 3)
    columns = PpdTrainer(data, 1, **settings(learn_bias=0, bias=-1.0, loss=0)).train(np.arange(3))
    assert columns.info["converged"].all()
    assert np.isfinite(columns.weights.value).all()
    assert columns.info["weights"][1] == 0  # label 1 has no row


@pytest.mark.parametrize("wrong", [{"C": 0.0}, {"C": np.nan}, {"lam": -1.0}, {"loss": 7}, {"max_outer": 0}])
def test_ppd_refuses_bad_settings(wrong):
    X, y = random_problem()
    with pytest.raises(SettingsError):
        PpdTrainer(data_of(X, y, 12), 1, **settings(**wrong))


# ---- pd-sparse


def pd_optimum(X, y, k, C, lam, kept=None):
    """The primal, over the weights that are kept, as a quadratic program in parts and slacks, by SLSQP."""
    n, d = X.shape
    size = k * d

    def split(z):
        return (z[:size] - z[size : 2 * size]).reshape(k, d), z[2 * size :]

    def value(z):
        w, xi = split(z)
        gradient = np.concatenate([(w + lam).ravel(), (lam - w).ravel(), np.full(n, C)])
        return 0.5 * (w**2).sum() + lam * z[: 2 * size].sum() + C * xi.sum(), gradient

    rows = []
    for i in range(n):
        for p in y[i]:
            for m in set(range(k)) - set(y[i]):
                row = np.zeros((k, d))
                row[p], row[m] = X[i], -X[i]
                rows.append(np.concatenate([row.ravel(), -row.ravel(), np.eye(n)[i]]))
    A = np.array(rows)
    free = np.ones((k, d), bool) if kept is None else kept
    bounds = [(0, None if f else 0) for f in (*free.ravel(), *free.ravel(), *np.ones(n))]
    start = np.concatenate([0.01 * free.ravel(), 0.01 * free.ravel(), np.ones(n)])
    found = minimize(value, start, jac=True, method="SLSQP", bounds=bounds,
                     constraints={"type": "ineq", "fun": lambda z: A @ z - 1, "jac": lambda z: A},
                     options={"maxiter": 1000, "ftol": 1e-12})  # fmt: skip
    assert found.success
    return found.fun


@pytest.mark.parametrize("parts", [1, 2])
def test_pd_reaches_the_optimum(parts):
    X, y = random_problem(1, n=10, d=4, k=4, density=0.7, most=2)
    solver = PdSolver(data_of(X, y, 4, False), 1, C=0.8, parts=parts, seed=1, **{"lambda": 0.05})
    rng = np.random.default_rng(0)
    for _ in range(3000):
        solver.run(rng.permutation(10).astype(np.int32), 0, inf)
    info = solver.info
    primal = 0.5 * info.squared_norm + 0.05 * info.l1_norm + 0.8 * solver.loss(0, 10)
    best = pd_optimum(X.toarray().astype(float), y, 4, 0.8, 0.05)
    assert primal >= best * (1 - 1e-6)
    assert info.dual <= best * (1 + 1e-6)
    assert primal == pytest.approx(best, rel=1e-4)
    assert info.dual == pytest.approx(best, rel=1e-4)


def pd_gap(solver, C, lam, n):
    info = solver.info
    primal = 0.5 * info.squared_norm + lam * info.l1_norm + C * solver.loss(0, n)
    return (primal - info.dual) / max(1.0, abs(info.dual))


@pytest.mark.parametrize("lam", [0.05, 0.5])
@pytest.mark.parametrize(("seed", "d", "k"), [(1, 4, 6), (2, 6, 30), (2, 15, 50), (3, 8, 12)])
def test_joint_steps_end_where_passes_creep(lam, seed, d, k):
    """C = 100 on 30 rows: some of these were 5e-3 above after 5000 passes."""
    X, y = random_problem(seed, n=30, d=d, k=k, density=0.9, most=5)
    solver = PdSolver(data_of(X, y, k, False), 1, C=100.0, parts=1, seed=1, **{"lambda": lam})
    rng = np.random.default_rng(0)
    for _ in range(16):
        for _ in range(32):
            solver.run(rng.permutation(30).astype(np.int32), 0, inf)
        before = float(solver.info.dual)
        solver.joint()
        assert solver.info.dual >= before - 1e-12 * abs(before)
    assert pd_gap(solver, 100.0, lam, 30) < 1e-6
    saved = solver.export()
    alpha, rows = saved["alpha"], np.repeat(np.arange(30), np.diff(saved["row_begin"]))
    others = np.concatenate([np.arange(n) for n in np.diff(saved["row_begin"])]) >= np.array([len(t) for t in y])[rows]
    assert (alpha[others] <= 0).all()
    assert (alpha[~others] >= 0).all()
    np.testing.assert_allclose(np.bincount(rows, alpha, 30), 0, atol=1e-9)
    assert np.bincount(rows, np.abs(alpha), 30).max() <= 200 * (1 + 1e-12)


def test_joint_steps_meet_the_optimum():
    X, y = random_problem(1, n=10, d=4, k=4, density=0.7, most=2)
    solver = PdSolver(data_of(X, y, 4, False), 1, C=3.0, parts=1, seed=1, **{"lambda": 0.05})
    for _ in range(40):
        solver.run(np.arange(10, dtype=np.int32), 0, inf)
        solver.joint()
    best = pd_optimum(X.toarray().astype(float), y, 4, 3.0, 0.05)
    assert solver.info.dual == pytest.approx(best, rel=1e-6)
    assert pd_gap(solver, 3.0, 0.05, 10) < 1e-9


def test_a_refit_is_the_optimum_over_the_weights_found():
    X, y = random_problem(1, n=10, d=6, k=4, density=0.7, most=2)
    solver = PdSolver(data_of(X, y, 4, False), 1, C=0.5, parts=1, seed=1, **{"lambda": 0.3})
    kept = []
    for turn in range(2):
        for _ in range(300):
            solver.run(np.arange(10, dtype=np.int32), 0, inf)
            if turn:
                solver.joint()
        w = solver.weights()
        dense = np.zeros((6, 4), bool)
        for f in range(6):
            dense[f, w.index[w.begin[f] : w.begin[f + 1]]] = True
        kept.append(dense.T)
        if turn == 0:
            solver.refit()
    assert 0 < kept[0].sum() < 24
    assert not (kept[1] & ~kept[0]).any()
    assert solver.info.dual == pytest.approx(pd_optimum(X.toarray().astype(float), y, 4, 0.5, 0.0, kept[0]), rel=1e-6)
    assert pd_gap(solver, 0.5, 0.0, 10) < 1e-8


def test_rows_without_features_lose_one_each():
    """Their dual variables were never set, so that the bound stayed C below the optimum for each of them."""
    X = rows_of(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]))
    solver = PdSolver(data_of(X, [[0], [0, 2], [1], [1, 2]], 3, False), 1, C=5.0, parts=1, seed=0, **{"lambda": 0.1})
    for _ in range(200):
        solver.run(np.arange(4, dtype=np.int32), 0, inf)
    assert solver.info.dual > 10.0
    assert pd_gap(solver, 5.0, 0.1, 4) < 1e-9


def test_pd_by_an_index_takes_the_same_steps():
    X, y = random_problem(4, n=400, d=12, k=300, density=0.9)
    found = []
    for search in SEARCHES.values():
        solver = PdSolver(data_of(X, y, 300, False), 1, C=1.0, parts=1, seed=3, search=search, **{"lambda": 0.01})
        for _ in range(4):
            solver.run(np.arange(400, dtype=np.int32), 0, inf)
        found.append((solver.weights(), solver.info.dual, int(solver.info.touched)))
    (by_rows, dual, touched), (by_index, other_dual, other_touched) = found
    assert same_lines(by_rows, by_index)
    assert dual == other_dual
    assert other_touched != touched  # it was asked


def test_pd_loss_is_the_separation_ranking_loss():
    X, y = random_problem(2)
    solver = PdSolver(data_of(X, y, 12, False), 2, C=1.0, parts=1, seed=0, **{"lambda": 0.01})
    solver.run(np.arange(60, dtype=np.int32), 0, inf)
    w = solver.weights()
    dense = np.zeros((40, 12))
    for f in range(40):
        dense[f, w.index[w.begin[f] : w.begin[f + 1]]] = w.value[w.begin[f] : w.begin[f + 1]]
    scores = X @ dense
    expected = sum(
        max(0.0, 1 + max(scores[i, m] for m in set(range(12)) - set(y[i])) - min(scores[i, p] for p in y[i]))
        for i in range(60)
    )
    assert solver.loss(0, 60) == pytest.approx(expected, rel=1e-5)
    assert solver.loss(0, 30) + solver.loss(30, 60) == pytest.approx(expected, rel=1e-5)


def test_pd_state_goes_into_another_solver_bit_for_bit():
    X, y = random_problem(2)
    data, given = data_of(X, y, 12, False), {"C": 1.0, "parts": 3, "seed": 5, "lambda": 0.02}
    one, other = PdSolver(data, 1, **given), PdSolver(data, 1, **given)
    order = np.arange(60, dtype=np.int32)
    one.run(order, 0, inf)
    other.restore(one.export())
    for solver in (one, other):
        solver.run(order[::-1].copy(), 0, inf)
    assert same_lines(one.weights(), other.weights())
    assert one.info.dual == other.info.dual
    damaged = {**one.export(), "alpha": -one.export()["alpha"]}
    with pytest.raises(DataError):
        PdSolver(data, 1, **given).restore(damaged)


def test_pd_needs_a_label_a_row():
    X, y = random_problem(2)
    y[7] = []
    with pytest.raises(ModelError, match="row 7 has no label"):
        PdSolver(data_of(X, y, 12, False), 1, C=1.0, parts=1, seed=0, **{"lambda": 0.02})


# ---- matrices and prediction


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_transposes_in_parts(seed, memory):
    X, _ = random_problem(seed, n=15, d=9, density=0.4)
    lines = rows_of(X)
    whole, parts = lines.transposed(), lines.transposed(memory)
    assert same_lines(whole, parts)
    assert np.array_equal(np.diff(whole.begin), np.diff(X.tocsc().indptr))
    assert same_lines(whole.transposed(), lines)


def test_malformed_matrices_are_refused():
    good = (np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), np.ones(3, np.float32))
    assert Lines(*good, 3).check("X").nnz == 3
    for begin, index, value, text in [
        (good[0], np.array([2, 0, 1], np.int32), good[2], "out of order"),
        (good[0], np.array([0, 0, 1], np.int32), good[2], "twice"),
        (good[0], np.array([0, 3, 1], np.int32), good[2], "not between 0 and 2"),
        (good[0], good[1], np.array([1, np.nan, 1], np.float32), "not finite"),
        (np.array([1, 2, 3]), good[1], good[2], "begin at 0"),
    ]:
        with pytest.raises(DataError, match=text):
            Lines(begin, index, value, 3).check("X")


@pytest.mark.parametrize("threads", [1, 3])
def test_topk_is_that_of_a_scan(threads):
    rng = np.random.default_rng(0)
    X, _ = random_problem(4, n=40, d=30)
    weights = np.where(rng.random((30, 50)) < 0.1, rng.integers(-2, 3, (30, 50)), 0).astype(np.float32)
    bias = rng.integers(-1, 2, 50).astype(np.float32)
    W, rows = rows_of(weights), rows_of(np.round(X.toarray() * 4))
    scorer = Scorer(W, bias, bias_order(bias))
    full = (np.round(X.toarray() * 4).astype(float) @ weights + bias).astype(np.float32)
    for k in (1, 7, 50):
        labels, scores = scorer.topk(rows, k, threads)
        order = np.lexsort((np.broadcast_to(np.arange(50), full.shape), -full), axis=1)[:, :k]
        assert np.array_equal(labels, order)
        assert np.array_equal(scores, np.take_along_axis(full, order, 1))
    assert scorer.touched < 40 * 30 * 50 / 10  # the rows of the features that are there
    assert np.array_equal(scorer.scores(rows, np.array([3, 0, 49]), threads), full[:, [3, 0, 49]])
    with pytest.raises(SettingsError):
        scorer.topk(rows, 51)


def test_weights_of_labels_that_are_not_there():
    W = Lines(np.array([0, 1]), np.array([5], np.int32), np.ones(1, np.float32), 2)
    with pytest.raises(ModelError, match="damaged"):
        Scorer(W, np.zeros(2, np.float32), np.arange(2, dtype=np.int32)).topk(rows_of(np.ones((1, 1))), 1)
