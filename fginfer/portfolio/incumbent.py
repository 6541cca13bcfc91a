"""Incumbent: the best labeling, the best bound, and when each became known."""

from __future__ import annotations

from copy import copy
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT, is_proof
from fginfer.result import relative_gap


class Incumbent:
    """What is known about one model. Labelings are scored here, whatever their finder says."""

    def __init__(self, model: Model, start: float, cutoff: float = -inf) -> None:
        self.model = model
        self.start = start
        self.cutoff = cutoff
        self.unit = model.unit
        self.labels: NDArray[np.int32] | None = None
        self.score, self.bound = -inf, inf
        self.points: list[tuple[float, float, float]] = []  # seconds; a score or -inf; a bound or inf

    def copy(self) -> Incumbent:
        twin = copy(self)
        twin.points = list(self.points)
        return twin

    def improve(self, labels: NDArray[np.int32], score: float | None = None) -> None:
        """Takes a labeling if it is better; `score` only if it was summed from the tables of this very model."""
        if score is None:
            score = self.model.score(np.ascontiguousarray(labels, np.int32))
        if score > self.score:
            self.labels, self.score = labels, score
            self.points.append((self.seconds(), score, inf))

    def tighten(self, bound: float) -> None:
        """Takes a bound if it is better; never below the score, where sums of rounded parts could end up."""
        bound = max(bound, self.score)
        if bound < self.bound:
            self.bound = bound
            self.points.append((self.seconds(), -inf, bound))

    def fill(self) -> None:
        """Where a limit was over before anything was found: labels by the unaries alone and the bound of no messages,
        for two passes. For a result: a run that goes on must not know of it, since the clock decides."""
        if self.score == -inf:
            self.improve(self.model.unary_labels())
        if self.bound == inf:
            self.tighten(self.model.trivial_bound)

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
                self.tighten(floor)

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
