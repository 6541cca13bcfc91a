"""Method "trws" on factors of any arity (sequential reweighted message passing)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.door import lib

from .message_passing import Dense, Solver, random_model


@given(
    seed=st.integers(0, 10**6),
    labels=st.integers(1, 3),
    arity=st.integers(3, 4),
    forbidden=st.sampled_from([0.0, 0.3, 0.8]),
)
@settings(max_examples=60, deadline=None)
def test_bound_optimum_score_and_monotony(seed: int, labels: int, arity: int, forbidden: float) -> None:
    model = random_model(np.random.default_rng(seed), n=6, labels=labels, edges=0.7, arity=arity, forbidden=forbidden)
    best = model.best()
    solver, last = Solver(model.arrays().build(), "trws"), np.inf
    while solver.info.status == lib.FGI_RUNNING and solver.info.iterations < 40:
        solver.run(iterations=1)
        assert last >= solver.info.bound >= best - 1e-12
        assert solver.info.score <= best + 1e-12
        dual = model.dual(solver.messages())
        assert dual >= best - 1e-9
        if forbidden == 0:
            assert dual == pytest.approx(solver.info.bound, abs=1e-9)
        last = solver.info.bound
    if solver.info.status == lib.FGI_INFEASIBLE:
        assert best == -np.inf


@pytest.mark.parametrize("forbidden", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_equals_trws_on_pairwise_models(seed: int, forbidden: float) -> None:
    model = random_model(np.random.default_rng(seed), n=9, labels=5, edges=0.6, forbidden=forbidden)
    n = len(model.cards)
    # Three variables apart with one ternary factor send the model to the other half of the method.
    padded = Dense([*model.cards, 1, 1, 1], [*model.unary, *[np.zeros(1)] * 3], list(model.factors), model.constant)
    padded.factors.append(((n, n + 1, n + 2), np.zeros((1, 1, 1))))
    a, b = Solver(model.arrays().build(), "trws"), Solver(padded.arrays().build(), "trws")
    for iteration in range(15):
        a.run(iterations=1)
        b.run(iterations=1)
        if iteration < 8:
            assert b.info.score == pytest.approx(a.info.score, abs=1e-9)
        assert b.info.bound == pytest.approx(a.info.bound, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_exact_on_acyclic_factor_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = [int(k) for k in rng.integers(1, 4, 10)]
    model = Dense(cards, [rng.normal(size=k) for k in cards])
    done = 1
    while done < 10:  # each factor hangs 1 to 3 new variables on an old one
        new = list(range(done, min(10, done + int(rng.integers(1, 4)))))
        scope = tuple(int(v) for v in rng.permutation([int(rng.integers(0, done)), *new]))
        model.factors.append((scope, rng.normal(size=[cards[v] for v in scope])))
        done += len(new)
    solver = Solver(model.arrays().build(), "trws").run(iterations=200)
    best = model.best()
    assert solver.info.status == lib.FGI_OPTIMAL
    assert solver.info.score == pytest.approx(best, abs=1e-12)


def test_parity_constraints_and_infeasibility() -> None:
    parity = np.where((np.indices((2, 2, 2)).sum(0) % 2) == 0, 0.0, -np.inf)
    unary = [np.array([0.0, 0.4]) for _ in range(5)]
    model = Dense([2] * 5, unary, [((0, 1, 2), parity), ((2, 3, 4), parity)])
    solver = Solver(model.arrays().build(), "trws").run(iterations=100)
    assert solver.info.score == pytest.approx(model.best(), abs=1e-12)
    fixed = [np.array([-np.inf, 0.0]) for _ in range(5)]
    broken = Dense([2] * 5, fixed, model.factors)
    solver = Solver(broken.arrays().build(), "trws").run(iterations=100)
    assert solver.info.status == lib.FGI_INFEASIBLE
    assert solver.info.bound == -np.inf


def test_slices_and_warm_starts() -> None:
    model = random_model(np.random.default_rng(4), n=14, labels=4, edges=0.3, arity=4)
    handle = model.arrays().build()
    whole, sliced = Solver(handle, "trws").run(iterations=12), Solver(handle, "trws", max_iterations=12)
    while sliced.info.status == lib.FGI_RUNNING:
        sliced.run(seconds=0)
    assert sliced.info.bound == whole.info.bound
    assert sliced.info.score == whole.info.score
    np.testing.assert_array_equal(sliced.messages(), whole.messages())
    resumed = Solver(handle, "trws")
    resumed.warm_start(whole.messages())
    resumed.run(iterations=1)
    assert resumed.info.bound <= whole.info.bound + 1e-9
    noise = np.random.default_rng(0).normal(size=len(whole.messages()))
    resumed.warm_start(noise)
    resumed.run(iterations=1)
    assert resumed.info.bound <= model.dual(noise) + 1e-9
