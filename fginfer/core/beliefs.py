"""Exact sums or maxima over all labelings, and over those with each label, by two passes of elimination."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


class Beliefs:
    """The two passes on a model, for one joint label of its cut set at a time (which is mostly empty).

    `held` has a 1 for each variable that is in the cut set from the start.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([2, 2])
    >>> factor = graph.add_factor([0, 1], [[1.0, 0.0], [0.0, 3.0]])
    >>> best = Beliefs(graph.model, maxima=True)
    >>> best.run(), best.value, best.labels().tolist()
    (True, 3.0, [1.0, 3.0, 1.0, 3.0])
    """

    def __init__(
        self,
        model: Model,
        maxima: bool,
        memory: float = 1 << 30,
        effort: float = 0.0,
        held: NDArray[np.uint8] | None = None,
    ) -> None:
        out, error = ffi.new("fgi_beliefs **"), new_error()
        kind = lib.FGI_BELIEFS_MAX if maxima else lib.FGI_BELIEFS_SUM
        check(lib.fgi_beliefs_create(model.handle, kind, pointer(held), memory, effort, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_beliefs_free)
        self._info = ffi.new("fgi_beliefs_info *")
        lib.fgi_beliefs_info_get(self._handle, self._info)
        self._n, self._size = model.n_variables, int(model.cards.sum())
        self.width, self.work, self.runs = int(self._info.width), float(self._info.work), float(self._info.runs)
        self.cut = np.zeros(lib.fgi_beliefs_cut(self._handle, ffi.NULL), np.int32)
        lib.fgi_beliefs_cut(self._handle, pointer(self.cut))

    def hold(self, labels: NDArray[np.int32]) -> None:
        """Begins a new run, with the variables of `cut` at these labels."""
        error = new_error()
        check(lib.fgi_beliefs_hold(self._handle, pointer(np.ascontiguousarray(labels, np.int32)), error), error)

    def run(self, seconds: float | None = None, both: bool = True) -> bool:
        """Works for about `seconds` (None: to the end), without the second pass unless `both`; True once done."""
        error, limit = new_error(), -1.0 if seconds is None else max(0.0, seconds)
        check(lib.fgi_beliefs_run(self._handle, both, limit, self._info, error), error)
        return bool(self._info.status != lib.FGI_RUNNING)

    @property
    def value(self) -> float:
        """log Z or the best score of this run; -inf: every labeling is forbidden."""
        return float(self._info.value)

    @property
    def progress(self) -> float:
        """Fraction of this run that is done."""
        return float(self._info.done)

    def labels(self) -> NDArray[np.float64]:
        """A number for each label of each variable, one after the other: P(variable = label), or the best score."""
        out = np.zeros(self._size)
        lib.fgi_beliefs_get(self._handle, pointer(out))
        return out

    def sample(self, count: int, state: int) -> tuple[NDArray[np.int32], int]:
        """Labelings, a row each, and the state of the random numbers after them; before the second pass."""
        out, at = np.zeros((count, self._n), np.int32), ffi.new("uint64_t *", state)
        lib.fgi_beliefs_sample(self._handle, count, at, pointer(out))
        return out, int(at[0])
