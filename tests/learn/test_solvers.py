"""Every solver meets the optimum of an independently solved quadratic program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from fginfer.errors import SettingsError
from fginfer.learn.learner import Learner
from fginfer.learn.solvers import make_solver
from fginfer.learn.trace import Limits, drive

from . import problems as P

PROBLEMS = {
    "chain": lambda: P.random_labels(np.random.default_rng(0), n=6),
    "tree": lambda: P.random_labels(np.random.default_rng(1), n=6, edges=2, most=3),
    "multiclass": lambda: P.random_labels(np.random.default_rng(2), n=12, most=1, edges=0),
    "multilabel": lambda: P.random_sets(np.random.default_rng(3), n=8),
    "parse": lambda: P.random_parses(np.random.default_rng(4), n=5, most=3),
    "weighted": lambda: P.random_labels(np.random.default_rng(5), n=5, weighted=True, edge_features=2, most=3),
}


def optimum(data, C, squared):
    """min over w and slacks of 1/2 |w|^2 + C sum slack (or slack^2), every answer a constraint; by SLSQP."""
    planes = P.planes(data)
    dimension, n = planes[0][0].shape[1], len(planes)
    psi = np.vstack([g for g, _ in planes])
    loss = np.concatenate([v for _, v in planes])
    owner = np.repeat(np.arange(n), [len(v) for _, v in planes])
    slack = np.eye(n)[owner]
    power = 2 if squared else 1
    result = scipy.optimize.minimize(
        lambda z: 0.5 * z[:dimension] @ z[:dimension] + C * np.sum(z[dimension:] ** power),
        np.concatenate([np.zeros(dimension), [max(v) for _, v in planes]]),
        jac=lambda z: np.concatenate([z[:dimension], C * power * z[dimension:] ** (power - 1)]),
        constraints={
            "type": "ineq",
            "fun": lambda z: psi @ z[:dimension] + z[dimension:][owner] - loss,
            "jac": lambda z: np.hstack([psi, slack]),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success, result.message
    return result.fun


def run(data, name, C, tol=1e-5, passes=3000, **options):
    solver = make_solver(name, Learner(data), None, C, 0, options)
    status, trace = drive(solver, Limits(tol, passes))
    return solver, status, trace


@pytest.mark.parametrize("problem", PROBLEMS)
def test_hinge_solvers_meet_the_optimum(problem):
    data, C = PROBLEMS[problem](), 0.3
    best = optimum(data, C, squared=False)
    for name, tol in (("bcfw", 1e-5), ("cutting-plane", 1e-5), ("fw", 2e-3)):
        _, status, trace = run(data, name, C, tol)
        last = trace[-1]
        assert status == "converged", (name, last)
        assert last.primal == pytest.approx(best, rel=2 * tol)
        assert last.dual <= best * (1 + 1e-6) <= last.primal * (1 + 2e-6)


def test_bcfw_variants_meet_the_optimum():
    data, C = PROBLEMS["chain"](), 0.3
    best = optimum(data, C, squared=False)
    for options in (
        {"gap_sampling": True},
        {"cached_passes": 0, "averaging": False},
        {"cached_passes": 3},
        {"batch_size": 4},
        {"max_answers": 3, "cached_passes": 1},
    ):
        _, _, trace = run(data, "bcfw", C, tol=1e-3, **options)
        assert trace[-1].gap <= 1e-3, options
        assert trace[-1].primal == pytest.approx(best, rel=2e-3)


def test_ssg_approaches_the_optimum_from_above():
    data, C = PROBLEMS["chain"](), 0.3
    best = optimum(data, C, squared=False)
    _, _, trace = run(data, "ssg", C, passes=2000)
    assert trace[-1].dual is None
    assert trace[-1].gap is None
    assert best * (1 - 1e-7) <= trace[-1].primal <= best * 1.02


@pytest.mark.parametrize("problem", ["chain", "multiclass", "multilabel"])
@pytest.mark.parametrize("variant", ["light", "ssvm", "cpd"])
def test_dcd_meets_the_optimum_of_the_squared_hinge(problem, variant):
    data, C = PROBLEMS[problem](), 0.3
    best = optimum(data, C, squared=True)
    _, _, trace = run(data, "dcd", C, tol=1e-4, variant=variant, threshold=1e-6)
    assert trace[-1].gap <= 1e-4
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)
    assert trace[-1].dual <= best * (1 + 1e-6)


def test_online_methods_separate_what_is_separable():
    rng = np.random.default_rng(0)
    data = P.random_labels(rng, n=20, features=6, most=3)
    teacher = rng.normal(size=Learner(data).dimension)
    data.truth = Learner(data).decode(teacher).labels.copy()
    for name in ("perceptron", "mira"):
        solver, _, trace = run(data, name, 1.0, passes=300)
        assert trace[-1].primal is None
        assert trace[-1].gap is None
        assert np.mean(Learner(data).decode(solver.weights()).labels == data.truth) > 0.98


def test_averages_are_the_averages_of_the_iterates():
    data = PROBLEMS["chain"]()
    for name, weigh in (("bcfw", lambda k: k), ("perceptron", lambda k: 1.0), ("mira", lambda k: 1.0)):
        learner = Learner(data)
        solver = make_solver(name, learner, None, 0.3, 0, {"cached_passes": 0})
        total, weight, k = np.zeros(learner.dimension), 0.0, 0
        for _ in range(3):
            order = np.random.default_rng(k).permutation(data.n_examples).astype(np.int32)
            for i in order:
                learner.run_pass(solver._settings, np.array([i], np.int32), 0, 0.0)
                k += 1
                total += weigh(k) * learner.weights
                weight += weigh(k)
        assert np.allclose(solver.averaged(), total / weight, atol=1e-12)


def test_block_gaps_and_dual_are_those_of_the_definition():
    data, C = PROBLEMS["chain"](), 0.3
    learner = Learner(data)
    solver = make_solver("bcfw", learner, None, C, 0, {"cached_passes": 1})
    for _ in range(4):
        solver.advance(np.inf)
    saved = learner.export()
    planes = P.planes(data)
    w, dual, begin = np.zeros(learner.dimension), 0.0, 0
    for i, n, a, loss in zip(saved["example"], saved["length"], saved["alpha"], saved["loss"], strict=True):
        y = saved["labels"][begin : begin + n]
        begin += n
        psi = P.joint_features(data, i, P.truth_of(data, i)) - P.joint_features(data, i, y)
        assert loss == P.loss_of(data, i, y)
        w += C * a * psi
        dual += C * a * loss
    shares = np.bincount(saved["example"], saved["alpha"], minlength=data.n_examples)
    assert (shares <= 1 + 1e-12).all()
    assert np.allclose(w, learner.weights)
    measured = solver.measure()
    assert measured.dual == pytest.approx(dual - 0.5 * w @ w)
    last = 0.5 * w @ w + C * sum(max(v - g @ w) for g, v in planes)
    assert solver.primal(learner.weights.copy()) == pytest.approx(last)


@pytest.mark.parametrize("name", ["bcfw", "dcd", "perceptron", "ssg", "fw", "cutting-plane"])
def test_slices_and_checkpoints_change_nothing(name):
    data = PROBLEMS["chain"]()
    whole = make_solver(name, Learner(data), None, 0.3, 7, {})
    for _ in range(12):
        while not whole.advance(np.inf):
            pass
    sliced = make_solver(name, Learner(data), None, 0.3, 7, {})
    passes, calls = 0, 0
    while passes < 12:
        passes += sliced.advance(0.0)  # a deadline in the past: one batch a call
        calls += 1
        if calls % 5 == 0:
            saved = sliced.export()
            sliced = make_solver(name, Learner(data), None, 0.3, 7, {})
            sliced.restore(saved)
    assert np.array_equal(whole.weights(), sliced.weights())
    if name not in ("fw", "cutting-plane"):
        assert whole.counters() == sliced.counters()


def test_threads_do_not_change_the_model():
    data = P.random_labels(np.random.default_rng(3), n=40, most=6)
    for name in ("bcfw", "cutting-plane"):
        found = []
        for threads in (1, 3):
            solver = make_solver(name, Learner(data, threads), None, 0.3, 0, {"batch_size": 16})
            drive(solver, Limits(0.0, 10))
            found.append(solver.weights())
        assert np.array_equal(*found)


def test_unknown_names_are_refused():
    learner = Learner(PROBLEMS["chain"]())
    with pytest.raises(SettingsError, match="solver must be one of"):
        make_solver("newton", learner, None, 1.0, 0, {})
    with pytest.raises(SettingsError, match="no option speed"):
        make_solver("bcfw", learner, None, 1.0, 0, {"speed": 9})
    with pytest.raises(SettingsError, match="variants"):
        make_solver("dcd", learner, None, 1.0, 0, {"variant": "heavy"})
