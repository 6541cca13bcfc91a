"""The kernelised bcfw: with the linear kernel it is the primal one; with rbf it learns what no linear model can."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fginfer.errors import DataError, SettingsError
from fginfer.learn import KernelStructuredSVM, StructuredSVM


def chains(rng, n=12, labels=3, features=4):
    lengths = rng.integers(1, 5, n)
    return [rng.normal(size=(t, features)) for t in lengths], [rng.integers(0, labels, t) for t in lengths]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("pairwise", [True, False])
@pytest.mark.parametrize("loss", [None, [[0, 1, 2], [1, 0, 1], [3, 1, 0]]])
def test_the_linear_kernel_equals_the_primal_solver(intercept, pairwise, loss):
    X, y = chains(np.random.default_rng(0))
    settings = {"C": 0.3, "fit_intercept": intercept, "pairwise": pairwise, "loss": loss}
    primal = StructuredSVM(solver="bcfw", tol=1e-6, max_iter=3000, **settings).fit(X, y)
    dual = KernelStructuredSVM(kernel="linear", tol=1e-3, max_iter=1000, **settings).fit(X, y)
    assert dual.gap_ <= 1e-3
    assert dual.dual_value_ <= primal.primal_ * (1 + 1e-9)
    assert dual.primal_ >= primal.dual_ * (1 - 1e-9)
    assert dual.primal_ == pytest.approx(primal.primal_, rel=1.1e-3)
    weights = dual.dual_.T @ np.concatenate(X)  # w = A alpha
    near = np.sqrt(2 * 1.1e-3 * primal.primal_)  # strong convexity: |w - w*|^2 <= 2 (P - P*)
    assert np.linalg.norm(weights - primal.coef_) <= near
    assert np.linalg.norm(dual.pairwise_ - (primal.pairwise_[0] if pairwise else 0.0)) <= near


def test_multiclass_with_the_linear_kernel():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 4, 40)
    primal = StructuredSVM(model="multiclass", tol=1e-6, max_iter=3000, C=0.2).fit(X, y)
    dual = KernelStructuredSVM(model="multiclass", kernel="linear", tol=1e-3, max_iter=1000, C=0.2).fit(X, y)
    assert dual.primal_ == pytest.approx(primal.primal_, rel=1.1e-3)
    as_function = KernelStructuredSVM(model="multiclass", kernel=lambda a, b: a @ b.T, tol=1e-3, max_iter=1000, C=0.2)
    assert np.array_equal(as_function.fit(X, y).dual_, dual.dual_)


def test_bounds_hold_from_the_first_pass():
    X, y = chains(np.random.default_rng(2))
    ends = [KernelStructuredSVM(max_iter=n, tol=0.0, C=0.5).fit(X, y) for n in (1, 3, 10, 100)]
    duals, primals = [m.dual_value_ for m in ends], [m.primal_ for m in ends]
    assert duals == sorted(duals)
    assert max(duals) <= min(primals)


def test_rbf_learns_what_is_not_linear():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (240, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    settings = {"model": "multiclass", "C": 10.0, "max_iter": 50}
    assert StructuredSVM(**settings).fit(X[:160], y[:160]).score(X[160:], y[160:]) < 0.75
    model = KernelStructuredSVM(gamma=4.0, **settings).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.9
    assert set(model.predict(X[160:])) == {"same", "other"}


def test_chains_in_both_forms_and_clones_agree():
    X, y = chains(np.random.default_rng(4))
    model = KernelStructuredSVM(C=5.0, max_iter=20).fit(X, y)
    offsets = np.cumsum([0, *map(len, X)])
    again = clone(model).fit(np.concatenate(X), np.concatenate(y), offsets=offsets)
    assert np.array_equal(again.dual_, model.dual_)
    parts = model.predict(X)
    assert [len(p) for p in parts] == [len(x) for x in X]
    assert np.array_equal(np.concatenate(parts), again.predict(np.concatenate(X), offsets=offsets))


@pytest.mark.parametrize("bad", [{"model": "graph"}, {"kernel": "cubic"}, {"C": 0.0}, {"gamma": -1.0}, {"max_iter": 0}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(SettingsError):
        KernelStructuredSVM(**bad).fit(*chains(np.random.default_rng(5)))


def test_bad_data_is_refused():
    X, y = chains(np.random.default_rng(6))
    with pytest.raises(DataError, match="shape"):
        KernelStructuredSVM(kernel=lambda a, b: np.zeros(3)).fit(X, y)
    with pytest.raises(DataError, match="one class"):
        KernelStructuredSVM().fit(X, [0 * part for part in y])
    with pytest.raises(DataError):
        KernelStructuredSVM(max_iter=1).fit(X, y).predict([np.zeros((2, 9))])
