"""Every solver meets the optimum of an independently solved quadratic program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from fginfer.errors import SettingsError
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.batch import QP_ROUNDS, improve_simplex_qp
from fginfer.learn.solvers.registry import SOLVERS, make_solver

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


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["bcfw", "fw", "cutting-plane", "ssg", "dcd"])
def test_bounds_hold_at_every_pass(problem, name):
    data, C = PROBLEMS[problem](), 0.3
    best = optimum(data, C, squared=name == "dcd")
    _, trace = drive(make_solver(name, Learner(data), None, C, 0, {}), Limits(0.0, 25, eval_every=1))
    assert len(trace) == 25
    assert min(p.primal for p in trace) >= best * (1 - 1e-6)
    assert max((p.dual for p in trace if p.dual is not None), default=0.0) <= best * (1 + 1e-6)


def dual_of(saved, planes, C, squared=False):
    """(w, dual value) of a checkpoint of bcfw (shares of C) or dcd (alpha itself), from its answers."""
    w, gain, at, totals = 0.0, 0.0, 0, {}
    for i, n, a, loss in zip(saved["example"], saved["length"], saved["alpha"], saved["loss"], strict=True):
        y = saved["labels"][at : at + n].tobytes()
        at += n
        scale = a if squared else C * a
        w, gain = w + scale * planes[i][y], gain + scale * loss
        totals[i] = totals.get(i, 0.0) + a
    square = sum(t * t for t in totals.values()) / (4 * C) if squared else 0.0
    return w, gain - 0.5 * np.dot(w, w) - square


@pytest.mark.parametrize("name", ["bcfw", "dcd"])
def test_block_steps_are_exact_line_searches(name):
    """The dual never falls, and along a step its slope at the end is 0, unless the step ended at a boundary."""
    data, C = PROBLEMS["chain"](), 0.3
    learner = Learner(data)
    options = {"cached_passes": 0} if name == "bcfw" else {"variant": "light", "cached_passes": 0, "threshold": 0.0}
    solver = make_solver(name, learner, None, C, 0, options)
    planes = [
        {y.tobytes(): P.joint_features(data, i, P.truth_of(data, i)) - P.joint_features(data, i, y) for y in every}
        for i, every in ((i, P.answers(data, i)) for i in range(data.n_examples))
    ]
    before, interior = (np.zeros(learner.dimension), 0.0), 0
    for step in range(60):
        order = np.array([step % data.n_examples], np.int32)
        learner.run_pass(solver._settings, order, 0, 0.0)
        w, value = dual_of(learner.export(), planes, C, name == "dcd")
        w = np.zeros(learner.dimension) + w
        assert value >= before[1] - 1e-12
        assert np.allclose(w, learner.weights)
        if name == "bcfw" and value > before[1] + 1e-9:
            # along a line the dual is a parabola with curvature -|dw|^2: its top is at the end, or beyond it
            gain, curve = value - before[1], np.dot(w - before[0], w - before[0])
            slope_at_end = gain - 0.5 * curve  # f(1) - f(0) = f'(1) + curve / 2
            assert slope_at_end >= -1e-9
            interior += slope_at_end <= 1e-9
        before = w, value
    if name == "bcfw":
        assert interior >= 10
    else:  # every kept answer is at the best place, given the others, right after its own step; at the end all are near
        for _ in range(300):
            learner.run_pass(solver._settings, np.arange(data.n_examples, dtype=np.int32), 0, np.inf)
        saved = learner.export()
        totals = np.bincount(saved["example"], saved["alpha"], minlength=data.n_examples)
        at = 0
        for i, n, loss in zip(saved["example"], saved["length"], saved["loss"], strict=True):
            psi = planes[i][saved["labels"][at : at + n].tobytes()]
            at += n
            assert loss - psi @ learner.weights - totals[i] / (2 * C) == pytest.approx(0.0, abs=1e-4)


def test_frank_wolfe_steps_are_exact_line_searches():
    data, C = PROBLEMS["tree"](), 0.3
    learner = Learner(data)
    solver = make_solver("fw", learner, None, C, 0, {})
    for _ in range(40):
        w, loss = solver._w.copy(), solver._loss
        answers = learner.decode(w, 1.0)
        plane = np.zeros(learner.dimension)
        direction_loss = C * learner.add_psi(answers, 1.0, plane) - loss
        direction = C * plane - w
        solver.advance(np.inf)
        moved = solver._w - w
        step = np.dot(moved, direction) / np.dot(direction, direction)
        assert 0 <= step <= 1
        slope = direction_loss - np.dot(solver._w, direction)  # the dual's, at the end
        assert slope == pytest.approx(0.0, abs=1e-9) or (step == pytest.approx(1.0) and slope > 0)


def test_mira_corrects_each_example_with_the_smallest_step():
    data, C = PROBLEMS["chain"](), 0.1
    learner = Learner(data)
    solver = make_solver("mira", learner, None, C, 0, {})
    full = partial = 0
    for step in range(60):
        i = np.array([step % data.n_examples], np.int32)
        before, answer = learner.weights.copy(), learner.decode(learner.weights, 1.0, i)
        violation = learner.hinges(before, answer, i)[0]
        learner.run_pass(solver._settings, i, 0, 0.0)
        after = learner.hinges(learner.weights, answer, i)[0]
        if violation <= 0:
            assert np.array_equal(before, learner.weights)
        elif after == pytest.approx(0.0, abs=1e-9):
            full += 1  # the margin is met exactly
        else:
            plane = np.zeros(learner.dimension)
            learner.add_psi(answer, 1.0, plane, i)
            assert after > 0
            assert np.allclose(learner.weights - before, C * plane)
            partial += 1
    assert full >= 10
    assert partial >= 1


@pytest.mark.parametrize("seed", range(5))
def test_the_small_quadratic_program_of_the_planes(seed):
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(1, 9)), float(rng.uniform(0.1, 3))
    factor = rng.normal(size=(n, int(rng.integers(1, n + 1))))  # also singular ones
    gram, gain = factor @ factor.T, rng.uniform(0, 4, n)
    a, solved = np.zeros(n), False
    for _ in range(QP_ROUNDS):
        a, solved = improve_simplex_qp(gram, gain, C, a)
        if solved:
            break
    assert solved
    assert a.min() >= 0
    assert a.sum() <= C * (1 + 1e-12)
    reference = scipy.optimize.minimize(
        lambda x: 0.5 * x @ gram @ x - gain @ x, np.full(n, C / (n + 1)), jac=lambda x: gram @ x - gain,
        bounds=[(0, None)] * n, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: C - x.sum(), "jac": lambda x: -np.ones(n)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    assert gain @ a - 0.5 * a @ gram @ a == pytest.approx(-reference.fun, rel=1e-6, abs=1e-8)


MODELS = {
    "tokens": lambda: P.random_labels(np.random.default_rng(2), n=12, most=1, edges=0),
    "chain": PROBLEMS["chain"],
    "chain_candidates": lambda: P.random_labels(np.random.default_rng(6), n=5, labels=5, candidates=True, most=3),
    "tree_features": lambda: P.random_labels(np.random.default_rng(1), n=5, edges=2, edge_features=2, most=3),
    "weighted": PROBLEMS["weighted"],
    "sets": PROBLEMS["multilabel"],
    "parse": PROBLEMS["parse"],
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_takes_every_model_or_says_why_not(model, solver):
    """Those with an objective come near its optimum."""
    data, C = MODELS[model](), 0.3
    if model == "parse" and solver in ("gdmm", "soft-bcfw"):
        with pytest.raises(SettingsError, match="choices are trained with bcfw"):
            make_solver(solver, Learner(data), None, C, 0, {})
        return
    options = {"rho": 100.0} if solver == "soft-bcfw" else {}
    run = make_solver(solver, Learner(data), None, C, 0, options)
    _, trace = drive(run, Limits(1e-4, 400))
    if solver in ("perceptron", "mira"):
        assert np.isfinite(run.weights()).all()
        assert run.weights().any()
        assert trace[-1].primal is None
        return
    best = optimum(data, C, squared=solver == "dcd")
    near = {"ssg": 2e-2, "fw": 2e-2, "soft-bcfw": 5e-2}.get(solver, 5e-4)
    assert best * (1 - 1e-6) <= trace[-1].primal <= best * (1 + near)


def test_unknown_names_are_refused():
    learner = Learner(PROBLEMS["chain"]())
    with pytest.raises(SettingsError, match="solver must be one of"):
        make_solver("newton", learner, None, 1.0, 0, {})
    with pytest.raises(SettingsError, match="no option speed"):
        make_solver("bcfw", learner, None, 1.0, 0, {"speed": 9})
    with pytest.raises(SettingsError, match="variants"):
        make_solver("dcd", learner, None, 1.0, 0, {"variant": "heavy"})
