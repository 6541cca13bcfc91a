"""FactorGraph: build, check and evaluate discrete models. Scores are maximised; -inf forbids a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.arrays import ABSDIFF, DENSE, POTTS, SQDIFF, ModelArrays
from fginfer.errors import ModelError
from fginfer.native import check, ffi, lib, new_error, pointer
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff

_KIND = {Potts: POTTS, AbsDiff: ABSDIFF, SqDiff: SQDIFF}


class FactorGraph:
    """A discrete factor graph.

    >>> g = FactorGraph([2, 3])
    >>> g.add_factor([0], [0.0, 1.0])
    >>> g.add_factor([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> g.score([1, 2])
    3.0
    """

    def __init__(self, cards: ArrayLike) -> None:
        given = np.atleast_1d(np.asarray(cards))
        if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
            raise ModelError("cards must be a list of label counts (integers)")
        if given.size and (given.min() < 1 or given.max() > np.iinfo(np.int32).max):
            raise ModelError("every variable needs between 1 and 2^31-1 labels")
        self._cards = given.astype(np.int32)
        self._begin = np.concatenate(([0], np.cumsum(self._cards, dtype=np.int64)))
        self._unary = np.zeros(int(self._begin[-1]))
        self._constant = 0.0
        self._given = 0  # factors as given, arity 0 and 1 included
        # Factors added one by one, not yet in the C model:
        self._tables: list[NDArray[np.float64] | ImplicitTable] = []
        self._table_ids: dict[Any, int] = {}
        self._factors: list[tuple[int, float, bool, tuple[int, ...]]] = []
        self._arrays: ModelArrays | None = None
        self._model: Any = None

    # -- building ----------------------------------------------------------------------------------------------

    @classmethod
    def from_model_arrays(cls, arrays: ModelArrays, given_factors: int | None = None) -> FactorGraph:
        """A graph over ready-made arrays (checked by the core); the door for file formats and bulk builders."""
        graph = cls(arrays.cards)
        if arrays.unary is not None:
            graph._unary = np.array(arrays.unary, np.float64)
        graph._constant = float(arrays.constant)
        graph._arrays = arrays
        graph._given = len(arrays.factor_table) if given_factors is None else given_factors
        graph._model = arrays.build()
        return graph

    def add_factor(
        self, variables: Sequence[int], table: ArrayLike | ImplicitTable, *, weight: float = 1.0, transposed: bool = False
    ) -> None:
        """Adds a factor with scores `weight * table`; equal tables are stored once."""
        raise NotImplementedError  # filled in with the rest of the model layer

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def cards(self) -> NDArray[np.int32]:
        return self._cards

    @property
    def n_variables(self) -> int:
        return len(self._cards)

    @property
    def model(self) -> Any:
        """The C model (a cffi handle), built on first use."""
        if self._model is None:
            self._model = self.to_arrays().build()
        return self._model

    def to_arrays(self) -> ModelArrays:
        """The whole model as flat arrays."""
        raise NotImplementedError

    def score(self, labels: ArrayLike) -> float:
        """The score of a labeling, summed from the tables; -inf if it uses a forbidden state."""
        out, error = ffi.new("double *"), new_error()
        x = self._labels(labels)
        check(lib.fgi_model_score(self.model, pointer(x), out, error), error)
        return float(out[0])

    def energy(self, labels: ArrayLike) -> float:
        """Minus the score."""
        return -self.score(labels)

    def _labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        x = np.ascontiguousarray(labels, np.int32)
        if x.shape != (self.n_variables,):
            raise ModelError(f"a labeling needs {self.n_variables} labels, not an array of shape {x.shape}")
        return x


_DENSE = DENSE
