"""The best labels of dense rows by a search index, for models whose weights are dense, too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import owners
from fginfer.core.extreme import Floats, Ints, Lines
from fginfer.search import SearchIndex

LABELS, ROWS, DENSE = 1000, 64, 0.25  # from so many labels, rows of the first call, and filled parts of both tables
SPARE = 8  # labels that are looked at beyond those asked for
CHUNK = 1 << 21  # products held at a time


def is_dense(lines: Lines, width: int) -> bool:
    return lines.n > 0 and width > 0 and lines.nnz >= DENSE * lines.n * width


class DenseTop:
    """A row of weights and bias a label, and an index of these rows.

    The index works in single precision. What it finds, and SPARE labels more, is scored as the scorer by features does:
    in double, feature after feature. Where the last label found comes within rounding of the k-th best, the row is left
    to that scorer. So no answer tells which way it came.
    """

    def __init__(self, weights: Lines, bias: Floats, threads: int) -> None:
        self.rows = np.zeros((weights.width, weights.n + 1), np.float32)
        self.rows[weights.index, owners(weights.begin)] = weights.value
        self.rows[:, -1] = bias
        self.longest = float(np.sqrt(np.square(self.rows, dtype=np.float64).sum(1).max()))
        self.index = SearchIndex(self.rows, clusters=1, threads=threads)
        self.threads = threads

    @classmethod
    def of(cls, weights: Lines, bias: Floats, threads: int) -> DenseTop | None:
        """None where weights are few, or damaged: the scorer by features says how."""
        if weights.width < LABELS or not is_dense(weights, weights.width) or weights.value is None:
            return None
        sound = weights.index.min() >= 0 and weights.index.max() < weights.width
        finite = bool(np.isfinite(weights.value).all() and np.isfinite(bias).all())
        return cls(weights, bias, threads) if sound and finite else None

    def topk(self, rows: Lines, k: int) -> tuple[Ints, Floats, NDArray[np.int64]]:
        """(labels, scores, rows that are left to the scorer by features)."""
        labels, scores = np.zeros((rows.n, k), np.int32), np.zeros((rows.n, k), np.float32)
        sure = np.zeros(rows.n, bool)
        columns = self.rows.shape[1]
        step = max(1, CHUNK // ((k + SPARE) * columns))
        for at in range(0, rows.n, step):
            here = slice(at, min(at + step, rows.n))
            labels[here], scores[here], sure[here] = self._some(_filled(rows, at, here.stop, columns), k)
        return labels, scores, np.flatnonzero(~sure)

    def _some(self, x: Floats, k: int) -> tuple[Ints, Floats, NDArray[np.bool_]]:
        found = self.index.search(x, k + SPARE)
        # Products of single-precision numbers are exact in double
        products = self.rows[found.labels].astype(np.float64)
        products *= x[:, None, :]
        exact = np.cumsum(products[:, :, :-1], axis=2)[:, :, -1] + products[:, :, -1]
        scores = exact.astype(np.float32)
        order = np.lexsort((found.labels, -scores), axis=1)[:, :k]
        best: Floats = np.take_along_axis(scores, order, 1)
        rounding = 2.0**-23 * (x.shape[1] + 2) * self.longest * np.sqrt(np.square(x, dtype=np.float64).sum(1))
        others = found.values[:, -1] + rounding  # no label that was not found scores more
        return np.take_along_axis(found.labels, order, 1), best, best[:, -1] > np.nextafter(np.float32(others), np.inf)


def _filled(rows: Lines, first: int, last: int, columns: int) -> Floats:
    """Rows first .. last as a table, with a constant 1; features that the model does not know are left out."""
    begin = rows.begin[first : last + 1]
    which = np.repeat(np.arange(last - first), np.diff(begin))
    feature = rows.index[begin[0] : begin[-1]]
    value = np.ones(len(feature), np.float32) if rows.value is None else rows.value[begin[0] : begin[-1]]
    known = (feature >= 0) & (feature < columns - 1)
    x = np.zeros((last - first, columns), np.float32)
    x[which[known], feature[known]] = value[known]
    x[:, -1] = 1
    return x
