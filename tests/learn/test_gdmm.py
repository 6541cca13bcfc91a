"""gdmm: the same optimum as the structured solvers, certificates that are true, sublinear oracles equal to scans."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from fginfer.core.learn import Edges
from fginfer.errors import FginferError
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

from . import problems as P
from .test_solvers import optimum

CASES = {
    "tokens": lambda rng: P.random_labels(rng, n=10, edges=0, most=1),
    "chain": lambda rng: P.random_labels(rng, n=6),
    "tree": lambda rng: P.random_labels(rng, n=5, edges=2),
    "candidates": lambda rng: P.random_labels(rng, n=5, labels=5, most=3, candidates=True),
    "features": lambda rng: P.random_labels(rng, n=5, most=3, edge_features=2),
    "weighted": lambda rng: P.random_labels(rng, n=5, most=3, weighted=True),
}


def types_only(data):
    """Every edge has one positive feature, so that the sorted tables serve it."""
    count, types = data.edge_rows.shape
    r = np.arange(count)
    data.edge_rows = sp.csr_matrix((1.0 + r % 3, (r, r % types)), shape=(count, types))
    return data


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("brute", [False, True])
def test_gdmm_meets_the_optimum(case, brute):
    data, C = CASES[case](np.random.default_rng(1)), 0.3
    best = optimum(data, C, squared=False)
    solver = make_solver("gdmm", Learner(data), None, C, 0, {"brute_force": brute, "primal": "exact"})
    status, trace = drive(solver, Limits(1e-4, 5000))
    assert status == "converged", trace[-1]
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)
    assert trace[-1].dual <= best * (1 + 1e-6)
    assert trace[-1].infeasibility < 0.02


def test_edge_types_use_the_sorted_tables():
    data, C = types_only(CASES["features"](np.random.default_rng(2))), 0.3
    best = optimum(data, C, squared=False)
    _, trace = drive(make_solver("gdmm", Learner(data), None, C, 0, {}), Limits(1e-4, 5000))
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)


def test_partitions_of_the_labels_reach_the_same_optimum():
    data, C = P.random_labels(np.random.default_rng(3), n=5, labels=6, most=3), 0.3
    best = optimum(data, C, squared=False)
    _, trace = drive(make_solver("gdmm", Learner(data), None, C, 0, {"partitions": 3}), Limits(1e-4, 5000))
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)


def test_very_many_labels_are_looked_at_in_parts():
    """A part of the labels a visit, and the same optimum."""
    rng = np.random.default_rng(0)
    data = P.random_labels(rng, n=20, labels=1000)
    runs = [
        drive(make_solver("gdmm", Learner(data), None, 1e-3, 0, options), Limits(0.0, 30))[1]
        for options in ({}, {"partitions": 1})
    ]
    parts, whole = (trace[-1] for trace in runs)
    assert parts.products < 0.3 * whole.products
    assert parts.primal == pytest.approx(whole.primal, rel=0.02)


def test_certificates_hold_at_every_pass():
    data, C = CASES["chain"](np.random.default_rng(4)), 0.5
    best = optimum(data, C, squared=False)
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, {})
    planes = P.planes(data)
    for _ in range(40):
        solver.advance(np.inf)
        relaxed, dual, _ = solver.certificate()
        w = learner.weights
        exact = 0.5 * w @ w + C * sum(max(v - g @ w) for g, v in planes)
        assert dual <= best * (1 + 1e-6)
        assert relaxed >= exact * (1 - 1e-9)
        assert exact >= best * (1 - 1e-6)
        assert not learner.weights[~np.isfinite(learner.weights)].size


def cyclic(rng, n=4, tokens=3):
    data = P.random_labels(rng, n=n, labels=2, features=2, edges=0, most=1)
    data.token_begin = np.arange(n + 1, dtype=np.int64) * tokens
    import scipy.sparse as sp

    data.rows = sp.csr_matrix(rng.integers(-2, 3, (n * tokens, 2)).astype(float))
    data.truth = rng.integers(0, 2, n * tokens).astype(np.int32)
    pairs = np.array(list(itertools.combinations(range(tokens), 2)), np.int32)
    data.edges, data.edge_begin = Edges.LIST, np.arange(n + 1, dtype=np.int64) * len(pairs)
    data.edge_u, data.edge_v = (np.tile(pairs[:, s], n).astype(np.int32) for s in (0, 1))
    return data


def relaxed_loss(data, w, i):
    """The LP relaxation of one example's loss-augmented decoding, by HiGHS."""
    tokens, k = int(data.token_begin[i + 1] - data.token_begin[i]), data.n_labels
    d, first = data.rows.shape[1], data.token_begin[i]
    unary = data.rows[first : first + tokens].toarray() @ w[: d * k].reshape(d, k)
    table, truth = w[d * k :].reshape(k, k), data.truth[first : first + tokens]
    cost = unary + 1.0
    cost[np.arange(tokens), truth] -= 1.0
    b, e = data.edge_begin[i], data.edge_begin[i + 1]
    pairs = list(zip(data.edge_u[b:e], data.edge_v[b:e], strict=True))
    n = tokens * k + len(pairs) * k * k
    objective = np.concatenate([cost.ravel(), np.tile(table.ravel(), len(pairs))])
    rows, right = [], []
    for t in range(tokens):
        row = np.zeros(n)
        row[t * k : (t + 1) * k] = 1
        rows.append(row)
        right.append(1.0)
    for f, pair in enumerate(pairs):
        base = tokens * k + f * k * k
        for side, t in enumerate(pair):
            for a in range(k):
                row = np.zeros(n)
                row[t * k + a] = -1
                for c in range(k):
                    row[base + (a * k + c if side == 0 else c * k + a)] = 1
                rows.append(row)
                right.append(0.0)
    result = scipy.optimize.linprog(-objective, A_eq=np.array(rows), b_eq=right, bounds=(0, 1))
    score = unary[np.arange(tokens), truth].sum() + sum(table[truth[u], truth[v]] for u, v in pairs)
    return -result.fun - score


