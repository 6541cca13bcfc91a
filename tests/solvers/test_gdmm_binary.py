"""gdmm, binary formulation: many binary pairwise factors, few of them touched."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
from gdmm_support import Factor, Problem, Run, random_problem  # noqa: E402
from lp import local_polytope_optimum  # noqa: E402

from fginfer.core.door import lib  # noqa: E402
from fginfer.errors import SolverError  # noqa: E402


@settings(max_examples=60, deadline=None)
@given(strategies.integers(0, 2**32 - 1))
def test_bounds_scores_and_the_lp_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    problem = random_problem(rng, n, int(rng.integers(1, 3 * n)), 2, 2, min_card=2)
    optimum = problem.optimum()
    lp = local_polytope_optimum(problem.cards, problem.unary, problem.factors, problem.constant)
    run = Run(problem, max_iterations=1500, gap=1e-9, formulation=lib.FGI_FORMULATION_BINARY)
    status = run.finish()
    least = optimum if status == "optimal" else lp  # scores that are counted in steps may be proven below it
    for score, bound, _ in run.trace():
        assert score <= optimum + 1e-9
        assert bound >= least - 1e-7
    if status in ("optimal", "gap_reached"):
        assert run.info.score == pytest.approx(optimum, abs=1e-7)
    else:
        assert run.info.bound == pytest.approx(lp, rel=1e-4, abs=1e-4)


def sparse_benefits(n: int, seed: int, share: float = 0.005, strength: float = 0.03, strong: int = 10) -> Problem:
    """All pairs: a few strong variables, few positive interactions, weak negative ones for the rest."""
    rng = np.random.default_rng(seed)
    u = rng.normal(-4.0, 1.0, n)
    u[rng.choice(n, strong, replace=False)] = rng.normal(2.0, 1.0, strong)
    factors = []
    for i in range(n):
        for j in range(i + 1, n):
            t = abs(rng.normal()) if rng.random() < share else -abs(rng.normal(0.0, strength))
            pair = (i, j) if rng.random() < 0.5 else (j, i)  # adjacency out of order
            factors.append(Factor(pair, 0, np.array([[0.0, 0.0], [0.0, t]])))
    return Problem([2] * n, [np.array([0.0, v]) for v in u], factors)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_touches_few_factors(seed: int) -> None:
    problem = sparse_benefits(120, seed)
    run = Run(problem, gap=1e-7, formulation=lib.FGI_FORMULATION_BINARY)
    reference = Run(problem, gap=1e-7, formulation=lib.FGI_FORMULATION_TABLES)
    assert run.finish() in ("optimal", "gap_reached")
    reference.finish()
    assert run.info.score == pytest.approx(reference.info.score, abs=1e-6)
    assert run.info.entries_touched < 0.1 * len(problem.factors)


def test_sweeps_at_once_where_most_factors_take_part() -> None:
    problem = sparse_benefits(40, 0, share=0.3, strength=0.1, strong=5)
    run = Run(problem, gap=1e-9, formulation=lib.FGI_FORMULATION_BINARY)
    assert run.finish() == "converged"
    assert run.info.iterations == 0
    assert run.info.sweeps > 20
    bounds = [bound for _, bound, _ in run.trace()]
    assert bounds == sorted(bounds, reverse=True)
    lp = local_polytope_optimum(problem.cards, problem.unary, problem.factors, problem.constant)
    assert lp <= run.info.bound <= lp + 1e-6  # TRW-S ends there on binary variables
    assert run.info.score == pytest.approx(problem.score(tuple(run.labels())), abs=1e-9)
    without = Run(problem, gap=1e-9, formulation=lib.FGI_FORMULATION_BINARY, sweep=lib.FGI_OFF, max_iterations=50)
    without.finish()
    assert (without.info.iterations, without.info.sweeps) == (50, 0)


def test_sweeps_do_not_end_above_those_of_trws() -> None:
    """After the same number of sweeps, each of which reads a third of what one of trws does."""
    problem = sparse_benefits(60, 1, share=0.3, strength=0.1, strong=5)
    for sweeps in (1, 2, 5, 20):
        run = Run(problem, gap=0.0, formulation=lib.FGI_FORMULATION_BINARY, max_iterations=sweeps)
        other = Run(problem, gap=0.0, method=lib.FGI_TRWS, max_iterations=sweeps)
        run.finish()
        other.finish()
        assert run.info.sweeps == sweeps
        assert run.info.bound <= other.info.bound


def test_sweeps_go_on_from_multipliers() -> None:
    problem = sparse_benefits(100, 0, share=0.1, strength=0.1, strong=5)
    alone = Run(problem, gap=1e-9, formulation=lib.FGI_FORMULATION_BINARY)
    alone.finish()
    assert alone.info.iterations > 0
    assert alone.info.sweeps > 0
    lp = local_polytope_optimum(problem.cards, problem.unary, problem.factors, problem.constant)
    assert lp <= alone.info.bound <= lp + 1e-6
    bounds = [bound for _, bound, _ in alone.trace()]
    assert bounds == sorted(bounds, reverse=True)
    sliced = Run(problem, gap=1e-9, formulation=lib.FGI_FORMULATION_BINARY)
    sliced.finish(seconds=0.0)
    assert sliced.trace() == alone.trace()


def test_threads_and_slices_do_not_change_results() -> None:
    problem = random_problem(np.random.default_rng(5), 60, 1500, 2, 2, min_card=2)
    results = []
    for threads in (1, 2, 4):
        run = Run(problem, max_iterations=50, gap=0.0, formulation=lib.FGI_FORMULATION_BINARY, threads=threads)
        run.go()
        results.append((run.info.score, run.info.bound, run.trace()))
    run = Run(problem, max_iterations=50, gap=0.0, formulation=lib.FGI_FORMULATION_BINARY)
    while run.go(seconds=0.0).status == 0:
        pass
    results.append((run.info.score, run.info.bound, run.trace()))
    assert all(r == results[0] for r in results)


def test_refuses_other_models() -> None:
    with pytest.raises(SolverError):
        Run(random_problem(np.random.default_rng(0), 4, 5, 3, 2, min_card=3), formulation=lib.FGI_FORMULATION_BINARY)


def test_marginals_are_distributions() -> None:
    problem = random_problem(np.random.default_rng(1), 12, 40, 2, 2, min_card=2)
    run = Run(problem, formulation=lib.FGI_FORMULATION_BINARY, max_iterations=100)
    run.finish()
    x = run.marginals().reshape(-1, 2)
    assert np.all(x >= 0)
    assert np.allclose(x.sum(1), 1)
