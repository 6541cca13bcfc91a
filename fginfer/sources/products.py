"""Labels scored by inner products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse  # type: ignore[import-untyped, unused-ignore]

from fginfer.core.oracles import FEATURES, Products, address
from fginfer.errors import ModelError
from fginfer.sources.answers import Answers, Argmax, Message, Messages, Questions, flat_states, unpacked
from fginfer.sources.tables import Source, path_number


class InnerProducts(Source):
    """Labels 0..n_labels-1, label k scored by <w_k, x>.

    Made from a dense array (labels x features), which is used as it is: change it in place and the next answer knows
    (of lists, and arrays that are not float64 or not contiguous, a copy is made: change that one, `weights`).
    by_feature=True says that the array is features x labels (faster where x is sparse). Or from sparse weights,
    ``InnerProducts.sparse(n_labels, n_features)``, changed by `set`, `add` and `scale`: a question then costs as many
    operations as the rows of x's features have weights, however many labels there are.

    >>> products = InnerProducts([[1.0, 0.0], [0.5, 2.0]])
    >>> products.argmax([1.0, 0.25])
    Argmax(state=(0,), value=1.0)
    """

    def __init__(self, weights: ArrayLike, *, by_feature: bool = False, threads: int = 1) -> None:
        super().__init__(threads)
        dense = np.asarray(weights, np.float64)
        if dense.ndim != 2:
            raise ModelError("weights must be a table of labels and features")
        self.weights: NDArray[np.float64] | None = np.ascontiguousarray(dense)
        self.n_features, self.n_labels = dense.shape if by_feature else dense.shape[::-1]
        self._handle = Products(self.n_labels, self.n_features, self.weights, by_feature)

    @classmethod
    def sparse(cls, n_labels: int, n_features: int, weights: Any = None, *, threads: int = 1) -> InnerProducts:
        """Sparse weights: zeros, or a scipy matrix of labels x features."""
        made = cls.__new__(cls)
        Source.__init__(made, threads)
        made.weights, made.n_labels, made.n_features = None, n_labels, n_features
        made._handle = Products(n_labels, n_features)
        if weights is not None:
            given = sparse.coo_matrix(weights)
            if given.shape != (n_labels, n_features):
                raise ModelError(f"weights must have the shape {(n_labels, n_features)}, not {given.shape}")
            made.add(given.row, given.col, given.data)
        return made

    def set(self, labels: ArrayLike, features: ArrayLike, values: ArrayLike) -> None:
        """Sparse weights (labels[k], features[k]) become values[k]."""
        self._handle.update(False, labels, features, values)

    def add(self, labels: ArrayLike, features: ArrayLike, values: ArrayLike) -> None:
        """Sparse weights (labels[k], features[k]) grow by values[k]."""
        self._handle.update(True, labels, features, values)

    def scale(self, factor: float) -> None:
        """All scores <w, x> times factor >= 0, at no cost. A dense array stays as it is; the factor is kept apart."""
        self._handle.scale(factor)

    def index(self, *, clusters: int = 0, probes: int | None = None, seed: int = 0) -> None:
        """Puts a search index (see :mod:`fginfer.search`) under the weights as they are now: questions with
        ``path="search"`` are answered from few of many labels, and scanned where that proves nothing. After a change of
        the weights call it again. For dense features."""
        self._handle.index(clusters, 0 if probes is None else probes, 1, seed)

    def __getitem__(self, at: tuple[int, int]) -> float:
        label, feature = at
        if not (0 <= label < self.n_labels and 0 <= feature < self.n_features):
            raise ModelError(f"there is no weight {at}")
        return self._handle.get(label, feature)

    @property
    def nonzeros(self) -> int:
        """Sparse weights stored."""
        return self._handle.nonzeros()

    @property
    def memory(self) -> int:
        """Bytes held, a dense array not included."""
        return self._handle.memory()

    def argmax(self, x: Any, message: Message = None, *, excluded: Iterable[int] | int | None = None) -> Argmax:
        """The best label for one vector x."""
        return self.best(x, 1, message, excluded=excluded)[0]

    def best(
        self, x: Any, n: int, message: Message = None, *, excluded: Iterable[int] | int | None = None
    ) -> list[Argmax]:
        """The n best labels for one vector x (dense, or a sparse row), best first."""
        batch = self._batch(x if sparse.issparse(x) else np.atleast_2d(np.asarray(x, np.float64)), n, None, "auto")
        if len(batch.queries) != 1:
            raise ModelError("x must be one vector; ask() takes several")
        batch.messages(None if message is None else [message], 1)
        gone = [excluded] if isinstance(excluded, (int, np.integer)) else excluded
        batch.excluded(flat_states(None if gone is None else [(int(k),) for k in gone], (self.n_labels,)))
        found = batch.ask(self._oracle)
        states, values = found.states.ravel(), found.values.ravel()
        return [unpacked(int(s), float(v), (self.n_labels,)) for s, v in zip(states, values, strict=True)]

    def ask(
        self,
        X: Any,
        messages: Messages | None = None,
        *,
        excluded: ArrayLike | None = None,
        n_best: int = 1,
        parts: int = 1,
        part: ArrayLike = 0,
        path: str = "auto",
    ) -> Answers:
        """A batch: the best label(s) for every row of X (dense or scipy sparse), shared by the threads. With `parts`,
        only part `part` (one number, or one a row) of the labels is looked at, as in sampled oracles."""
        batch = self._batch(X, n_best, (parts, part), path)
        batch.all_messages(messages, 1)
        batch.all_excluded(excluded)
        return batch.ask(self._oracle)

    def _batch(self, X: Any, n_best: int, parts: tuple[int, ArrayLike] | None, path: str) -> Questions:
        if X.ndim != 2 if sparse.issparse(X) else np.ndim(X) != 2:
            raise ModelError("X must be a table, one row a question")
        rows: Any = sparse.csr_matrix(X) if sparse.issparse(X) else np.ascontiguousarray(X, np.float64)
        if rows.shape[1] != self.n_features:
            raise ModelError(f"X has {rows.shape[1]} features, the weights have {self.n_features}")
        n = rows.shape[0]
        batch, x = Questions(self._handle.source, n, n_best, path_number(path)), np.zeros(n, FEATURES)
        if sparse.issparse(X):
            begin = rows.indptr[:-1].astype(np.uint64)
            index = np.ascontiguousarray(rows.indices, np.int32)
            values = np.ascontiguousarray(rows.data, np.float64)
            x["n"], x["index"] = np.diff(rows.indptr), address(index) + np.uint64(4) * begin
            x["values"] = address(values) + np.uint64(8) * begin
            batch.keep += [index, values]
        else:
            x["n"] = self.n_features
            x["values"] = address(rows) + np.uint64(8 * self.n_features) * np.arange(n, dtype=np.uint64)
            batch.keep.append(rows)
        if parts is not None:
            x["parts"], x["part"] = parts[0], parts[1]
        batch.queries["x"] = address(x) + np.uint64(FEATURES.itemsize) * np.arange(n, dtype=np.uint64)
        batch.keep.append(x)
        return batch
