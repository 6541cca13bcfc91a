"""CrfLoss: the negative log-likelihood of a random field and its gradients (csrc/include/fginfer_learn_crf.h)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.learn import filled
from fginfer.core.optimise import Optimiser
from fginfer.errors import DataError

Reals = NDArray[np.float64]


class CrfLoss:
    """`data` has the fields of an fgi_learn_data. Not thread-safe.

    parent : of the inner nodes of a taxonomy and then of the labels, -1 for none (None: no taxonomy).
    weight : of the examples. pseudo : pseudo-likelihood. memory : bytes for marginals that wait for their gradient.
    prune : mass of the answers that an example's sums may leave out; `info` bounds what they have.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        threads: int = 1,
        parent: NDArray[np.int32] | None = None,
        weight: Reals | None = None,
        pseudo: bool = False,
        memory: int = 1 << 30,
        prune: float = 0.0,
    ) -> None:
        self._spec, self._keep = filled("fgi_learn_data", data)
        spec = self._spec
        self.n_examples, self.threads = int(spec.n_examples), threads
        s = ffi.new("fgi_crf_settings *")
        s.threads, s.pseudo, s.memory, s.prune = threads, pseudo, memory, prune
        if parent is not None:
            s.n_inner, s.parent = len(parent) - spec.n_labels, pointer(parent)
        if weight is not None and weight.shape != (self.n_examples,):
            raise DataError(f"there are {self.n_examples} examples, the weights have the shape {weight.shape}")
        s.weight = pointer(weight)
        out, error = ffi.new("fgi_crf **"), new_error()
        check(lib.fgi_crf_create(spec, s, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_crf_free)
        self.dimension = int(lib.fgi_crf_dimension(self._handle))
        self.cells = int(lib.fgi_crf_cells(self._handle))
        self._loss = ffi.new("double *")

    @property
    def info(self) -> Any:
        """An fgi_crf_info: passes, touched, derivatives, memory, kept, summed, lost, slack."""
        info = ffi.new("fgi_crf_info *")
        lib.fgi_crf_get_info(self._handle, info)
        return info

    def _weights(self, w: Any) -> Reals:
        vector: Reals = np.ascontiguousarray(w, np.float64)
        if vector.shape != (self.dimension,):
            raise DataError(f"there are {self.dimension} weights, the vector has the shape {vector.shape}")
        return vector

    def value(self, w: Any, where: NDArray[np.int64] | None = None) -> float:
        """where: w is zero elsewhere, and the gradient is asked for there next, as a rule."""
        w, where, error = self._weights(w), self._coordinates(where), new_error()
        n = 0 if where is None else len(where)
        check(lib.fgi_crf_value(self._handle, pointer(w), pointer(where), n, self._loss, error), error)
        return float(self._loss[0])

    def _coordinates(self, where: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        if where is None:
            return None
        where = np.ascontiguousarray(where, np.int64)
        if len(where) and (where[0] < 0 or where[-1] >= self.dimension or (np.diff(where) <= 0).any()):
            raise DataError("coordinates must ascend, within the weights")
        return where

    def gradient(self, w: Any, where: NDArray[np.int64] | None = None) -> Reals:
        """At the w of the last :meth:`value`."""
        w, where, error = self._weights(w), self._coordinates(where), new_error()
        out = np.zeros(self.dimension if where is None else len(where))
        check(lib.fgi_crf_gradient(self._handle, pointer(w), pointer(where), len(out), pointer(out), error), error)
        return out

    def set_deadline(self, deadline: float) -> None:
        """Passes end there, in their middle (:attr:`late`); what they were to find has to be asked for again."""
        lib.fgi_crf_set_deadline(self._handle, deadline)

    @property
    def late(self) -> bool:
        """Whether the deadline has come in the middle of a pass."""
        return bool(lib.fgi_crf_is_late(self._handle))

    def curvature(self, w: Any, where: NDArray[np.int64], pulls: Reals) -> Reals:
        """Estimates of second derivatives, at the w of the last :meth:`value`; `pulls`: what the first derivatives are
        to change by."""
        w, error = self._weights(w), new_error()
        out = np.array(pulls, np.float64)
        check(lib.fgi_crf_curvature(self._handle, pointer(w), pointer(where), len(out), pointer(out), error), error)
        return out

    def serve(self, optimiser: Optimiser) -> bool:
        """Answers one question of an optimiser; False when there is none, or when it came too late (:attr:`late`)."""
        q, error = optimiser.request, new_error()
        if q.ask == lib.FGI_ASK_NOTHING:
            return False
        if q.ask == lib.FGI_ASK_VALUE:
            check(lib.fgi_crf_value(self._handle, q.w, q.set, q.n, self._loss, error), error)
            if self.late:
                return False
            optimiser.answer(float(self._loss[0]))
        else:
            call = lib.fgi_crf_gradient if q.ask == lib.FGI_ASK_GRADIENT else lib.fgi_crf_curvature
            check(call(self._handle, q.w, q.set, q.n, q.gradient, error), error)
            if self.late:
                return False
            optimiser.answer()
        return True

    def marginals(self, w: Any, cells: bool = True, edges: int = 0) -> tuple[Reals, Reals, Reals | None, Reals | None]:
        """(log Z of every example, scores of the truths, marginal probabilities of the cells, and, for that many
        `edges` in all, of the pairs of labels on them)."""
        w, error, k = self._weights(w), new_error(), int(self._spec.n_labels)
        log_z, truth = np.zeros(self.n_examples), np.zeros(self.n_examples)
        out = np.zeros(self.cells) if cells else None
        pairs = np.zeros((edges, k, k)) if edges else None
        check(
            lib.fgi_crf_marginals(
                self._handle, pointer(w), pointer(log_z), pointer(truth), pointer(out), pointer(pairs), error
            ),
            error,
        )
        return log_z, truth, out, pairs

    def sgd(
        self, w: Reals, penalty: Reals, due: float, order: NDArray[np.int32], start: int, rate: float, l1: float,
        deadline: float,
    ) -> tuple[int, float]:  # fmt: skip
        """Stochastic steps over order[start:], which change `w` and `penalty` in place; (where it stopped, due)."""
        following, owed, error = ffi.new("int64_t *", start), ffi.new("double *", due), new_error()
        check(
            lib.fgi_crf_sgd(
                self._handle, pointer(self._weights(w)), pointer(self._weights(penalty)), owed, pointer(order),
                len(order), following, rate, l1, deadline, error,
            ),
            error,
        )  # fmt: skip
        return int(following[0]), float(owed[0])


def best_labelings(
    scores: Reals, tables: Reals | None, which: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int32], Reals]:
    """(labels, scores) of the n best labelings of a chain, best first, or of all where there are fewer. scores:
    (tokens, labels), -inf forbids; tables: (any number, labels, labels) or None; which: that of each pair."""
    tokens, k = scores.shape
    n = min(n, k**tokens)
    scores, which = np.ascontiguousarray(scores), np.ascontiguousarray(which, np.int64)
    tables = None if tables is None else np.ascontiguousarray(tables)
    labels, values = np.zeros((n, tokens), np.int32), np.zeros(n)
    found, error = ffi.new("int64_t *"), new_error()
    check(
        lib.fgi_crf_nbest(
            tokens, k, pointer(scores), pointer(tables), pointer(which), n, pointer(labels), pointer(values), found,
            error,
        ),
        error,
    )  # fmt: skip
    return labels[: found[0]], values[: found[0]]
