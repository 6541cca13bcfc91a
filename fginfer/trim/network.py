"""A small network of dense and convolutional layers with ReLU between them, in numpy: to train, trim and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fginfer.blas import on_one_blas_thread
from fginfer.errors import DataError, SettingsError
from fginfer.options import check_whole, is_number
from fginfer.trim.adam import adam
from fginfer.trim.stages import stages_of

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
Loss = Callable[[Reals, Ints], tuple[float, Reals]]


def softmax_loss(scores: Reals, y: Ints) -> tuple[float, Reals]:
    """Mean cross-entropy and its gradient. Every label of every sample has a non-zero derivative."""
    rows = np.arange(len(y))
    shifted = scores - scores.max(1, keepdims=True)
    parts = np.exp(shifted)
    total = parts.sum(1)
    value = float((np.log(total) - shifted[rows, y]).mean())
    parts /= total[:, None]
    parts[rows, y] -= 1.0
    return value, parts / len(y)


def margin_loss(scores: Reals, y: Ints, smoothing: float = 0.5) -> tuple[float, Reals]:
    """Mean smoothed maximum margin, max over a of <a, 1 + z_k - z_y> - smoothing/2 |a|^2, a >= 0 over the wrong labels
    with sum at most 1. Most labels have no derivative: only those that come near the right one."""
    rows = np.arange(len(y))
    margins = 1.0 + scores - scores[rows, y][:, None]
    margins[rows, y] = -np.inf
    shares = _project(margins / smoothing)
    margins[rows, y] = 0.0
    value = float(((shares * margins).sum(1) - smoothing / 2 * (shares * shares).sum(1)).mean())
    gradient = shares
    gradient[rows, y] = -shares.sum(1)
    return value, gradient / len(y)


def _project(v: Reals) -> Reals:
    """Each row onto { a >= 0, sum a <= 1 }; -inf gives 0."""
    positive = np.maximum(v, 0.0)
    over = np.flatnonzero(positive.sum(1) > 1.0)
    if over.size:
        part = -np.sort(-v[over], axis=1)
        finite = np.where(np.isfinite(part), part, 0.0)
        sums = np.cumsum(finite, axis=1) - 1.0
        counts = np.arange(1, v.shape[1] + 1)
        last = (np.isfinite(part) & (part * counts > sums)).sum(1) - 1
        cut = sums[np.arange(len(over)), last] / (last + 1)
        positive[over] = np.maximum(v[over] - cut[:, None], 0.0)
    return positive


LOSSES: dict[str, Loss] = {"softmax": softmax_loss, "margin": margin_loss}


class Network:
    """x -> relu(x W_1 + b_1) -> ... -> x W_J + b_J, whose entries are the scores of the labels.

    sizes : inputs, hidden layers ..., labels; for images (height, width, channels) first, then perhaps layers
    ``Convolution(channels, window)``, whose weights are (window * window * channels before, channels).
    loss : "softmax" or "margin". dtype : of the weights and the work on them; float32 takes a third of the time of
    float64, and gives the loss to some seven digits.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5)); y = (X[:, 0] > 0).astype(int)
    >>> net = Network([5, 16, 2], seed=0).fit(X, y, epochs=30, rate=0.01)
    >>> net.accuracy(X, y) > 0.95
    True
    """

    def __init__(self, sizes: Sequence[Any], loss: str = "softmax", seed: int = 0, dtype: Any = np.float64) -> None:
        self.n_inputs, self.stages = stages_of(sizes)
        if loss not in LOSSES:
            raise SettingsError(f"loss must be one of {', '.join(LOSSES)}, not {loss!r}")
        if dtype not in (np.float32, np.float64):
            raise SettingsError(f"dtype must be float32 or float64, not {dtype!r}")
        check_whole("seed", seed, 0, 63)
        rng = np.random.default_rng(seed)
        self.sizes, self.loss, self.seed, self.dtype = list(sizes), loss, seed, np.dtype(dtype)
        self.weights: list[Reals] = [
            (rng.standard_normal((s.rows, s.columns)) * np.sqrt(2 / s.rows)).astype(self.dtype) for s in self.stages
        ]
        self.biases: list[Reals] = [np.zeros(s.columns, self.dtype) for s in self.stages]

    def copy(self) -> Network:
        """A network of its own with the same weights."""
        other = Network(self.sizes, self.loss, self.seed, self.dtype)
        other.weights = [w.copy() for w in self.weights]
        other.biases = [b.copy() for b in self.biases]
        return other

    # ---- use

    def scores(self, X: Any, start: int = 0) -> Reals:
        """The last layer's outputs; `start`: X is the input of this layer."""
        out = flat_rows(_finite(X, self.dtype))
        wanted = self.stages[start - 1].outputs if start else self.n_inputs
        if out.shape[1] != wanted:
            raise DataError(f"X must be rows of {wanted} inputs, not of {out.shape[1]}")
        for j in range(start, len(self.weights)):
            out = self.step(j, out)
            if j + 1 < len(self.weights):
                np.maximum(out, 0.0, out=out)
        return out

    def step(self, j: int, inputs: Reals) -> Reals:
        """The outputs of layer j, before ReLU, a row each sample."""
        out = self.stages[j].unfold(inputs) @ self.weights[j] + self.biases[j]
        return out.reshape(len(inputs), self.stages[j].outputs)

    def step_back(self, j: int, back: Reals) -> Reals:
        """Derivatives by the inputs of layer j, from those by its outputs."""
        return self.stages[j].fold(back.reshape(-1, self.stages[j].columns) @ self.weights[j].T)

    def predict(self, X: Any) -> Ints:
        """The class of each row."""
        return np.asarray(self.scores(X).argmax(1), np.int64)

    def accuracy(self, X: Any, y: Any) -> float:
        """The part of the rows that are predicted right."""
        X, y = check_samples(X, y, self)
        return float((self.predict(X) == y).mean())

    def loss_value(self, X: Any, y: Any) -> float:
        """The mean loss over the rows."""
        X, y = check_samples(X, y, self)
        return self.loss_and_slope(self.scores(X), y)[0]

    def loss_and_slope(self, scores: Reals, y: Ints) -> tuple[float, Reals]:
        """The loss, in double precision, and its derivatives by the scores."""
        value, slope = LOSSES[self.loss](scores.astype(np.float64, copy=False), y)
        return value, slope.astype(self.dtype, copy=False)

    @property
    def nonzeros(self) -> list[int]:
        return [int(np.count_nonzero(w)) for w in self.weights]

    # ---- training

    def gradients(self, X: Reals, y: Ints) -> tuple[float, list[Reals], list[Reals]]:
        """(loss, derivatives by the weights, by the biases) on these samples."""
        inputs = [X]
        for j in range(len(self.weights) - 1):
            inputs.append(np.maximum(self.step(j, inputs[j]), 0.0))
        value, back = self.loss_and_slope(self.step(len(self.weights) - 1, inputs[-1]), y)
        by_weight, by_bias = [], []
        for j in range(len(self.weights) - 1, -1, -1):
            flat = back.reshape(-1, self.stages[j].columns)
            by_weight.append(self.stages[j].unfold(inputs[j]).T @ flat)
            by_bias.append(flat.sum(0))
            if j:
                back = self.step_back(j, back) * (inputs[j] > 0)
        return value, by_weight[::-1], by_bias[::-1]

    @on_one_blas_thread
    def fit(
        self, X: Any, y: Any, *, epochs: int = 20, batch: int = 128, rate: float = 1e-3, decay: bool = False,
        l1: float = 0.0, proximal: bool = False, masks: Sequence[NDArray[np.bool_]] | None = None,
        callback: Callable[[int], Any] | None = None,
    ) -> Self:  # fmt: skip
        """Adam. With `masks` only those weights move (fine-tuning of a trimmed network); `l1` adds l1 |W|_1, by
        subgradients or (`proximal`) by steps that leave exact zeros; `decay` lets the rate fall to zero."""
        X, y = check_samples(X, y, self)
        X = X.astype(self.dtype, copy=False)
        self._check_training(epochs, batch, rate, l1, masks)
        if callback is not None and not callable(callback):
            raise SettingsError(f"callback must be a function of the number of the epoch, not {callback!r}")
        for name, flag in (("decay", decay), ("proximal", proximal)):
            if not isinstance(flag, (bool, np.bool_)):
                raise SettingsError(f"{name} must be True or False, not {flag!r}")

        def gradients(rows: NDArray[np.intp]) -> list[Reals]:
            _, by_weight, by_bias = self.gradients(X[rows], y[rows])
            return by_weight + by_bias

        free = [None] * len(self.biases)
        adam(
            self.weights + self.biases, gradients, len(X), epochs=epochs, batch=batch, rate=rate, decay=decay,
            l1=[l1] * len(self.weights) + [0.0] * len(self.biases), proximal=proximal,
            masks=None if masks is None else [*masks, *free], seed=self.seed, callback=callback,
        )  # fmt: skip
        return self

    def _check_training(self, epochs: Any, batch: Any, rate: Any, l1: Any, masks: Any) -> None:
        check_whole("epochs", epochs, 0, 63)
        check_whole("batch", batch, 1, 63)
        if not (is_number(rate) and is_number(l1) and 0 < rate < np.inf and 0 <= l1 < np.inf):
            raise SettingsError(f"rate must be positive and l1 not negative, not {rate!r} and {l1!r}")
        listed = isinstance(masks, (list, tuple))
        if masks is not None and not (listed and [np.shape(m) for m in masks] == [w.shape for w in self.weights]):
            raise SettingsError("masks must be one array for each layer, of the shape of its weights")

    def layer(self, j: int, X: Reals, y: Ints) -> DenseLayer:
        """The loss as a function of the weights of layer j alone."""
        if not 0 <= j < len(self.weights):
            raise SettingsError(f"there is no layer {j}; there are {len(self.weights)}, from 0 on")
        return DenseLayer(self, j, X, y)


