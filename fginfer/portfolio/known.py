"""What is known about a model. Incumbent: the best labeling, the best bound, and when each became known. Given: the
unit that all work is done in, and the way back to the numbers that were given."""

from __future__ import annotations

from copy import copy
from math import inf, ldexp, nextafter
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT, is_proof
from fginfer.result import Trace, relative_gap


class Incumbent:
    """What is known about one model. Labelings are scored here, whatever their finder says."""

    def __init__(self, model: Model, start: float, cutoff: float = -inf) -> None:
        self.model = model
        self.start = start
        self.cutoff = cutoff
        self.unit = model.unit
        self.labels: NDArray[np.int32] | None = None
        self.score, self.bound = -inf, inf
        self.found_by: str | None = None  # who had the labeling
        self.bound_by: str | None = None  # who had the bound
        self.points: list[tuple[float, float, float]] = []  # seconds; a score or -inf; a bound or inf

    def copy(self) -> Incumbent:
        twin = copy(self)
        twin.points = list(self.points)
        return twin

    def improve(self, labels: NDArray[np.int32], score: float | None = None, by: str | None = None) -> None:
        """Takes a labeling if it is better; `score` only if it was summed from the tables of this very model."""
        if score is None:
            score = self.model.score(np.ascontiguousarray(labels, np.int32))
        if score > self.score:
            self.labels, self.score, self.found_by = labels, score, by
            self.points.append((self.seconds(), score, inf))

    def tighten(self, bound: float, by: str | None = None) -> None:
        """Takes a bound if it is better; never below the score, where sums of rounded parts could end up."""
        bound = max(bound, self.score)
        if bound < self.bound:
            self.bound, self.bound_by = bound, by
            self.points.append((self.seconds(), -inf, bound))

    def fill(self) -> None:
        """Where a limit was over before anything was found: labels by the unaries alone and the bound of no messages,
        for two passes. For a result: a run that goes on must not know of it, since the clock decides."""
        if self.score == -inf:
            self.improve(self.model.unary_labels(), by="unaries")
        if self.bound == inf:
            self.tighten(self.model.trivial_bound, "unaries")

    def seconds(self) -> float:
        """Since the start."""
        return clock.now() - self.start

    @property
    def wanted(self) -> bool:
        """Is there a labeling above the cutoff?"""
        return self.score > self.cutoff

    @property
    def gap(self) -> float:
        """The relative gap; inf while score or bound is missing."""
        gap = relative_gap(self.score, self.bound, self.unit) if self.wanted else None
        return inf if gap is None else gap

    @property
    def proven(self) -> bool:
        """No labeling is better than this one by more than what rounding hides, or none is above the cutoff."""
        return is_proof(self.bound, self.score, self.cutoff, self.unit)

    def close_last_step(self) -> None:
        """Where scores are whole numbers, a bound less than a step above the cutoff says that no labeling is."""
        if not self.wanted and 0 < self.bound - self.cutoff < self.unit:
            floor = self.model.floor(self.bound)
            if floor <= self.cutoff:
                self.tighten(floor, self.bound_by)

    def events(self) -> NDArray[Any]:
        """What was known at each moment. Finders may see reduced tables: of their scores, what is certain in these."""
        score, bound, events = -inf, inf, []
        for seconds, new_score, new_bound in sorted(self.points):
            if new_score <= self.cutoff:
                new_score = -inf
            new = max(score, min(new_score, self.score)), min(bound, max(new_bound, self.bound))
            if new != (score, bound):
                score, bound = new
                events.append((seconds, score, bound, 0))
        return np.array(events, EVENT)


class Given:
    """`model` is what was given, but for a power of 2: scores times 2^k are the same problem, with the same answer."""

    def __init__(self, given: Model) -> None:
        self._as_given = given
        self.model, self._exponent = self._as_given.normalised()

    @property
    def is_as_given(self) -> bool:
        """Is `model` what was given, in its unit and with its factors?"""
        return self._exponent == 0 and self.model.same_structure(self._as_given)

    def into(self, cutoff: float) -> float:
        """A number of the caller, in the unit of `model`, and no more; where it is too large, the largest, or -inf."""
        try:
            own = ldexp(cutoff, -self._exponent)
        except OverflowError:
            return float_info.max if cutoff > 0 else -inf
        return own if self.score(own) <= cutoff else nextafter(own, -inf)

    def own_bound(self, bound: float) -> float:
        """A bound of the caller in the unit of `model`, no lower."""
        try:
            own = ldexp(bound, -self._exponent)
        except OverflowError:
            return inf
        return own if self.score(own) >= bound else nextafter(own, inf)

    def score(self, score: float) -> float:
        """In the unit of the caller."""
        return ldexp(score, self._exponent)

    def bound(self, bound: float) -> float:
        """A bound in the unit of the caller, rounded up where it is too large or too small to be exact there."""
        try:
            scaled = self.score(bound)
        except OverflowError:
            return inf
        return scaled if ldexp(scaled, -self._exponent) >= bound else nextafter(scaled, inf)

    def best_score(self, known: Incumbent) -> float | None:
        """The score of its labels, in the tables as they were given."""
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
