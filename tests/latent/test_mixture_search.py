"""The local search behind MixedRegression: own variances, single precision, exchanges, starts in the span, the tensor
start, and one BLAS thread."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer import blas
from fginfer.latent import MixedRegression, exchange
from fginfer.latent.em import Mixture, likelihood_costs, restarts
from fginfer.latent.exchange import POPULATION, _crossing, _distinct, improve
from fginfer.latent.mixture_starts import span_starts
from fginfer.latent.tensor import tensor_start
from tests.latent.problems import parameter_error, regressions


@pytest.mark.slow
@pytest.mark.parametrize("generalized", [False, True])
def test_exchanges_lead_out_of_local_optima_and_never_raise_the_error(generalized):
    X, y, W = regressions(5, 110 if generalized else 300, 8, 3 if generalized else 6, generalized)
    mixture = Mixture(X, y, len(W), generalized)
    rng = np.random.default_rng(0)
    start = rng.standard_normal((1, len(W), 8))
    errors = [
        improve(mixture, start, np.random.default_rng(5), rounds, 1e-20, lambda: False)[1] for rounds in (0, 1, 3, 40)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1.0  # a local optimum
    assert errors[-1] <= 1e-12 * (y @ y)


def test_a_population_that_is_stuck_makes_way_for_another(monkeypatch):
    X, y, _ = regressions(5, 200, 4, 2, False)
    mixture = Mixture(X, y, 2, False)
    monkeypatch.setattr(exchange, "_trials", lambda mixture, member, rng: member[None])

    def cost(rounds):
        alike = np.ones((12, 2, 4))  # EM cannot tell the components apart
        return improve(mixture, alike, np.random.default_rng(0), rounds, 1e-20, lambda: False)[1]

    assert cost(exchange.PATIENCE) == cost(0) > 0.01 * (y @ y)
    assert cost(exchange.PATIENCE + 1) <= 1e-12 * (y @ y)


def test_curves_that_cross_are_told_from_curves_that_touch():
    """Two lines through 0, of which one has the upper halves of both and the other the lower ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = X[:, 0] * np.where(rng.integers(0, 2, 200) == 0, 1.0, -1.0)
    mixture = Mixture(X, y, 2, False)
    trials = [_crossing(mixture, np.array([[0.1], [-0.1]]), (y < 0).astype(np.intp), rng) for _ in range(5)]
    assert all(np.allclose(np.sort(W[:, 0]), [-1, 1], atol=0.1) for W in trials)


@pytest.mark.parametrize("seed", [1000, 1002])  # EM from 100 starts, and exchanges without crossings, miss these
def test_four_polynomials_are_told_apart_exactly(seed):
    rng = np.random.default_rng([13, seed])
    W, x, which = rng.uniform(-4, 4, (4, 6)), rng.uniform(-1, 1, (400, 1)), rng.integers(0, 4, 400)
    y = (W[which] * x ** np.arange(1, 7)).sum(1)
    options = {"degree": 6, "gamma": 2.0, "coef0": 2.0, "ridge": 1e-10, "n_span": 20, "exchanges": 20}
    model = MixedRegression(4, kernel="poly", random_state=seed, **options).fit(x, y / np.abs(y).max())
    assert model.error_ < 1e-6


def test_noisy_polynomials_are_found_where_another_solution_has_less_error():
    """The found error is above that of the wrong solution at which a search by error ends (0.0803)."""
    rng = np.random.default_rng([13, 2001])
    W, x, which = rng.uniform(-4, 4, (4, 6)), rng.uniform(-1, 1, (400, 1)), rng.integers(0, 4, 400)
    y = (W[which] * x ** np.arange(1, 7)).sum(1) + 0.1 * rng.standard_normal(400)
    options = {"degree": 6, "gamma": 2.0, "coef0": 2.0, "ridge": 1e-8, "n_span": 20, "exchanges": 20}
    model = MixedRegression(4, kernel="poly", random_state=2001, **options).fit(x, y)
    grid = np.linspace(-1, 1, 101)[:, None]
    assert model.error_ > 0.0805
    assert parameter_error(model.predict_components(grid).T, W @ (grid ** np.arange(1, 7)).T) < 0.05


def test_costs_are_those_of_the_most_likely_variance():
    rng = np.random.default_rng(0)
    errors = rng.standard_normal((3, 4, 50)) ** 2
    errors[1, 1:] += 1e4  # nobody takes these patterns for the first
    for dtype in (np.float64, np.float32):
        costs = likelihood_costs(errors.astype(dtype), 1.0)
        for start, cost in zip(errors, costs, strict=True):
            best = max(
                np.log(np.exp(start / (-2 * v)).sum(0)).mean() - 0.5 * np.log(v) for v in np.geomspace(1e-2, 10, 4000)
            )
            # above, and near it even where the patterns are as mixed up as can be
            assert 1 - 1e-5 <= cost / (50 * np.exp(-2 * best - 1)) <= 1.005
        assert costs[1] == pytest.approx(errors[1, 0].sum(), rel=1e-5)
    assert likelihood_costs(np.zeros((1, 2, 5)), 1.0)[0] < 1e-25


def test_time_ends_exchanges():
    X, y, W = regressions(2, 100, 4, 3)
    mixture = Mixture(X, y + np.random.default_rng(1).standard_normal(100), 3, False)
    calls = []
    start = W[None] + 1.0
    improve(mixture, start, np.random.default_rng(0), 50, 1e-20, lambda: len(calls) == 2 or bool(calls.append(1)))
    assert len(calls) == 2


def test_the_population_is_distinct_and_sorted():
    errors = np.array([3.0, 1.0, 1.0000001, 2.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 10.0])
    _, kept = _distinct(np.zeros((11, 1, 1)), errors)
    assert kept.tolist() == [float(e) for e in range(1, POPULATION + 1)]