class DenseLayer:
    """Loss of a network by the weights of one layer. What the layers before it make of the samples is computed once."""

    def __init__(self, network: Network, j: int, X: Reals, y: Ints) -> None:
        self.network, self.j, self.y = network.copy(), j, y
        before = X.astype(network.dtype, copy=False)
        for k in range(j):
            before = np.maximum(network.step(k, before), 0.0)
        self.before = before
        self.inputs = network.stages[j].unfold(before)
        self.shape = network.weights[j].shape
        self._gradient: Reals | None = None
        self._back: Reals | None = None

    def value(self, w: Reals) -> float:
        net, j = self.network, self.j
        first = self.inputs @ w.reshape(self.shape).astype(net.dtype, copy=False) + net.biases[j]
        outputs = [first.reshape(len(self.y), -1)]
        for k in range(j + 1, len(net.weights)):
            outputs.append(net.step(k, np.maximum(outputs[-1], 0.0)))
        value, back = net.loss_and_slope(outputs[-1], self.y)
        for k in range(len(net.weights) - 1, j, -1):
            back = net.step_back(k, back) * (outputs[k - 1 - j] > 0)
        back = back.reshape(-1, self.shape[1])
        self._back, self._gradient = back, None
        return value

    def gradient(self, w: Reals, where: NDArray[np.int64] | None) -> Reals:
        """At the point of the last value; a small set is read off its own columns only."""
        assert self._back is not None
        rows, columns = self.shape
        if self._gradient is None and where is not None and len(where) < rows * columns // 20:
            i, k = where // columns, where % columns
            used_i, at_i = np.unique(i, return_inverse=True)
            used_k, at_k = np.unique(k, return_inverse=True)
            if len(used_i) * len(used_k) < rows * columns // 2:
                return np.asarray((self.inputs[:, used_i].T @ self._back[:, used_k])[at_i, at_k], np.float64)
        if self._gradient is None:
            self._gradient = (self.inputs.T @ self._back).ravel().astype(np.float64, copy=False)
        return self._gradient if where is None else self._gradient[where]

    def support(self) -> int:
        """Labels of samples with a non-zero derivative of the loss: N k_S of the theory."""
        scores = self.network.scores(self.before, self.j)
        return int(np.count_nonzero(self.network.loss_and_slope(scores, self.y)[1]))

    def kinks(self, near: float = 1e-5) -> int:
        """Units of samples, from this layer on, whose input to their ReLU is 0 (so near to it): where a search ends on
        these, the slope of each is free, and each allows about one more weight than N k_S."""
        count, out = 0, self.before
        for k in range(self.j, len(self.network.weights) - 1):
            out = self.network.step(k, out)
            count += int(np.count_nonzero(np.abs(out) < near))
            out = np.maximum(out, 0.0)
        return count


