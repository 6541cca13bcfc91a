"""gdmm (Algorithm 8): bounds, scores, convergence to the LP optimum, determinism."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
from gdmm_support import FORMULATIONS, Problem, Run, random_problem  # noqa: E402
from lp import local_polytope_optimum  # noqa: E402

SEEDS = strategies.integers(0, 2**32 - 1)


def check_run(problem: Problem, run: Run, optimum: float) -> None:
    """bound >= optimum >= score in every event, and the labels give the score."""
    slack = 0.0 if optimum == -np.inf else 1e-9 * max(1.0, abs(optimum))
    for score, bound, _ in run.trace():
        assert score <= optimum + slack
        assert bound >= optimum - slack
    labels = run.labels()
    if labels is not None:
        assert problem.score(tuple(labels)) == pytest.approx(run.info.score, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(SEEDS, strategies.sampled_from([0.0, 0.1, 0.4]), strategies.sampled_from(FORMULATIONS))
def test_bound_optimum_score(seed: int, forbid: float, formulation: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, int(rng.integers(1, 6)), int(rng.integers(0, 9)), 5, 4, forbid, implicit=True)
    optimum = problem.optimum()
    run = Run(problem, max_iterations=60, gap=1e-9, formulation=formulation)
    run.finish()
    check_run(problem, run, optimum)
    if run.status in ("optimal", "gap_reached"):
        assert run.info.score == pytest.approx(optimum, abs=1e-6)
    if run.status == "infeasible":
        assert optimum == -np.inf


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(SEEDS, strategies.sampled_from([0.0, 0.2]), strategies.sampled_from(FORMULATIONS))
def test_converges_to_the_lp_optimum(seed: int, forbid: float, formulation: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 6, 9, 6, 3, forbid)
    lp = local_polytope_optimum(problem.cards, problem.unary, problem.factors, problem.constant)
    run = Run(problem, max_iterations=2000, gap=0.0, formulation=formulation)
    status = run.finish()
    if status in ("infeasible",):
        assert lp == -np.inf or problem.optimum() == -np.inf
        return
    least = problem.optimum() if status == "optimal" else lp  # scores that are counted in steps may be proven below it
    assert run.info.bound >= least - 1e-7 * max(1.0, abs(lp))
    if status == "converged":
        assert run.info.bound <= lp + 1e-4 * max(1.0, abs(lp))


@settings(max_examples=40, deadline=None)
@given(SEEDS, strategies.sampled_from(FORMULATIONS))
def test_optimum_on_trees(seed: int, formulation: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 7, 0, 4)
    base = random_problem(rng, 7, 0, 4)
    for v in range(1, 7):
        u = int(rng.integers(0, v))
        edge = random_problem(rng, 2, 1, 4, 2)
        factor = edge.factors[0]
        factor.variables = (u, v)
        factor.weight = 1.0
        factor.table = rng.normal(size=(problem.cards[u], problem.cards[v])) * 2
        base.factors.append(factor)
    problem.factors = base.factors
    run = Run(problem, max_iterations=5000, gap=1e-7, formulation=formulation)
    assert run.finish() in ("optimal", "gap_reached")
    assert run.info.score == pytest.approx(problem.optimum(), abs=1e-6)


def outcome(run: Run) -> tuple[object, ...]:
    labels = run.labels()
    return (
        run.info.score,
        run.info.bound,
        run.info.iterations,
        None if labels is None else tuple(labels),
        tuple(run.trace()),
    )


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_threads_and_slices_do_not_change_results(seed: int, formulation: int) -> None:
    problem = random_problem(np.random.default_rng(seed), 60, 150, 7, 3, 0.05, implicit=True)
    runs = []
    for threads in (1, 2, 4):
        run = Run(problem, max_iterations=40, gap=0.0, formulation=formulation, threads=threads)
        run.go()
        runs.append(outcome(run))
    for slices in ({"iterations": 1}, {"seconds": 0.0}):
        run = Run(problem, max_iterations=40, gap=0.0, formulation=formulation)
        while run.go(**slices).status == 0:
            pass
        runs.append(outcome(run))
    assert all(r == runs[0] for r in runs)


def test_infeasible_model_is_proven_so() -> None:
    problem = random_problem(np.random.default_rng(1), 3, 0, 3, min_card=3)
    for u, v in ((0, 1), (1, 2), (0, 2)):
        edge = random_problem(np.random.default_rng(2), 2, 1, 3, 2, min_card=3).factors[0]
        edge.variables, edge.weight = (u, v), 1.0
        edge.table = np.full((3, 3), -np.inf)
        problem.factors.append(edge)
    run = Run(problem)
    assert run.finish() == "infeasible"
    assert run.labels() is None


def test_model_without_factors() -> None:
    problem = random_problem(np.random.default_rng(3), 5, 0)
    run = Run(problem)
    assert run.finish() in ("optimal", "gap_reached")
    assert run.info.score == pytest.approx(problem.optimum())


def dual_value(problem: Problem, mu: np.ndarray) -> float:
    """D(mu) of the model's own numbers: an independent evaluation of the certificate."""
    hat = [u.copy() for u in problem.unary]
    total, at = problem.constant, 0
    for f in problem.factors:
        rest = f.table.copy()
        for k, v in enumerate(f.variables):
            message = mu[at : at + problem.cards[v]]
            at += problem.cards[v]
            hat[v] = hat[v] + message
            rest = rest - message.reshape([-1 if d == k else 1 for d in range(len(f.variables))])
        total += rest.max()
    assert at == len(mu)
    return float(total + sum(h.max() for h in hat))


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_messages_are_a_certificate_and_a_start(seed: int, formulation: int) -> None:
    problem = random_problem(np.random.default_rng(seed), 12, 20, 6, 3, min_card=2)
    run = Run(problem, max_iterations=400, gap=1e-6, formulation=formulation)
    run.finish()
    mu = run.messages()
    assert dual_value(problem, mu) >= run.info.score - 1e-9
    again = Run(problem, max_iterations=8, gap=1e-6, formulation=formulation)
    again.warm_start(mu)
    again.finish()
    slack = 1e-4 * max(1.0, abs(run.info.bound))
    assert again.info.bound <= min(dual_value(problem, mu), run.info.bound + slack) + slack


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_marginals_are_distributions(formulation: int) -> None:
    problem = random_problem(np.random.default_rng(7), 12, 25, 6, 3)
    run = Run(problem, max_iterations=50, gap=0.0, formulation=formulation)
    run.finish()
    x = np.split(run.marginals(), np.cumsum(problem.cards)[:-1])
    assert all(abs(part.sum() - 1) < 1e-9 and part.min() >= 0 for part in x)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("seed", range(6))
