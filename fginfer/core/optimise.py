"""Optimiser: l1-regularised minimisation of an expensive smooth loss (csrc/include/fginfer_optimise.h).

The core asks for values and gradients, the caller gives them; :func:`minimise` is the loop for functions in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.door import borrowed, check, ffi, lib, new_error, pointer
from fginfer.errors import DataError, SettingsError

Reals = NDArray[np.float64]
METHODS = {"proxqn": lib.FGI_PROXQN, "owlqn": lib.FGI_OWLQN, "proxgrad": lib.FGI_PROXGRAD, "bcd": lib.FGI_BCD}
_STATUS = {lib.FGI_RUNNING: "running", lib.FGI_OPTIMAL: "converged", lib.FGI_CONVERGED: "stalled"}


@dataclass(frozen=True)
class Question:
    """What the optimiser needs next: the loss at `w` (`value`), which is zero outside of `where` (None: nowhere for
    sure); or its gradient there (`curvature`: second derivatives; `gradient` is the minimum-norm subgradient before
    that) on `where`, to be written into `gradient`. These arrays are the optimiser's memory, good until the answer."""

    value: bool
    w: Reals
    where: NDArray[np.int64] | None = None
    gradient: Reals | None = None
    curvature: bool = False


@dataclass(frozen=True)
class OptimiserInfo:
    """Where an optimiser stands. status: running, converged (`tol` reached), stalled (no step lowers the objective);
    violation: the largest entry of the minimum-norm subgradient seen last, over all coordinates if `full`."""

    status: str
    full: bool
    iterations: int
    epochs: int
    values: int
    gradients: int
    coordinates: int
    working_set: int
    nonzeros: int
    objective: float
    loss: float
    violation: float
    first_violation: float
    step: float