def _finite(X: Any, dtype: Any) -> Reals:
    """Samples as an array of finite numbers."""
    if hasattr(X, "toarray"):
        raise DataError("X is a sparse matrix, but a network takes dense samples: give X.toarray()")
    if np.iscomplexobj(X):
        raise DataError("X must be real numbers, not complex ones")
    try:
        out: Reals = np.asarray(X, dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"X must be numbers: {error}") from None
    if not np.isfinite(out).all():
        raise DataError("X has entries that are NaN or infinite")
    return out


def flat_rows(X: Reals) -> Reals:
    """One row each sample, however its numbers are arranged."""
    if X.ndim < 2:
        raise DataError(f"X must be samples, a row each, not of the shape {X.shape}")
    return X.reshape(len(X), int(np.prod(X.shape[1:])))


def check_samples(X: Any, y: Any, network: Network) -> tuple[Reals, Ints]:
    """Flat rows and labels."""
    X, y = _finite(X, np.float64), np.asarray(y)
    if X.ndim < 2 or len(X) == 0 or X[0].size != network.n_inputs:
        raise DataError(f"X must be rows of {network.n_inputs} inputs, not of the shape {X.shape}")
    labels = network.stages[-1].outputs
    if y.shape != (len(X),) or y.dtype.kind not in "biu" or y.min() < 0 or y.max() >= labels:
        raise DataError(f"y must be {len(X)} labels, whole numbers from 0 to {labels - 1}")
    return flat_rows(X), y.astype(np.int64)