def test_own_variances_keep_right_components():
    """One component is right and the others are not: with variances of its own it stays where it is."""
    X, y, W = regressions(3, 600, 6, 4)
    rng = np.random.default_rng(2)
    start = np.concatenate([W[:1], rng.standard_normal((3, 6))])[None]
    mixture = Mixture(X, y, 4, False)
    after = [mixture.run(start, True, 6, own=own).weights[0, 0] for own in (True, False)]
    assert np.linalg.norm(after[0] - W[0]) < np.linalg.norm(after[1] - W[0])


@pytest.mark.parametrize("own", [True, False])
def test_single_precision_restarts_end_in_double(own):
    X, y, W = regressions(5, 300, 3, 2)
    fits = restarts(X, y, 2, n_init=10, dtype=np.float32, own=own)
    assert parameter_error(fits.best()[0], W) < 1e-8
    assert fits.weights.dtype == np.float64


def test_starts_in_the_span_are_near_the_truth():
    X, y, W = regressions(4, 600, 48, 2)
    mixture = Mixture(X, y, 2, False)
    noisy = np.concatenate([W, W]) + 0.3 * np.random.default_rng(0).standard_normal((4, 48))
    starts = span_starts(mixture, noisy, 3, np.random.default_rng(1))
    assert starts.shape == (3, 2, 48)
    directions = np.linalg.svd(noisy)[2][:3]
    assert np.allclose(starts @ directions.T @ directions, starts, atol=1e-9)
    assert parameter_error(starts[0], W) < 0.5
    assert span_starts(mixture, np.zeros((0, 48)), 3, np.random.default_rng(1)).shape == (0, 2, 48)
    assert span_starts(Mixture(X[:, :4], y, 2, False), W[:, :4], 3, np.random.default_rng(1)).shape == (3, 2, 4)


@pytest.mark.slow
def test_many_inputs_are_searched_in_the_span():
    X, y, W = regressions(6, 450, 60, 3)
    model = MixedRegression(3, penalty=0.2, n_atoms=8).fit(X, y)
    assert parameter_error(model.coef_, W) < 1e-6


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_do_not_matter(scale):
    X, y, W = regressions(0, 300, 5, 3)
    model = MixedRegression(3).fit(X, scale * y)
    assert parameter_error(model.coef_ / scale, W) < 1e-6
    model = MixedRegression(3).fit(scale * X, y)
    assert parameter_error(model.coef_ * scale, W) < 1e-6


@pytest.mark.filterwarnings("error::RuntimeWarning")  # no others: files of earlier tests are collected at any time
@pytest.mark.parametrize(("inputs", "outputs"), [(1e-9, 1.0), (1e9, 1.0), (1.0, 1e-20), (1e-20, 1e20)])
def test_neither_does_the_unit_of_inputs_beside_a_constant(inputs, outputs):
    """An intercept of a constant 1 beside inputs of 1e-9 was no intercept; starts of size 1 overflowed at 1e-20."""
    X, y, W = regressions(0, 200, 3, 2)
    y = y + np.where(np.abs(y - X @ W[0]) < 1e-9, 2.0, -1.0)
    plain, other = (
        MixedRegression(2, fit_intercept=True, random_state=0).fit(a * X, b * y) for a, b in ((1, 1), (inputs, outputs))
    )
    assert sorted(plain.intercept_) == pytest.approx([-1, 2], abs=1e-6)
    assert (plain.assignments_ == other.assignments_).all()
    assert np.allclose(other.intercept_ / outputs, plain.intercept_, atol=1e-6)
    assert np.allclose(other.coef_ * (inputs / outputs), plain.coef_, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_constant_joins_a_kernel_in_its_own_unit(unit):
    rng = np.random.default_rng(0)
    x, which = rng.uniform(-1, 1, (120, 1)), rng.integers(0, 2, 120)
    model = MixedRegression(
        2, kernel=lambda a, b: unit * a @ b.T, fit_intercept=True, ridge=1e-12, random_state=0
    ).fit(x, np.where(which, 2 * x[:, 0] + 1, -x[:, 0] - 3))  # fmt: skip
    assert model.error_ < 1e-6
    assert model.constant_ == pytest.approx(unit * (x * x).mean())
    by_hand = model.dual_coef_ @ (unit * model.basis_ @ x.T + model.constant_)
    assert np.allclose(by_hand.T, model.predict_components(x), atol=1e-8)


def test_the_published_algorithm_alone():
    X, y, W = regressions(0, 400, 5, 3)
    model = MixedRegression(3, n_span=0, exchanges=0).fit(X, y)
    assert parameter_error(model.coef_, W) < 1e-6


def test_the_tensor_start_is_near_the_truth_with_many_normal_samples():
    X, y, W = regressions(7, 60000, 5, 3)
    start = tensor_start(X, y, 3)
    assert parameter_error(start, W) < 0.25
    fits = Mixture(X[:2000], y[:2000], 3, False).run(start[None], True)
    assert parameter_error(fits.best()[0], W) < 1e-6


def test_one_blas_thread_while_fitting(monkeypatch):
    threads = pytest.importorskip("threadpoolctl")

    def counts() -> set[int]:
        return {pool["num_threads"] for pool in threads.threadpool_info() if pool["user_api"] == "blas"}

    before, seen = counts(), []
    X, y, _ = regressions(0, 40, 3, 2)
    MixedRegression(2, callback=lambda _: seen.append(counts())).fit(X, y)
    assert seen
    assert all(c == {1} for c in seen)
    assert counts() == before
    monkeypatch.setattr(blas, "_controller", lambda: None)
    with blas.one_blas_thread():
        assert counts() == before
