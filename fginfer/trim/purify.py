"""Fewer weights at the same loss: from any point to one at which Theorem 7 holds by construction.

The scores of a network are linear in the weights of one layer as long as no unit passes its kink. What must not change
are the scores of the labels that the loss depends on (N k_S of them) and the units that are at their kinks. Where a
layer has more non-zero weights than these, there is a direction among its weights in which all of them stay. We go
along it, so that the l1 norm does not grow, until a weight is zero, or a unit or a label comes to where it begins to
count; then it must not change, either. Every step takes a weight, or a dimension of what is free, so the end comes
after as many steps as there were dimensions, with at most as many weights as there are things that must not change
(Yan 2018, section 2.3, where kinks are left out).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.blas import one_blas_thread
from fginfer.errors import SettingsError
from fginfer.options import check_whole
from fginfer.trim.network import Network, check_samples

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEAR = 1e-5  # a unit whose input is nearer to 0 is at its kink, as DenseLayer.kinks has it
MOST_WEIGHTS = 3000  # in a layer: the directions are a dense matrix of their square, and there are as many steps
AT_ONCE = 1000  # weights of a layer up to which `trim` purifies it without being asked: a second or two
HALVINGS = 60  # after which the step at which a label begins to count is known
TOGETHER = 1e-9  # relative; what is reached within so much of a step is reached by it
SAME = 1e-9  # relative; a loss that has grown by more is a rounding error that went out of hand


class Purified(NamedTuple):
    """What became of a layer: non-zero weights before and after, and the bound on them, N k_S plus the kinks."""

    network: Network
    before: int
    after: int
    bound: int


def purify(network: Network, X: Any, y: Any, layer: int = 0) -> Purified:
    """A copy of the network whose layer has at most as many weights as the theory says, at the same loss on (X, y).

    Neither the loss nor the l1 norm of the layer grows. Raises SettingsError for a layer of more than 3,000 non-zero
    weights: trim it first.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((10, 20)); y = (X[:, 0] > 0).astype(int)
    >>> net = Network([20, 15, 2], "margin", seed=1).fit(X, y, epochs=40)
    >>> found = purify(net, X, y)
    >>> found.before, found.after <= found.bound < 150
    (300, True)
    """
    if not isinstance(network, Network):
        raise SettingsError(f"network must be a fginfer.trim.Network, not {type(network).__name__}")
    check_whole("layer", layer, 0, 63)
    if layer >= len(network.weights):
        raise SettingsError(f"there is no layer {layer}; there are {len(network.weights)}, from 0 on")
    X, y = check_samples(X, y, network)
    before = int(np.count_nonzero(network.weights[layer]))
    if before > MOST_WEIGHTS:
        raise SettingsError(f"layer {layer} has {before} non-zero weights; at most {MOST_WEIGHTS} can be purified")
    out = network.copy()
    with one_blas_thread():
        out.weights[layer], bound = purified_weights(network, layer, X, y)
    return Purified(out, before, int(np.count_nonzero(out.weights[layer])), bound)


def purified_weights(
    network: Network, j: int, X: Reals, y: NDArray[np.int64], late: Callable[[], bool] = lambda: False
) -> tuple[Reals, int]:
    """The weights of layer j, fewer if that is possible before it is `late`, and the bound on their number."""
    piece = _Piece(network, j, X, y)
    before = piece.objective()
    if np.count_nonzero(piece.weights) <= piece.n_fixed:
        return network.weights[j], piece.n_fixed
    free = _Free(piece.rows(piece.kinks, piece.labels))
    while free.directions.shape[1] and not late():
        _step(piece, free)
    found = piece.weights.astype(network.dtype)
    loss, norm = piece.objective()
    if not (loss <= before[0] + SAME * max(abs(before[0]), 1.0) and norm <= before[1] * (1 + SAME)):
        return network.weights[j], piece.n_fixed
    return found, piece.n_fixed


class _Piece:
    """The network around its present weights of layer j, where its scores are linear in them.

    Invariants: (1) `where` lists the weights that are not zero; (2) `kinks` has, for each layer from j on, the units of
    samples that must stay at 0; (3) `labels` are those of samples whose scores must not change.
    """

    def __init__(self, network: Network, j: int, X: Reals, y: NDArray[np.int64]) -> None:
        self._net, self._j, self._y = network.copy(), j, y
        self._net.dtype = np.dtype(np.float64)
        self._net.weights = [w.astype(np.float64) for w in network.weights]
        self._net.biases = [b.astype(np.float64) for b in network.biases]
        before = X.astype(np.float64)
        for k in range(j):
            before = np.maximum(self._net.step(k, before), 0.0)
        self._before = before
        self._places = network.stages[j].places
        self._inputs = network.stages[j].unfold(before).reshape(len(y), self._places, -1)
        self.weights = self._net.weights[j]
        self.where = np.flatnonzero(self.weights)
        self._look()
        self.kinks = [np.abs(z) < NEAR for z in self._sums[:-1]]
        self.labels: Flags = self._slope(self._sums[-1]) != 0

    @property
    def n_fixed(self) -> int:
        """N k_S plus the kinks: the bound on the number of weights."""
        return int(np.count_nonzero(self.labels)) + sum(int(np.count_nonzero(at)) for at in self.kinks)

    def objective(self) -> tuple[float, float]:
        """Loss and l1 norm."""
        return self._net.loss_and_slope(self._sums[-1], self._y)[0], float(np.abs(self.weights).sum())

    def _slope(self, scores: Reals) -> Reals:
        return self._net.loss_and_slope(scores, self._y)[1]

    def _look(self) -> None:
        """What every layer from j on adds up, and which units are on."""
        self._sums = [self._net.step(self._j, self._before)]
        for k in range(self._j + 1, len(self._net.weights)):
            self._sums.append(self._net.step(k, np.maximum(self._sums[-1], 0.0)))

    def rows(self, kinks: list[Flags], labels: Flags) -> Reals:
        """Derivatives, by the weights of `where`, of what units and labels of samples add up."""
        parts = [self._derivatives(k, at) for k, at in enumerate([*kinks, labels])]
        return np.concatenate(parts)

    def _derivatives(self, k: int, at: Flags) -> Reals:
        sample, unit = np.nonzero(at)
        back = np.zeros((len(sample), at.shape[1]))
        back[np.arange(len(sample)), unit] = 1.0
        for q in range(k, 0, -1):
            back = self._net.step_back(self._j + q, back) * (self._sums[q - 1][sample] > 0)
        row, column = np.divmod(self.where, self.weights.shape[1])
        slopes = back.reshape(len(sample), self._places, self.weights.shape[1])
        out = np.zeros((len(sample), len(self.where)))
        for place in range(self._places):
            out += self._inputs[sample, place][:, row] * slopes[:, place][:, column]
        return out

    def along(self, direction: Reals) -> list[Reals]:
        """How fast every layer's sums change along a direction of the weights of `where`."""
        change = np.zeros(self.weights.size)
        change[self.where] = direction
        moved = (self._inputs @ change.reshape(self.weights.shape)).reshape(len(self._y), -1)
        speeds = [moved]
        for q in range(1, len(self._sums)):
            stage, weights = self._net.stages[self._j + q], self._net.weights[self._j + q]
            moved = stage.unfold(moved * (self._sums[q - 1] > 0)) @ weights
            speeds.append(moved.reshape(len(self._y), -1))
        return speeds

    def times_to_kinks(self, speeds: list[Reals]) -> list[Reals]:
        """How far each unit that is not at its kink is from it, by layer."""
        times = []
        for z, dz, at in zip(self._sums[:-1], speeds[:-1], self.kinks, strict=True):
            coming = (z * dz < 0) & ~at
            times.append(np.where(coming, -z / np.where(coming, dz, 1.0), np.inf))
        return times

    def time_to_labels(self, speed: Reals, most: float) -> tuple[float, Flags]:
        """How far a label that does not count is from counting, if that is before `most`; and which ones."""

        def new(t: float) -> Flags:
            return np.asarray((self._slope(self._sums[-1] + t * speed) != 0) & ~self.labels)

        if not new(most).any():
            return most, np.zeros_like(self.labels)
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if new(middle).any() else (middle, high)
        return low, new(high)

    def move(self, direction: Reals, t: float, zero: Flags) -> None:
        """Goes there; `zero` has which of `where` end at 0."""
        moved = self.weights.ravel()[self.where] + t * direction
        self.weights.ravel()[self.where] = np.where(zero, 0.0, moved)
        self._look()


