"""SearchHandle: the core's index for maximum inner products, as numpy arrays see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError

Floats = NDArray[np.float32]
Lists = tuple[NDArray[np.int64], NDArray[np.int32]]  # offsets of every query's part, labels
Messages = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]

SCAN, EXACT = -1, 0  # in the place of a number of probes
MOST_PARTS = 8  # parts of an index


@dataclass(frozen=True)
class SearchCounts:
    """What an index has done since it was made; `rows_touched` counts inner products, those with centres too."""

    queries: int
    rows_touched: int
    scanned: int
    rows_set: int
    rows_moved: int


class SearchHandle:
    """fgi_search. Arrays must have the right types and be contiguous along rows; everything else the core checks."""

    def __init__(self, rows: Floats, clusters: int, rounds: int, threads: int, seed: int, parts: int = 1) -> None:
        settings = ffi.new("fgi_search_settings *")
        lib.fgi_search_defaults(settings)
        settings.clusters, settings.rounds, settings.threads, settings.seed = clusters, rounds, threads, seed
        settings.parts = parts
        out, error = ffi.new("fgi_search **"), new_error()
        n, d = rows.shape
        check(lib.fgi_search_create(n, d, _stride(rows), _address(rows), settings, out, error), error)
        self.pointer = ffi.gc(out[0], lib.fgi_search_free)

    def set_rows(self, labels: NDArray[np.int32], rows: Floats) -> None:
        error = new_error()
        rc = lib.fgi_search_set_rows(self.pointer, len(labels), pointer(labels), _stride(rows), _address(rows), error)
        check(rc, error)

    def refresh(self, labels: NDArray[np.int32], everything: Floats) -> None:
        """Reads the listed rows of `everything` again."""
        error, rows = new_error(), everything
        rc = lib.fgi_search_refresh(self.pointer, len(labels), pointer(labels), _stride(rows), _address(rows), error)
        check(rc, error)

    def set_entries(self, labels: NDArray[np.int32], columns: NDArray[np.int32], values: Floats) -> None:
        error, n = new_error(), len(labels)
        rc = lib.fgi_search_set_entries(
            self.pointer, n, pointer(labels), pointer(columns), pointer(values), error
        )  # fmt: skip
        check(rc, error)

    def rebuild(self) -> None:
        error = new_error()
        check(lib.fgi_search_rebuild(self.pointer, error), error)

    def rows(self, labels: NDArray[np.int32], d: int) -> Floats:
        out = np.zeros((len(labels), d), np.float32)
        for row, label in zip(out, labels, strict=True):
            lib.fgi_search_row(self.pointer, int(label), pointer(row))
        return out

    def run(
        self,
        x: Floats,
        want: int,
        probes: int,
        messages: Messages | None,
        excluded: Lists | None,
        candidates: int = 0,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.uint8]]:
        query, error, n = ffi.new("fgi_search_query *"), new_error(), len(x)
        query.candidates = candidates
        query.n, query.stride, query.x, query.want, query.probes = n, _stride(x), _address(x), want, probes
        if messages is not None:
            query.message_begin, query.message_labels = pointer(messages[0]), pointer(messages[1])
            query.message_values = pointer(messages[2])
        if excluded is not None:
            query.excluded_begin, query.excluded_labels = pointer(excluded[0]), pointer(excluded[1])
        if want < 1 or want > self.counts_raw().rows:
            raise ModelError(f"{want} labels are wanted of {self.counts_raw().rows} rows")
        labels, values = np.empty((n, want), np.int32), np.empty((n, want))
        proven = np.empty(n, np.uint8)
        rc = lib.fgi_search_run(self.pointer, query, pointer(labels), pointer(values), pointer(proven), error)
        check(rc, error, bad_argument=ModelError)
        return labels, values, proven

    def run_parts(self, x: Floats, want: int, excluded: Lists | None) -> tuple[NDArray[np.int32], Floats]:
        """(labels, values by part): what is found in some part of the columns."""
        query, error, n = ffi.new("fgi_search_query *"), new_error(), len(x)
        query.n, query.stride, query.x, query.want, query.candidates = n, _stride(x), _address(x), want, want
        if excluded is not None:
            query.excluded_begin, query.excluded_labels = pointer(excluded[0]), pointer(excluded[1])
        parts = lib.fgi_search_parts_of(self.pointer)
        most = max(1, lib.fgi_search_parts_most(parts, want, self.counts_raw().rows))
        labels, values = np.empty((n, most), np.int32), np.zeros((n, most, parts), np.float32)
        check(lib.fgi_search_parts(self.pointer, query, pointer(labels), pointer(values), error), error)
        return labels, values

    def counts_raw(self) -> Any:
        info = ffi.new("fgi_search_info *")
        lib.fgi_search_info_get(self.pointer, info)
        return info

    def counts(self) -> SearchCounts:
        info = self.counts_raw()
        return SearchCounts(info.queries, info.rows_touched, info.scanned, info.rows_set, info.rows_moved)


def _stride(rows: Floats) -> int:
    return rows.strides[0] // 4 if len(rows) > 1 else rows.shape[1]


def _address(rows: Floats) -> Any:
    """A pointer to the first row; rows may be part of wider ones."""
    if rows.dtype != np.float32 or rows.ndim != 2 or (rows.size and rows.shape[1] > 1 and rows.strides[1] != 4):
        raise ValueError("rows must be float32 and contiguous")
    return ffi.cast("float *", rows.ctypes.data)
