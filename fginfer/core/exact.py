"""Exact methods: bucket elimination under a memory limit, connected components, roof duality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


@dataclass(frozen=True)
class EliminationEstimate:
    """What an elimination would cost. `width` is None and the rest infinite where no order fits the limits."""

    width: int | None
    memory: float
    work: float


class Elimination:
    """Bucket elimination of a model.

    Creating it only looks for an order and estimates the cost; `run` refuses with SolverError, before it allocates
    anything, where the estimate exceeds `memory` bytes. Interrupted runs are continued by calling `run` again.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2, 3])
    >>> factor = graph.add_factor([0, 1], [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    >>> e = Elimination(graph.model)
    >>> e.run(), e.value, e.labels().tolist()
    (True, 2.0, [1, 2])
    """

    def __init__(self, model: Model, memory: float = 1 << 30, effort: float = 0.0) -> None:
        out, error = ffi.new("fgi_eliminate **"), new_error()
        check(lib.fgi_eliminate_create(model.handle, memory, effort, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_eliminate_free)
        self._info = ffi.new("fgi_eliminate_info *")
        self._n = model.n_variables
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
        """The optimum, up to rounding (-inf: infeasible); None until it is known."""
        return None if self._info.status == lib.FGI_RUNNING else float(self._info.value)

    @property
    def bound(self) -> float | None:
        """No labeling has a higher score, rounding included; None until it is known."""
        return None if self.value is None else self.value + float(self._info.error)

    def order(self) -> NDArray[np.int32] | None:
        """The variables in the order in which they are eliminated; None: no order fits."""
        order = np.zeros(self._n, np.int32)
        return order if lib.fgi_eliminate_order(self._handle, pointer(order)) else None

    def labels(self) -> NDArray[np.int32] | None:
        """An optimal labeling; None until there is one."""
        labels = np.zeros(self._n, np.int32)
        return labels if lib.fgi_eliminate_labels(self._handle, pointer(labels)) else None


class Component:
    """A connected part of a model: its model, made on first use, and the variables of the whole that it is about."""

    def __init__(self, split_handle: Any, which: int) -> None:
        self._split, self._which = split_handle, which
        self._model: Model | None = None
        self.variables: NDArray[np.int32] = np.zeros(lib.fgi_split_size(split_handle, which), np.int32)
        lib.fgi_split_vars(split_handle, which, pointer(self.variables))

    @property
    def model(self) -> Model:
        """The model of this part; its constant is 0."""
        if self._model is None:
            out, error = ffi.new("fgi_model **"), new_error()
            check(lib.fgi_split_model(self._split, self._which, out, error), error)
            self._model = Model(out[0])
        return self._model

    def score(self, labels: ArrayLike) -> float:
        """The score of labels for `variables`; the constant of the whole model is not in it."""
        return self.model.score(np.ascontiguousarray(labels, np.int32))


def components(model: Model) -> tuple[NDArray[np.int32], int]:
    """The component number of every variable, and how many components there are."""
    number = np.zeros(model.n_variables, np.int32)
    return number, int(lib.fgi_components(model.handle, pointer(number)))


def split(model: Model) -> list[Component]:
    """The connected components as models of their own; scores add up, up to the model's constant."""
    out, error = ffi.new("fgi_split **"), new_error()
    check(lib.fgi_split_create(model.handle, out, error), error)
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


def roof_duality(model: Model, steps: float = 0.0) -> Roof:
    """One maximum flow on a binary pairwise model with finite scores; SolverError for other models."""
    labels = np.zeros(model.n_variables, np.int32)
    bound, exact, error = ffi.new("double *"), ffi.new("int32_t *"), new_error()
    check(lib.fgi_roof(model.handle, steps, pointer(labels), bound, exact, error), error)
    return Roof(labels, float(bound[0]), bool(exact[0]))
