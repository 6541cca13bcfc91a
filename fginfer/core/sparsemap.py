"""LP-SparseMAP in the core: one structure, any number of problems, from any number of threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.errors import ModelError

Reals = NDArray[np.float64]


@dataclass
class SparseRun:
    """Where a problem stands: see fginfer_sparsemap.h. A new one begins from scratch."""

    rho: float = 0.0
    iterations: int = 0
    converged: bool = False
    polished: bool = False
    residual: float = np.inf
    value: float = -np.inf


class SparseStructure:
    """Label counts and scopes; problems are arrays with a number for each label, state or multiplier."""

    def __init__(self, cards: NDArray[np.int32], begin: NDArray[np.int64], scopes: NDArray[np.int32]) -> None:
        out, error = ffi.new("fgi_sparse **"), new_error()
        sizes = len(cards), pointer(cards), len(begin) - 1
        check(lib.fgi_sparse_create(*sizes, pointer(begin), pointer(scopes), out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_sparse_free)
        self.n_labels = int(lib.fgi_sparse_labels(self._handle))
        self.n_states = int(lib.fgi_sparse_states(self._handle))
        self.n_multipliers = int(lib.fgi_sparse_multipliers(self._handle))

    def solve(
        self,
        unary: Reals,
        table: Reals,
        tolerance: float,
        most: int,
        marginals: Reals,
        states: Reals,
        multipliers: Reals,
        run: SparseRun,
    ) -> None:
        """At most so many iterations from the states and multipliers given, which are changed, as `run` is."""
        error, info = new_error(), ffi.new("fgi_sparse_info *")
        info.rho = run.rho
        given = pointer(unary), pointer(table), tolerance, most
        out = pointer(marginals), pointer(states), pointer(multipliers)
        check(lib.fgi_sparse_solve(self._handle, *given, *out, info, error), error, bad_argument=ModelError)
        run.rho, run.iterations = float(info.rho), run.iterations + int(info.iterations)
        run.converged, run.polished = bool(info.converged), bool(info.polished)
        run.residual, run.value = max(float(info.primal), float(info.dual)), float(info.value)

    def adjoint(self, marginals: Reals, states: Reals, gradient: Reals, d_unary: Reals, d_table: Reals) -> None:
        """The derivative of gradient.marginals, written to d_unary and d_table."""
        error = new_error()
        given = pointer(marginals), pointer(states), pointer(gradient)
        check(lib.fgi_sparse_adjoint(self._handle, *given, pointer(d_unary), pointer(d_table), error), error)
