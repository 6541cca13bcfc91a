"""Both estimators: derivatives, descent, certified gaps, recovery, scikit-learn's contract, and what they refuse."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from fginfer.errors import DataError, FginferError, SettingsError
from fginfer.latent import BPMeans, LatentFeatureLasso, MixedRegression
from fginfer.latent.alternating import assign, flip_rows, refine, squared_error
from fginfer.latent.coefficients import newton, proximal, violation
from fginfer.latent.em import Mixture, restarts
from fginfer.latent.greedy import GreedySettings, run_greedy
from fginfer.latent.lasso import reduce_rank
from fginfer.latent.losses import FeatureLoss, MixtureLoss
from fginfer.latent.starts import ica_columns
from tests.latent.problems import parameter_error, regressions


@pytest.mark.slow
@parametrize_with_checks(
    [LatentFeatureLasso(2, max_iter=5), BPMeans(2, n_init=2), MixedRegression(2, n_atoms=3)],
    expected_failed_checks=lambda e: {},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def features(seed: int, n: int = 60, d: int = 20, k: int = 3, density: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.random((n, k)) < density
    return Z.astype(np.uint8), Z @ rng.standard_normal((k, d))


def hamming(Z: np.ndarray, truth: np.ndarray) -> float:
    differ = (Z[:, :, None] != truth[:, None, :]).mean(0)
    return float(differ[linear_sum_assignment(differ)].mean())


def make_loss(kind: str, seed: int, tau: float = 0.3) -> FeatureLoss | MixtureLoss:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 4))
    loss = FeatureLoss(X, tau) if kind == "features" else MixtureLoss(X, rng.standard_normal(25), tau)
    loss.add(rng.integers(0, 2, (3, 25), dtype=np.uint8))
    loss.add(rng.integers(0, 2, (2, 25), dtype=np.uint8))
    return loss


@pytest.mark.parametrize("kind", ["features", "mixture"])
@pytest.mark.parametrize("scale", [1e-2, 1.0, 30.0])
def test_derivatives_against_finite_differences(kind, scale):
    loss = make_loss(kind, 1)
    c = scale * np.array([0.5, 1.0, 0.2, 2.0, 0.7])
    gradient, hessian = loss.derivatives(c)
    h = 1e-5 * scale
    for k in range(5):
        step = np.eye(5)[k] * h
        slope = (loss.value(c + step) - loss.value(c - step)) / (2 * h)
        assert slope == pytest.approx(gradient[k], rel=1e-4, abs=1e-10)
        curve = (loss.derivatives(c + step)[0] - loss.derivatives(c - step)[0]) / (2 * h)
        assert np.allclose(curve, hessian[k], rtol=1e-3, atol=1e-7 * np.abs(hessian).max())


@pytest.mark.parametrize("kind", ["features", "mixture"])
def test_the_gradient_is_that_of_the_atom_oracle(kind):
    loss = make_loss(kind, 2)
    c = np.array([0.5, 1.0, 0.0, 2.0, 0.7])
    F = loss.factor(loss.residual(c)) if kind == "mixture" else None
    if F is None:
        loss.keep(c > 0)
        c = c[c > 0]
        F = loss.factor(loss.residual(c))
    slopes = ((loss.atoms @ F) ** 2).sum(1) / (2 * loss.n**2 * loss.tau)
    assert np.allclose(-loss.derivatives(c)[0], slopes, rtol=1e-8)


def test_the_mixture_residual_solves_its_linear_system_whichever_side_is_smaller():
    rng = np.random.default_rng(0)
    X, y, c = rng.standard_normal((12, 5)), rng.standard_normal(12), np.array([0.5, 1.5, 0.3])
    atoms = rng.integers(0, 2, (3, 12), dtype=np.uint8)
    for columns in (2, 5):  # 6 < 12 columns, and 15 > 12
        loss = MixtureLoss(X[:, :columns], y, 0.2)
        loss.add(atoms)
        M = (atoms.T * c) @ atoms
        system = X[:, :columns] @ X[:, :columns].T * M / (12 * 0.2) + np.eye(12)
        assert np.allclose(loss.residual(c), np.linalg.solve(system, y), rtol=1e-9)
        W = loss.weights(c)
        left = y - ((atoms.T @ W) * X[:, :columns]).sum(1)
        assert np.allclose(left, loss.residual(c), rtol=1e-8)
        value = (left @ left) / 24 + 0.1 * ((W**2).sum(1) / c).sum()
        assert loss.value(c) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("kind", ["features", "mixture"])
def test_newton_and_the_published_updates_agree(kind):
    loss = make_loss(kind, 3)
    slopes = -loss.derivatives(np.zeros(5))[0]
    lam = np.full(5, 0.2 * slopes.max())
    exact, value = newton(loss, np.zeros(5), lam)
    slow, reached = proximal(loss, np.zeros(5), lam, tol=1e-4, max_steps=20000)
    assert violation(exact, loss.derivatives(exact)[0], lam) <= 1e-6
    assert reached == pytest.approx(value, rel=1e-5)
    assert value <= reached * (1 + 1e-9)
    assert np.allclose(exact, slow, atol=0.02 * exact.max())


@pytest.mark.slow
@given(
    st.integers(0, 10**6),
    st.sampled_from(["features", "mixture"]),
    st.floats(0.02, 0.9),
    st.sampled_from([0.0, 1.0]),
)
@example(12456, "features", 0.125, 1.0)
@settings(max_examples=25, deadline=None)
def test_objectives_fall_and_certified_gaps_hold(seed, kind, penalty, power):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10, 3))
    loss = FeatureLoss(X, 0.5) if kind == "features" else MixtureLoss(X, rng.standard_normal(10), 0.5)
    options = GreedySettings(penalty=penalty, size_power=power, tol=1e-9, atoms_per_round=3, seed=seed, tabu_steps=40)
    run = run_greedy(loss, options)  # with tabu steps: flips alone miss the best of ten bits now and then
    assert all(b.objective <= a.objective * (1 + 1e-9) for a, b in pairwise(run.trace))
    assert all(p.gap >= 0 and 0 <= p.bound <= p.objective for p in run.trace)
    # All 1023 atoms: the bound is below the true minimum, and the greedy end is that minimum.
    every = ((np.arange(1, 1024)[:, None] >> np.arange(10)) & 1).astype(np.uint8)
    slopes = ((every @ loss.factor(loss.residual(run.c))) ** 2).sum(1) / (2 * 100 * loss.tau)
    worst = float((slopes / (every.sum(1) / 10) ** power).max())
    true_bound = loss.dual_value(loss.residual(run.c), np.sqrt(run.lam / worst))
    assert run.trace[-1].bound <= true_bound + 1e-9 * run.trace[-1].objective
    assert true_bound >= run.trace[-1].objective * (1 - 1e-4)


@pytest.mark.parametrize(("density", "power"), [(0.5, 0.0), (0.2, 1.0), (0.2, "auto"), (0.5, "auto")])
def test_features_are_recovered(density, power):
    truth, X = features(1, 150, 40, 5, density)
    model = LatentFeatureLasso(5, size_power=power).fit(X)
    assert hamming(model.assignments_, truth) == 0
    assert model.error_ <= 1e-10 * np.abs(X).max()


@pytest.mark.parametrize("density", [0.5, 0.2])
def test_columns_to_start_from_leave_the_minimum_alone(density):
    truth, X = features(1, 150, 40, 5, density)
    plain = LatentFeatureLasso(5, size_power=1).fit(X)
    for start in ("ica", truth, np.ones((150, 1)), np.zeros((150, 2), bool)):
        model = LatentFeatureLasso(5, size_power=1, start=start).fit(X)
        assert hamming(model.assignments_, truth) == 0
        assert model.lam_ == plain.lam_
        assert plain.trace_[-1].bound <= model.trace_[-1].objective * (1 + 1e-9)
        assert model.trace_[-1].bound <= plain.trace_[-1].objective * (1 + 1e-9)
        assert all(b.objective <= a.objective * (1 + 1e-9) for a, b in pairwise(model.trace_))


def test_independent_components_are_found_at_half_density():
    truth, X = features(8, 400, 40, 5)
    assert hamming(ica_columns(X, 5), truth) == 0
    assert (ica_columns(X, 5, seed=3) == ica_columns(X, 5, seed=3)).all()
    assert ica_columns(X, 9).shape == (400, 5)  # no more directions than there are
    assert ica_columns(np.ones((6, 3)), 2).shape == (6, 0)
    assert LatentFeatureLasso(2, start="ica").fit(np.ones((6, 3))).error_ == pytest.approx(0, abs=1e-12)


def test_starts_that_do_not_fit():
    with pytest.raises(SettingsError, match="start"):
        LatentFeatureLasso("lam", start="ica").fit(np.eye(5))
    for start in (np.ones((4, 2)), np.full((5, 2), 0.5), np.ones(5), np.full((5, 1), np.nan)):
        with pytest.raises(DataError, match="start"):
            LatentFeatureLasso(2, start=start).fit(np.eye(5))


def test_noise_is_left_alone():
    truth, X = features(2, 300, 50, 6)
    X = X + 0.1 * np.random.default_rng(5).standard_normal(X.shape)
    model = LatentFeatureLasso(6).fit(X)
    assert hamming(model.assignments_, truth) == 0
    best = np.linalg.lstsq(truth.astype(float), X, rcond=None)[0]
    assert model.error_ == pytest.approx(np.sqrt(squared_error(X, truth, best) / X.size), rel=1e-9)
    assert model.rank_ == 6


@pytest.mark.parametrize("how", ["lam", "held-out"])
def test_the_number_of_features_is_found(how):
    truth, X = features(3, 200, 40, 4)
    X = X + 0.05 * np.random.default_rng(5).standard_normal(X.shape)
    model = LatentFeatureLasso(how).fit(X)
    assert model.n_components_ == 4
    assert hamming(model.assignments_, truth) == 0


def test_transform_reads_new_rows():
    _, X = features(4, 150, 40, 5)
    model = LatentFeatureLasso(5).fit(X[:120])
    Z = model.transform(X[120:])
    assert np.allclose(model.inverse_transform(Z), X[120:], atol=1e-8)
    with pytest.raises(DataError):
        model.inverse_transform(Z[:, :3])


def test_flips_agree_with_the_exact_assignment_where_features_do_not_overlap():
    rng = np.random.default_rng(0)
    W = np.kron(np.eye(15), np.ones((1, 3)))
    Z = rng.integers(0, 2, (40, 15), dtype=np.uint8)
    X = Z @ W + 0.1 * rng.standard_normal((40, 45))
    assert (assign(X, W) == Z).all()
    assert (flip_rows(X @ W.T, W @ W.T, np.zeros_like(Z)) == Z).all()


@given(st.integers(0, 10**6), st.integers(1, 14))
@settings(max_examples=15, deadline=None)
def test_refinement_never_raises_the_error(seed, k):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((40, 6)), rng.integers(0, 2, (40, k), dtype=np.uint8)
    before = squared_error(X, Z, np.linalg.lstsq(Z.astype(float), X, rcond=None)[0])
    assert squared_error(X, *refine(X, Z)) <= before * (1 + 1e-9)


def test_full_rank_keeps_everything():
    X = np.random.default_rng(0).standard_normal((20, 30))
    reduced = reduce_rank(X, None)
    assert np.allclose(reduced @ reduced.T, X @ X.T)
    assert reduce_rank(X, 4).shape == (20, 4)


@pytest.mark.parametrize(("generalized", "refine"), [(False, "soft"), (True, "soft"), (False, "hard")])
def test_regressions_are_recovered(generalized, refine):
    X, y, W = regressions(0, 400, 5, 3, generalized)
    model = MixedRegression(3, generalized=generalized, refine=refine).fit(X, y)
    assert parameter_error(model.coef_, W) < 1e-6
    assert np.allclose(model.predict_best(X, y), y, atol=1e-6)
    assert (model.assign(X, y) == model.assignments_).all()
    assert model.predict_components(X).shape == (400, 3)


@pytest.mark.slow
def test_the_number_of_regressions_is_found():
    X, y, _ = regressions(1, 400, 3, 3, False)
    rng = np.random.default_rng(0)
    model = MixedRegression("held-out", max_components=4).fit(X, y + 0.05 * rng.standard_normal(400))
    assert model.n_components_ == 3


def test_a_polynomial_kernel_tells_curves_apart():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (300, 1))
    which = rng.integers(0, 2, 300)
    y = np.where(which == 0, 1 + x[:, 0] ** 3, -1 - x[:, 0] ** 2)
    model = MixedRegression(2, kernel="poly", degree=3).fit(x, y)
    assert model.error_ < 1e-4
    curves = model.predict_components(np.array([[0.0], [0.5]]))
    assert np.allclose(np.sort(curves, axis=1), [[-1, 1], [-1.25, 1.125]], atol=1e-3)
    by_hand = model._kernel_values(model.basis_, x).T @ model.dual_coef_.T
    assert np.allclose(by_hand, model.predict_components(x), atol=1e-6)


def test_a_linear_kernel_given_as_a_function_is_the_linear_model():
    X, y, W = regressions(2, 200, 4, 2, False)
    model = MixedRegression(2, kernel=lambda a, b: a @ b.T).fit(X, y)
    assert model.error_ < 1e-6
    assert parameter_error(model.dual_coef_ @ model.basis_, W) < 1e-6


def test_intercepts():
    X, y, _ = regressions(4, 300, 3, 2, False)
    model = MixedRegression(2, fit_intercept=True).fit(X, y + 5)
    assert np.allclose(model.intercept_, 5, atol=1e-6)


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_local_search_solves_its_normal_equations(seed, generalized, soft):
    X, y, _ = regressions(seed, 60, 3, 2, generalized)
    mixture = Mixture(X, y + np.random.default_rng(seed).standard_normal(60), 2, generalized)
    shares = np.random.default_rng(seed).dirichlet(np.ones(len(mixture.patterns)), (2, 60)).transpose(0, 2, 1)
    W = mixture.solve(shares)
    total = (shares * mixture.errors(W)).sum((1, 2))
    for _ in range(5):
        moved = W + 1e-3 * np.random.default_rng(seed + 1).standard_normal(W.shape)
        assert ((shares * mixture.errors(moved)).sum((1, 2)) >= total * (1 - 1e-9)).all()
    fits = mixture.run(W, soft=soft)
    assert fits.errors[0] == pytest.approx(mixture.errors(fits.weights)[0].min(0).sum(), rel=1e-9)


def test_restarts_find_easy_mixtures():
    X, y, W = regressions(5, 300, 3, 2, False)
    for start in ("weights", "samples"):
        assert parameter_error(restarts(X, y, 2, n_init=10, start=start).best()[0], W) < 1e-6


@pytest.mark.parametrize("jobs", [1, 2])
def test_seeds_reproduce_threads_change_nothing_and_models_pickle(jobs):
    _, X = features(6, 80, 20, 4)
    X = X + 0.3 * np.random.default_rng(0).standard_normal(X.shape)
    first, other = (LatentFeatureLasso(4, random_state=3, n_jobs=j).fit(X) for j in (1, jobs))
    assert (first.components_ == other.components_).all()
    assert [p[:6] for p in first.trace_] == [p[:6] for p in other.trace_]
    X, y, _ = regressions(6, 150, 4, 2, False)
    first, other = (MixedRegression(2, random_state=3, n_jobs=j).fit(X, y) for j in (1, jobs))
    assert (first.coef_ == other.coef_).all()
    again = pickle.loads(pickle.dumps(other))
    assert (again.predict(X) == first.predict(X)).all()
    assert clone(other).get_params()["n_components"] == 2


def test_callbacks_end_a_run_and_points_are_given():
    _, X = features(7)
    seen = []
    model = LatentFeatureLasso(3, callback=lambda p: seen.append(p) or len(seen) == 2, size_power=0).fit(X)
    assert model.status_ == "stopped"
    assert len(seen) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0}, {"n_components": 1.5}, {"n_components": "many"}, {"n_components": 1000}, {"tau": 0},
        {"tau": -1.0}, {"lam": 0.0}, {"penalty": 0}, {"size_power": 2}, {"rank": 0}, {"inner": "magic"}, {"tol": -1},
        {"start": "luck"}, {"n_starts": 0}, {"max_iter": 0}, {"time_limit": -1}, {"n_jobs": 0}, {"callback": 3},
        {"tau": np.nan}, {"refine": "no"}, {"tau": 1e-300}, {"tau": 1e300}, {"penalty": 1e-200},
    ],
)  # fmt: skip
def test_bad_settings_of_features(options):
    with pytest.raises(SettingsError, match=next(iter(options))):
        LatentFeatureLasso(**{"n_components": 2, **options}).fit(np.eye(5))


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 0}, {"n_components": 1000}, {"tau": 0}, {"lam": -1}, {"penalty": ()}, {"penalty": (0.1, 0)},
        {"kernel": "wave"}, {"degree": 0}, {"refine": "gently"}, {"ridge": 0}, {"n_atoms": 0}, {"inner": 3},
        {"n_components": 13, "generalized": True}, {"gamma": -1}, {"n_jobs": 0}, {"callback": 1}, {"generalized": 1},
        {"fit_intercept": "yes"}, {"tau": 1e-300}, {"tau": 1e300}, {"penalty": 1e-200}, {"ridge": 1e300},
    ],
)  # fmt: skip
def test_bad_settings_of_mixtures(options):
    with pytest.raises(SettingsError):
        MixedRegression(**{"n_components": 2, **options}).fit(np.eye(20), np.ones(20))


def test_bad_data():
    with pytest.raises(ValueError, match="NaN"):
        LatentFeatureLasso(2).fit([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ValueError, match="inconsistent"):
        MixedRegression(2).fit(np.eye(4), np.ones(3))
    with pytest.raises(FginferError):
        MixedRegression(2, kernel=lambda a, b: np.full((len(a), len(b)), np.nan)).fit(np.eye(4), np.ones(4))
    with pytest.raises(DataError, match="0 for all samples"):
        MixedRegression(2, kernel=lambda a, b: np.zeros((len(a), len(b)))).fit(np.eye(4), np.ones(4))
    with pytest.raises(DataError, match="entry of the kernel is"):
        MixedRegression(2, kernel="poly").fit(1e40 * np.eye(4), np.ones(4))
    with pytest.raises(DataError, match="symmetric"):
        MixedRegression(2, kernel=lambda a, b: a[:, :1] + 0 * b[:, :1].T).fit(np.eye(4), np.ones(4))


@pytest.mark.parametrize("unit", [1e-200, 1e-80, 1e80, 1e200])
def test_numbers_too_large_or_small_to_be_squared_twice(unit):
    X = np.random.default_rng(0).standard_normal((20, 3))
    for kind in (LatentFeatureLasso, BPMeans):
        with pytest.raises(DataError, match="X is"):
            kind(2).fit(unit * X)
    with pytest.raises(DataError, match="X is"):
        MixedRegression(2).fit(unit * X, X[:, 0])
    with pytest.raises(DataError, match="y is"):
        MixedRegression(2).fit(X, unit * X[:, 0])


@pytest.mark.parametrize("unit", [1e-50, 1e50])
def test_units_of_features_do_not_matter(unit):
    truth, X = features(1, 100, 20, 3)
    model = LatentFeatureLasso(3).fit(unit * X)
    assert hamming(model.assignments_, truth) == 0
    assert 0 <= model.gap_ < 1


@pytest.mark.parametrize(
    "form", [np.asfortranarray, np.float32, lambda X: X.tolist(), lambda X: X[::-1].copy()[::-1], np.ascontiguousarray]
)
def test_forms_of_input_are_the_same_data(form):
    _, X = features(2, 60, 12, 3)
    X = np.round(64 * X) / 64  # numbers that float32 has
    plain, other = (LatentFeatureLasso(3).fit(given).components_ for given in (X, form(X)))
    assert (plain == other).all()
    plain, other = (MixedRegression(2, n_atoms=4).fit(given[:, 1:3], X[:, 0]).coef_ for given in (X, np.array(form(X))))
    assert (plain == other).all()  # in single steps of rounding the components would come in another order


def test_the_smallest_problems():
    X = np.random.default_rng(0).standard_normal((30, 4))
    for kind in (LatentFeatureLasso, BPMeans):
        for rows, k in ((2, 1), (2, 2), (30, 1), (30, 30)):
            model = kind(k).fit(X[:rows])
            assert model.transform(X[:rows]).shape == (rows, k)
        with pytest.raises(ValueError, match="1 sample"):
            kind(1).fit(X[:1])
        with pytest.raises(TypeError, match="toarray"):
            kind(1).fit(sp.csr_matrix(X))
    assert LatentFeatureLasso(1).fit(X[:, :1]).components_.shape == (1, 1)
    for generalized in (False, True):
        one = MixedRegression(1, generalized=generalized).fit(X[:, :2], X[:, 3])
        assert one.assignments_.shape == (30, 1)
        assert MixedRegression(2, generalized=generalized).fit(X[:2], X[:2, 0]).error_ < 1e-6
    exact = np.linalg.lstsq(X[:, :2], X[:, 3], rcond=None)[0]
    assert np.allclose(MixedRegression(1).fit(X[:, :2], X[:, 3]).coef_[0], exact, atol=1e-6)
    constant = np.column_stack([X[:, :2], np.ones((30, 2))])
    assert np.isfinite(MixedRegression(2, fit_intercept=True).fit(constant, X[:, 3]).predict(constant)).all()


def test_mixtures_of_all_forms_of_input():
    X, y, _ = regressions(6, 60, 4, 2, False)
    X, y = np.round(4 * X), np.round(4 * y)
    plain = MixedRegression(2, n_atoms=4, random_state=0).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    fixed = X.copy()
    fixed.flags.writeable = False
    for inputs, outputs in ((frame, pd.Series(y)), (X.astype(np.int32), y.astype(np.int8)), (fixed, y.tolist())):
        other = MixedRegression(2, n_atoms=4, random_state=0).fit(inputs, outputs)
        assert (other.coef_ == plain.coef_).all()
        assert (other.predict_best(inputs, outputs) == plain.predict_best(X, y)).all()
    with pytest.raises(ValueError, match="feature names"):
        MixedRegression(2, n_atoms=4).fit(frame, y).predict(frame[["b", "a", "d", "c"]])
    with pytest.raises(TypeError, match="toarray"):
        MixedRegression(2).fit(sp.csr_matrix(X), y)


def test_features_of_frames_and_sparse_columns():
    truth, X = features(3, 40, 8, 2)
    frame = pd.DataFrame(X).rename(columns="pixel{}".format)
    model = LatentFeatureLasso(2, start=sp.csr_matrix(truth)).fit(frame)
    assert model.feature_names_in_.tolist() == [f"pixel{k}" for k in range(8)]
    Z = model.transform(frame)
    assert (model.inverse_transform(sp.csr_matrix(Z)) == model.inverse_transform(Z)).all()


def test_samples_that_say_nothing_about_what_belongs_together():
    """Rounding decides there, and with it the unit of the inputs."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    with pytest.warns(UserWarning, match="pass through all 30 samples"):
        MixedRegression(2, kernel="rbf", gamma=100.0, n_atoms=2, exchanges=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixedRegression(2, n_atoms=2, exchanges=2).fit(X, y)


def test_without_noise_held_out_rows_choose_no_more_features_than_there_are():
    rng = np.random.default_rng(0)
    Z, W = rng.integers(0, 2, (80, 3)), rng.standard_normal((3, 12))
    assert LatentFeatureLasso("held-out").fit(Z @ W).n_components_ == 3


def test_outputs_of_zero_and_names_of_features():
    model = MixedRegression(2, random_state=0).fit(np.eye(6), np.zeros(6))
    assert model.error_ == 0
    assert not model.coef_.any()
    X = np.random.default_rng(0).standard_normal((20, 4))
    for kind in (LatentFeatureLasso, BPMeans):
        with pytest.raises(NotFittedError):
            kind(2).inverse_transform(np.ones((1, 2)))
        fitted = kind(2).fit(X)
        assert fitted.get_feature_names_out().tolist() == [f"{kind.__name__.lower()}{k}" for k in range(2)]
        with pytest.raises(DataError, match="NaN"):
            fitted.inverse_transform([[np.nan, 1.0]])


@pytest.mark.parametrize("X", [np.zeros((6, 3)), np.ones((6, 3)), np.eye(2)])
def test_degenerate_rows(X):
    model = LatentFeatureLasso(2).fit(X)
    assert np.allclose(model.inverse_transform(model.transform(X)), X, atol=1e-8)
