"""The l1 optimisers: all methods meet one optimum, working sets change nothing, states can be saved anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.optimise import METHODS, Optimiser, minimise
from fginfer.errors import DataError, FginferError, ModelError, SettingsError


class Logistic:
    """sum of log(1 + exp(-y <w, x>)), with derivatives on any set."""

    def __init__(self, seed: int, n: int = 40, d: int = 60, nonzeros: int = 5) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, d))
        truth = np.zeros(d)
        truth[:nonzeros] = 2 * rng.standard_normal(nonzeros)
        self.y = np.where(self.X @ truth + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
        self.d = d

    def value(self, w):
        return float(np.logaddexp(0, -self.y * (self.X @ w)).sum())

    def gradient(self, w, where):
        part = self.X if where is None else self.X[:, where]
        return part.T @ (-self.y / (1 + np.exp(self.y * (self.X @ w))))

    def curvature(self, w, where):
        p = 1 / (1 + np.exp(self.X @ w))
        return (self.X if where is None else self.X[:, where]).T ** 2 @ (p * (1 - p))

    def violation(self, w, l1, l2):
        """The violation of the optimality conditions, from their definition."""
        g = self.gradient(w, None) + l2 * w
        return np.where(w != 0, np.abs(g + l1 * np.sign(w)), np.maximum(np.abs(g) - l1, 0)).max()


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), l1=st.sampled_from([0.3, 1.0, 4.0]), l2=st.sampled_from([0.0, 0.5]))
def test_methods_meet_one_optimum(seed, l1, l2):
    p = Logistic(seed)
    start = p.violation(np.zeros(p.d), l1, l2)
    values = []
    for method in METHODS:
        w, info = minimise(p.value, p.gradient, p.d, l1, l2=l2, method=method, tol=1e-7, samples=40, max_iter=50_000)
        assert info.status == "converged"
        assert p.violation(w, l1, l2) <= 1.0001e-7 * start
        assert info.nonzeros == np.count_nonzero(w)
        f = l1 * np.abs(w).sum() + l2 / 2 * (w @ w) + p.value(w)
        assert f == pytest.approx(info.objective, rel=1e-12)
        values.append(f)
    assert max(values) - min(values) <= 1e-9 * abs(values[0])


@pytest.mark.parametrize("seed", range(5))
def test_the_working_set_changes_no_result_and_saves_derivatives(seed):
    p = Logistic(seed, n=100, d=2000)
    v, whole = minimise(p.value, p.gradient, p.d, 6.0, tol=1e-8, samples=100, shrink=False, seed=seed)
    assert whole.working_set == p.d
    for forget in (False, True):  # the memory of the model at the begin of an epoch
        w, info = minimise(p.value, p.gradient, p.d, 6.0, tol=1e-8, samples=100, forget=forget, seed=seed)
        assert info.objective == pytest.approx(whole.objective, rel=1e-10)
        np.testing.assert_allclose(w, v, atol=1e-4)
        assert info.coordinates < 0.5 * whole.coordinates
        assert info.working_set < 0.2 * p.d


def test_frequent_features_do_not_end_a_run_early():
    """One feature that all samples have makes the first violation large; rare ones matter to the objective all the
    same: where the run ends, the objective is right to about tol."""
    p = Logistic(1, n=400, d=300)
    p.X = p.X * (np.random.default_rng(1).random(p.X.shape) < 0.05)
    p.X[:, 0] = 10.0
    ends = [minimise(p.value, p.gradient, p.d, 0.05, tol=tol, samples=400)[1].objective for tol in (1e-3, 1e-10)]
    assert ends[0] <= ends[1] * (1 + 3e-3)  # by the violation alone it would be 8e-3


def test_the_tail_is_superlinear():
    """Near the optimum the error of the objective falls by growing factors (on a strongly convex problem, with a memory
    that holds all steps and a model that is solved well)."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((12, 12))
    H, c = a @ a.T + np.eye(12), 3 * rng.standard_normal(12)

    def value(w):
        return 0.5 * w @ H @ w - c @ w + np.sum(w**4) / 10

    def gradient(w, where):
        g = H @ w - c + 0.4 * w**3
        return g if where is None else g[where]

    trace: list[float] = []
    minimise(
        value, gradient, 12, 0.5, tol=1e-10, memory=60, max_inner=1000, shrink=False,
        callback=lambda o: trace.append(o.info.objective) and None,
    )  # fmt: skip
    best = trace[-1]
    error = np.array([f - best for f in trace if f - best > 1e-12 * abs(best)])
    assert len(error) > 10
    early, late = error[1 : len(error) // 2], error[len(error) // 2 :]
    assert (late[-1] / late[0]) ** (1 / (len(late) - 1)) < 0.7 * (early[-1] / early[0]) ** (1 / (len(early) - 1))


@pytest.mark.parametrize(("method", "second"), [*((method, False) for method in METHODS), ("proxqn", True)])
def test_a_state_saved_at_any_question_goes_on_as_if_nothing_had_happened(method, second):
    p = Logistic(3, n=60, d=80)
    kept = {"l1": 2.0, "method": method, "tol": 1e-6, "samples": 60, "seed": 4}
    whole, info = minimise(p.value, p.gradient, p.d, curvature=p.curvature if second else None, **kept)
    kept["curvature"] = second
    o = Optimiser(p.d, **kept)
    while (q := o.ask()) is not None:
        saved = o.export()
        o = Optimiser(p.d, **kept)
        o.restore(saved)
        q = o.ask()
        if not q.value:
            q.gradient[:] = (p.curvature if q.curvature else p.gradient)(q.w, q.where)
        o.answer(p.value(q.w) if q.value else 0.0)
    np.testing.assert_array_equal(o.weights(), whole)
    assert o.info == info


def test_a_run_stopped_in_a_line_search_gives_the_last_point_taken():
    p = Logistic(1)
    o = Optimiser(p.d, 0.5, samples=40)
    for _ in range(40):
        q = o.ask()
        if not q.value:
            q.gradient[:] = p.gradient(q.w, q.where)
        o.answer(p.value(q.w) if q.value else 0.0)
        w = o.weights()
        assert p.value(w) + 0.5 * np.abs(w).sum() == pytest.approx(o.info.objective, rel=1e-12)


def test_points_of_no_value_are_stepped_back_from():
    """A barrier: the loss is -log(1 - w), infinite from 1 on."""
    for method in METHODS:
        w, info = minimise(
            lambda w: float(-np.log(1 - w[0]) - 5 * w[0]) if w[0] < 1 else np.nan,
            lambda w, where: np.array([1 / (1 - w[0]) - 5]), 1, 1.0, method=method, tol=1e-8,
        )  # fmt: skip
        assert info.status == "converged"
        assert w[0] == pytest.approx(0.75, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_that_is_optimal_needs_no_step(method):
    w, info = minimise(lambda w: 0.5 * w @ w, lambda w, _: w.copy(), 3, 1.0, method=method)
    assert (info.status, info.iterations, info.first_violation) == ("converged", 0, 0.0)
    assert not w.any()
    p = Logistic(0)
    assert minimise(p.value, p.gradient, p.d, 1e6, method=method)[1].nonzeros == 0


def test_a_start_is_taken():
    p = Logistic(2)
    best, _ = minimise(p.value, p.gradient, p.d, 1.0, tol=1e-9, samples=40)
    w, info = minimise(p.value, p.gradient, p.d, 1.0, tol=0.5, samples=40, start=best)
    np.testing.assert_allclose(w, best, atol=1e-7)
    assert info.first_violation < 1e-6


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"l1": -1.0}, SettingsError),
        ({"l1": np.nan}, SettingsError),
        ({"l2": np.inf}, SettingsError),
        ({"tol": -1.0}, SettingsError),
        ({"memory": 0}, SettingsError),
        ({"max_inner": 0}, SettingsError),
        ({"samples": 0.0}, SettingsError),
        ({"method": "newton"}, SettingsError),
        ({"dimension": 0}, SettingsError),
        ({"start": [np.nan, 0.0]}, SettingsError),
        ({"start": [0.0]}, DataError),
    ],
)
def test_bad_settings(change, error):
    with pytest.raises(error):
        Optimiser(**{"dimension": 2, "l1": 1.0, **change})


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_is_no_number_is_said_so(method):
    with pytest.raises(ModelError, match="not finite"):
        minimise(lambda w: np.nan, lambda w, _: w, 2, 1.0, method=method)
    with pytest.raises(ModelError, match="not finite"):
        minimise(lambda w: 1.0, lambda w, _: np.full(2, np.nan), 2, 1.0, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_states_that_do_not_fit_are_refused(method):
    p = Logistic(0)
    o = Optimiser(p.d, 1.0, method=method)
    o.answer(p.value(np.zeros(p.d)))
    saved = o.export()
    for wrong in (
        {"reals": saved["reals"][:-1], "ints": saved["ints"]},
        {"reals": saved["reals"], "ints": saved["ints"][:-1]},
        {"reals": saved["reals"], "ints": np.full_like(saved["ints"], -5)},
        {"reals": saved["reals"].astype(np.float32), "ints": saved["ints"]},
    ):
        with pytest.raises(FginferError):
            Optimiser(p.d, 1.0, method=method).restore(wrong)
    with pytest.raises(FginferError):
        Optimiser(p.d + 1, 1.0, method=method).restore(saved)
