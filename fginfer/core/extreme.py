"""Extreme classification in the core: compressed matrices, training of labels, the best labels of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import begins
from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import DataError

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]

SEARCHES = {"rows": int(lib.FGI_PD_BY_ROWS), "index": int(lib.FGI_PD_BY_INDEX)}
LOSSES = {"hinge": int(lib.FGI_PPD_HINGE), "squared_hinge": int(lib.FGI_PPD_SQUARED_HINGE)}


@dataclass(frozen=True)
class Lines:
    """A compressed sparse matrix as the core takes it: `index` and `value` of line r at begin[r] .. begin[r+1].

    The arrays may be memory-mapped. `value` is None for a 0/1 matrix.
    """

    begin: Longs
    index: Ints
    value: Floats | None
    width: int

    @property
    def n(self) -> int:
        return len(self.begin) - 1

    @property
    def nnz(self) -> int:
        return int(self.begin[-1])

    def check(self, what: str) -> Lines:
        """The matrix itself, once it is known to be well formed; else a DataError that begins with `what`."""
        error = new_error()
        rc = lib.fgi_extreme_check(
            self.n, self.width, pointer(self.begin), pointer(self.index), pointer(self.value), error
        )
        try:
            check(rc, error, bad_argument=DataError)
        except DataError as e:
            raise DataError(f"{what}: {e}") from None
        return self

    def transposed(self, memory: int | None = None, out: Lines | None = None) -> Lines:
        """The same matrix by columns. With `memory` (bytes) it is made in parts that need no more than that; `out`
        gives the arrays to fill (memory-mapped ones, say; its `begin` is written, too)."""
        if out is None:
            value = None if self.value is None else np.empty(self.nnz, np.float32)
            out = Lines(np.zeros(self.width + 1, np.int64), np.empty(self.nnz, np.int32), value, self.n)
        out.begin[:] = begins(self.counts())
        size = 8 if self.value is not None else 4
        most = self.nnz if memory is None else max(1, memory // size)
        first = 0
        while first < self.width:
            last = int(np.searchsorted(out.begin, out.begin[first] + most, side="right")) - 1
            last = min(self.width, max(first + 1, last))
            here = slice(int(out.begin[first]), int(out.begin[last]))
            index, value = out.index[here], None if out.value is None else out.value[here]
            error = new_error()
            check(
                lib.fgi_extreme_transpose(
                    self.n, pointer(self.begin), pointer(self.index), pointer(self.value), first, last,
                    pointer(np.ascontiguousarray(out.begin)), pointer(index), pointer(value), error,
                ),
                error,
            )  # fmt: skip
            first = last
        return out

    def counts(self) -> Longs:
        """How many entries every column has."""
        total = np.zeros(self.width, np.int64)
        step = 1 << 24  # entries at a time: np.bincount makes a copy
        for begin in range(0, self.nnz, step):
            total += np.bincount(self.index[begin : min(begin + step, self.nnz)], minlength=self.width)
        return total


@dataclass(frozen=True)
class ExtremeData:
    """Training data: rows and, where a solver wants them, their transpose and the labels by row and by label."""

    rows: Lines
    labels: Lines  # labels of a row
    columns: Lines | None = None
    positives: Lines | None = None  # rows of a label

    def spec(self) -> Any:
        """The C view of the arrays; they must be kept alive."""
        spec = ffi.new("fgi_extreme_data *")
        spec.n_rows, spec.n_features, spec.n_labels = self.rows.n, self.rows.width, self.labels.width
        spec.row_begin, spec.row_feature = pointer(self.rows.begin), pointer(self.rows.index)
        spec.row_value = pointer(self.rows.value)
        spec.label_begin, spec.label = pointer(self.labels.begin), pointer(self.labels.index)
        if self.columns is not None:
            spec.column_begin, spec.column_row = pointer(self.columns.begin), pointer(self.columns.index)
            spec.column_value = pointer(self.columns.value)
        if self.positives is not None:
            spec.positive_begin, spec.positive = pointer(self.positives.begin), pointer(self.positives.index)
        return spec


# What is known about a trained label; mirrors fgi_ppd_info.
INFO = np.dtype(
    [
        ("primal", "f8"), ("dual", "f8"), ("positives", "i8"), ("support", "i8"), ("weights", "i8"), ("touched", "i8"),
        ("searches", "i4"), ("exact_searches", "i4"), ("epochs", "i4"), ("converged", "i4"), ("seconds", "f8"),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class LabelColumns:
    """Weights of some labels, one sparse column each, and what is known about their training."""

    labels: Ints
    weights: Lines  # a line per label: features and values
    bias: Floats
    info: NDArray[Any] = field(repr=False)  # an array of dtype INFO


class PpdTrainer:
    """PPD-Sparse on one machine: trains any labels of the data, on any number of threads, to the same bits."""

    def __init__(self, data: ExtremeData, threads: int = 1, **settings: Any) -> None:
        self._data, self._spec = data, data.spec()
        s = ffi.new("fgi_ppd_settings *")
        for name, value in settings.items():
            setattr(s, name, value)
        out, error = ffi.new("fgi_ppd **"), new_error()
        check(lib.fgi_ppd_create(self._spec, s, threads, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_ppd_free)
        self._stop = ffi.new("int32_t *")

    def stop(self) -> None:
        """Makes a `train` that runs in another thread return within milliseconds, without its unfinished labels."""
        self._stop[0] = 1

    def train(self, labels: NDArray[Any]) -> LabelColumns:
        """The weights of these labels (of those that were finished, if `stop` was called)."""
        wanted = np.ascontiguousarray(labels, np.int32)
        out, error = ffi.new("fgi_ppd_columns **"), new_error()
        check(lib.fgi_ppd_train(self._handle, pointer(wanted), len(wanted), self._stop, out, error), error)
        handle = ffi.gc(out[0], lib.fgi_ppd_columns_free)
        nnz, n = int(lib.fgi_ppd_columns_weights(handle)), len(wanted)
        begin, feature, value = np.zeros(n + 1, np.int64), np.zeros(nnz, np.int32), np.zeros(nnz, np.float32)
        bias, info, done = np.zeros(n, np.float32), np.zeros(n, INFO), np.zeros(n, np.uint8)
        lib.fgi_ppd_columns_get(
            handle, pointer(begin), pointer(feature), pointer(value), pointer(bias),
            ffi.from_buffer("fgi_ppd_info[]", info), pointer(done),
        )  # fmt: skip
        kept = np.flatnonzero(done)  # the others have no weights, so the lines stay where they are
        begin = np.concatenate([begin[:1], begin[1:][kept]])
        return LabelColumns(wanted[kept], Lines(begin, feature, value, self._data.rows.width), bias[kept], info[kept])


class Scorer:
    """Weights stored by feature, for prediction; the arrays may be memory-mapped."""

    def __init__(self, weights: Lines, bias: Floats, order: Ints) -> None:
        self.weights, self.bias, self.order = weights, bias, order
        self._spec = ffi.new("fgi_extreme_weights *")
        self._spec.n_features, self._spec.n_labels = weights.n, weights.width
        self._spec.begin, self._spec.label = pointer(weights.begin), pointer(weights.index)
        self._spec.value, self._spec.bias = pointer(weights.value), pointer(bias)
        self._spec.bias_order = pointer(order)
        self.touched = 0  # weights read by the last topk

    def topk(self, rows: Lines, k: int, threads: int = 1) -> tuple[Ints, Floats]:
        """(rows, k) labels and scores, best first."""
        labels, scores = np.zeros((rows.n, k), np.int32), np.zeros((rows.n, k), np.float32)
        touched, error = ffi.new("int64_t *"), new_error()
        check(
            lib.fgi_extreme_topk(
                self._spec, rows.n, pointer(rows.begin), pointer(rows.index), pointer(rows.value), k, threads,
                pointer(labels), pointer(scores), touched, error,
            ),
            error,
        )  # fmt: skip
        self.touched = int(touched[0])
        return labels, scores

    def scores(self, rows: Lines, labels: NDArray[Any], threads: int = 1) -> Floats:
        """(rows, labels) scores of chosen labels."""
        chosen = np.ascontiguousarray(labels, np.int32)
        out, error = np.zeros((rows.n, len(chosen)), np.float32), new_error()
        check(
            lib.fgi_extreme_scores(
                self._spec, rows.n, pointer(rows.begin), pointer(rows.index), pointer(rows.value),
                pointer(chosen), len(chosen), threads, pointer(out), error,
            ),
            error,
        )  # fmt: skip
        return out


class PdSolver:
    """PD-Sparse in the core: passes over the rows, losses, bound, weights, and its state for checkpoints."""

    def __init__(self, data: ExtremeData, threads: int = 1, **settings: Any) -> None:
        self._data, self._spec = data, data.spec()
        s = ffi.new("fgi_pd_settings *")
        for name, value in settings.items():
            setattr(s, name, value)
        out, error = ffi.new("fgi_pd **"), new_error()
        check(lib.fgi_pd_create(self._spec, s, threads, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_pd_free)
        self._info = ffi.new("fgi_pd_info *")

    def run(self, rows: Ints, begin: int, deadline: float) -> int:
        """Visits rows[begin:] until the deadline; where it has come to."""
        place, error = ffi.new("int64_t *", begin), new_error()
        check(lib.fgi_pd_pass(self._handle, pointer(rows), len(rows), place, deadline, error), error)
        return int(place[0])

    def joint(self, deadline: float = inf) -> None:
        """A step of all rows together, on the labels that are active."""
        error = new_error()
        check(lib.fgi_pd_joint(self._handle, deadline, error), error)

    def refit(self) -> None:
        """From now on without l1, over the weights that are there."""
        error = new_error()
        check(lib.fgi_pd_refit(self._handle, error), error)

    def loss(self, first: int, last: int) -> float:
        """Sum of the losses of some rows, by exact searches."""
        out, error = ffi.new("double *"), new_error()
        check(lib.fgi_pd_losses(self._handle, first, last, out, error), error)
        return float(out[0])

    @property
    def info(self) -> Any:
        """Sums and counters of this moment (fgi_pd_info)."""
        lib.fgi_pd_get_info(self._handle, self._info)
        return self._info

    def weights(self) -> Lines:
        """By feature: labels and values."""
        nnz = int(self.info.weights)
        begin, label = np.zeros(self._data.rows.width + 1, np.int64), np.zeros(nnz, np.int32)
        value = np.zeros(nnz, np.float32)
        lib.fgi_pd_weights(self._handle, pointer(begin), pointer(label), pointer(value))
        return Lines(begin, label, value, self._data.labels.width)

    def export(self) -> dict[str, Any]:
        combined = ffi.new("int64_t *")
        n = int(lib.fgi_pd_export_size(self._handle, combined))
        rows, features = self._data.rows.n, self._data.rows.width
        saved: dict[str, Any] = {
            "row_begin": np.zeros(rows + 1, np.int64), "labels": np.zeros(n, np.int32), "alpha": np.zeros(n),
            "begin": np.zeros(features + 1, np.int64), "combined_label": np.zeros(combined[0], np.int32),
            "combined_value": np.zeros(combined[0]), "gaps": np.zeros(rows),
        }  # fmt: skip
        lib.fgi_pd_export(self._handle, *map(pointer, saved.values()))
        info = self.info
        saved["counters"] = np.array([info.rng, info.searches, info.touched], np.uint64)
        return saved

    def restore(self, saved: dict[str, Any]) -> None:
        """Continues exactly where :meth:`export` was called; DataError if that was on other data."""
        names = ("row_begin", "labels", "alpha", "begin", "combined_label", "combined_value", "gaps")
        kinds = (np.int64, np.int32, np.float64, np.int64, np.int32, np.float64, np.float64)
        arrays = [np.ascontiguousarray(saved[name], kind) for name, kind in zip(names, kinds, strict=True)]
        rows, features = self._data.rows.n, self._data.rows.width
        row_begin, labels, alpha, begin, label, value, gaps = arrays
        fits = len(row_begin) == rows + 1 and len(begin) == features + 1 and len(gaps) == rows
        if not (fits and len(labels) == len(alpha) == row_begin[-1] and len(label) == len(value) == begin[-1]):
            raise DataError("the saved state fits other data")
        for a in (row_begin, begin):
            if a[0] != 0 or np.any(np.diff(a) < 0):
                raise DataError("the saved state is damaged")
        info, error = ffi.new("fgi_pd_info *"), new_error()
        info.rng, info.searches, info.touched = (int(c) for c in saved["counters"])
        check(lib.fgi_pd_import(self._handle, *map(pointer, arrays), info, error), error, bad_argument=DataError)


def project(up: NDArray[np.float64], down: NDArray[np.float64], size: float) -> tuple[Any, Any]:
    """The projection of (up, down) onto non-negative values with equal sums of at most `size`."""
    p, q, error = np.array(up, np.float64), np.array(down, np.float64), new_error()
    check(lib.fgi_pd_project(pointer(p), len(p), pointer(q), len(q), size, error), error)
    return p, q
