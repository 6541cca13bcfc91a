"""Trimming: gradients, descent, the promise on the loss, the bound on the non-zeros, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.core.optimise import minimise
from fginfer.errors import DataError, SettingsError
from fginfer.trim import Network, deep, magnitude_prune, trim
from fginfer.trim.deep import _growth
from fginfer.trim.network import LOSSES, margin_loss


def problem(seed: int = 0, n: int = 200, d: int = 8, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, :k] + 0.3 * rng.standard_normal((n, k))).argmax(1)


def trained(loss: str = "softmax", seed: int = 0) -> tuple[Network, np.ndarray, np.ndarray]:
    X, y = problem(seed)
    return Network([8, 16, 12, 4], loss, seed).fit(X, y, epochs=30), X, y


@given(st.integers(0, 10**6), st.sampled_from(sorted(LOSSES)))
@settings(max_examples=20, deadline=None)
def test_losses_against_finite_differences(seed, name):
    rng = np.random.default_rng(seed)
    scores, y = rng.standard_normal((5, 6)), rng.integers(0, 6, 5)
    gradient = LOSSES[name](scores, y)[1]
    for _ in range(6):
        i, k = rng.integers(5), rng.integers(6)
        step = np.zeros_like(scores)
        step[i, k] = 1e-6
        slope = (LOSSES[name](scores + step, y)[0] - LOSSES[name](scores - step, y)[0]) / 2e-6
        assert slope == pytest.approx(gradient[i, k], abs=1e-6)


def test_the_margin_loss_is_sparse_and_close_to_the_hinge():
    rng = np.random.default_rng(0)
    scores, y = 3 * rng.standard_normal((50, 10)), rng.integers(0, 10, 50)
    value, gradient = margin_loss(scores, y, 1e-4)
    margins = 1 + scores - scores[np.arange(50), y][:, None]
    margins[np.arange(50), y] = 0
    assert value == pytest.approx(np.maximum(margins, 0).max(1).mean(), abs=1e-3)
    assert np.count_nonzero(gradient) < 0.3 * gradient.size
    assert np.allclose(gradient.sum(1), 0)


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("j", [0, 1, 2])
def test_layers_against_finite_differences_and_the_whole_network(loss, j):
    net, X, y = trained(loss)
    layer = net.layer(j, X, y)
    w = net.weights[j].ravel()
    assert layer.value(w) == pytest.approx(net.loss_value(X, y), rel=1e-12)
    gradient = layer.gradient(w, None).copy()
    assert np.allclose(gradient, net.gradients(X, y)[1][j].ravel(), atol=1e-12)
    few = np.array([1, 5, 17])
    layer.value(w)
    assert np.allclose(layer.gradient(w, few), gradient[few], atol=1e-14)
    rng = np.random.default_rng(1)
    for k in rng.choice(w.size, 8, replace=False):
        step = np.zeros(w.size)
        step[k] = 1e-6
        slope = (layer.value(w + step) - layer.value(w - step)) / 2e-6
        assert slope == pytest.approx(gradient[k], abs=1e-5)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_layer_falls_and_the_loss_stays_within_eps(loss):
    net, X, y = trained(loss)
    small = trim(net, X, y, eps=0.05)
    report = small.report
    assert all(row.objective_after <= row.objective_before for row in report.layers)
    assert report.loss_after <= report.loss_before + 0.05 * (1 + 1e-9)
    assert report.nonzeros < report.size
    assert report.loss_after == pytest.approx(small.network.loss_value(X, y))
    assert [row.after for row in report.layers] == small.network.nonzeros
    for name, mask in small.masks.items():
        assert (mask == (small.network.weights[int(name)] != 0)).all()
    assert net.nonzeros == [128, 192, 48]  # the one given is untouched
    assert "accuracy" in str(report)


@pytest.mark.parametrize("lam", [1e-2, 5e-2])
def test_theorem_7_a_stationary_layer_has_few_nonzeros(lam):
    """At most one for each sample and label with a derivative of the margin loss. The last layer, where the scores are
    linear in the weights: before a ReLU the theorem asks for a point away from its kinks."""
    X, y = problem(3, 20, 30, 3)
    net = Network([30, 60, 3], "margin", 1).fit(X, y, epochs=40)
    layer = net.layer(1, X, y)
    w, info = minimise(layer.value, layer.gradient, 180, lam, start=net.weights[1].ravel(), tol=1e-8, max_iter=5000)
    net.weights[1] = w.reshape(60, 3)
    support = net.layer(1, X, y).support()
    assert info.status in ("converged", "stalled")
    assert 0 < np.count_nonzero(w) <= support <= 60


@pytest.mark.parametrize("lam", [1e-2, 5e-2])
def test_theorem_7_before_a_relu_on_one_linear_piece(lam):
    """Biases keep every unit on, so that no search ends on a kink, where the theorem says nothing."""
    X, y = problem(3, 20, 30, 3)
    net = Network([30, 60, 3], "margin", 1)
    net.biases[0] += 50.0
    net.biases[1] -= 50.0 * net.weights[1].sum(0)
    layer = net.layer(0, X, y)
    start = net.weights[0].ravel()
    w, info = minimise(layer.value, layer.gradient, 1800, lam, start=start, tol=1e-7, max_iter=5000)
    net.weights[0] = w.reshape(30, 60)
    after = net.layer(0, X, y)
    assert info.status in ("converged", "stalled")
    assert after.kinks() == net.layer(1, X, y).kinks() == 0
    assert 0 < np.count_nonzero(w) <= after.support() <= 60


def test_units_at_their_kinks_are_counted():
    X, y = problem(3, 20, 30, 3)
    net = Network([30, 60, 40, 3], "margin", 1)
    net.weights[0][:, :7] = 0.0  # with biases of 0: seven units of every sample
    assert net.layer(0, X, y).kinks() == 7 * 20
    assert net.layer(1, X, y).kinks() == 0


def test_together_the_layers_reach_more_than_one_by_one():
    """Adam before the sweeps: a lower objective, fewer weights, and never a higher objective than before."""
    net, X, y = trained()
    alone, both = (trim(net, X, y, lam=2e-3, epochs=epochs, max_iter=10) for epochs in (0, 40))

    def objective(network: Network) -> float:
        return network.loss_value(X, y) + 2e-3 * sum(float(np.abs(w).sum()) for w in network.weights)

    assert objective(both.network) < objective(alone.network) < objective(net)
    assert both.report.nonzeros < alone.report.nonzeros


def test_adam_is_undone_where_the_objective_rises(monkeypatch):
    net, X, y = trained()

    def worse(parameters, *_, **__):
        for p in parameters:
            p += 1.0

    expected = trim(net, X, y, lam=2e-3, epochs=0, max_iter=5)
    monkeypatch.setattr(deep, "adam", worse)
    found = trim(net, X, y, lam=2e-3, epochs=3, tune=3, max_iter=5)
    assert all((a == b).all() for a, b in zip(found.network.weights, expected.network.weights, strict=True))
    assert all((a == b).all() for a, b in zip(found.network.biases, net.biases, strict=True))


def test_tuning_moves_what_is_left_and_the_biases():
    net, X, y = trained()
    plain, tuned = (trim(net, X, y, lam=5e-3, max_iter=20, tune=tune) for tune in (0, 20))
    assert tuned.report.loss_after < plain.report.loss_after
    for name, mask in plain.masks.items():
        assert not tuned.network.weights[int(name)][~mask].any()
    assert all((a == b).all() for a, b in zip(plain.network.biases, net.biases, strict=True))
    assert all((a != b).any() for a, b in zip(tuned.network.biases, net.biases, strict=True))


def test_proximal_steps_leave_exact_zeros():
    """And a lower value of the same objective than subgradients, which never reach zero."""
    net, X, y = trained()
    proximal, sign = (net.copy().fit(X, y, epochs=100, l1=2e-2, proximal=p, decay=True) for p in (True, False))
    values = [n.loss_value(X, y) + 2e-2 * sum(float(np.abs(w).sum()) for w in n.weights) for n in (proximal, sign)]
    assert values[0] < values[1]
    assert sum(proximal.nonzeros) < 0.7 * sum(net.nonzeros) <= sum(sign.nonzeros)


@pytest.mark.slow
def test_targets_are_met():
    net, X, y = trained()
    for target in (0.3, 60):
        small = trim(net, X, y, target=target)
        assert small.report.nonzeros <= (0.3 * 368 if target == 0.3 else 60)


@pytest.mark.parametrize(
    ("left", "before", "step"),
    [(700, 1000, 1.0), (850, 1000, 2.0), (950, 1000, 4.0), (220, 240, 2.2), (101, 101, 2**0.5)],
)
def test_lambda_grows_where_little_was_trimmed_and_less_near_the_target(left, before, step):
    assert _growth(left, before, 100, 2.0) == pytest.approx(step)


def test_single_layers_and_lambda_zero_out():
    net, X, y = trained()
    small = trim(net, X, y, lam=1e6, layers=["1"])
    assert small.network.nonzeros == [128, 0, 48]
    assert list(small.masks) == ["1"]
    assert list(trim(net, X, y > 1, lam=1e6, layers="1").masks) == ["1"]


def test_threads_of_blas_change_nothing():
    """Products in single precision differ between one and two threads of OpenBLAS: from 256 samples a batch on."""
    limits = pytest.importorskip("threadpoolctl").threadpool_limits
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1024, 128))
    y = X[:, :26].argmax(1)
    found = []
    for threads in (1, 2):
        with limits(threads, "blas"):
            net = Network([128, 256, 26], dtype=np.float32).fit(X, y, epochs=1, batch=512)
            found.append((net, trim(net, X, y, lam=1e-3, max_iter=2, epochs=1).network))
    for one, other in zip(*found, strict=True):
        assert all((a == b).all() for a, b in zip(one.weights, other.weights, strict=True))


def test_seeds_reproduce():
    net, X, y = trained()
    a, b = (trim(net, X, y, eps=0.05, seed=2) for _ in range(2))
    assert all((p == q).all() for p, q in zip(a.network.weights, b.network.weights, strict=True))


def test_fine_tuning_keeps_the_masks_and_pruning_the_largest():
    net, X, y = trained()
    small, masks = magnitude_prune(net, 100)
    assert sum(small.nonzeros) == 100
    small.fit(X, y, epochs=3, masks=masks)
    assert all((w[~m] == 0).all() for w, m in zip(small.weights, masks, strict=True))
    assert sum(magnitude_prune(net, 0)[0].nonzeros) == 0


@pytest.mark.parametrize("method", ["owlqn", "proxgrad"])
def test_other_optimisers_descend_too(method):
    net, X, y = trained()
    report = trim(net, X, y, eps=0.05, method=method, max_iter=20).report
    assert all(row.objective_after <= row.objective_before for row in report.layers)


def test_time_limit_and_biases():
    net, X, y = trained()
    small = trim(net, X, y, target=1, time_limit=0.01)
    assert all((a == b).all() for a, b in zip(small.network.biases, net.biases, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"eps": 0.1, "lam": 1.0}, {"eps": 0}, {"eps": -1}, {"lam": np.nan}, {"target": 0},
        {"eps": 1, "layers": ["7"]}, {"eps": 1, "layers": []}, {"eps": 1, "layers": ["0", "0"]},
        {"eps": 1, "method": "sgd"}, {"eps": 1, "sweeps": 0}, {"eps": 1, "growth": 1.0}, {"eps": 1, "loss": abs},
        {"eps": 1, "time_limit": -1}, {"eps": 1, "time_limit": np.nan}, {"eps": 1, "growth": "fast"}, {"eps": "some"},
        {"eps": 1, "epochs": -1}, {"eps": 1, "epochs": 1.5}, {"eps": 1, "tune": True}, {"eps": 1, "tune": None},
        {"eps": 1, "layers": 7}, {"eps": 1, "layers": 1.5}, {"eps": 1, "max_iter": 1.5}, {"eps": 1, "sweeps": 1.5},
        {"eps": 1, "seed": 2**70}, {"eps": 1, "tol": None}, {"eps": 1, "growth": None}, {"eps": 1j},
        {"eps": 1, "layers": "0.bias"}, {"lam": 0.1, "eps": 1, "target": 0.5},
        {"target": 1.5}, {"eps": 1, "seed": -1}, {"eps": 1, "seed": "a"}, {"eps": True},
    ],
)  # fmt: skip
def test_bad_settings(options):
    net, X, y = trained()
    with pytest.raises(SettingsError):
        trim(net, X, y, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": -1}, {"epochs": 1.5}, {"batch": 0}, {"rate": 0}, {"rate": np.nan}, {"l1": -1.0}, {"masks": [True]},
        {"masks": [np.ones((2, 2), bool)] * 3}, {"masks": 5}, {"rate": "a"}, {"rate": None}, {"l1": "a"},
        {"callback": 3}, {"decay": "no"}, {"proximal": 1},
    ],
)  # fmt: skip
def test_bad_training(options):
    net, X, y = trained()
    with pytest.raises(SettingsError):
        net.fit(X, y, **options)


def test_bad_data():
    net, X, y = trained()
    with pytest.raises(DataError, match="8 inputs"):
        net.predict(X[:, :3])
    with pytest.raises(SettingsError, match="no layer 7"):
        net.layer(7, X, y)
    for bad_X, bad_y in ((X[:, :3], y), (X * np.nan, y), (X, y[:5]), (X, y + 10), (X, y.astype(float)), (X[:0], y[:0])):
        with pytest.raises(DataError):
            trim(net, bad_X, bad_y, eps=0.1)
    with pytest.raises(SettingsError, match="Module"):
        trim(object(), X, y, eps=0.1)
    with pytest.raises(DataError, match="toarray"):
        trim(net, sp.csr_matrix(X), y, eps=0.1)
    with pytest.raises(DataError, match="complex"):
        trim(net, X + 1j, y, eps=0.1)
    for bad_y in (y[:5], y + 10):
        for use in (net.accuracy, net.loss_value):
            with pytest.raises(DataError, match="labels"):
                use(X, bad_y)
    assert net.predict(X[:0]).shape == (0,)
    with pytest.raises(DataError, match="a row each"):
        net.predict(3.0)
    for sizes in (None, 5):
        with pytest.raises(SettingsError, match="list"):
            Network(sizes)
    with pytest.raises(DataError, match="numbers"):
        net.predict([["a"] * 8])
    with pytest.raises(DataError, match="NaN"):
        net.predict(X * np.nan)
    for keep in (0.5, -1, True):
        with pytest.raises(SettingsError, match="keep"):
            magnitude_prune(net, keep)
    with pytest.raises(SettingsError, match="Network"):
        magnitude_prune(object(), 3)
    with pytest.raises(SettingsError, match="seed"):
        Network([3, 2], seed="a")
    with pytest.raises(SettingsError):
        Network([3])
    with pytest.raises(SettingsError):
        Network([3, 2], loss="hinge")


@pytest.mark.parametrize(
    "form", [np.asfortranarray, lambda X: X.astype(object), pd.DataFrame, lambda X: X.tolist(), np.broadcast_to]
)
def test_forms_of_input_are_the_same_data(form):
    net, X, y = trained()
    plain = trim(net, X, y, eps=0.05, max_iter=3, epochs=1).report
    given = form(X, X.shape) if form is np.broadcast_to else form(X)  # the last is an array that cannot be written
    assert trim(net, given, pd.Series(y), eps=0.05, max_iter=3, epochs=1).report.loss_after == plain.loss_after


def test_networks_and_reports_pickle():
    net, X, y = trained()
    small = pickle.loads(pickle.dumps(trim(net, X, y, eps=0.05, max_iter=3)))
    assert (pickle.loads(pickle.dumps(net)).scores(X) == net.scores(X)).all()
    assert sum(small.network.nonzeros) == small.report.nonzeros


@pytest.mark.parametrize("begin", [{}, {"lam": 2e-3}, {"eps": 0.5}])
def test_targets_from_a_lambda(begin):
    net, X, y = trained()
    report = trim(net, X, y, target=0.3, **begin).report
    assert report.nonzeros <= 0.3 * report.size
    assert min(row.lam for row in report.layers) >= begin.get("lam", 0.0)
    assert report.accuracy_after > report.accuracy_before - 0.1
