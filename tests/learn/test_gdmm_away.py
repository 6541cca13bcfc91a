"""gdmm with away-step Frank-Wolfe (Algorithm 2): the optimum of the default, exact steps, a true convex combination."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.errors import SettingsError
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

from . import problems as P
from .test_gdmm import CASES, cyclic, types_only
from .test_solvers import optimum

AWAY = {"variant": "afw"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_away_steps_meet_the_optimum(case, size):
    data, C = CASES[case](np.random.default_rng(1)), 0.3
    best = optimum(data, C, squared=False)
    options = {"primal": "exact", "block_size": size, "eta": 0.3 if size == 1 else 0.1}
    status, trace = drive(make_solver("gdmm", Learner(data), None, C, 0, AWAY | options), Limits(1e-4, 5000))
    assert status == "converged", trace[-1]
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)
    assert trace[-1].dual <= best * (1 + 1e-6)
    assert trace[-1].infeasibility < 0.02


@pytest.mark.parametrize("options", [{"brute_force": True}, {"partitions": 3}, {}])
def test_every_oracle_serves_it(options):
    data, C = P.random_labels(np.random.default_rng(3), n=5, labels=6, most=3), 0.3
    best = optimum(data, C, squared=False)
    _, trace = drive(make_solver("gdmm", Learner(data), None, C, 0, AWAY | options), Limits(1e-4, 5000))
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)


def test_loopy_graphs_and_edge_types_agree_with_the_default():
    for data in (cyclic(np.random.default_rng(5)), types_only(CASES["features"](np.random.default_rng(2)))):
        ends = []
        for options in ({}, AWAY | {"eta": 0.3}):
            solver = make_solver("gdmm", Learner(data), None, 0.5, 0, {"primal": "relaxed"} | options)
            ends.append(drive(solver, Limits(1e-4, 8000))[1][-1])
        assert ends[1].gap <= 1e-4
        assert ends[1].primal == pytest.approx(ends[0].primal, rel=2e-4)


def dense(data, solver):
    """alpha of all tokens (n_tokens x labels), M alpha_f and lambda (lists of rows per token) from a checkpoint."""
    saved, k = solver.export(), data.n_labels
    degree = np.zeros(data.token_begin[-1], int)
    for i in range(data.n_examples):
        first, end = data.token_begin[i], data.token_begin[i + 1]
        degree[first:end] = 2
        degree[[first, end - 1]] -= 1  # ends of a chain; twice for a single token
        if end - first == 1:
            degree[first] = 0
    alpha, marginals, multipliers, at, place = np.zeros((len(degree), k)), [], [], 0, 0
    for t, n in enumerate(saved["support_size"]):
        rows = np.zeros((1 + 2 * degree[t], k))
        rows[:, saved["labels"][at : at + n]] = saved["values"][place : place + rows.shape[0] * n].reshape(-1, n)
        at, place, alpha[t] = at + n, place + rows.shape[0] * n, rows[0]
        marginals.append(rows[1::2])
        multipliers.append(rows[2::2])
    return alpha, marginals, multipliers, saved


def test_steps_are_exact_and_never_rise():
    """eta = 0 keeps the multipliers at 0, so that all passes minimise one quadratic function: the derivative along a
    step vanishes at its end, unless the step was a full one or several (drop steps)."""
    data, C = CASES["chain"](np.random.default_rng(4)), 0.5
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, AWAY | {"block_size": 100, "eta": 0.0})
    rho, wrong = solver.info.rho, np.ones((len(data.truth), data.n_labels))
    wrong[np.arange(len(data.truth)), data.truth] = 0.0

    def point():
        alpha, marginals, _, saved = dense(data, solver)
        residual = np.concatenate([(m - alpha[t]).ravel() for t, m in enumerate(marginals)])
        return learner.weights.copy(), alpha, residual, len(saved["vertex_weights"])

    def value(p):
        return 0.5 * p[0] @ p[0] + np.sum(wrong * p[1]) + 0.5 * rho * p[2] @ p[2]

    before, exact, drops = point(), 0, 0
    for _ in range(150):
        solver.advance(np.inf)
        after = point()
        assert value(after) <= value(before) + 1e-12
        slope = after[0] @ (after[0] - before[0]) + np.sum(wrong * (after[1] - before[1]))
        slope += rho * after[2] @ (after[2] - before[2])
        if after[3] > before[3] or (after[3] == before[3] > 1):
            exact += abs(slope) <= 1e-9
        drops += after[3] < before[3]
        before = after
    assert exact >= 90
    assert drops >= 3


def test_the_iterate_is_the_combination_of_its_vertices():
    data, C = CASES["chain"](np.random.default_rng(4)), 0.5
    learner = Learner(data)
    solver = make_solver("gdmm", learner, None, C, 0, AWAY)
    for _ in range(60):
        solver.advance(np.inf)
    alpha, _, _, saved = dense(data, solver)
    expected, at, place = np.zeros_like(alpha), 0, 0
    tables = np.zeros((data.n_labels, data.n_labels))
    for i, n in enumerate(saved["vertex_counts"]):
        first, tokens = data.token_begin[i], int(data.token_begin[i + 1] - data.token_begin[i])
        width = tokens + 2 * (tokens - 1)
        weights = saved["vertex_weights"][at : at + n]
        assert weights.sum() == pytest.approx(1.0)
        assert weights.min() > 0
        truth = data.truth[first : first + tokens]
        vertices = saved["vertices"][place : place + n * width].reshape(n, width)
        assert len({v.tobytes() for v in vertices}) == n
        for c, v in zip(weights, vertices, strict=True):
            for t in range(tokens):
                expected[first + t, truth[t]] += c * C
                expected[first + t, v[t]] -= c * C
            for e in range(tokens - 1):
                tables[truth[e], truth[e + 1]] += c * C
                tables[tuple(v[tokens + 2 * e : tokens + 2 * e + 2])] -= c * C
        at, place = at + n, place + n * width
    assert alpha == pytest.approx(expected, abs=1e-10)
    w = np.concatenate([(data.rows.T @ expected).ravel(), tables.ravel()])
    assert learner.weights == pytest.approx(w, abs=1e-10)


@pytest.mark.parametrize("size", [1, 3])
def test_slices_and_checkpoints_change_nothing(size):
    data = P.random_labels(np.random.default_rng(7), n=8, labels=5)
    options = AWAY | {"partitions": 2, "block_size": size}
    P.check_slices_and_checkpoints(lambda: make_solver("gdmm", Learner(data), None, 0.3, 7, options))


@pytest.mark.parametrize("case", ["chain", "candidates", "weighted"])
def test_a_block_may_be_left_after_any_factor(case):
    """With all examples in one block: wherever a deadline cuts it short, w belongs to the duals, the certificate holds,
    and a copy made from a checkpoint goes on in exactly the same way."""
    data, C = CASES[case](np.random.default_rng(4)), 0.5
    best = optimum(data, C, squared=False)
    solvers = [
        make_solver("gdmm", Learner(data), None, C, 3, AWAY | {"block_size": 100, "primal": "exact"}) for _ in "ab"
    ]
    factors = 2 * int(data.token_begin[-1]) - data.n_examples
    calls, passes, phases = 0, 0, set()
    while passes < 5:
        passes += solvers[0].advance(0.0)
        solvers[1].advance(0.0)
        calls += 1
        alpha, _, _, saved = dense(data, solvers[0])
        phases.add(int(saved["step_place"][0]))
        tables, at = np.zeros((data.n_labels, data.n_labels)), 0
        edges = [t for t in range(data.token_begin[-1]) if t + 1 not in data.token_begin]
        for t, n in zip(edges, saved["state_size"], strict=True):
            for state, beta in zip(
                saved["states"].reshape(-1, 2)[at : at + n], saved["betas"][at : at + n], strict=True
            ):
                tables[tuple(state)] -= beta
                tables[data.truth[t], data.truth[t + 1]] += beta
            at += n
        expected = np.concatenate([(data.rows.T @ alpha).ravel(), tables.ravel()])
        assert solvers[0].weights() == pytest.approx(expected, abs=1e-10)
        if calls % 10 == 0:
            measured = solvers[0].measure()
            assert measured.dual <= best * (1 + 1e-9) <= measured.primal * (1 + 2e-9)
        again = solvers[1].export()
        kept = set(saved) - {"best", "bounds"}  # what was measured, and one of the two never was
        assert all(np.array_equal(saved[name], again[name]) for name in kept)
        solvers[1] = make_solver("gdmm", Learner(data), None, C, 3, solvers[0].options.__dict__)
        solvers[1].restore(saved)
    assert phases == {0, 1, 2, 3, 4, 5}
    assert calls >= 5 * 4 * factors  # slopes, gather, measure, commit


def test_options_are_checked():
    learner = Learner(CASES["chain"](np.random.default_rng(0)))
    with pytest.raises(SettingsError, match="variants block and afw"):
        make_solver("gdmm", learner, None, 1.0, 0, {"variant": "other"})
    with pytest.raises(SettingsError, match="block_size"):
        make_solver("gdmm", learner, None, 1.0, 0, AWAY | {"block_size": 0})
    with pytest.raises(SettingsError, match="Algorithm 3"):
        make_solver("gdmm", Learner(P.random_sets(np.random.default_rng(0))), None, 1.0, 0, AWAY)
