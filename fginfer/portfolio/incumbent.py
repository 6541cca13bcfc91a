"""Incumbent: the best labeling, the best bound, and when each became known."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.result import Trace


class Incumbent:
    """What is known about one model. Labelings are scored here, whatever their finder says."""

    def __init__(self, model: Model, start: float) -> None:
        self.model = model
        self.start = start
        self.labels: NDArray[np.int32] | None = None
        self.score, self.bound = -inf, inf
        self.points: list[tuple[float, float, float]] = []  # seconds; a score or -inf; a bound or inf

    def copy(self) -> Incumbent:
        twin = Incumbent(self.model, self.start)
        twin.labels, twin.score, twin.bound, twin.points = self.labels, self.score, self.bound, list(self.points)
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

    def seconds(self) -> float:
        """Since the start."""
        return clock.now() - self.start

    @property
    def gap(self) -> float:
        """The relative gap; inf while score or bound is missing."""
        if self.labels is None or self.bound == inf:
            return inf
        return max(0.0, self.bound - self.score) / max(1.0, abs(self.score))

    def trace(self) -> Trace:
        """What was known at each moment. (Finders may see reduced tables: their scores differ in the last digits.)"""
        score, bound, events = -inf, inf, []
        for seconds, new_score, new_bound in sorted(self.points):
            new = max(score, min(new_score, self.score)), min(bound, max(new_bound, self.bound))
            if new != (score, bound):
                score, bound = new
                events.append((seconds, score, bound, 0))
        return Trace(np.array(events, EVENT))
