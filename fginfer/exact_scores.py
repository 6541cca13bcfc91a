"""ExactScores: from what a method says of a model without leftovers to what is true of the factors as they were given.

Unary scores are sums, and rounded; methods see them alone. Scores of labelings, bounds and the cutoff count what
rounding took: see fginfer.folding.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.core.solver import is_proof, proof_tolerance, relative_gap
from fginfer.result import Progress, Result, Status, TracePoint


def sum_above(a: float, b: float) -> float:
    """The smallest double, or the one after it, that is no less than a + b."""
    total = a + b
    if b == 0 or abs(total) == inf:
        return total
    return total if total - a == b and total - b == a else nextafter(total, inf)


class ExactScores:
    """`model` has leftovers; `plain()` of it is what a method works on."""

    def __init__(self, model: Model, cutoff: float, gap: float) -> None:
        self.model, self.cutoff, self.gap = model, cutoff, gap
        self._most = model.leftover_bound
        self._last: tuple[NDArray[np.int32], float] | None = None  # the labeling scored last, and its score

    @property
    def plain_cutoff(self) -> float:
        """No labeling above the cutoff has less in the plain model."""
        return self.cutoff if abs(self.cutoff) == inf else -sum_above(self._most, -self.cutoff)

    def bound(self, bound: float | None) -> float | None:
        return bound if bound is None or abs(bound) == inf else sum_above(bound, self._most)

    def score(self, labels: NDArray[np.int32] | None) -> float | None:
        """The score of a labeling; None where that is not wanted."""
        if labels is None:
            return None
        if self._last is None or not np.array_equal(labels, self._last[0]):
            self._last = labels.copy(), self.model.score(labels)
        score = self._last[1]
        return score if score > self.cutoff and score > -inf else None

    def progress(self, said: Progress, labels: NDArray[np.int32] | None) -> Progress:
        return said._replace(score=self.score(labels), bound=self.bound(said.bound))

    def result(self, said: Result) -> Result:
        """A result of the plain model, as it is true of this one."""
        score, bound = self.score(said.labels), self.bound(said.bound)
        if score is not None and bound is not None:
            bound = max(bound, score)
        trace = [TracePoint(p.seconds, self._at(p, said, score), self.bound(p.bound)) for p in said.trace]
        status = self._status(said.status, score, bound, said.unit)
        labels = None if score is None else said.labels
        return replace(said, labels=labels, score=score, bound=bound, trace=trace, status=cast(Status, status))

    @staticmethod
    def _at(point: TracePoint, said: Result, score: float | None) -> float | None:
        """The score at a point of the trace: of the last labeling where it is that, and no more than that before."""
        if point.score is None or score is None:
            return None
        return score if point.score == said.score else min(point.score, score)

    def _status(self, status: str, score: float | None, bound: float | None, unit: float) -> str:
        """Proofs of the plain model are proofs here where rounding took little."""
        if status not in ("optimal", "gap_reached", "infeasible") or bound is None:
            return status
        if score is None:
            return "infeasible" if is_proof(bound, -inf, self.cutoff, unit) else "converged"
        if bound - score <= proof_tolerance(score, unit):
            return "optimal"
        return "gap_reached" if relative_gap(score, bound, unit) <= self.gap else "converged"