class _Free:
    """The directions in which nothing changes that must not: orthonormal columns."""

    def __init__(self, rows: Reals) -> None:
        from scipy.linalg import qr

        whole, triangle, _ = qr(rows.T, mode="full", pivoting=True)
        sizes = np.abs(np.diag(triangle)) if min(rows.shape) else np.zeros(0)
        rank = int(np.count_nonzero(sizes > 1e-12 * max(float(sizes.max(initial=0.0)), 1e-300)))
        self.directions = whole[:, rank:].copy()

    def forbid(self, row: Reals) -> None:
        """From here on, nothing moves along this row: a reflection leaves it to the first direction, which goes."""
        share = row @ self.directions  # empty where nothing is free any more
        size = float(np.linalg.norm(share))
        if size <= 1e-10 * float(np.linalg.norm(row)):
            return
        share[0] += np.copysign(size, share[0])
        share /= np.linalg.norm(share)
        self.directions -= np.outer(2.0 * (self.directions @ share), share)
        self.directions = self.directions[:, 1:]

    def drop(self, weights: NDArray[np.intp]) -> None:
        """These weights are zero and stay so."""
        for w in weights:
            unit = np.zeros(len(self.directions))
            unit[w] = 1.0
            self.forbid(unit)
        self.directions = np.delete(self.directions, weights, axis=0)

    def downhill(self, signs: Reals) -> Reals:
        """The direction in which the l1 norm falls fastest; where it cannot fall, any in which it does not grow."""
        steepest = self.directions @ (self.directions.T @ -signs)
        if np.linalg.norm(steepest) > 1e-9 * np.linalg.norm(signs):
            return np.asarray(steepest)
        first = self.directions[:, 0]
        return np.asarray(-first if signs @ first > 0 else first)


def _step(piece: _Piece, free: _Free) -> None:
    """Goes along one direction until a weight is zero, or something begins to count."""
    weights = piece.weights.ravel()[piece.where]
    direction = free.downhill(np.sign(weights))
    falling = weights * direction < 0
    to_zero = np.where(falling, -weights / np.where(falling, direction, 1.0), np.inf)
    speeds = piece.along(direction)
    to_kinks = piece.times_to_kinks(speeds)
    most = min(times.min(initial=np.inf) for times in [to_zero, *to_kinks])
    t, labels = piece.time_to_labels(speeds[-1], float(most))
    reached = t * (1 + TOGETHER)
    zero, kinks = to_zero <= reached, [times <= reached for times in to_kinks]
    for row in piece.rows(kinks, labels):
        free.forbid(row)
    piece.move(direction, t, zero)
    for at, more in zip(piece.kinks, kinks, strict=True):
        at |= more
    piece.labels |= labels
    free.drop(np.flatnonzero(zero))
    piece.where = piece.where[~zero]
