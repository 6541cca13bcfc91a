"""Result: what every solver returns, early or late."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TracePoint(NamedTuple):
    """One improvement: seconds since the start, best score and bound (None before the first)."""

    seconds: float
    score: float | None
    bound: float | None


@dataclass(frozen=True)
class Result:
    """A labeling with its certificate. Scores are maximised; bound >= optimum >= score.

    status: optimal, gap_reached, converged (the relaxation has, a gap remains), time_limit, iteration_limit,
    interrupted, infeasible.
    """

    method: str
    status: str
    labels: NDArray[np.int32] | None
    score: float | None
    bound: float | None
    iterations: int
    seconds: float
    setup_seconds: float
    threads: int
    seed: int
    trace: tuple[TracePoint, ...] = ()
    marginals: list[NDArray[np.float64]] | None = field(default=None, repr=False)
    messages: NDArray[np.float64] | None = field(default=None, repr=False)
    statistics: dict[str, float] = field(default_factory=dict, repr=False)

    @property
    def energy(self) -> float | None:
        """Minus the score."""
        return None if self.score is None else -self.score

    @property
    def gap(self) -> float | None:
        """max(0, bound - score) / max(1, |score|); None while either is missing."""
        return relative_gap(self.score, self.bound)


def relative_gap(score: float | None, bound: float | None) -> float | None:
    if score is None or bound is None or score == -inf or bound == inf:
        return None
    return max(0.0, bound - score) / max(1.0, abs(score))
