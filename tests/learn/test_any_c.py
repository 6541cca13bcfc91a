"""gdmm at a large C: proximal points and a balanced penalty close the gap, bounds hold, runs go on where they were."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fginfer.core import clock
from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.run.interrupts import OutOfTime
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.run.trainer import Measured, relative_gap
from fginfer.learn.solvers.registry import make_solver


def rings(n=10, tokens=5, labels=3, features=4, seed=0):
    """Rings whose labels no weights explain."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, labels, n * tokens)
    x = rng.normal(size=(labels, features))[y] + rng.normal(size=(n * tokens, features))
    begin = np.arange(n + 1, dtype=np.int64) * tokens
    data = Encoded(Kind.LABELS, Edges.LIST, begin, sp.csr_matrix(x), labels, y.astype(np.int32))
    data.edge_begin = begin.copy()
    data.edge_u = np.tile(np.arange(tokens, dtype=np.int32), n)
    data.edge_v = np.tile(np.roll(np.arange(tokens, dtype=np.int32), -1), n)
    return data


def fitted(seed, n=10, tokens=5, labels=3, features=6, noise=0.7):
    """Complete graphs that weights explain nearly all of: at a large C the duals use little of their boxes."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(labels, features))
    y = rng.integers(0, labels, n * tokens)
    x = mean[y] + noise * rng.normal(size=(n * tokens, features))
    begin = np.arange(n + 1, dtype=np.int64) * tokens
    data = Encoded(Kind.LABELS, Edges.LIST, begin, sp.csr_matrix(x), labels, y.astype(np.int32))
    u, v = np.triu_indices(tokens, 1)
    data.edge_begin = np.arange(n + 1, dtype=np.int64) * len(u)
    data.edge_u, data.edge_v = np.tile(u, n).astype(np.int32), np.tile(v, n).astype(np.int32)
    return data


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_closes_where_nearly_all_is_fitted(seed):
    solver = make_solver("gdmm", Learner(fitted(seed)), None, 100.0, 0, {})
    status, trace = drive(solver, Limits(tol=1e-3, max_iter=1000))
    assert status == "converged"
    assert trace[-1].primal < 0.05 * 100.0 * 50  # the losses are a small part of C times the tokens
    assert (
        solver._core.penalty[-1] > 2 * make_solver("gdmm", Learner(fitted(seed)), None, 100.0, 0, {})._core.penalty[-1]
    )


def test_what_can_be_separated_has_one_optimum_whatever_the_C():
    """No dual is at its bound, and losses that are tiny weigh much."""
    values = []
    for C in (10.0, 100.0):
        solver = make_solver("gdmm", Learner(fitted(1, noise=0.3)), None, C, 0, {})
        status, trace = drive(solver, Limits(tol=1e-3, max_iter=1000))
        assert status == "converged"
        values.append((trace[-1].dual, trace[-1].primal))
    assert max(dual for dual, _ in values) <= min(primal for _, primal in values) <= 1.001 * values[0][0] * 1.001


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_the_gap_closes_at_any_C(C):
    solver = make_solver("gdmm", Learner(rings()), None, C, 0, {})
    status, trace = drive(solver, Limits(tol=1e-3, max_iter=1000))
    assert status == "converged"
    assert trace[-1].gap == relative_gap(trace[-1].primal, trace[-1].dual) <= 1e-3
    assert solver.relaxed(solver.weights()) == pytest.approx(trace[-1].primal, rel=1e-3)


def test_the_same_optimum_as_bcfw_at_a_large_C():
    data = rings()
    data.edges, data.edge_begin, data.edge_u, data.edge_v = Edges.CHAIN, None, None, None
    values = []
    for name in ("gdmm", "bcfw"):
        _, trace = drive(make_solver(name, Learner(data), None, 10.0, 0, {}), Limits(tol=1e-3, max_iter=3000))
        values.append(trace[-1].primal)
    assert values[0] == pytest.approx(values[1], rel=2e-3)


def test_bounds_never_cross_and_the_best_is_kept():
    solver, primal, dual = make_solver("gdmm", Learner(rings()), None, 30.0, 0, {}), np.inf, 0.0
    for _ in range(30):
        solver.advance(np.inf)
        point = solver.measure()
        assert point.dual <= point.primal
        assert point.primal <= primal
        assert point.dual >= dual
        primal, dual = point.primal, point.dual


@pytest.mark.parametrize(("make", "C", "passes"), [(rings, 30.0, 8), (lambda: fitted(0), 100.0, 40)])
def test_a_run_with_proximal_points_goes_on_exactly(make, C, passes):
    solvers = [make_solver("gdmm", Learner(make()), None, C, 0, {}) for _ in "ab"]
    for _ in range(passes):
        solvers[0].advance(np.inf)
    solvers[1].restore(solvers[0].export())
    assert solvers[1]._core.penalty[-1] == solvers[0]._core.penalty[-1]
    for solver in solvers:
        for _ in range(8):
            solver.advance(np.inf)
    assert np.array_equal(solvers[0].learner.weights, solvers[1].learner.weights)
    assert solvers[0].measure() == solvers[1].measure()


def test_the_scale_of_the_features_does_not_matter():
    """x times 4 and C over 16 is the same problem up to the scale of its tables: it takes about as many passes."""
    passes = []
    for scale in (1.0, 4.0):
        data = rings()
        data.rows = data.rows * scale
        data.edge_rows = sp.csr_matrix(np.full((data.edge_begin[-1], 1), scale))
        _, trace = drive(make_solver("gdmm", Learner(data), None, 20.0 / scale**2, 0, {}), Limits(1e-3, 1000))
        assert trace[-1].gap <= 1e-3
        passes.append(trace[-1].passes)
    assert passes[0] == pytest.approx(passes[1], rel=0.2)


def test_measuring_takes_a_share_of_the_time_and_a_sample_says_so():
    rng = np.random.default_rng(0)
    n, labels = 2000, 60
    sets = [np.sort(rng.choice(labels, 6, replace=False)) for _ in range(n)]
    ends = np.arange(n + 1, dtype=np.int64) * 6
    rows = sp.csr_matrix(rng.normal(size=(n, 8)))
    data = Encoded(
        Kind.SETS,
        Edges.CHAIN,
        np.arange(n + 1, dtype=np.int64),
        rows,
        labels,
        np.concatenate(sets).astype(np.int32),
        ends,
    )
    solver = make_solver("gdmm", Learner(data), None, 1.0, 0, {})
    solver.advance(np.inf)
    estimate, share = solver._relaxed(None, 0.0)  # the deadline has passed: one example is measured
    whole = solver.measure()
    assert whole.sampled == 1.0
    assert whole.gap is not None
    assert 0 < share < 1
    assert np.isfinite(estimate)
    assert Measured(estimate, 0.0, 0.0, share).gap is None
    with pytest.raises(OutOfTime):
        solver.relaxed(None, 0.0)
    fresh = make_solver("gdmm", Learner(data), None, 1.0, 0, {})
    fresh.advance(np.inf)
    short = fresh.measure(clock.now() - 1.0)  # not even a dual point: a sample of the objective is left
    assert short.sampled < 1
    assert short.primal is not None
    assert short.gap is None
    assert short.infeasibility is None
