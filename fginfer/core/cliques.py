"""Labels that exclude each other pair by pair: the same model, with a variable that says which of them is taken."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.door import check, ffi, lib, new_error, pointer
from fginfer.core.model import Model


class Lifted:
    """A model with such variables behind its own (`model`), and `lift` from labelings of the original."""

    def __init__(self, handle: Any, n_original: int) -> None:
        self._handle = handle
        self.n_original = n_original
        self.model = Model(lib.fgi_model_snapshot(lib.fgi_cliques_model(handle)))  # may outlive this object

    def lift(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The same labeling; a forbidden one stays forbidden."""
        own = np.ascontiguousarray(labels, np.int32)
        if own.shape != (self.n_original,):
            raise ValueError(f"the original model needs {self.n_original} labels")
        lifted = np.zeros(self.model.n_variables, np.int32)
        lib.fgi_cliques_lift(self._handle, pointer(own), pointer(lifted))
        return lifted


def lift_cliques(model: Model, least: float = -inf) -> Lifted | None:
    """None where there are few large cliques.

    Pairs of labels that cost more than what `least`, the score of a labeling in hand, leaves room for count as
    excluded; labelings that are no better than it may be missing in the result.
    """
    out, error = ffi.new("fgi_cliques **"), new_error()
    check(lib.fgi_cliques_create(model.handle, least, out, error), error)
    return None if out[0] == ffi.NULL else Lifted(ffi.gc(out[0], lib.fgi_cliques_free), model.n_variables)
