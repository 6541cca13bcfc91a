"""Belief propagation, MPLP, projected subgradient and AD3: bounds, scores, exactness where it is due."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.door import lib, pointer

from .message_passing import Dense, Solver, random_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lp import local_polytope_optimum

METHODS = ["bp", "mplp", "psdd", "ad3"]
DUAL = ["mplp", "psdd", "ad3"]


@pytest.mark.parametrize("method", METHODS)
@given(
    seed=st.integers(0, 10**6),
    labels=st.integers(1, 4),
    arity=st.integers(2, 3),
    edges=st.floats(0, 1),
    forbidden=st.sampled_from([0.0, 0.2, 0.7]),
)
@settings(max_examples=40, deadline=None)
def test_bound_optimum_score(method: str, seed: int, labels: int, arity: int, edges: float, forbidden: float) -> None:
    model = random_model(np.random.default_rng(seed), 6, labels, edges=edges, arity=arity, forbidden=forbidden)
    best = model.best()
    solver = Solver(model.arrays().build(), method)
    for _ in range(25):
        solver.run(iterations=1)
        assert solver.info.bound >= best - 1e-12
        assert solver.info.score <= best + 1e-12
        if solver.labels is not None:
            assert model.score(solver.labels[:6]) == pytest.approx(solver.info.score, abs=1e-9)
        if method in DUAL:
            dual = model.dual(solver.messages())
            assert dual >= best - 1e-9
    if solver.info.status == lib.FGI_INFEASIBLE:
        assert best == -np.inf


def tree(seed: int) -> Dense:
    rng = np.random.default_rng(seed)
    cards = [int(k) for k in rng.integers(1, 5, 8)]
    model = Dense(cards, [rng.normal(size=k) for k in cards])
    for j in range(1, 8):
        i = int(rng.integers(0, j))
        model.factors.append(((i, j), rng.normal(size=(cards[i], cards[j]))))
    return model


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_trees(method: str, seed: int) -> None:
    model = tree(seed)
    best = model.best()
    solver = Solver(model.arrays().build(), method, gap=1e-6).run(iterations=5000)
    assert solver.info.score == pytest.approx(best, abs=1e-9)
    if method in DUAL:
        assert solver.info.bound == pytest.approx(best, rel=2e-2)


@pytest.mark.parametrize("method", METHODS)
def test_slices_do_not_change_the_result(method: str) -> None:
    handle = random_model(np.random.default_rng(5), 20, 6, edges=0.3, arity=3).arrays().build()
    whole, sliced = Solver(handle, method).run(iterations=10), Solver(handle, method, max_iterations=10)
    while sliced.info.status == lib.FGI_RUNNING:
        sliced.run(seconds=0)
    assert (sliced.info.bound, sliced.info.score) == (whole.info.bound, whole.info.score)
    if method in DUAL:
        np.testing.assert_array_equal(sliced.messages(), whole.messages())


def test_mplp_is_monotone_and_its_messages_are_its_bound() -> None:
    model = random_model(np.random.default_rng(6), 8, 4, edges=0.7, arity=3)
    solver, last = Solver(model.arrays().build(), "mplp"), np.inf
    for _ in range(40):
        solver.run(iterations=1)
        assert solver.info.bound <= last
        last = solver.info.bound
        assert model.dual(solver.messages()) == pytest.approx(solver.info.bound, abs=1e-9)


@pytest.mark.parametrize("method", DUAL)
def test_warm_start(method: str) -> None:
    model = random_model(np.random.default_rng(7), 8, 4, edges=0.6, arity=3)
    handle = model.arrays().build()
    mu = Solver(handle, "trws").run(iterations=100).messages()
    solver = Solver(handle, method)
    solver.warm_start(mu)
    solver.run(iterations=1)
    assert model.best() - 1e-9 <= solver.info.bound <= model.dual(mu) + 1e-9
    with pytest.raises(Exception, match="not finite"):
        solver.warm_start(np.full(len(mu), np.inf))


@pytest.mark.parametrize("method", METHODS)
def test_infeasible_models(method: str) -> None:
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    ends = [np.array([0.0, -np.inf]), np.zeros(2), np.array([-np.inf, 0.0])]
    model = Dense([2] * 3, ends, [((0, 1), equal), ((1, 2), equal)])
    solver = Solver(model.arrays().build(), method).run(iterations=200)
    assert solver.labels is None
    assert solver.info.status == lib.FGI_INFEASIBLE


@pytest.mark.parametrize("method", METHODS)
def test_models_without_factors(method: str) -> None:
    model = Dense([3, 2], [np.array([0.0, 2.0, 1.0]), np.array([-1.0, -2.0])], constant=1.0)
    solver = Solver(model.arrays().build(), method).run(iterations=5)
    assert solver.info.status == lib.FGI_OPTIMAL
    assert solver.info.score == 2.0


def test_damping_matters_only_on_the_way() -> None:
    model = tree(9)
    scores = {Solver(model.arrays().build(), "bp", damping=d).run(iterations=300).info.score for d in (0.0, 0.5, 0.9)}
    assert max(scores) - min(scores) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_ad3_reaches_the_optimum_of_the_relaxation(seed: int) -> None:
    model = random_model(np.random.default_rng(seed), 7, 4, edges=0.8, arity=2 + seed % 2, forbidden=0.1 * (seed % 3))
    optimum = local_polytope_optimum(
        model.cards, model.unary, [SimpleNamespace(variables=v, table=t) for v, t in model.factors], model.constant
    )
    solver = Solver(model.arrays().build(), "ad3").run(iterations=20000)
    assert solver.info.bound == pytest.approx(optimum, rel=1e-4, abs=1e-4)
    assert solver.info.bound >= optimum - 1e-7
    x = np.zeros(sum(model.cards))
    assert lib.fgi_solver_marginals(solver.handle, pointer(x))
    begin = np.concatenate(([0], np.cumsum(model.cards)))
    for i in range(len(model.cards) if optimum > -np.inf else 0):
        assert x[begin[i] : begin[i + 1]].sum() == pytest.approx(1, abs=1e-9)
    assert x.min() >= 0
