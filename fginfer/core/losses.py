"""LossHandle: the core's losses over many labels, for a batch of samples at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import borrowed, check, ffi, lib, new_error, pointer
from fginfer.core.search import Floats, SearchHandle
from fginfer.errors import DataError

LOSSES = {"cross-entropy": lib.FGI_LOSS_ENTROPY, "margin": lib.FGI_LOSS_MARGIN, "triplet": lib.FGI_LOSS_TRIPLET}
METHODS = {
    "exact": lib.FGI_LOSS_EXACT,
    "sampled": lib.FGI_LOSS_SAMPLED,
    "search": lib.FGI_LOSS_SEARCH,
    "decomposed": lib.FGI_LOSS_DECOMPOSED,
}
RESTS = {
    "omit": lib.FGI_REST_OMIT,
    "zero": lib.FGI_REST_ZERO,
    "last": lib.FGI_REST_LAST,
    "moments": lib.FGI_REST_MOMENTS,
}
CLAIMS = {
    lib.FGI_VALUE_EXACT: "exact",
    lib.FGI_VALUE_UPPER: "upper bound",
    lib.FGI_VALUE_LOWER: "lower bound",
    lib.FGI_VALUE_NEITHER: "neither",
}


def loss_settings(**given: Any) -> Any:
    """An fgi_loss_settings with these fields; the others at their defaults."""
    settings = ffi.new("fgi_loss_settings *")
    lib.fgi_loss_defaults(settings)
    for name, value in given.items():
        setattr(settings, name, value)
    return settings


def block_cuts(d: int, blocks: int) -> list[int]:
    """Where the blocks of d columns begin, and the end."""
    out = ffi.new("int32_t[]", blocks + 1)
    lib.fgi_loss_blocks(d, blocks, out)
    return list(out)


def loss_of_scores(
    settings: Any, scores: NDArray[np.float64], positives: NDArray[np.int32], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64]]:
    value, gradient, error = ffi.new("double *"), np.zeros(len(scores)), new_error()
    rc = lib.fgi_loss_of_scores(
        settings, len(scores), pointer(scores), len(positives), pointer(positives), pointer(weights), value,
        pointer(gradient), error,
    )  # fmt: skip
    check(rc, error)
    return float(value[0]), gradient


class LossBatch:
    """fgi_loss_batch, and the arrays that it points to."""

    def __init__(
        self,
        rows: Floats,
        x: Floats,
        begin: NDArray[np.int64],
        positives: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        scores: Floats | None,
        indexes: Sequence[SearchHandle],
        moments: tuple[Floats, Floats] | None = None,
    ) -> None:
        self.struct = ffi.new("fgi_loss_batch *")
        handles = ffi.new("fgi_search *[]", [index.pointer for index in indexes])
        self.keep = (rows, x, begin, positives, weights, scores, indexes, handles, moments)
        b = self.struct
        b.n, b.labels, b.d = len(x), len(rows), rows.shape[1]
        b.rows, b.x, b.scores = pointer(rows), pointer(x), pointer(scores)
        b.positive_begin, b.positives, b.weights = pointer(begin), pointer(positives), pointer(weights)
        b.total, b.square = (pointer(m) for m in moments or (None, None))
        b.indexes = handles if indexes else ffi.NULL


class LossHandle:
    """fgi_losses."""

    def __init__(self, settings: Any) -> None:
        out, error = ffi.new("fgi_losses **"), new_error()
        check(lib.fgi_losses_create(settings, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_losses_free)
        self._n = 0  # samples of the last batch

    def run(self, batch: LossBatch) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """(values, claims)."""
        n, error = batch.struct.n, new_error()
        values, claims = np.zeros(n), np.zeros(n, np.int32)
        rc = lib.fgi_losses_run(self._handle, batch.struct, pointer(values), pointer(claims), error)
        if rc == lib.FGI_BAD_MODEL:
            raise DataError(ffi.string(error.message).decode())
        check(rc, error)
        self._n = n
        return values, claims

    def gradient(self) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
        """(offsets, labels, values) of the last batch, as copies."""
        begin, labels, values = ffi.new("int64_t **"), ffi.new("int32_t **"), ffi.new("float **")
        n = lib.fgi_losses_gradient(self._handle, begin, labels, values)
        size = self._n
        return (
            borrowed(self._handle, begin[0], size + 1, np.int64).copy() if size else np.zeros(1, np.int64),
            borrowed(self._handle, labels[0], n, np.int32).copy(),
            borrowed(self._handle, values[0], n, np.float32).copy(),
        )

    def rest(self) -> NDArray[np.float64]:
        """The gradient of every label that was not looked at, one number a sample."""
        return borrowed(self._handle, lib.fgi_losses_rest(self._handle), self._n, np.float64).copy()

    def touched(self) -> int:
        return int(lib.fgi_losses_touched(self._handle))

    def step(self, batch: LossBatch, rows: Floats, step: float, x_gradient: Floats | None) -> NDArray[np.int32]:
        """Gradient descent on the rows; the labels of those that changed."""
        begin, labels, values = ffi.new("int64_t **"), ffi.new("int32_t **"), ffi.new("float **")
        changed = np.zeros(lib.fgi_losses_gradient(self._handle, begin, labels, values), np.int32)
        n = lib.fgi_losses_step(self._handle, batch.struct, pointer(rows), step, pointer(x_gradient), pointer(changed))
        return changed[:n]
