"""KernelStructuredSVM: bcfw in the dual, with a kernel on the tokens' features; for small data (bcfw.txt, B.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from fginfer.errors import DataError, SettingsError
from fginfer.learn.data import Encoded, Reals
from fginfer.learn.encode import encode
from fginfer.learn.inputs import check_dense_input, decode_output, seed_of
from fginfer.learn.learner import Learner


class KernelStructuredSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """As StructuredSVM(solver="bcfw"), with scores that are linear in a kernel instead of in the features.

    The score of label y at a token x is the sum over training tokens t of ``dual_[t, y] * kernel(x, x_t)``; chains add
    a table of transitions, which stays linear. Memory is quadratic in the number of training tokens.

    Parameters
    ----------
    model : "chain" or "multiclass".
    kernel : "rbf", "linear", or a function of two arrays (n, d) and (m, d) that gives an (n, m) array, symmetric and
        positive semidefinite. fit_intercept adds 1 to it.
    gamma : width of "rbf", exp(-gamma * |x - x'|^2); None is one over the number of features.
    C, tol, max_iter, random_state, pairwise, loss : as for StructuredSVM.

    After `fit`: ``dual_`` (training tokens x labels), ``pairwise_`` (labels x labels, or empty), ``classes_``,
    ``n_iter_``, ``primal_``, ``dual_value_``, ``gap_``.
    """

    classes_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        model: str = "chain",
        kernel: str | Callable[[Reals, Reals], Any] = "rbf",
        gamma: float | None = None,
        C: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Any = None,
        fit_intercept: bool = True,
        pairwise: bool = True,
        loss: Any = None,
    ) -> None:
        self.model = model
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.pairwise = pairwise
        self.loss = loss

    def _check(self) -> None:
        if self.model not in ("chain", "multiclass"):
            raise SettingsError(f"a kernel model is chain or multiclass, not {self.model!r}")
        if not callable(self.kernel) and self.kernel not in ("rbf", "linear"):
            raise SettingsError(f"kernel must be rbf, linear or a function, not {self.kernel!r}")
        if not (0 < self.C < np.inf and self.tol >= 0 and self.max_iter >= 1):
            raise SettingsError("C must be positive, tol not negative, max_iter at least 1")
        if self.gamma is not None and not 0 < self.gamma < np.inf:
            raise SettingsError(f"gamma must be positive, not {self.gamma!r}")

    def _gram(self, a: Reals, b: Reals) -> Reals:
        if callable(self.kernel):
            gram = np.asarray(self.kernel(a, b), np.float64)
            if gram.shape != (len(a), len(b)) or not np.isfinite(gram).all():
                raise DataError(f"the kernel must give a finite array of the shape {(len(a), len(b))}")
        else:
            gram = a @ b.T
            if self.kernel == "rbf":
                gamma = 1.0 / max(1, a.shape[1]) if self.gamma is None else self.gamma
                square = np.sum(a * a, 1)[:, None] + np.sum(b * b, 1) - 2 * gram
                gram = np.exp(-gamma * np.maximum(square, 0.0))
        return gram + 1.0 if self.fit_intercept else gram

    def _learner(self, X: Any, y: Any, offsets: ArrayLike | None, fitting: bool) -> Learner:
        """A learner whose features are kernel values against the training tokens: then the duals are its weights."""
        X, y = check_dense_input(self, X, y, fitting)
        data, classes = encode(
            self.model, X, y, offsets=offsets, classes=None if fitting else self.classes_, intercept=False,
            n_features=None if fitting else self.n_features_in_, pairwise=self.pairwise, cost=self.loss,
        )  # fmt: skip
        rows: Reals = data.rows.toarray()
        if fitting:
            if len(classes) < 2:
                raise DataError(f"y has one class only: {classes[0]!r}; a classifier needs at least 2 classes")
            self.classes_, self.n_features_in_, self._tokens = classes, rows.shape[1], rows
        data.rows = sp.csr_matrix(self._gram(rows, self._tokens))
        return Learner(data)

    def fit(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> KernelStructuredSVM:
        """Trains until the duality gap is at most tol (relative) or for max_iter passes."""
        self._check()
        learner = self._learner(X, y, offsets, fitting=True)
        state = _Duals(learner, self.C)
        rng = np.random.default_rng(seed_of(self.random_state))
        for done in range(1, self.max_iter + 1):
            for i in rng.permutation(learner.data.n_examples):
                state.step(int(i))
            self.n_iter_ = done
            self.primal_, self.dual_value_ = state.measure()
            self.gap_ = max(0.0, self.primal_ - self.dual_value_) / max(1.0, abs(self.primal_))
            if self.gap_ <= self.tol:
                break
        self.dual_, self.pairwise_ = state.alpha, state.table
        return self

    def _weights(self) -> Reals:
        check_is_fitted(self)
        return np.concatenate([self.dual_.ravel(), self.pairwise_.ravel()])

    def predict(self, X: Any, offsets: ArrayLike | None = None) -> Any:
        """Labels in the form of the training labels: a list for lists, one array for concatenated or flat input."""
        weights = self._weights()
        answers = self._learner(X, None, offsets, fitting=False).decode(weights)
        return decode_output(self.model, answers, self.classes_, isinstance(X, (list, tuple)) and offsets is None)

    def score(self, X: Any, y: Any, offsets: ArrayLike | None = None) -> float:
        """Share of labels that are right."""
        weights = self._weights()
        learner = self._learner(X, y, offsets, fitting=False)
        return float(np.mean(learner.decode(weights).labels == learner.data.truth))


class _Duals:
    """Algorithm B.1. Kernel and loss decompose over tokens and transitions, so the duals of an example's answers are
    kept as what they add up to there: alpha (tokens x labels), and a table of transitions per example."""

    def __init__(self, learner: Learner, C: float) -> None:
        data: Encoded = learner.data
        k, n = data.n_labels, data.n_examples
        self.learner, self.C = learner, C
        self.gram: Reals = data.rows.toarray()
        self.weights = np.zeros(learner.dimension)
        cut = len(self.gram) * k
        self.alpha = self.weights[:cut].reshape(-1, k)  # views: the learner scores with them
        self.table = self.weights[cut:].reshape(-1, k) if data.edges else np.zeros((0, k))
        self.tables = np.zeros((n, *self.table.shape))
        self.losses = np.zeros(n)

    def _corner(self, i: int, answer: Any) -> tuple[Reals, Reals]:
        """C (phi(truth) - phi(answer)) of example i in dual coordinates."""
        data = self.learner.data
        truth = data.truth[data.token_begin[i] : data.token_begin[i + 1]]
        corner, table, place = np.zeros((len(truth), data.n_labels)), np.zeros(self.table.shape), np.arange(len(truth))
        for labels, sign in ((truth, self.C), (answer, -self.C)):
            corner[place, labels] += sign
            if len(table):
                np.add.at(table, (labels[:-1], labels[1:]), sign)
        return corner, table

    def step(self, i: int) -> None:
        """Frank-Wolfe step of block i with exact line search (bcfw.txt, Algorithm 4)."""
        data, example = self.learner.data, np.array([i], np.int32)
        own = slice(int(data.token_begin[i]), int(data.token_begin[i + 1]))
        answers = self.learner.decode(self.weights, 1.0, example)
        hinge = float(self.learner.hinges(self.weights, answers, example)[0])
        corner, table = self._corner(i, answers.labels)
        scores = self.gram[own] @ self.alpha
        loss = self.C * hinge + float(np.sum(scores * corner) + np.sum(self.table * table))  # C * loss of the answer
        corner -= self.alpha[own]
        table -= self.tables[i]
        gap = loss - self.losses[i] - float(np.sum(scores * corner) + np.sum(self.table * table))
        curvature = float(np.sum(corner * (self.gram[own, own] @ corner)) + np.sum(table * table))
        if gap <= 0:
            return
        size = min(1.0, gap / curvature) if curvature > 0 else 1.0
        self.alpha[own] += size * corner
        self.tables[i] += size * table
        self.table += size * table
        self.losses[i] += size * (loss - self.losses[i])

    def measure(self) -> tuple[float, float]:
        """(primal, dual) on the scale of StructuredSVM."""
        norm = float(np.sum(self.alpha * (self.gram @ self.alpha)) + np.sum(self.table**2))
        hinges = self.learner.hinges(self.weights, self.learner.decode(self.weights, 1.0))
        return 0.5 * norm + self.C * float(hinges.sum()), float(self.losses.sum()) - 0.5 * norm
