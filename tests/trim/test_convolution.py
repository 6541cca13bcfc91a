"""Convolutional layers and single precision of the package's own network."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fginfer.errors import SettingsError
from fginfer.trim import Convolution, Network, trim
from fginfer.trim.stages import stages_of

SIZES = [(6, 5, 2), Convolution(3, 3), Convolution(4, 2), 7, 3]


def images(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6, 5, 2)), rng.integers(0, 3, n)


def by_hand(image: np.ndarray, weights: np.ndarray, bias: np.ndarray, window: int) -> np.ndarray:
    height, width, channels = image.shape
    filters = weights.reshape(window, window, channels, -1)
    out = np.zeros((height - window + 1, width - window + 1, filters.shape[-1]))
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[y, x, k] = (image[y : y + window, x : x + window] * filters[..., k]).sum() + bias[k]
    return out


def test_scores_are_those_of_convolutions_by_hand():
    net = Network(SIZES, seed=2)
    for b in net.biases:
        b += 0.1
    X, _ = images(3)
    for image, scores in zip(X, net.scores(X), strict=True):
        out = image
        for j, window in enumerate((3, 2)):
            out = np.maximum(by_hand(out, net.weights[j], net.biases[j], window), 0)
        hidden = np.maximum(out.ravel() @ net.weights[2] + net.biases[2], 0)
        assert np.allclose(hidden @ net.weights[3] + net.biases[3], scores, atol=1e-12)
    assert [w.shape for w in net.weights] == [(18, 3), (12, 4), (24, 7), (7, 3)]


@pytest.mark.parametrize("loss", ["softmax", "margin"])
@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_layers_against_finite_differences_and_the_whole_network(loss, j):
    net = Network(SIZES, loss, seed=1)
    X, y = images()
    layer, w = net.layer(j, X.reshape(len(X), -1), y), net.weights[j].ravel()
    assert layer.value(w) == pytest.approx(net.loss_value(X, y), rel=1e-12)
    gradient = layer.gradient(w, None).copy()
    assert np.allclose(gradient, net.gradients(X.reshape(len(X), -1), y)[1][j].ravel(), atol=1e-12)
    for k in np.random.default_rng(1).choice(w.size, 8, replace=False):
        step = np.zeros(w.size)
        step[k] = 1e-6
        slope = (layer.value(w + step) - layer.value(w - step)) / 2e-6
        assert slope == pytest.approx(gradient[k], abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_convolutional_network_on_digits_is_trimmed(dtype):
    X, y = load_digits(return_X_y=True)
    X, y = X[:500].reshape(-1, 8, 8, 1) / 16, y[:500]
    net = Network([(8, 8, 1), Convolution(6), Convolution(8), 10], dtype=dtype).fit(X, y, epochs=8, rate=5e-3)
    before = net.accuracy(X, y)
    small = trim(net, X, y, target=0.2, max_iter=10, tol=1e-2)
    report = small.report
    assert before > 0.9
    assert report.nonzeros <= 0.2 * report.size
    assert all(row.objective_after <= row.objective_before for row in report.layers)
    assert report.accuracy_after == small.network.accuracy(X, y) > before - 0.05
    assert {name: mask.shape for name, mask in small.masks.items()} == {"0": (9, 6), "1": (54, 8), "2": (128, 10)}
    assert all(w.dtype == dtype for w in small.network.weights)
    tuned = small.network.copy().fit(X, y, epochs=2, masks=list(small.masks.values()))
    assert tuned.nonzeros == small.network.nonzeros


def test_single_precision_is_close_to_double():
    X, y = images(40)
    double, single = (Network(SIZES, seed=3, dtype=kind) for kind in (np.float64, np.float32))
    for j in range(4):
        values = []
        for net in (double, single):
            layer, w = net.layer(j, X.reshape(len(X), -1), y), net.weights[j].ravel().astype(np.float64)
            values.append((layer.value(w), layer.gradient(w, None)))
        assert values[1][0] == pytest.approx(values[0][0], rel=1e-5)
        assert np.allclose(values[1][1], values[0][1], atol=1e-5)
        assert values[1][1].dtype == np.float64


@pytest.mark.parametrize(
    "sizes",
    [
        [Convolution(3), 2], [(4, 4), 2], [(4, 4, 0), 2], [(2, 2, 1), Convolution(3, 3), 2], [4, Convolution(3), 2],
        [(4, 4, 1), 5, Convolution(2), 2], [(4, 4, 1), Convolution(2)], [(4, 4, 1), Convolution(0), 2], [3.5, 2],
        [4, "5", 2], [4],
    ],
)  # fmt: skip
def test_sizes_that_make_no_network(sizes):
    with pytest.raises(SettingsError):
        Network(sizes)


def test_precisions_there_are_not():
    with pytest.raises(SettingsError, match="dtype"):
        Network([3, 2], dtype=np.int64)


def test_folding_is_the_transpose_of_unfolding():
    _, stages = stages_of(SIZES)
    rng = np.random.default_rng(0)
    for stage in stages:
        count = int(np.prod(stage.image)) if stage.image else stage.rows
        x = rng.standard_normal((4, count))
        u = rng.standard_normal((4 * stage.places, stage.rows))
        assert (stage.unfold(x) * u).sum() == pytest.approx((x * stage.fold(u)).sum(), rel=1e-12)


if importlib.util.find_spec("torch"):

    def test_convolutions_are_torchs():
        import torch

        net = Network(SIZES, seed=5)
        X, _ = images(6)
        out = torch.tensor(X).permute(0, 3, 1, 2)
        for j, window in enumerate((3, 2)):
            filters = torch.tensor(net.weights[j]).reshape(window, window, -1, net.weights[j].shape[1])
            out = torch.relu(torch.nn.functional.conv2d(out, filters.permute(3, 2, 0, 1)))
        flat = out.permute(0, 2, 3, 1).reshape(6, -1)
        scores = torch.relu(flat @ torch.tensor(net.weights[2])) @ torch.tensor(net.weights[3])
        assert np.allclose(scores.numpy(), net.scores(X), atol=1e-12)