class Optimiser:
    """Minimises l1 |w|_1 + l2/2 |w|^2 + loss(w), by questions and answers.

    method : "proxqn" (few gradients on all coordinates, sparse iterates), "owlqn" (with l1=0: L-BFGS), "proxgrad",
        "bcd" (blockwise coordinate descent, a baseline).
    tol : ends when the largest violation of optimality is this fraction of the first one (and, with proxqn, ten more
        steps promise less than this fraction of the objective).
    curvature : also asks for (estimates of) second derivatives, once an epoch; their roots begin the model (proxqn).
    forget : clears the memory of the model whenever all coordinates come back (proxqn).
    samples : terms of the loss, about; the more there are, the sooner a coordinate at zero is left alone (proxqn).

    >>> import numpy as np
    >>> o = Optimiser(3, l1=1.0)
    >>> while (q := o.ask()) is not None:  # loss(w) = |w - (3, -2, 0.5)|^2 / 2
    ...     rest = q.w - np.array([3.0, -2.0, 0.5])
    ...     if not q.value:
    ...         q.gradient[:] = rest if q.where is None else rest[q.where]
    ...     o.answer(rest @ rest / 2)
    >>> [round(float(x), 6) for x in o.weights()], o.info.status
    ([2.0, -1.0, 0.0], 'converged')
    """

    def __init__(
        self,
        dimension: int,
        l1: float,
        l2: float = 0.0,
        *,
        method: str = "proxqn",
        tol: float = 1e-6,
        memory: int = 10,
        max_inner: int = 10,
        shrink: bool = True,
        curvature: bool = False,
        forget: bool = False,
        samples: float = 1.0,
        seed: int = 0,
        start: ArrayLike | None = None,
    ) -> None:
        if method not in METHODS:
            raise SettingsError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
        s = ffi.new("fgi_optimise_settings *")
        s.method, s.memory, s.max_inner, s.shrink = METHODS[method], memory, max_inner, shrink
        s.curvature, s.forget = curvature, forget
        s.l1, s.l2, s.tol, s.samples, s.seed = l1, l2, tol, samples, seed
        begin = None if start is None else np.ascontiguousarray(start, np.float64)
        if begin is not None and begin.shape != (dimension,):
            raise DataError(f"the start has the shape {begin.shape}, there are {dimension} coordinates")
        out, error = ffi.new("fgi_optimiser **"), new_error()
        check(lib.fgi_optimiser_create(dimension, s, pointer(begin), out, error), error)
        self.dimension, self.method = dimension, method
        self._handle = ffi.gc(out[0], lib.fgi_optimiser_free)
        self._request = ffi.new("fgi_request *")

    @property
    def request(self) -> Any:
        """The question as the core puts it (fgi_request), for losses that are computed in C."""
        lib.fgi_optimiser_ask(self._handle, self._request)
        return self._request

    def ask(self) -> Question | None:
        """The present question; None when it is over."""
        q = self.request
        if q.ask == lib.FGI_ASK_NOTHING:
            return None
        w = borrowed(self._handle, q.w, self.dimension, np.float64)
        if q.ask == lib.FGI_ASK_VALUE:
            return Question(True, w, self._where(q))
        room = np.frombuffer(ffi.buffer(q.gradient, q.n * 8), np.float64) if q.n else np.zeros(0)
        return Question(False, w, self._where(q), room, q.ask == lib.FGI_ASK_CURVATURE)

    def _where(self, q: Any) -> NDArray[np.int64] | None:
        return None if q.set == ffi.NULL else borrowed(self._handle, q.set, q.n, np.int64)

    def answer(self, value: float = 0.0) -> None:
        """Goes on: with the loss asked for, or after the gradient has been written."""
        error = new_error()
        check(lib.fgi_optimiser_answer(self._handle, value, error), error)

    @property
    def info(self) -> OptimiserInfo:
        info = ffi.new("fgi_optimise_info *")
        lib.fgi_optimiser_get_info(self._handle, info)
        names = [name for name in OptimiserInfo.__dataclass_fields__ if name not in ("status", "full")]
        return OptimiserInfo(_STATUS[info.status], bool(info.full), *(getattr(info, name) for name in names))

    def weights(self) -> Reals:
        """The best point so far, copied."""
        w = np.zeros(self.dimension)
        lib.fgi_optimiser_weights(self._handle, pointer(w))
        return w

    # ---- saving

    def export(self) -> dict[str, NDArray[Any]]:
        """The whole state, as arrays; an optimiser with the same settings goes on from it by :meth:`restore`."""
        n, m = ffi.new("int64_t *"), ffi.new("int64_t *")
        lib.fgi_optimiser_export_size(self._handle, n, m)
        reals, ints = np.zeros(n[0]), np.zeros(m[0], np.int64)
        lib.fgi_optimiser_export(self._handle, pointer(reals), pointer(ints))
        return {"reals": reals, "ints": ints}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        reals, ints = np.ascontiguousarray(saved["reals"]), np.ascontiguousarray(saved["ints"])
        if reals.dtype != np.float64 or ints.dtype != np.int64 or reals.ndim != 1 or ints.ndim != 1:
            raise DataError("the saved state is not one of an optimiser")
        error = new_error()
        check(
            lib.fgi_optimiser_import(self._handle, pointer(reals), len(reals), pointer(ints), len(ints), error), error
        )


def minimise(
    value: Callable[[Reals], float],
    gradient: Callable[[Reals, NDArray[np.int64] | None], ArrayLike],
    dimension: int,
    l1: float,
    *,
    max_iter: float = inf,
    callback: Callable[[Optimiser], Any] | None = None,
    curvature: Callable[[Reals, NDArray[np.int64] | None], ArrayLike] | None = None,
    **settings: Any,
) -> tuple[Reals, OptimiserInfo]:
    """(weights, info): runs an :class:`Optimiser` on functions. `gradient(w, where)` gives the derivatives at the point
    where `value` was called last, on the coordinates `where` (None: all), `curvature` (proxqn may have it) estimates of
    the second derivatives. `callback` after every step; a true answer ends the run."""
    optimiser = Optimiser(dimension, l1, curvature=curvature is not None, **settings)
    steps = 0
    while (q := optimiser.ask()) is not None:
        if q.value:
            optimiser.answer(float(value(q.w)))
        else:
            assert q.gradient is not None
            derivatives = curvature if q.curvature and curvature is not None else gradient
            q.gradient[:] = derivatives(q.w, q.where)
            optimiser.answer()
        if (done := optimiser.info.iterations) > steps:
            steps = done
            if steps >= max_iter or (callback is not None and callback(optimiser)):
                break
    return optimiser.weights(), optimiser.info