def test_update_goes_on_with_new_potentials(seed: int, formulation: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 7, 10, 5, 3, 0.1 if seed % 2 else 0.0)
    run = Run(problem, max_iterations=200, gap=1e-9, formulation=formulation)
    run.finish()
    problem.unary = [np.where(rng.random(len(u)) < 0.1, -np.inf, rng.normal(size=len(u))) for u in problem.unary]
    problem.factors[0].table = rng.normal(size=problem.factors[0].table.shape)
    run.update(problem)
    optimum = problem.optimum()
    status = run.finish()
    check_run(problem, run, optimum)
    assert (status == "infeasible") <= (optimum == -np.inf)
    fresh = Run(problem, max_iterations=200, gap=1e-9, formulation=formulation)
    if fresh.finish() in ("optimal", "gap_reached"):
        assert run.info.score == pytest.approx(fresh.info.score, abs=1e-6)


def test_a_better_labeling_from_outside_is_kept() -> None:
    problem = random_problem(np.random.default_rng(11), 8, 16, 3, 3)
    best = max(np.ndindex(*problem.cards), key=problem.score)
    run = Run(problem, max_iterations=3, gap=0.0)
    run.offer(np.array(best, np.int32))
    run.finish()
    assert run.info.score == pytest.approx(problem.optimum())
