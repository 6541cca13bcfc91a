"""Time that is over, memory that is not there: both estimators end soon with an answer, or say what is too large."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.core.latent import AtomProblem
from fginfer.errors import DataError
from fginfer.latent import LatentFeatureLasso, MixedRegression, em, mixture
from fginfer.latent.alternating import least_squares, refine
from fginfer.latent.atom import relax, relaxation_bound
from fginfer.latent.em import Mixture


def noise(rows: int = 200, columns: int = 6) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns))


def test_features_without_time():
    X = noise()
    model = LatentFeatureLasso(3, time_limit=1e-9).fit(X)
    assert (model.status_, len(model.trace_), model.size_power_) == ("time_limit", 1, 0.0)  # "auto" tries no other
    assert 0 <= model.gap_ <= 1
    assert model.transform(X).shape == (200, 3)
    assert model.error_ < np.sqrt((X * X).mean())


@pytest.mark.parametrize("generalized", [False, True])
@pytest.mark.parametrize("components", [3, "held-out"])
def test_regressions_without_time(generalized, components, monkeypatch):
    rounds = []
    solve = Mixture.solve
    monkeypatch.setattr(Mixture, "solve", lambda self, shares: rounds.append(1) or solve(self, shares))
    X = noise()
    model = MixedRegression(components, generalized=generalized, time_limit=1e-9).fit(X[:, 1:], X[:, 0])
    assert model.status_ == "time_limit"
    assert np.isfinite(model.predict(X[:, 1:])).all()
    assert len(rounds) <= 8 * 6  # a round for each batch begun, for at most eight numbers of components


def test_runs_end_where_they_are():
    X = noise()
    many = noise(60, 15).reshape(60, 3, 5)
    fits = Mixture(X[:, 1:], X[:, 0], 3, False, late=lambda: True).run(many, True)
    assert (fits.rounds, len(fits.weights)) == (1, 25)  # of the first batch

    Z = (X[:, :3] > 0).astype(np.uint8)
    same, W = refine(X, Z, late=lambda: True)
    assert (same == Z).all()
    assert np.allclose(W, least_squares(Z, X))

    calls: list[int] = []
    problem = AtomProblem(X)
    relax(problem, 4, 0, 0.0, lambda: bool(calls.append(1)) or len(calls) == 3)
    assert len(calls) == 3
    starts = np.random.default_rng(1).integers(0, 2, (30, 200), dtype=np.uint8)
    assert relaxation_bound(X, problem.mix_dual()) >= problem.search(starts, tabu_steps=400).max()


@pytest.mark.parametrize("generalized", [False, True])
def test_batches_that_fit_into_memory_give_the_same(generalized, monkeypatch):
    X = noise()
    W = noise(7, 15).reshape(7, 3, 5)
    plain = Mixture(X[:, 1:], X[:, 0], 3, generalized).run(W, True)
    sizes = []
    errors = Mixture.errors
    monkeypatch.setattr(Mixture, "errors", lambda self, W: sizes.append(len(W)) or errors(self, W))
    monkeypatch.setattr(em, "_ERRORS", 3 * 8 * 200 * (8 if generalized else 3))
    small = Mixture(X[:, 1:], X[:, 0], 3, generalized).run(W, True)
    assert max(sizes) == 3
    assert np.allclose(plain.weights, small.weights, rtol=1e-6, atol=1e-9)


def test_kernels_of_too_many_samples(monkeypatch):
    monkeypatch.setattr(mixture, "KERNEL_SAMPLES", 100)
    with pytest.raises(DataError, match="up to 100 samples, not 200"):
        MixedRegression(2, kernel="rbf").fit(noise(), noise()[:, 0])
