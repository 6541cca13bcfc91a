"""The atom problem of the core: max over z in {0,1}^N of |F'z|^2, optionally scaled by the number of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp  # type: ignore[import-untyped, unused-ignore]
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import DataError

Bits = NDArray[np.uint8]
Reals = NDArray[np.float64]
_PART = 1 << 26  # entries of F times starts in one call of the core: a second or so, then Ctrl-C is heard


class AtomProblem:
    """A handle on F (dense or sparse, rows x r) in the core; see fginfer_latent.h. From `deadline` on (of the clock)
    searches and sweeps end where they are.

    >>> problem = AtomProblem(np.array([[1.0], [-2.0], [-1.5]]))
    >>> starts = np.array([[0, 1, 0]], np.uint8)
    >>> problem.search(starts).tolist(), starts.tolist()
    ([12.25], [[0, 1, 1]])
    """

    def __init__(
        self, factor: Any, scale: Reals | None = None, threads: int = 1, deadline: float = np.inf
    ) -> None:  # fmt: skip
        begin = cols = None
        if sp.issparse(factor):
            rows = sp.csr_matrix(factor, dtype=np.float64)
            rows.sum_duplicates()
            begin, cols, values = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        else:
            rows = np.ascontiguousarray(factor, np.float64)
            values = rows.ravel()
        if rows.ndim != 2 or 0 in rows.shape:
            raise DataError(f"F must have rows and columns, not the shape {rows.shape}")
        self.n, self.rank = int(rows.shape[0]), int(rows.shape[1])
        if scale is not None and scale.shape != (self.n + 1,):
            raise DataError(f"scale must have {self.n + 1} entries, one for each number of ones")
        out, error = ffi.new("fgi_atom **"), new_error()
        values = np.ascontiguousarray(values, np.float64)
        rc = lib.fgi_atom_create(
            self.n, self.rank, pointer(begin), pointer(cols), pointer(values), pointer(scale), threads, out, error
        )
        check(rc, error)
        self._handle = ffi.gc(out[0], lib.fgi_atom_free)
        lib.fgi_atom_until(self._handle, deadline)
        self._part = max(threads, _PART // (self.n * self.rank))

    def value(self, z: Any) -> float:
        """The objective at one vector of zeros and ones."""
        return float(lib.fgi_atom_value(self._handle, pointer(self._bits(z))))

    def mix_start(self, rank: int, seed: int) -> None:
        error = new_error()
        check(lib.fgi_atom_mix_start(self._handle, rank, seed, error), error)

    def mix_run(self, sweeps: int = 1) -> float:
        """Coordinate ascent on the relaxation; its value, which never falls from call to call."""
        out, error = ffi.new("double *"), new_error()
        check(lib.fgi_atom_mix_run(self._handle, sweeps, out, error), error)
        return float(out[0])

    def mix_dual(self) -> Reals:
        """The N + 1 multipliers of the relaxation, before scaling makes them feasible."""
        y, error = np.zeros(self.n + 1), new_error()
        check(lib.fgi_atom_mix_dual(self._handle, pointer(y), error), error)
        return y

    def mix_round(self, count: int, seed: int) -> Bits:
        """`count` roundings by random hyperplanes, one a row."""
        z, error = np.zeros((count, self.n), np.uint8), new_error()
        check(lib.fgi_atom_mix_round(self._handle, count, seed, pointer(z), error), error)
        return z

    def search(self, starts: Bits, tabu_steps: int = 0, candidates: int = 0, seed: int = 0) -> Reals:
        """Improves the rows of `starts` in place; their values."""
        if starts.dtype != np.uint8 or starts.ndim != 2 or starts.shape[1] != self.n:
            raise DataError(f"starts must be rows of {self.n} zeros and ones of type uint8")
        values, error = np.zeros(len(starts)), new_error()
        for first in range(0, len(starts), self._part):
            part, reached = starts[first : first + self._part], values[first : first + self._part]
            rc = lib.fgi_atom_search(
                self._handle, pointer(part), first, len(part), tabu_steps, candidates, seed, pointer(reached), error
            )
            check(rc, error, bad_argument=DataError)
        return values

    def _bits(self, z: Any) -> Bits:
        bits = np.ascontiguousarray(z, np.uint8)
        if bits.shape != (self.n,) or bits.max() > 1:
            raise DataError(f"z must be a vector of {self.n} zeros and ones")
        return bits
