"""Purification: fewer weights at the same loss, and never more than the theory allows, in hidden layers, too."""

from __future__ import annotations

import numpy as np
import pytest

from fginfer.errors import SettingsError
from fginfer.trim import Convolution, Network, purify, trim


def problem(classes: int, samples: int, inputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres, y = rng.standard_normal((classes, inputs)), rng.integers(0, classes, samples)
    return centres[y] + rng.standard_normal((samples, inputs)), y


CASES = [
    ([20, 15, 3], "margin"),
    ([20, 12, 10, 3], "margin"),
    ([20, 15, 3], "softmax"),
    ([(5, 5, 1), Convolution(4, 3), 3], "margin"),
]


@pytest.mark.parametrize(("sizes", "loss"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_layer_has_more_weights_than_support_and_kinks(sizes, loss, seed) -> None:
    """With a softmax the bound is counted anew at the end: labels with a derivative, and units at their kinks."""
    inputs = sizes[0] if isinstance(sizes[0], int) else 25
    X, y = problem(3, 8, inputs, seed)
    net = Network(sizes, loss, seed).fit(X, y, epochs=40)
    for j, weights in enumerate(net.weights):
        found = purify(net, X, y, j)
        after = found.network
        assert found.before == np.count_nonzero(weights)
        assert found.after == np.count_nonzero(after.weights[j]) <= found.bound
        assert after.loss_value(X, y) == pytest.approx(net.loss_value(X, y), rel=1e-9, abs=1e-12)
        assert np.abs(after.weights[j]).sum() <= np.abs(weights).sum() * (1 + 1e-9)
        others = [k for k in range(len(net.weights)) if k != j]
        assert all(np.array_equal(after.weights[k], net.weights[k]) for k in others)
        if loss == "softmax":  # every label has a derivative, so none comes up on the way
            layer = after.layer(j, X, y)
            assert found.bound == layer.support() + layer.kinks(1e-9)


def test_the_scores_that_count_stay() -> None:
    X, y = problem(3, 8, 20, 2)
    net = Network([20, 15, 3], "softmax", 2).fit(X, y, epochs=40)
    np.testing.assert_allclose(purify(net, X, y, 0).network.scores(X), net.scores(X), atol=1e-9)


def test_a_stalled_search_before_a_relu_ends_within_the_bound() -> None:
    """What quasi-Newton steps leave at kinks, trim takes away: the same loss, a lower objective, the bound holds."""
    X, y = problem(3, 20, 30, 3)
    net = Network([30, 60, 3], "margin", 1).fit(X, y, epochs=40)
    small = trim(net, X, y, lam=1e-3, epochs=10, max_iter=50)
    layer = small.network.layer(0, X, y)
    hidden = small.report.layers[0]
    assert hidden.after == np.count_nonzero(small.network.weights[0]) == np.count_nonzero(small.masks["0"])
    assert hidden.after <= layer.support() + layer.kinks()
    value = layer.value(small.network.weights[0].ravel())
    norm = np.abs(small.network.weights[0]).sum()
    assert small.report.layers[0].objective_after == pytest.approx(value + 1e-3 * norm, rel=0.1)


def test_single_precision_keeps_its_type_and_its_loss() -> None:
    X, y = problem(3, 8, 20, 4)
    net = Network([20, 15, 3], "margin", 4, np.float32).fit(X, y, epochs=40)
    found = purify(net, X, y)
    assert found.network.weights[0].dtype == np.float32
    assert found.after < found.before
    assert found.network.loss_value(X, y) == pytest.approx(net.loss_value(X, y), rel=1e-4, abs=1e-6)


def test_the_same_every_time() -> None:
    X, y = problem(3, 8, 20, 5)
    net = Network([20, 15, 3], "margin", 5).fit(X, y, epochs=20)
    first, second = (purify(net, X, y).network.weights[0] for _ in range(2))
    assert np.array_equal(first, second)


def test_bad_calls_are_refused() -> None:
    X, y = problem(3, 8, 20, 6)
    net = Network([20, 15, 3], "margin", 6)
    with pytest.raises(SettingsError, match="there is no layer 2; there are 2"):
        purify(net, X, y, 2)
    with pytest.raises(SettingsError, match=r"network must be a fginfer\.trim\.Network"):
        purify("net", X, y)
    with pytest.raises(SettingsError, match="5120 non-zero weights; at most 3000"):
        purify(Network([64, 80, 3]), np.zeros((2, 64)), [0, 1])
