"""Handles on the oracles of the core (csrc/include/fginfer_oracle.h): sources, and the threads that answer.

Queries are arrays with the fields of the C structs, pointers included, so that a batch is built without a Python loop.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError

_KINDS = {"int32_t": "i4", "int64_t": "i8", "double": "f8"}


def _dtype(name: str) -> np.dtype[Any]:
    """The layout of a C struct; pointers are unsigned integers."""
    fields = ffi.typeof(name).fields
    formats = [_KINDS.get(field.type.cname, "u8") for _, field in fields]
    return np.dtype(
        {
            "names": [name for name, _ in fields],
            "formats": formats,
            "offsets": [field.offset for _, field in fields],
            "itemsize": ffi.sizeof(name),
        }
    )


MESSAGE, QUERY, FEATURES, ANSWER = map(_dtype, ("fgi_message", "fgi_oracle_query", "fgi_features", "fgi_argmax"))

BY_SIZE, BY_SCAN, BY_SEARCH = int(lib.FGI_BY_SIZE), int(lib.FGI_BY_SCAN), int(lib.FGI_BY_SEARCH)


def address(array: NDArray[Any]) -> int:
    """Where an array begins; the caller keeps it alive."""
    return int(array.ctypes.data)


class OracleHandle:
    """What answers questions (fgi_oracle): threads with their working memory and counters; one call at a time."""

    def __init__(self, threads: int = 1) -> None:
        out, error = ffi.new("fgi_oracle **"), new_error()
        check(lib.fgi_oracle_create(threads, out, error), error)
        self._handle, self._lock = ffi.gc(out[0], lib.fgi_oracle_free), Lock()

    def ask(self, queries: NDArray[Any], answers: NDArray[Any]) -> None:
        error = new_error()
        given = ffi.cast("const fgi_oracle_query *", address(queries))
        with self._lock:
            rc = lib.fgi_oracle_ask(
                self._handle, given, len(queries), ffi.cast("fgi_argmax *", address(answers)), error
            )
        check(rc, error, bad_argument=ModelError)

    def ask_marginals(self, queries: NDArray[Any], variables: NDArray[np.int32], out: NDArray[np.float64]) -> None:
        error = new_error()
        given = ffi.cast("const fgi_oracle_query *", address(queries))
        with self._lock:
            rc = lib.fgi_oracle_ask_marginals(
                self._handle, given, pointer(variables), len(queries), pointer(out), error
            )
        check(rc, error, bad_argument=ModelError)

    def work(self) -> dict[str, int]:
        """calls, scans, touched, products, unproven."""
        out = ffi.new("fgi_oracle_work *")
        lib.fgi_oracle_get_work(self._handle, out)
        return {name: int(getattr(out, name)) for name, _ in ffi.typeof("fgi_oracle_work").fields}


class ModelSource:
    """The factors of one snapshot of a model."""

    def __init__(self, model: Any) -> None:
        out, error = ffi.new("fgi_source **"), new_error()
        check(lib.fgi_model_source_create(model, out, error), error)
        self._model, self._handle = model, ffi.gc(out[0], lib.fgi_model_source_free)
        self.source = int(ffi.cast("uintptr_t", out[0]))


def whole_numbers(name: str, given: Any, dtype: Any = np.int32) -> NDArray[Any]:
    """Labels, states and the like as they are passed on: nothing is rounded, nothing wraps around."""
    array = np.asarray(given)
    if array.dtype == dtype or array.size == 0:
        return array.astype(dtype, copy=False)
    if array.dtype.kind not in "iu":
        raise ModelError(f"{name} must be whole numbers, not {array.dtype}")
    limits = np.iinfo(dtype)
    if array.min() < limits.min or array.max() > limits.max:
        raise ModelError(f"{name} must be between {limits.min} and {limits.max}")
    return array.astype(dtype)


def _pairs(rows: Any, cols: Any, values: Any) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    arrays = (
        np.atleast_1d(whole_numbers("rows", rows)),
        whole_numbers("columns", cols),
        np.asarray(values, np.float64),
    )
    try:
        r, c, v = (np.ascontiguousarray(a) for a in np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ModelError(f"rows, columns and values must be as many of each: shapes {shapes}") from None
    if r.ndim != 1:
        raise ModelError("rows, columns and values must be flat")
    return r, c, v


class Updatable:
    """A pairwise table that changes."""

    def __init__(self, rows: int, cols: int, values: NDArray[np.float64] | None, path: int = BY_SIZE) -> None:
        out, error = ffi.new("fgi_updatable **"), new_error()
        check(lib.fgi_updatable_create(rows, cols, path, pointer(values), out, error), error, bad_argument=ModelError)
        self._handle = ffi.gc(out[0], lib.fgi_updatable_free)
        self.source = int(ffi.cast("uintptr_t", lib.fgi_updatable_source(self._handle)))

    def update(self, add: bool, rows: Any, cols: Any, values: Any) -> None:
        r, c, v = _pairs(rows, cols, values)
        function, error = lib.fgi_updatable_add if add else lib.fgi_updatable_set, new_error()
        check(function(self._handle, len(r), pointer(r), pointer(c), pointer(v), error), error, bad_argument=ModelError)

    def scale(self, factor: float) -> None:
        error = new_error()
        check(lib.fgi_updatable_scale(self._handle, factor, error), error, bad_argument=ModelError)

    def get(self, row: int, col: int) -> float:
        return float(lib.fgi_updatable_get(self._handle, row, col))

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        n = int(lib.fgi_updatable_entries(self._handle, 0, ffi.NULL, ffi.NULL, ffi.NULL))
        r, c, v = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n)
        lib.fgi_updatable_entries(self._handle, n, pointer(r), pointer(c), pointer(v))
        return r, c, v

    def memory(self) -> int:
        return int(lib.fgi_updatable_memory(self._handle))


class RankingHandle:
    """A vector in descending order that changes."""

    def __init__(self, values: NDArray[np.float64], floor: float) -> None:
        out, error = ffi.new("fgi_ranking **"), new_error()
        check(lib.fgi_ranking_create(len(values), pointer(values), floor, out, error), error, bad_argument=ModelError)
        self._handle = ffi.gc(out[0], lib.fgi_ranking_free)
        self.source = int(ffi.cast("uintptr_t", lib.fgi_ranking_source(self._handle)))

    def top(self) -> tuple[int, float] | None:
        value = ffi.new("double *")
        item = int(lib.fgi_ranking_top(self._handle, value))
        return None if item < 0 else (item, float(value[0]))

    def take(self, item: int) -> bool:
        return bool(lib.fgi_ranking_take(self._handle, item))

    def set(self, item: int, value: float) -> None:
        error = new_error()
        check(lib.fgi_ranking_set(self._handle, item, value, error), error, bad_argument=ModelError)

    def get(self, item: int) -> float:
        return float(lib.fgi_ranking_get(self._handle, item))


class Products:
    """Labels scored by inner products: dense weights (borrowed, by_feature or by label) or sparse ones."""

    def __init__(
        self, n_labels: int, n_features: int, dense: NDArray[np.float64] | None = None, by_feature: bool = False
    ) -> None:
        out, error = ffi.new("fgi_products **"), new_error()
        if dense is None:
            rc = lib.fgi_products_create_sparse(n_labels, n_features, out, error)
        else:
            layout = lib.FGI_ROWS_BY_FEATURE if by_feature else lib.FGI_ROWS_BY_LABEL
            rc = lib.fgi_products_create_dense(n_labels, n_features, pointer(dense), layout, out, error)
        check(rc, error, bad_argument=ModelError)
        self._dense, self._handle = dense, ffi.gc(out[0], lib.fgi_products_free)
        self.source = int(ffi.cast("uintptr_t", lib.fgi_products_source(self._handle)))

    def update(self, add: bool, labels: Any, features: Any, values: Any) -> None:
        y, f, v = _pairs(labels, features, values)
        function, error = lib.fgi_products_add if add else lib.fgi_products_set, new_error()
        check(function(self._handle, len(y), pointer(y), pointer(f), pointer(v), error), error, bad_argument=ModelError)

    def scale(self, factor: float) -> None:
        error = new_error()
        check(lib.fgi_products_scale(self._handle, factor, error), error, bad_argument=ModelError)

    def index(self, clusters: int, probes: int, threads: int, seed: int) -> None:
        settings, error = ffi.new("fgi_search_settings *"), new_error()
        lib.fgi_search_defaults(settings)
        settings.clusters, settings.threads, settings.seed = clusters, threads, seed
        check(lib.fgi_products_index(self._handle, settings, probes, error), error)

    def get(self, label: int, feature: int) -> float:
        return float(lib.fgi_products_get(self._handle, label, feature))

    def nonzeros(self) -> int:
        return int(lib.fgi_products_nonzeros(self._handle))

    def memory(self) -> int:
        return int(lib.fgi_products_memory(self._handle))
