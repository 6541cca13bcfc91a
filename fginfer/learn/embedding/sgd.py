"""Stochastic gradient descent on a linear last layer over dense features, or over one hidden layer on sparse ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.arrays import begins
from fginfer.core.search import Floats
from fginfer.errors import DataError, ModelError, SolverError
from fginfer.learn.learner import fits, fits_rows
from fginfer.learn.losses import KINDS, WAYS, EmbeddingLoss
from fginfer.learn.run.interrupts import look
from fginfer.learn.run.trainer import Measured, Trainer

MEASURED = 1000  # samples that the objective is measured on, at most


@dataclass
class Samples:
    """Features (dense float32, or CSR for a hidden layer) and the positive labels of each row, flat."""

    X: Any
    begin: NDArray[np.int64]
    labels: NDArray[np.int32]
    n_labels: int

    def __len__(self) -> int:
        return len(self.begin) - 1

    def positives(self, which: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        sizes = self.begin[which + 1] - self.begin[which]
        begin = begins(sizes)
        at = np.repeat(self.begin[which] - begin[:-1], sizes) + np.arange(begin[-1])
        return begin, self.labels[at]


@dataclass(frozen=True)
class SgdSettings:
    """How rows and, where there is one, the hidden layer are trained."""

    eta0: float
    batch_size: int
    sampled_epochs: float  # first by sampling; then `method`
    method: str
    intercept: bool
    hidden: int | None
    alpha: float
    seed: int
    loss: dict[str, Any]  # arguments of EmbeddingLoss


class EmbeddingSgd(Trainer):
    """A training run as the loop of fginfer.learn.run drives it."""

    name = "sgd"
    too_large = "the weights are no longer finite numbers: the features, eta0 or alpha are too large"

    def __init__(self, data: Samples, settings: SgdSettings) -> None:
        self.data, self.s = data, settings
        rng = np.random.default_rng(settings.seed)
        n_features = data.X.shape[1]
        self.hidden: Floats | None = None
        if settings.hidden is not None:
            # What the last layer sees is then about as long as the row that was given: with entries of size 1 it is
            # sqrt(hidden) times as long, and no step suits both layers (debian tags, 3 epochs: P@1 60 in place of 80).
            self.hidden = rng.standard_normal((n_features, settings.hidden), dtype=np.float32)
            self.hidden *= np.float32(settings.hidden**-0.5)
        width = (settings.hidden or n_features) + settings.intercept
        self.rows: Floats = 0.01 * rng.standard_normal((data.n_labels, width), dtype=np.float32)
        self.epoch, self.at, self._touched, self._calls = 0, 0, 0, 0
        self._order: NDArray[np.int64] | None = None
        self._loss: EmbeddingLoss | None = None
        self._method = ""
        # what objective and threshold are measured on
        self.sample = np.sort(rng.permutation(len(data))[:MEASURED]).astype(np.int64)
        self._way, kind = WAYS[settings.method], KINDS[settings.loss["loss"]]
        self._by_softmax = self._way.all_labels and kind == KINDS["cross-entropy"]
        self.measuring = len(self.sample) / max(1, len(data)) * (1.0 if self._way.all_labels else 10.0)

    # ---- one batch

    def inputs(self, which: NDArray[np.int64]) -> tuple[Any, Floats]:
        """(features, what the last layer sees) of some samples."""
        given = self.data.X[which]
        return given, last_layer_input(given, self.hidden, self.s.intercept)

    def _loss_now(self) -> EmbeddingLoss:
        seen = self.epoch + self.at / max(1, len(self.data))
        early = seen < self.s.sampled_epochs and self._way.indexed
        method = "sampled" if early else self.s.method
        if self._loss is None or method != self._method:
            if self._loss is not None:
                self._touched += self._loss.touched
            self._method = method
            self._loss = EmbeddingLoss(self.rows, method=method, **self.s.loss)
        return self._loss

    def _batch(self, which: NDArray[np.int64]) -> None:
        given, x = self.inputs(which)
        begin, labels = self.data.positives(which)
        size = self.s.eta0 / (1.0 + self.epoch + self.at / len(self.data))
        if self._by_softmax:
            back: Floats | None = softmax_step(self.rows, x, begin, labels, size)
            self._touched += len(x) * len(self.rows)
        else:
            loss = self._loss_now()
            loss.values(x, begin, labels, None)
            back = loss.step(size, x_gradient=self.hidden is not None)[1]
        self._calls += len(x)
        if self.hidden is not None and back is not None:
            width = self.hidden.shape[1]
            features, small = compressed(given)
            self.hidden[features] -= np.float32(size) * (small.T @ (back[:, :width] * (x[:, :width] > 0)))
        if self.s.alpha:  # only the rows of the batch's own labels decay: to shrink all of them would touch every row
            own = np.unique(labels)
            self.rows[own] *= np.float32(1 - size * self.s.alpha)
            if self._loss is not None:
                self._loss.refresh(own)

    # ---- what the loop asks for

    def advance(self, deadline: float) -> bool:
        n, size = len(self.data), self.s.batch_size
        if self._order is None:
            self._order = np.random.default_rng([self.s.seed, self.epoch]).permutation(n)
        while self.at < n:
            try:
                self._batch(self._order[self.at : self.at + size])
            except ModelError:  # scores and the rows of an index must be finite
                raise SolverError(self.too_large) from None
            self.at = min(n, self.at + size)
            if clock.now() >= deadline:
                break
        if self.at < n:
            return False
        self.epoch, self.at, self._order = self.epoch + 1, 0, None
        if not np.isfinite(self.rows).all():
            raise SolverError(self.too_large)
        return True

    def wants_certificate(self, tol: float) -> bool:
        return False

    def measure(self, deadline: float = inf) -> Measured:
        """The mean of the exact losses of some training samples, always the same ones."""
        exact = EmbeddingLoss(self.rows, method="exact", **self.s.loss)
        total = 0.0
        for from_ in range(0, len(self.sample), 64):
            look(deadline)
            which = self.sample[from_ : from_ + 64]
            total += exact.values(self.inputs(which)[1], *self.data.positives(which), None)[0].sum()
        return Measured(primal=total / max(1, len(self.sample)), infeasibility=0.0)

    def counters(self) -> tuple[int, int]:
        return self._calls, self._touched + (0 if self._loss is None else self._loss.touched)

    def export(self) -> dict[str, Any]:
        calls, touched = self.counters()
        saved = {"rows": self.rows.copy(), "place": np.array([self.epoch, self.at, calls, touched])}
        if self.hidden is not None:
            saved["hidden"] = self.hidden.copy()
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        self.rows[:] = fits_rows("rows", saved["rows"], self.rows)
        if self.hidden is not None:
            self.hidden[:] = fits_rows("hidden", saved["hidden"], self.hidden)
        self.epoch, self.at, self._calls, self._touched = fits("place", saved["place"], 4, np.int64).tolist()
        if self.at > len(self.data):
            raise DataError("its place does not fit the data")
        self._order, self._loss = None, None
        if self.at:
            self._order = np.random.default_rng([self.s.seed, self.epoch]).permutation(len(self.data))


def last_layer_input(given: Any, hidden: Floats | None, intercept: bool) -> Floats:
    """The hidden layer's outputs (rectified), or the features themselves; and a constant 1."""
    x = np.asarray(given if hidden is None else np.maximum(given @ hidden, 0), np.float32)
    if intercept:
        x = np.hstack([x, np.ones((len(x), 1), np.float32)])
    return np.ascontiguousarray(x)


def compressed(given: Any) -> tuple[NDArray[Any], Any]:
    """(features that occur, the rows over these only)."""
    if not sp.issparse(given):
        return np.arange(given.shape[1]), given
    features, places = np.unique(given.indices, return_inverse=True)
    small = sp.csr_matrix((given.data, places, given.indptr), shape=(given.shape[0], len(features)))
    return features, small


def softmax_step(rows: Floats, x: Floats, begin: NDArray[np.int64], labels: NDArray[np.int32], size: float) -> Floats:
    """Exact cross-entropy has dense gradients: three matrix products. The gradient in x is returned."""
    p: Floats = x @ rows.T
    p -= p.max(1, keepdims=True)
    np.exp(p, out=p)
    counts = np.diff(begin).astype(np.float32)
    p *= (counts / p.sum(1))[:, None]
    p[np.repeat(np.arange(len(x)), np.diff(begin)), labels] -= 1
    back: Floats = p @ rows
    rows -= (np.float32(size) * (p.T @ x)).astype(np.float32)
    return back
