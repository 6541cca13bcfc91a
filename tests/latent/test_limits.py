"""Time that is over, memory that is not there: both estimators end soon with an answer, or say what is too large."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.core import latent as core_latent
from fginfer.core.latent import AtomProblem
from fginfer.errors import DataError
from fginfer.latent import LatentFeatureLasso, MixedRegression, em, mixture
from fginfer.latent.alternating import assign, least_squares, refine
from fginfer.latent.atom import relax, relaxation_bound
from fginfer.latent.coefficients import newton, proximal
from fginfer.latent.em import Mixture
from fginfer.latent.losses import FeatureLoss, MixtureLoss
from fginfer.latent.starts import ica_columns


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
    assert (fits.rounds, len(fits.weights)) == (1, 25)  # the first batch's

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


@pytest.mark.parametrize("components", ["held-out", "lam", 12])
def test_features_of_every_kind_without_time(components):
    X = noise()
    model = LatentFeatureLasso(components, time_limit=1e-9, random_state=0).fit(X)
    assert model.status_ == "time_limit"
    assert model.transform(X).shape == (200, model.n_components_)
    assert LatentFeatureLasso(3, start="ica", time_limit=1e-9).fit(X).status_ == "time_limit"


def test_coefficients_stay_where_they_are():
    rng = np.random.default_rng(0)
    for loss in (FeatureLoss(noise(), 0.3), MixtureLoss(noise()[:, 1:], noise()[:, 0], 0.3)):
        loss.add(rng.integers(0, 2, (3, 200), dtype=np.uint8))
        c, lam = np.array([1.0, 0.0, 2.0]), np.full(3, 0.1)
        for solver in (newton, proximal):
            same, value = solver(loss, c, lam, late=lambda: True)
            assert (same == c).all()
            assert value == loss.value(c) + lam @ c
            assert solver(loss, c, lam)[1] < value


@pytest.mark.parametrize("k", [4, 14])  # all patterns are tried, and flips
def test_rows_that_were_not_come_to_stay(k):
    rng = np.random.default_rng(1)
    X, W, start = noise(), rng.standard_normal((k, 6)), rng.integers(0, 2, (200, k), dtype=np.uint8)
    late = assign(X, W, start, late=lambda: True)
    before, after = (((X - Z @ W) ** 2).sum(1) for Z in (start, late))
    assert (after <= before + 1e-9).all()  # the best of the starts
    assert k > 4 or (late == start).all()
    assert (((X - assign(X, W, start) @ W) ** 2).sum(1) <= after + 1e-9).all()


def test_no_components_to_start_from_when_it_is_late():
    assert ica_columns(noise(), 3, late=lambda: True).shape == (200, 0)
    looks: list[int] = []
    Z = ica_columns(noise(), 3, late=lambda: bool(looks.append(1)))
    assert Z.shape == (200, 3)
    assert len(looks) > 6  # in every step, for every column, before every exchange


def test_searches_end_at_their_time_and_in_parts_are_the_same(monkeypatch):
    X = noise()
    starts = np.random.default_rng(1).integers(0, 2, (30, 200), dtype=np.uint8)
    stopped, whole, parts = starts.copy(), starts.copy(), starts.copy()
    values = AtomProblem(X, deadline=0.0).search(stopped, tabu_steps=50)
    assert (stopped == starts).all()
    assert np.allclose(values, ((starts @ X) ** 2).sum(1))
    first = AtomProblem(X).search(whole, tabu_steps=50, candidates=20, seed=4)
    monkeypatch.setattr(core_latent, "_PART", 7 * X.size)
    again = AtomProblem(X).search(parts, tabu_steps=50, candidates=20, seed=4)
    assert (first == again).all()
    assert (whole == parts).all()


def test_the_relaxation_of_no_time_has_a_bound():
    X = noise()
    problem = AtomProblem(X, deadline=0.0)
    relax(problem, 4, 0, 1e-4, lambda: True)
    starts = np.random.default_rng(1).integers(0, 2, (30, 200), dtype=np.uint8)
    assert relaxation_bound(X, problem.mix_dual()) >= AtomProblem(X).search(starts, tabu_steps=400).max()


def test_patterns_that_do_not_fit_into_memory(monkeypatch):
    X = noise()
    monkeypatch.setattr(mixture, "MOST_ERRORS", 800)
    with pytest.raises(DataError, match="3 components takes up to 100 samples, not 200"):
        MixedRegression(3, generalized=True).fit(X[:, 1:], X[:, 0])
    model = MixedRegression("held-out", generalized=True, n_atoms=2, exchanges=0, n_span=2).fit(X[:, 1:], X[:, 0])
    assert model.n_components_ <= 2