def test_loopy_graphs_train_on_the_relaxed_loss():
    data, C = cyclic(np.random.default_rng(5)), 0.5
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, {})
    _, trace = drive(solver, Limits(1e-4, 4000))
    assert trace[-1].gap <= 1e-4
    w = learner.weights.copy()
    relaxed = 0.5 * w @ w + C * sum(relaxed_loss(data, w, i) for i in range(data.n_examples))
    exact = 0.5 * w @ w + C * sum(max(v - g @ w) for g, v in P.planes(data))
    assert exact <= relaxed + 1e-9  # the LP-relaxed loss bounds the exact one
    assert relaxed <= trace[-1].primal + 1e-6  # and the certificate bounds the relaxed one
    assert trace[-1].dual <= relaxed + 1e-9


def test_soft_constraints_give_a_lower_value_that_rises_with_rho():
    data, C = CASES["chain"](np.random.default_rng(6)), 0.3
    values = []
    for rho in (0.3, 30.0):
        learner = Learner(data)
        solver = make_solver("soft-bcfw", learner, None, C, 0, {"rho": rho})
        drive(solver, Limits(0.0, 600))
        values.append(solver.measure().primal)
    best = optimum(data, C, squared=False)
    assert best * (1 - 1e-6) <= values[1] <= values[0] + 1e-9
    assert values[1] <= best * 1.05


def soft_optimum(data, C, rho):
    """max over shares p (tokens) and q (edges) of C <p, loss> - 1/2 |w|^2 - rho/2 C^2 |M q - p|^2, by SLSQP."""
    k, x, truth = data.n_labels, data.rows.toarray(), data.truth
    tokens, n_pairs = len(truth), len(truth) - data.n_examples
    ends = [(t, t + 1) for i in range(data.n_examples) for t in range(data.token_begin[i], data.token_begin[i + 1] - 1)]
    right, loss = np.eye(k)[truth], 1 - np.eye(k)[truth]
    cut = tokens * k

    def value_and_slope(z):
        p, q = z[:cut].reshape(tokens, k), z[cut:].reshape(n_pairs, k, k)
        unary = C * x.T @ (right - p)
        table = C * (sum(np.outer(right[u], right[v]) for u, v in ends) - q.sum(axis=0))
        apart = [(q[e].sum(axis=1) - p[u], q[e].sum(axis=0) - p[v]) for e, (u, v) in enumerate(ends)]
        penalty = 0.5 * rho * C**2 * sum(a @ a + b @ b for a, b in apart)
        value = C * np.sum(p * loss) - 0.5 * np.sum(unary**2) - 0.5 * np.sum(table**2) - penalty
        slope_p, slope_q = C * loss + C * x @ unary, np.tile(C * table, (n_pairs, 1, 1))
        for e, (u, v) in enumerate(ends):
            a, b = apart[e]
            slope_p[u] += rho * C**2 * a
            slope_p[v] += rho * C**2 * b
            slope_q[e] -= rho * C**2 * (a[:, None] + b[None, :])
        return -value, -np.concatenate([slope_p.ravel(), slope_q.ravel()])

    rows = np.zeros((tokens + n_pairs, cut + n_pairs * k * k))
    for t in range(tokens):
        rows[t, t * k : (t + 1) * k] = 1
    for e in range(n_pairs):
        rows[tokens + e, cut + e * k * k : cut + (e + 1) * k * k] = 1
    start = np.concatenate([np.full(cut, 1 / k), np.full(n_pairs * k * k, 1 / k**2)])
    assert scipy.optimize.check_grad(lambda z: value_and_slope(z)[0], lambda z: value_and_slope(z)[1], start) < 1e-5
    result = scipy.optimize.minimize(
        value_and_slope, start, jac=True, bounds=[(0, 1)] * len(start), method="SLSQP",
        constraints={"type": "eq", "fun": lambda z: rows @ z - 1, "jac": lambda z: rows},
        options={"maxiter": 1000, "ftol": 1e-13},
    )  # fmt: skip
    assert result.success, result.message
    return -result.fun


