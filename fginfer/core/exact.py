"""Exact methods: bucket elimination under a memory limit; some variables re-optimised given the others; components."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer


def model_size(model: Any) -> int:
    """Number of variables of a C model."""
    return int(lib.fgi_model_variables(model))


@dataclass(frozen=True)
class EliminationEstimate:
    """What an elimination would cost. `width` is None and the rest infinite where no order fits the limits."""

    width: int | None
    memory: float
    work: float


class Elimination:
    """Bucket elimination of a C model (`FactorGraph.model`).

    Creating it only looks for an order and estimates the cost; `run` refuses with SolverError, before it allocates
    anything, where the estimate exceeds `memory` bytes. Interrupted runs are continued by calling `run` again.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2, 3])
    >>> graph.add_factor([0, 1], [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> e = Elimination(graph.model)
    >>> e.run(), e.value, e.labels().tolist()
    (True, 2.0, [1, 2])
    """

    def __init__(self, model: Any, memory: float = 1 << 30, effort: float = 0.0) -> None:
        out, error = ffi.new("fgi_eliminate **"), new_error()
        check(lib.fgi_eliminate_create(model, memory, effort, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_eliminate_free)
        self._info = ffi.new("fgi_eliminate_info *")
        self._n = model_size(model)
        self._memory = memory
        lib.fgi_eliminate_info_get(self._handle, self._info)

    @property
    def estimate(self) -> EliminationEstimate:
        info = self._info
        return EliminationEstimate(None if info.width < 0 else int(info.width), float(info.memory), float(info.work))

    @property
    def fits(self) -> bool:
        """True if a run would stay within the memory limit."""
        return self.estimate.memory <= self._memory

    def run(self, seconds: float | None = None) -> bool:
        """Works for about `seconds` (None: to the end); True once the optimum, or infeasibility, is known."""
        error = new_error()
        check(
            lib.fgi_eliminate_run(self._handle, -1.0 if seconds is None else max(0.0, seconds), self._info, error),
            error,
        )
        return bool(self._info.status != lib.FGI_RUNNING)

    @property
    def progress(self) -> float:
        """Fraction of the work done."""
        return float(self._info.done)

    @property
    def infeasible(self) -> bool:
        """Proven: no labeling has a finite score."""
        return bool(self._info.status == lib.FGI_INFEASIBLE)

    @property
    def value(self) -> float | None:
        """The optimum (-inf: infeasible); None until it is known."""
        return None if self._info.status == lib.FGI_RUNNING else float(self._info.value)

    def labels(self) -> NDArray[np.int32] | None:
        """An optimal labeling; None until there is one."""
        labels = np.zeros(self._n, np.int32)
        return labels if lib.fgi_eliminate_labels(self._handle, pointer(labels)) else None


class SubsetOptimiser:
    """Re-optimises some variables exactly, given the labels of all others; its memory is reused from call to call."""

    def __init__(self, model: Any) -> None:
        out, error = ffi.new("fgi_subset **"), new_error()
        check(lib.fgi_subset_create(model, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_subset_free)
        self._n = model_size(model)

    def improve(
        self, labels: NDArray[np.int32], subset: ArrayLike, *, max_table: int = 1 << 20, forbidden: float = -inf
    ) -> float | None:
        """Improves `labels` in place and returns the gain in score.

        None, with the labels unchanged, if a table of more than `max_table` entries would be needed. Forbidden entries
        count as `forbidden` each: pass a large negative number to repair an infeasible labeling.
        """
        chosen = np.ascontiguousarray(subset, np.int32)
        if labels.dtype != np.int32 or labels.shape != (self._n,):
            raise ValueError(f"labels must be an int32 array of length {self._n}")
        if (
            chosen.ndim != 1
            or np.unique(chosen).size != chosen.size
            or (chosen.size and not 0 <= chosen.min() <= chosen.max() < self._n)
        ):
            raise ValueError("subset must list different variables")
        gain = ffi.new("double *")
        rc = lib.fgi_eliminate_subset(
            self._handle, pointer(labels), pointer(chosen), chosen.size, max_table, forbidden, gain
        )
        if rc == lib.FGI_UNSUPPORTED:
            return None
        check(rc, new_error())
        return float(gain[0])


class Component:
    """A connected part of a model: its C model, made on first use, and the variables of the whole that it is about."""

    def __init__(self, split_handle: Any, which: int) -> None:
        self._split, self._which = split_handle, which
        self._model: Any = None
        self.variables: NDArray[np.int32] = np.zeros(lib.fgi_split_size(split_handle, which), np.int32)
        lib.fgi_split_vars(split_handle, which, pointer(self.variables))

    @property
    def model(self) -> Any:
        """The C model of this part; its constant is 0."""
        if self._model is None:
            out, error = ffi.new("fgi_model **"), new_error()
            check(lib.fgi_split_model(self._split, self._which, out, error), error)
            self._model = ffi.gc(out[0], lib.fgi_model_free)
        return self._model

    def score(self, labels: ArrayLike) -> float:
        """The score of labels for `variables`; the constant of the whole model is not in it."""
        out, error = ffi.new("double *"), new_error()
        check(lib.fgi_model_score(self.model, pointer(np.ascontiguousarray(labels, np.int32)), out, error), error)
        return float(out[0])


def components(model: Any) -> tuple[NDArray[np.int32], int]:
    """The component number of every variable, and how many components there are."""
    number = np.zeros(model_size(model), np.int32)
    return number, int(lib.fgi_components(model, pointer(number)))


def split(model: Any) -> list[Component]:
    """The connected components as models of their own; scores add up, up to the model's constant."""
    out, error = ffi.new("fgi_split **"), new_error()
    check(lib.fgi_split_create(model, out, error), error)
    handle = ffi.gc(out[0], lib.fgi_split_free)
    return [Component(handle, which) for which in range(lib.fgi_split_count(handle))]


@dataclass(frozen=True)
class Roof:
    """Roof duality: labels (-1: open) that belong to one optimal labeling, and an upper bound on the optimum.

    `exact`: the model is submodular after flipping some labels; then no label is open and the bound is the optimum.
    """

    labels: NDArray[np.int32]
    bound: float
    exact: bool


def roof_duality(model: Any, steps: float = 0.0) -> Roof:
    """One maximum flow on a binary pairwise model with finite scores; SolverError for other models."""
    labels = np.zeros(model_size(model), np.int32)
    bound, exact, error = ffi.new("double *"), ffi.new("int32_t *"), new_error()
    check(lib.fgi_roof(model, steps, pointer(labels), bound, exact, error), error)
    return Roof(labels, float(bound[0]), bool(exact[0]))
