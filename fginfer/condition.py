"""Evidence: the smaller graph that is left when some variables are fixed, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, nextafter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.model import Model
from fginfer.core.solver import is_proof, proof_tolerance
from fginfer.errors import ModelError
from fginfer.options import check_number
from fginfer.result import Result, TracePoint

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
    _original: Model
    _rounding: float  # how far scores of the smaller graph may be from those of the old one

    def expand(self, labels: ArrayLike) -> NDArray[np.int32]:
        """The labeling of the old graph: the given labels for the free variables, the evidence for the others."""
        x = self.graph.check_labels(labels)
        out = self._labels.copy()
        out[self.free] = x
        return out

    def reduce(self, labels: ArrayLike) -> NDArray[np.int32]:
        """A labeling of the old graph without the fixed variables (whose labels are ignored)."""
        return np.ascontiguousarray(np.asarray(labels)[self.free], np.int32)

    def lowered(self, cutoff: float | None) -> tuple[FactorGraph, float | None]:
        """The smaller graph and the cutoff for a solver of it: lower by what rounding may have taken from scores."""
        if cutoff is not None:
            check_number("cutoff", cutoff)
        least = self.graph.cutoff if cutoff is None else max(cutoff, self.graph.cutoff)
        if self._rounding == 0 or not -inf < least < inf:
            return self.graph, cutoff
        graph = self.graph.copy()
        graph.cutoff = -inf
        return graph, nextafter(nextafter(least - self._rounding, -inf), -inf)

    def expand_result(self, result: Result, cutoff: float | None = None) -> Result:
        """A result of the reduced graph with labels, score and bound of the old one; messages and marginals stay as
        they are. Bounds are raised by what rounding may have taken: where that is much, *optimal* becomes *converged*,
        and so does *infeasible* where it is said of a cutoff. Where evidence leaves no choice, and so no unit, rounding
        is judged by that of the old graph.
        """
        result = result if result.unit > 0 else replace(result, unit=self._original.unit)
        labels = None if result.labels is None else self.expand(result.labels)
        score = None if labels is None else self._original.score(labels)
        if score == result.score and self._rounding == 0:
            return replace(result, labels=labels)
        bound, status = self._raised(result.bound), result.status
        least = self.graph.cutoff if cutoff is None else max(cutoff, self.graph.cutoff)
        if least > -inf and (status == "infeasible" or (score is not None and score <= least)):
            labels = score = None
            if bound is not None and is_proof(self._original.floor(bound), -inf, least, result.unit):
                status = "infeasible"
            elif status in ("infeasible", "optimal", "gap_reached"):
                status = "converged"
        if score is not None and bound is not None and status in ("optimal", "gap_reached"):
            off = bound - score if status == "optimal" else 2 * self._rounding
            status = "converged" if off > proof_tolerance(score, result.unit) else status
        trace = [TracePoint(p.seconds, self._rescored(p, result, score), self._raised(p.bound)) for p in result.trace]
        return replace(result, labels=labels, score=score, bound=bound, status=status, trace=trace)

    @staticmethod
    def _rescored(point: TracePoint, result: Result, score: float | None) -> float | None:
        """Of the labeling of the result where the point is about it, and no more than that before."""
        if point.score is None or score is None or point.score == result.score:
            return score if point.score is not None else None
        return min(point.score, score)

    def _raised(self, bound: float | None) -> float | None:
        if bound is None or self._rounding == 0 or abs(bound) == inf:
            return bound
        return nextafter(bound + self._rounding, inf)


def observed(evidence: Mapping[int, int]) -> dict[int, int]:
    """The labels of variables that are known: from a dict, or a pandas Series whose index names the variables."""
    if not isinstance(evidence, Mapping) and not (hasattr(evidence, "iloc") and evidence.ndim == 1):
        raise ModelError(f"evidence must be a dict of variables and labels, not {type(evidence).__name__}")
    fixed: dict[int, int] = {}
    for key, value in evidence.items():
        try:
            variable, label = key.__index__(), value.__index__()
        except AttributeError:
            raise ModelError(f"evidence maps variables to labels, both integers, not {key!r}: {value!r}") from None
        if fixed.setdefault(variable, label) != label:
            raise ModelError(f"evidence gives variable {variable} two labels, {fixed[variable]} and {label}")
    return fixed


def condition(graph: FactorGraph, evidence: Mapping[int, int]) -> Conditioned:
    """See FactorGraph.condition."""
    fixed, cards = observed(evidence), graph.cards
    for variable, label in fixed.items():
        if not 0 <= variable < len(cards):
            raise ModelError(f"evidence for variable {variable}; there are {len(cards)}")
        if not 0 <= label < cards[variable]:
            raise ModelError(f"evidence gives variable {variable} label {label}, out of range 0..{cards[variable] - 1}")
    variables, labels = np.array(list(fixed), np.int32), np.array(list(fixed.values()), np.int32)
    original = graph.snapshot()
    model, rounding = original.condition(variables, labels)
    whole, free = np.zeros(len(cards), np.int32), np.ones(len(cards), bool)
    whole[variables], free[variables] = labels, False
    left = graph.from_model(model, graph.n_factors)
    left.cutoff = graph.cutoff  # scores are those of the whole
    return Conditioned(left, fixed, np.flatnonzero(free), whole, original, rounding)
