"""Given: a model in the unit that all work is done in, and the way back to the numbers that were given."""

from __future__ import annotations

from math import inf, ldexp, nextafter
from sys import float_info

import numpy as np

from fginfer.graph import FactorGraph
from fginfer.portfolio.incumbent import Incumbent
from fginfer.result import Trace, relative_gap


class Given:
    """`model` is what was given, but for a power of 2: scores times 2^k are the same problem, with the same answer."""

    def __init__(self, graph: FactorGraph) -> None:
        self._as_given = graph.snapshot()
        self.model, self._exponent = self._as_given.normalised()

    def into(self, cutoff: float) -> float:
        """A number of the caller, in the unit of `model`, and no more; where it is too large, the largest, or -inf."""
        try:
            own = ldexp(cutoff, -self._exponent)
        except OverflowError:
            return float_info.max if cutoff > 0 else -inf
        return own if self.score(own) <= cutoff else nextafter(own, -inf)

    def score(self, score: float) -> float:
        """In the unit of the caller."""
        return ldexp(score, self._exponent)

    def bound(self, bound: float) -> float:
        """In that unit; where it cannot be said there exactly (subnormal, too large), no lower."""
        try:
            scaled = self.score(bound)
        except OverflowError:
            return inf
        return scaled if ldexp(scaled, -self._exponent) >= bound else nextafter(scaled, inf)

    def best_score(self, known: Incumbent) -> float | None:
        """Of its labels, in the tables as they were given."""
        if known.labels is None:
            return None
        return self._as_given.score(known.labels) if self._exponent else known.score

    def gap(self, known: Incumbent) -> float:
        """That callers see: in their unit, numbers may have to be rounded (subnormal)."""
        if not self._exponent or known.labels is None:
            return known.gap
        gap = relative_gap(self.best_score(known), self.bound(known.bound), self.score(known.unit))
        return inf if gap is None else gap

    def trace(self, known: Incumbent) -> Trace:
        """What was known at each moment."""
        trace = known.events()
        if self._exponent:
            bounds = trace["bound"].copy()
            with np.errstate(over="ignore"):  # a bound too large to be said is none
                for name in ("score", "bound"):
                    trace[name] = np.ldexp(trace[name], self._exponent)
            low = np.ldexp(trace["bound"], -self._exponent) < bounds
            trace["bound"][low] = np.nextafter(trace["bound"][low], inf)
        return Trace(trace)
