"""Any torch.nn.Module as the trimming sees it: parameters by name, full-batch closures in chunks. Torch is optional."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import DataError, SettingsError

Reals = NDArray[np.float64]
CHUNK = 4096  # samples at a time: memory does not grow with the data


def is_module(network: Any) -> bool:
    """Whether it is a torch.nn.Module, without importing torch for those who have none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(network, torch.nn.Module)


class TorchNetwork:
    """A copy of a module in evaluation mode (dropout off, running statistics of batch normalisation fixed)."""

    def __init__(self, module: Any, X: Any, y: Any, loss: Callable[[Any, Any], Any] | None = None) -> None:
        import torch

        self.torch = torch
        self.network = copy.deepcopy(module)
        self.network.eval()
        reference = next(iter(self.network.parameters()), None)
        if reference is None:
            raise SettingsError("the module has no parameters")
        self.X = torch.as_tensor(np.asarray(X) if not isinstance(X, torch.Tensor) else X).to(reference)
        self.y = torch.as_tensor(np.asarray(y) if not isinstance(y, torch.Tensor) else y).to(reference.device)
        if len(self.X) == 0 or len(self.X) != len(self.y):
            raise DataError(f"X and y must have the same positive number of samples, not {len(self.X)}, {len(self.y)}")
        if not bool(torch.isfinite(self.X).all()):
            raise DataError("X has entries that are NaN or infinite")
        self.loss = torch.nn.functional.cross_entropy if loss is None else loss
        self._parameters = {n: p for n, p in self.network.named_parameters() if p.dim() >= 2}

    def names(self) -> list[str]:
        return list(self._parameters)

    def get(self, name: str) -> Reals:
        return np.asarray(self._parameters[name].detach().cpu().numpy(), np.float64)

    def put(self, name: str, weights: Reals) -> None:
        p = self._parameters[name]
        with self.torch.no_grad():
            p.copy_(self.torch.as_tensor(weights.reshape(tuple(p.shape))).to(p))

    def layer(self, name: str) -> TorchLayer:
        return TorchLayer(self, name)

    def measure(self) -> tuple[float, float]:
        value, right = 0.0, 0
        with self.torch.no_grad():
            for X, y, share in self.chunks():
                outputs = self.network(X)
                value += share * float(self.loss(outputs, y))
                right += int((outputs.argmax(1) == y).sum()) if outputs.dim() == 2 and y.dim() == 1 else 0
        return value, right / len(self.X)

    def chunks(self) -> Any:
        """(samples, labels, share of all): losses are means, so they add up by share."""
        for at in range(0, len(self.X), CHUNK):
            X = self.X[at : at + CHUNK]
            yield X, self.y[at : at + CHUNK], len(X) / len(self.X)


class TorchLayer:
    """The loss by one parameter; the gradient comes from the same pass as the value.

    A float32 module computes its loss to about seven digits: `tol` below 1e-4 asks for more than there is."""

    def __init__(self, owner: TorchNetwork, name: str) -> None:
        self.owner, self.name = owner, name
        self._gradient: Reals | None = None

    def value(self, w: Reals) -> float:
        owner, parameter = self.owner, self.owner._parameters[self.name]
        kept = owner.get(self.name)
        owner.put(self.name, w)
        total, gradient = 0.0, np.zeros(w.size)
        for X, y, share in owner.chunks():
            loss = owner.loss(owner.network(X), y)
            total += share * float(loss)
            (part,) = owner.torch.autograd.grad(loss, parameter)
            gradient += share * part.detach().cpu().numpy().astype(np.float64).ravel()
        owner.put(self.name, kept)
        self._gradient = gradient
        return total

    def gradient(self, w: Reals, where: NDArray[np.int64] | None) -> Reals:
        assert self._gradient is not None
        return self._gradient if where is None else self._gradient[where]
