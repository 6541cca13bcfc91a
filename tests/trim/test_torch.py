"""Modules of torch: the same objective, gradient and sparsity as the package's own network, and what is refused.

Every test runs on a stand-in with torch's interface, and those at the end on torch itself where it is installed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fginfer.errors import DataError, SettingsError
from fginfer.trim import Network, deep, torch_module, trim
from fginfer.trim.torch_module import TorchNetwork
from fginfer.trim.views import as_trimmable

from . import fake_torch

LIBRARIES = ["stand-in"] + (["torch"] if importlib.util.find_spec("torch") else [])


def real_module(network: Network) -> Any:
    import torch

    layers: list[Any] = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        linear = torch.nn.Linear(*weight.shape, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(weight.T))
            linear.bias.copy_(torch.tensor(bias))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.fixture(params=LIBRARIES)
def build(request: Any, monkeypatch: Any) -> Callable[[Network], Any]:
    """Makes a module with the weights of a Network."""
    if request.param == "torch":
        return real_module
    monkeypatch.setitem(sys.modules, "torch", fake_torch.library())
    return fake_torch.Module


@pytest.fixture(scope="module")
def trained() -> tuple[Network, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    y = (X[:, :3] + 0.3 * rng.standard_normal((150, 3))).argmax(1)
    return Network([6, 10, 3]).fit(X, y, epochs=40, rate=0.01), X, y


def weights_of(module: Any) -> dict[str, np.ndarray]:
    return {n: np.array(p.detach().numpy()) for n, p in module.named_parameters()}


@pytest.mark.parametrize("chunk", [4096, 40])
def test_value_and_gradient_are_those_of_the_network(build, trained, monkeypatch, chunk):
    """In one piece and in uneven pieces; and asking for a value elsewhere leaves the weights where they were."""
    monkeypatch.setattr(torch_module, "CHUNK", chunk)
    net, X, y = trained
    view = TorchNetwork(build(net), X, y)
    assert view.names() == ["0.weight", "2.weight"]
    assert view.measure() == pytest.approx((net.loss_value(X, y), net.accuracy(X, y)), rel=1e-12)
    for j, name in enumerate(view.names()):
        layer, own = view.layer(name), net.layer(j, X, y)
        before = view.get(name)
        w = before.ravel() + np.random.default_rng(j).standard_normal(before.size)
        own_w = w.reshape(before.shape).T.ravel()
        assert layer.value(w) == pytest.approx(own.value(own_w), rel=1e-12)
        expected = own.gradient(own_w, None).reshape(before.shape[::-1]).T.ravel()
        assert np.allclose(layer.gradient(w, None), expected, atol=1e-12)
        assert np.array_equal(layer.gradient(w, np.array([1, 4])), layer.gradient(w, None)[[1, 4]])
        assert np.array_equal(view.get(name), before)


def test_trimming_finds_what_it_finds_for_the_network(build, trained):
    """The last layer is convex: one optimum, whoever computes the derivatives."""
    net, X, y = trained
    module = build(net)
    before = weights_of(module)
    small = trim(module, X, y, lam=0.02, layers=["2.weight"], tol=1e-8, max_iter=2000)
    own = trim(net, X, y, lam=0.02, layers=["1"], tol=1e-8, max_iter=2000)
    assert small.report.layers[0].objective_after == pytest.approx(own.report.layers[0].objective_after, rel=1e-7)
    assert 0 < small.report.nonzeros < 30
    assert np.allclose(small.masks["2.weight"].T * own.network.weights[1], own.network.weights[1], atol=1e-3)
    after = weights_of(small.network)
    assert [n for n in before if not np.array_equal(before[n], after[n])] == ["2.weight"]
    assert all(np.array_equal(before[n], w) for n, w in weights_of(module).items())  # the one given is untouched


def test_targets_masks_and_the_promise_on_the_loss(build, trained):
    net, X, y = trained
    report = trim(build(net), X, y, eps=0.05).report
    assert report.loss_after <= report.loss_before + 0.05 * (1 + 1e-9)
    assert all(row.objective_after <= row.objective_before for row in report.layers)
    small = trim(build(net), X, y, target=0.4)
    assert small.report.nonzeros <= 0.4 * 90
    for name, mask in small.masks.items():
        assert np.array_equal(mask, weights_of(small.network)[name] != 0)
    assert not small.network.training


def test_adam_and_tuning_are_those_of_the_network(build, trained):
    net, X, y = trained
    views = [as_trimmable(network, X, y) for network in (build(net), net)]
    for view in views:
        deep._together(view, dict.fromkeys(view.names(), 0.005), 20, 0, np.inf, rate=0.01)
        deep._together(view, dict.fromkeys(view.names(), 0.0), 5, 0, np.inf, tuning=True)
    for j in range(2):
        assert np.allclose(views[0].get(f"{2 * j}.weight").T, views[1].get(str(j)), atol=1e-9)
        assert np.allclose(views[0].get(f"{2 * j}.bias"), views[1].get(f"{j}.bias"), atol=1e-9)
        assert (views[1].get(f"{j}.bias") != net.biases[j]).any()
    assert not views[1].get("0").all()


def test_frozen_parameters_stay(build, trained):
    net, X, y = trained
    module = build(net)
    next(module.named_parameters())[1].requires_grad = False
    assert list(trim(module, X, y, eps=0.05).masks) == ["2.weight"]
    with pytest.raises(SettingsError, match="requires_grad_"):
        trim(module.requires_grad_(False), X, y, eps=0.05)


def test_labels_of_any_integer_type(build, trained):
    net, X, y = trained
    losses = {
        trim(build(net), X, y.astype(kind), eps=0.05).report.loss_after for kind in (np.int64, np.int32, np.uint8)
    }
    assert len(losses) == 1


def test_what_does_not_fit_is_told_before_any_work(build, trained):
    net, X, y = trained
    module = build(net)
    for bad_X, bad_y in ((X[:, :3], y), (X * np.nan, y), (X, y[:5]), (X, y + 10), (X, y - 1), (X[:0], y[:0]), (1.0, y)):
        with pytest.raises(DataError):
            trim(module, bad_X, bad_y, eps=0.1)
    with pytest.raises(SettingsError, match="one number"):
        trim(module, X, y, eps=0.1, loss=lambda outputs, _: outputs)
    with pytest.raises(SettingsError, match=r"0\.weight"):
        trim(module, X, y, eps=0.1, layers=["7.weight"])


def test_no_time_still_gives_a_report(build, trained):
    net, X, y = trained
    report = trim(build(net), X, y, target=1, time_limit=1e-9).report
    assert [row.name for row in report.layers] == ["0.weight", "2.weight"]


if "torch" in LIBRARIES:  # what the stand-in cannot have: other layers, types and modes

    def digits() -> tuple[np.ndarray, np.ndarray]:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        return X[:300] / 16, y[:300]

    def test_convolutions():
        import torch

        torch.manual_seed(0)
        X, y = digits()
        module = torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Flatten(),
            torch.nn.Linear(144, 10),
        )  # fmt: skip
        small = trim(module, X.reshape(-1, 1, 8, 8), y, target=0.3, max_iter=10)
        assert list(small.masks) == ["0.weight", "5.weight"]
        assert small.masks["0.weight"].shape == (4, 1, 3, 3)
        assert small.report.nonzeros <= 0.3 * 1476
        assert small.report.loss_after < small.report.loss_before  # it was not trained

    @pytest.mark.parametrize("kind", ["float32", "bfloat16"])
    def test_other_types_inside_no_grad(kind):
        import torch

        torch.manual_seed(0)
        X, y = digits()
        module = torch.nn.Linear(64, 10).to(getattr(torch, kind))
        # oneDNN's bfloat16 kernels die on virtual machines that name AMX without allowing it
        with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
            report = trim(module, X, y, eps=0.1, max_iter=5).report
        assert report.accuracy_after > 0.7 > report.accuracy_before

    def test_embeddings_unused_parameters_and_regression():
        import torch

        torch.manual_seed(0)
        X, y = digits()
        module = torch.nn.Sequential(torch.nn.Embedding(17, 3), torch.nn.Flatten(), torch.nn.Linear(192, 10))
        module.register_parameter("unused", torch.nn.Parameter(torch.ones(2, 2)))
        words = torch.as_tensor((16 * X).astype(np.int64))
        small = trim(module, words, y, lam=1e-3, max_iter=5, epochs=0)
        assert small.report.loss_after < small.report.loss_before
        assert all(row.objective_after < row.objective_before for row in small.report.layers)
        assert not trim(module, words, y, lam=1.0, layers=["unused"]).masks["unused"].any()
        wanted = np.eye(10)[y]
        report = trim(
            torch.nn.Linear(64, 10), X, wanted, lam=1e-3, max_iter=5, loss=torch.nn.functional.mse_loss
        ).report
        assert report.loss_after < report.loss_before
        assert np.isnan(report.accuracy_after)
