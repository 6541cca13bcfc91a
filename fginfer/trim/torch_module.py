"""Any torch.nn.Module as the trimming sees it: parameters by name, full-batch closures in chunks. Torch is optional."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
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
    """A copy of a module in evaluation mode (dropout off, running statistics of batch normalisation fixed).

    Parameters that are frozen (requires_grad false) stay as they are. An array X takes the type of the weights; a
    tensor of integers stays one, for modules that begin with an embedding."""

    def __init__(self, module: Any, X: Any, y: Any, loss: Callable[[Any, Any], Any] | None = None) -> None:
        import torch

        self.torch = torch
        self.network = copy.deepcopy(module)
        self.network.eval()
        self._parameters = {n: p for n, p in self.network.named_parameters() if p.requires_grad}
        if not self.names():
            raise SettingsError(
                "the module has no parameter with two or more dimensions that may change: if it is frozen, "
                "call module.requires_grad_(True)"
            )
        reference = self._parameters[self.names()[0]]
        given_whole = isinstance(X, torch.Tensor) and not X.is_floating_point()
        self.X = X.to(reference.device) if given_whole else torch.as_tensor(X).to(reference)
        labels = torch.as_tensor(y)
        self.y = labels.to(reference) if labels.is_floating_point() else labels.to(reference.device).long()
        if self.X.dim() == 0 or self.y.dim() == 0 or len(self.X) == 0 or len(self.X) != len(self.y):
            shapes = f"{tuple(self.X.shape)}, {tuple(self.y.shape)}"
            raise DataError(f"X and y must have the same positive number of samples, not the shapes {shapes}")
        for name, values in (("X", self.X), ("y", self.y)):
            if not bool(torch.isfinite(values).all()):
                raise DataError(f"{name} has entries that are NaN or infinite")
        self.samples = len(self.X)
        self.loss = torch.nn.functional.cross_entropy if loss is None else loss
        self._try_one(default_loss=loss is None)

    def _try_one(self, default_loss: bool) -> None:
        """One sample through module and loss, so that what does not fit is told before any work."""
        with self.torch.no_grad():
            try:
                outputs = self.network(self.X[:1])
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                raise DataError(f"the module does not take a sample of X: {error}") from error
            if default_loss and not self.y.is_floating_point():
                count = int(outputs.shape[1]) if outputs.dim() >= 2 else 0
                if int(self.y.min()) < 0 or int(self.y.max()) >= count:
                    raise DataError(f"y must be labels from 0 to {count - 1}, as many as the module has outputs")
            try:
                value = self.loss(outputs, self.y[:1])
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                raise DataError(f"the loss does not take the outputs of the module and y: {error}") from error
        if not isinstance(value, self.torch.Tensor) or value.dim() != 0:
            raise SettingsError("loss must return a tensor with one number, the mean over the samples it is given")

    def names(self) -> list[str]:
        return [n for n, p in self._parameters.items() if p.dim() >= 2]

    def others(self) -> list[str]:
        return [n for n, p in self._parameters.items() if p.dim() < 2]

    def get(self, name: str) -> Reals:
        """A copy: numpy would share the memory of a float64 parameter, and `put` would change it."""
        return np.array(self._parameters[name].detach().cpu().double().numpy(), np.float64)

    def put(self, name: str, weights: Reals) -> None:
        p = self._parameters[name]
        with self.torch.no_grad():
            p.copy_(self.torch.as_tensor(np.array(weights).reshape(tuple(p.shape))).to(p))

    def layer(self, name: str) -> TorchLayer:
        return TorchLayer(self, name)

    def gradients(self, names: Sequence[str], rows: NDArray[np.intp]) -> list[Reals]:
        which = self.torch.as_tensor(rows).to(self.X.device)
        return self._derivatives(names, self.X[which], self.y[which])[1]

    def _derivatives(self, names: Sequence[str], X: Any, y: Any) -> tuple[float, list[Reals]]:
        """Loss and its derivatives by these parameters; zeros where the outputs do not depend on one."""
        parameters = [self._parameters[name] for name in names]
        with self.torch.enable_grad():  # the caller may be inside a no_grad()
            loss = self.loss(self.network(X), y)
            parts = self.torch.autograd.grad(loss, parameters, allow_unused=True) if loss.requires_grad else parameters
        return float(loss.detach()), [
            np.zeros(tuple(p.shape)) if part is None or part is p else part.detach().cpu().double().numpy()
            for p, part in zip(parameters, parts, strict=True)
        ]

    def measure(self) -> tuple[float, float]:
        value, right = 0.0, 0.0
        with self.torch.no_grad():
            for X, y, share in self.chunks():
                outputs = self.network(X)
                value += share * float(self.loss(outputs, y))
                labels = outputs.dim() == 2 and y.dim() == 1 and not y.is_floating_point()
                right += int((outputs.argmax(1) == y).sum()) if labels else np.nan  # a regression has no accuracy
        return value, right / len(self.X)

    def purify(self, name: str, late: Any) -> None:
        """Nothing: what a module of others computes need not be linear between kinks that we know."""

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
        owner = self.owner
        kept = owner.get(self.name)
        owner.put(self.name, w)
        total, gradient = 0.0, np.zeros(w.size)
        try:
            for X, y, share in owner.chunks():
                value, (part,) = owner._derivatives([self.name], X, y)
                total += share * value
                gradient += share * part.ravel()
        finally:
            owner.put(self.name, kept)
        self._gradient = gradient
        return total

    def gradient(self, w: Reals, where: NDArray[np.int64] | None) -> Reals:
        assert self._gradient is not None
        return self._gradient if where is None else self._gradient[where]
