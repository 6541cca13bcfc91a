"""Columns that are nearly right: complements, constants, exchanges; features that most rows have."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.latent import LatentFeatureLasso
from fginfer.latent.losses import FeatureLoss
from fginfer.latent.mend import complement, mend, without_constant


def wrong(Z, truth):
    """Share of the true columns that are not among those found."""
    found = {z.tobytes() for z in np.asarray(Z, np.uint8).T}
    return np.mean([z.tobytes() not in found for z in np.asarray(truth, np.uint8).T])


def draw(n, d, densities, seed):
    rng = np.random.default_rng(seed)
    Z = (rng.random((n, len(densities))) < densities).astype(np.uint8)
    return Z, rng.standard_normal((len(densities), d)), rng


def test_a_constant_goes_into_complements():
    Z, W, _ = draw(60, 30, np.full(6, 0.5), 0)
    other = Z.copy()
    other[:, [1, 4]] ^= 1  # Z W = 1 (w_1 + w_4) + ..., which no column but a constant says
    assert np.array_equal(without_constant(Z @ W, other), Z)


def test_the_right_one_of_a_column_and_its_complement_is_found():
    Z, W, _ = draw(60, 30, np.full(6, 0.5), 1)
    other = Z.copy()
    other[:, 3] ^= 1
    assert np.array_equal(complement(Z @ W, other), Z)


def test_two_wrong_columns_are_exchanged_and_the_error_never_rises():
    Z, W, rng = draw(200, 60, np.full(12, 0.5), 2)
    other = Z.copy()
    other[:, :2] = rng.integers(0, 2, (200, 2))
    found, weights = mend(Z @ W, other)
    assert wrong(found, Z) == 0
    assert np.abs(found @ weights - Z @ W).max() < 1e-8


@pytest.mark.parametrize("density", [0.8, 0.2])
def test_features_that_most_rows_have_are_found_as_those_that_few_have(density):
    Z, W, _ = draw(200, 60, np.full(8, density), 3)
    model = LatentFeatureLasso(8, random_state=0).fit(Z @ W)
    assert wrong(model.assignments_, Z) == 0


def test_features_of_both_kinds_are_found_together():
    Z, W, _ = draw(200, 60, np.r_[np.full(4, 0.8), np.full(4, 0.2)], 4)
    assert wrong(LatentFeatureLasso(8, random_state=0).fit(Z @ W).assignments_, Z) == 0


def test_the_centred_loss_is_that_of_a_constant_without_price():
    Z, W, rng = draw(40, 10, np.full(4, 0.5), 5)
    X, c = Z @ W + rng.standard_normal((40, 10)), rng.random(4) + 0.1
    loss = FeatureLoss(X, 0.3, centred=True)
    loss.add(np.ascontiguousarray(Z.T))
    # the same minimum by least squares over W and the constant, the penalty on W alone
    A = np.column_stack([np.ones(40), Z]).astype(float)
    price = np.diag(np.r_[0.0, 40 * 0.3 / c])
    V = np.linalg.solve(A.T @ A + price, A.T @ X)
    value = ((X - A @ V) ** 2).sum() / 80 + 0.15 * ((V[1:] ** 2).sum(1) / c).sum()
    assert loss.value(c) == pytest.approx(value, rel=1e-9)
    assert np.allclose(loss.weights(c), V[1:])
    assert np.allclose(loss.residual(c), X - A @ V)
    step = 1e-6
    slopes = [(loss.value(c + step * e) - loss.value(c - step * e)) / (2 * step) for e in np.eye(4)]
    assert np.allclose(loss.derivatives(c)[0], slopes, rtol=1e-5)