@pytest.mark.parametrize("rho", [0.5, 20.0])
def test_soft_bcfw_meets_its_own_optimum(rho):
    data, C = P.random_labels(np.random.default_rng(6), n=3, most=3), 0.3
    best = soft_optimum(data, C, rho)
    learner = Learner(data)
    solver = make_solver("soft-bcfw", learner, None, C, 0, {"rho": rho})
    for _ in range(3000):
        solver.advance(np.inf)
    saved, k = solver.export(), data.n_labels
    w, at, place, gain, penalty = learner.weights, 0, 0, 0.0, 0.0
    degrees = solver._degrees()
    for t, n in enumerate(saved["support_size"]):
        rows = np.zeros((1 + 2 * degrees[t], k))
        rows[:, saved["labels"][at : at + n]] = saved["values"][place : place + len(rows) * n].reshape(-1, n)
        at, place = at + n, place + len(rows) * n
        gain -= np.delete(rows[0], data.truth[t]).sum()
        penalty += 0.5 * rho * sum(np.sum((rows[1 + 2 * e] - rows[0]) ** 2) for e in range(degrees[t]))
        assert not rows[2::2].any()  # no multipliers
    assert gain - 0.5 * w @ w - penalty == pytest.approx(best, rel=1e-5)


def test_slices_checkpoints_and_partitions_change_nothing():
    data = P.random_labels(np.random.default_rng(7), n=8, labels=5)
    options = {"partitions": 2}
    P.check_slices_and_checkpoints(lambda: make_solver("gdmm", Learner(data), None, 0.3, 7, options))


def test_sublinear_oracles_touch_few_entries():
    rng = np.random.default_rng(8)
    data = P.random_labels(rng, n=20, labels=120, features=5, most=6)
    fast = make_solver("gdmm", Learner(data), None, 0.5, 0, {})
    slow = make_solver("gdmm", Learner(data), None, 0.5, 0, {"brute_force": True})
    for _ in range(5):
        fast.advance(np.inf)
        slow.advance(np.inf)
    assert fast.info.pair_touched * 50 < slow.info.pair_touched
    assert fast.certificate()[0] == pytest.approx(slow.certificate()[0], rel=0.02)


def test_gdmm_refuses_what_it_cannot_do():
    with pytest.raises(FginferError, match="tokens with labels"):
        make_solver("gdmm", Learner(P.random_parses(np.random.default_rng(0))), None, 1.0, 0, {})
    with pytest.raises(FginferError, match="rho"):
        make_solver("gdmm", Learner(CASES["chain"](np.random.default_rng(0))), None, 1.0, 0, {"rho": -1.0})


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("candidates", [False, True])
def test_batches_do_not_depend_on_threads_and_meet_the_optimum(partitions, candidates):
    data, C = P.random_labels(np.random.default_rng(2), n=12, labels=5, candidates=candidates), 0.3
    weights = []
    for threads in (1, 2, 3):
        learner = Learner(data, threads=threads)
        options = {"batch_size": 4, "partitions": partitions}
        _, trace = drive(make_solver("gdmm", learner, None, C, 0, options), Limits(1e-4, 2000))
        weights.append(learner.weights.copy())
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[0], weights[2])
    assert trace[-1].primal == pytest.approx(optimum(data, C, squared=False), rel=1e-3)


@pytest.mark.parametrize("kind", ["chain", "sets"])
def test_averages_are_those_of_the_visits(kind):
    rng = np.random.default_rng(4)
    data = P.random_labels(rng, n=5) if kind == "chain" else P.random_sets(rng, n=5, labels=4, pairwise=True)
    solver = make_solver("gdmm", Learner(data), None, 0.5, 0, {"averaging": True})
    total, k = np.zeros(solver.learner.dimension), 0
    for _ in range(4):
        while True:
            done = solver.advance(0.0)  # one visit: the deadline has passed
            k += 1
            total += k**3 * solver.learner.weights
            if done:
                break
    assert k == 20
    assert solver.averaged() == pytest.approx((2 / (k * (k + 1))) ** 2 * total, abs=1e-12)
    assert np.array_equal(solver.weights(), solver.averaged())


@pytest.mark.parametrize("kind", ["chain", "sets"])
def test_the_bound_at_other_weights_is_one(kind):
    rng = np.random.default_rng(6)
    data = P.random_labels(rng, n=5) if kind == "chain" else P.random_sets(rng, n=5, labels=4, pairwise=True)
    solver = make_solver("gdmm", Learner(data), None, 0.5, 0, {"averaging": True})
    for _ in range(10):
        solver.advance(np.inf)
    before = solver.learner.weights.copy()
    for w in (before.copy(), solver.averaged(), rng.normal(size=len(before))):
        exact = 0.5 * w @ w + 0.5 * sum(max(v - g @ w) for g, v in P.planes(data))
        assert solver.relaxed(w) >= exact - 1e-9
    assert solver.relaxed(before.copy()) == pytest.approx(solver.certificate()[0])
    assert np.array_equal(solver.learner.weights, before)
