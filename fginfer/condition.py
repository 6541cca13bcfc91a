"""Evidence: the smaller graph that is left when some variables are fixed, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import ModelError
from fginfer.result import Result

if TYPE_CHECKING:
    from fginfer.graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A graph over the free variables, in their old order. Scores are those of the whole labeling in the old graph.

    >>> from fginfer import FactorGraph, solve
    >>> graph = FactorGraph([2, 2, 2])
    >>> graph.add_factor([0, 1, 2], range(8))
    >>> given = graph.condition({1: 0})
    >>> given.expand(solve(given.graph).labels).tolist()
    [1, 0, 1]
    """

    graph: FactorGraph
    evidence: dict[int, int]
    free: NDArray[np.int64]  # the old numbers of the variables that are left
    _labels: NDArray[np.int32]

    def expand(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The labeling of the old graph: the given labels for the free variables, the evidence for the others."""
        x = self.graph.check_labels(labels)
        out = self._labels.copy()
        out[self.free] = x
        return out

    def reduce(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the old graph without the fixed variables (whose labels are ignored)."""
        return np.ascontiguousarray(np.asarray(labels)[self.free], np.int32)

    def expand_result(self, result: Result) -> Result:
        """A result of the reduced graph with the labels of the old one; messages and marginals stay as they are."""
        return result if result.labels is None else replace(result, labels=self.expand(result.labels))


def condition(graph: FactorGraph, evidence: Mapping[int, int]) -> Conditioned:
    """See FactorGraph.condition."""
    if not isinstance(evidence, Mapping):
        raise ModelError(f"evidence must be a dict of variables and labels, not {type(evidence).__name__}")
    fixed: dict[int, int] = {}
    for variable, label in evidence.items():
        try:
            fixed[variable.__index__()] = label.__index__()
        except AttributeError:
            raise ModelError(f"evidence maps variables to labels, both integers, not {variable!r}: {label!r}") from None
    cards = graph.cards
    for variable, label in fixed.items():
        if not 0 <= variable < len(cards):
            raise ModelError(f"evidence for variable {variable}; there are {len(cards)}")
        if not 0 <= label < cards[variable]:
            raise ModelError(f"evidence gives variable {variable} label {label}, out of range 0..{cards[variable] - 1}")
    variables, labels = np.array(list(fixed), np.int32), np.array(list(fixed.values()), np.int32)
    model = graph.snapshot().condition(variables, labels)
    whole, free = np.zeros(len(cards), np.int32), np.ones(len(cards), bool)
    whole[variables], free[variables] = labels, False
    left = graph.from_model(model, graph.n_factors)
    left.cutoff = graph.cutoff  # scores are those of the whole
    return Conditioned(left, fixed, np.flatnonzero(free), whole)
