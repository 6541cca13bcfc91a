"""Labelings in the order of their scores, from the messages of bucket elimination."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


class Ranked(NamedTuple):
    """A labeling, and a bound on its score and on those of all labelings that come after it."""

    labels: NDArray[np.int32]
    bound: float


class Ranking:
    """Gives the labelings of a model, best first; SolverError where the messages need more than `memory` bytes.

    >>> from fginfer import FactorGraph
    >>> graph = FactorGraph([3])
    >>> factor = graph.add_factor([0], [0.0, 2.0, 1.0])
    >>> ranking = Ranking(graph.model)
    >>> [int(ranking.next().labels[0]) for _ in range(3)], ranking.next() is None
    ([1, 2, 0], True)
    """

    def __init__(self, model: Model, memory: float = 1 << 30, most: int | None = None, effort: float = 0.0) -> None:
        out, error = ffi.new("fgi_ranked **"), new_error()
        wanted = -1 if most is None else most
        check(lib.fgi_ranked_create(model.handle, memory, effort, wanted, out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_ranked_free)
        self._n = model.n_variables
        self._bound, self._status = ffi.new("double *"), ffi.new("int32_t *")
        self.running = True  # the messages are not complete yet

    def next(self, seconds: float | None = None) -> Ranked | None:
        """The next labeling; None where there is none left, or (`running`) where the time was not enough."""
        labels, error = np.zeros(self._n, np.int32), new_error()
        limit = -1.0 if seconds is None else max(0.0, seconds)
        code = lib.fgi_ranked_next(self._handle, limit, pointer(labels), self._bound, self._status, error)
        check(code, error)
        self.running = bool(self._status[0] == lib.FGI_RUNNING)
        return Ranked(labels, float(self._bound[0])) if self._status[0] == lib.FGI_OPTIMAL else None
