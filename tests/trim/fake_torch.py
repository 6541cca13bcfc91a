"""The part of torch's interface that fginfer.trim uses, on numpy: the adapter is tested where torch is not installed.

Its only network is dense layers with ReLU between them, its only loss the cross-entropy; derivatives are those of
fginfer.trim.Network, which have tests of their own.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from fginfer.trim import Network


class Tensor(np.ndarray):
    """An array with the names torch has for things. `made_by`: the network and samples that scores come from."""

    requires_grad = False
    made_by: Any = None
    derivatives: Any = None

    def __deepcopy__(self, memo: Any) -> Tensor:
        other = np.array(self).view(Tensor)
        other.requires_grad = self.requires_grad
        return other

    def dim(self) -> int:
        return self.ndim

    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def device(self) -> str:
        return "cpu"

    def to(self, other: Any) -> Tensor:
        return self if isinstance(other, str) else self.astype(other.dtype)

    def long(self) -> Tensor:
        return self.astype(np.int64)

    def double(self) -> Tensor:
        return self.astype(np.float64, copy=False)  # as in torch: the same memory if it is float64 already

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.view(np.ndarray)

    def copy_(self, other: Any) -> None:
        self[...] = other


class Module:
    """Weights as torch lays them out: outputs by inputs."""

    def __init__(self, network: Network) -> None:
        self.sizes, self.training, self.values = network.sizes, True, {}
        for j, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            self.values[f"{2 * j}.weight"] = np.ascontiguousarray(weight.T).view(Tensor)
            self.values[f"{2 * j}.bias"] = bias.copy().view(Tensor)
        self.requires_grad_(True)

    def named_parameters(self) -> Any:
        return iter(self.values.items())

    def requires_grad_(self, value: bool) -> Module:
        for parameter in self.values.values():
            parameter.requires_grad = value
        return self

    def eval(self) -> None:
        self.training = False

    def __call__(self, X: Tensor) -> Tensor:
        assert not self.training
        network = Network(self.sizes)
        network.weights = [np.array(p.T) for n, p in self.values.items() if n.endswith("weight")]
        network.biases = [np.array(p) for n, p in self.values.items() if n.endswith("bias")]
        scores = network.scores(np.asarray(X)).view(Tensor)
        scores.made_by = (self, network, np.asarray(X))
        return scores


def cross_entropy(scores: Tensor, y: Tensor) -> Tensor:
    module, network, X = scores.made_by
    value, by_weight, by_bias = network.gradients(X, np.asarray(y))
    loss = np.array(value).view(Tensor)
    loss.derivatives = {
        id(p): g.T.copy().view(Tensor)
        for part, found in (("weight", by_weight), ("bias", by_bias))
        for p, g in zip((p for n, p in module.values.items() if n.endswith(part)), found, strict=True)
    }
    loss.requires_grad = True
    return loss


def grad(loss: Tensor, parameters: Any, allow_unused: bool = False) -> tuple[Tensor | None, ...]:
    assert allow_unused or all(id(p) in loss.derivatives for p in parameters)
    return tuple(loss.derivatives.get(id(p)) for p in parameters)


def as_tensor(values: Any) -> Tensor:
    return np.asarray(values).view(Tensor)


def library() -> ModuleType:
    """To be put where `import torch` finds it."""
    out: Any = ModuleType("torch")
    out.Tensor, out.as_tensor, out.isfinite = Tensor, as_tensor, np.isfinite
    out.no_grad = out.enable_grad = nullcontext
    out.nn = SimpleNamespace(Module=Module, functional=SimpleNamespace(cross_entropy=cross_entropy))
    out.autograd = SimpleNamespace(grad=grad)
    return out
