"""Networks as the trimming sees them: named layers of weights, each with its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import SettingsError
from fginfer.trim.network import Network, check_samples
from fginfer.trim.purify import AT_ONCE, purified_weights

Reals = NDArray[np.float64]


class Layer(Protocol):
    """The loss of the network by the weights of one layer, flat."""

    def value(self, w: Reals) -> float: ...
    def gradient(self, w: Reals, where: NDArray[np.int64] | None) -> Reals: ...


class Trimmable(Protocol):
    """A network as the trimming sees it: named layers of weights, each with its loss."""

    samples: int
    network: Any  # the copy that is trimmed

    def names(self) -> list[str]: ...
    def others(self) -> list[str]:
        """Names of what is not trimmed but may be tuned: biases."""
        ...

    def get(self, name: str) -> Reals: ...
    def put(self, name: str, weights: Reals) -> None: ...
    def layer(self, name: str) -> Layer: ...
    def gradients(self, names: Sequence[str], rows: NDArray[np.intp]) -> Sequence[Reals]:
        """Derivatives of the mean loss of these samples."""
        ...

    def measure(self) -> tuple[float, float]:
        """Loss and accuracy (NaN where y are no labels)."""
        ...

    def purify(self, name: str, late: Callable[[], bool]) -> None:
        """Fewer weights at the same loss, where that is done soon; nothing otherwise."""
        ...


class _Dense:
    """A Network as Trimmable; its layers are called "0", "1", ..., their biases "0.bias", ..."""

    def __init__(self, network: Network, X: Any, y: Any) -> None:
        self.network = network.copy()
        self.X, self.y = check_samples(X, y, network)
        self.X = self.X.astype(network.dtype, copy=False)
        self.samples = len(self.y)

    def names(self) -> list[str]:
        return [str(j) for j in range(len(self.network.weights))]

    def others(self) -> list[str]:
        return [f"{j}.bias" for j in range(len(self.network.biases))]

    def _list(self, name: str) -> tuple[list[Reals], int]:
        number, _, bias = name.partition(".")
        return self.network.biases if bias else self.network.weights, int(number)

    def get(self, name: str) -> Reals:
        values, j = self._list(name)
        return values[j]

    def put(self, name: str, weights: Reals) -> None:
        values, j = self._list(name)
        values[j] = weights.reshape(values[j].shape).astype(values[j].dtype, copy=False)

    def gradients(self, names: Sequence[str], rows: NDArray[np.intp]) -> list[Reals]:
        _, by_weight, by_bias = self.network.gradients(self.X[rows], self.y[rows])
        found = {True: by_bias, False: by_weight}
        return [found["." in name][self._list(name)[1]] for name in names]

    def layer(self, name: str) -> Layer:
        return self.network.layer(int(name), self.X, self.y)

    def measure(self) -> tuple[float, float]:
        return self.network.loss_value(self.X, self.y), self.network.accuracy(self.X, self.y)

    def purify(self, name: str, late: Callable[[], bool]) -> None:
        if np.count_nonzero(self.get(name)) <= AT_ONCE:
            self.put(name, purified_weights(self.network, int(name), self.X, self.y, late)[0])


def as_trimmable(network: Any, X: Any, y: Any, loss: Any = None) -> Trimmable:
    """The view of a network that trimming works on; a copy of its weights."""
    if isinstance(network, Network):
        if loss is not None:
            raise SettingsError("a Network has its loss: Network(sizes, loss=...)")
        return _Dense(network, X, y)
    from fginfer.trim.torch_module import TorchNetwork, is_module

    if is_module(network):
        return TorchNetwork(network, X, y, loss)
    raise SettingsError(f"network must be a fginfer.trim.Network or a torch.nn.Module, not {type(network).__name__}")
