"""Presolve: an equivalent smaller model, and the way back from its labelings to those of the original."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


class Reduction(IntFlag):
    """What presolve may do. Each keeps at least one optimal labeling; any of them may be combined."""

    FIX = 1  # variables with one label left are put into their factors
    PROPAGATE = 2  # labels without a finite state in some factor are removed
    DOMINATE = 4  # dead-end elimination, simple and Goldstein's
    MERGE = 8  # factors over the same variables, or over a part of another's, are added up
    SPLIT = 16  # variables on which a factor depends only by a sum are taken out of it
    LEAVES = 32  # variables of at most one factor are maximised out
    CHAINS = 64  # and variables of more factors, where the new table is small
    ROOF = 128  # persistent labels of binary pairwise models, from roof duality
    SUBSTITUTE = 256  # variables whose label is a function of another's are written as that
    ALL = 511


@dataclass(frozen=True)
class PresolveStatistics:
    """What presolve removed, and what is left."""

    infeasible: bool
    complete: bool
    variables: int
    factors: int
    labels: int
    labels_propagated: int
    labels_dominated: int
    labels_persistent: int
    variables_fixed: int
    leaves: int
    chains: int
    substituted: int
    factors_merged: int
    factors_split: int
    roof_bound: float
    penalties: int
    error: float
    work: float
    seconds: float


class Presolved:
    """A reduced model (`model`), its statistics, and `expand` from its labelings to those of the original model."""

    def __init__(self, handle: Any, n_original: int) -> None:
        self._handle = handle
        self._n_original = n_original
        info = ffi.new("fgi_presolve_info *")
        lib.fgi_presolve_info_get(handle, info)
        fields: dict[str, Any] = {name: getattr(info, name) for name in PresolveStatistics.__dataclass_fields__}
        fields["infeasible"], fields["complete"] = bool(info.infeasible), bool(info.complete)
        self.statistics = PresolveStatistics(**fields)
        # A snapshot: it may outlive this object.
        self.model = Model(lib.fgi_model_snapshot(lib.fgi_presolve_model(handle)))

    @property
    def infeasible(self) -> bool:
        """Proven: no labeling has a finite score."""
        return self.statistics.infeasible

    def expand(self, labels: ArrayLike) -> NDArray[np.int32]:
        """Labels of the original model from labels of the reduced one; the score stays the same, up to rounding."""
        reduced = np.ascontiguousarray(labels, np.int32)
        if reduced.shape != (self.model.n_variables,):
            raise ValueError(f"the reduced model needs {self.model.n_variables} labels")
        full, error = np.zeros(self._n_original, np.int32), new_error()
        check(lib.fgi_presolve_expand(self._handle, pointer(reduced), pointer(full), error), error)
        return full

    def restrict(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the reduced model near one of the original: a start for searches, not of the same score."""
        full = np.ascontiguousarray(labels, np.int32)
        if full.shape != (self._n_original,):
            raise ValueError(f"the original model needs {self._n_original} labels")
        reduced = np.zeros(self.model.n_variables, np.int32)
        lib.fgi_presolve_restrict(self._handle, pointer(full), pointer(reduced))
        return reduced

    def log_line(self) -> str:
        """One line that says what was removed and what is left."""
        s = self.statistics
        if s.infeasible:
            return f"presolve: infeasible, proven in {s.seconds:.3f}s"
        parts = [
            (s.penalties, "penalties made hard"),
            (s.labels_propagated, "labels forbidden"),
            (s.labels_dominated, "labels dominated"),
            (s.labels_persistent, "labels by roof duality"),
            (s.variables_fixed, "variables fixed"),
            (s.leaves, "leaves"),
            (s.chains, "small eliminations"),
            (s.substituted, "functions of others"),
            (s.factors_merged, "factors merged"),
            (s.factors_split, "factors split"),
        ]
        removed = ", ".join(f"{n} {what}" for n, what in parts if n) or "nothing to remove"
        end = "" if s.complete else ", cut short"
        return f"presolve: {removed}{end}; {s.variables} variables, {s.factors} factors left · {s.seconds:.3f}s"


def presolve(
    model: Model,
    reductions: Reduction = Reduction.ALL,
    *,
    work: float = 0.0,
    seconds: float | None = None,
    table_limit: int = 0,
    cancelled: NDArray[np.int32] | None = None,
    least: float = -inf,
) -> Presolved:
    """Reduces a model as far as the limits allow; the result is valid wherever it stops.

    `work` counts steps of about one table entry (0: a few passes over the model), `table_limit` is the largest table
    that the elimination of inner variables may make. `cancelled` holds one number: once another thread makes
    it other than 0 the call ends soon. Scores with which no labeling reaches `least`, the score of a
    labeling in hand or a cutoff, are forbidden: penalties that cannot pay become hard constraints.
    """
    options = ffi.new("fgi_presolve_options *")
    options.reductions = int(reductions)
    options.work = work
    options.seconds = -1.0 if seconds is None else max(0.0, seconds)
    options.table_limit = table_limit
    options.cancelled = pointer(cancelled)
    options.least = least
    out, error = ffi.new("fgi_presolve **"), new_error()
    check(lib.fgi_presolve_create(model.handle, options, out, error), error)
    return Presolved(ffi.gc(out[0], lib.fgi_presolve_free), model.n_variables)
