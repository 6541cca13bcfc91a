"""LearningEngine: the method "clauses" on a graph with constraints, which it reads as they were said."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nextafter
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fginfer.conflicts.learner import Learner, learner_of
from fginfer.core import clock
from fginfer.core.solver import is_proof
from fginfer.engine import Settings, check_settings
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph
from fginfer.lower import Lowered
from fginfer.result import PROOFS, Progress, Result, Status, TracePoint, known, relative_gap

ITERATION = 1_000_000  # work of an iteration, some milliseconds (chosen)


class LearningEngine:
    """A learner behind the interface of engines; its graph is the lowered one, so that labels are those of all."""

    def __init__(self, graph: FactorGraph, settings: Settings, learner: Learner) -> None:
        check_settings(settings)
        self.settings = settings
        self._start = settings.start_time if settings.start_time >= 0 else clock.now()
        self._begin(graph, learner)

    @classmethod
    def made(cls, graph: FactorGraph, settings: Settings) -> LearningEngine | None:
        """None where there are no constraints, or where they cannot be said in this way."""
        if graph.origin is None or settings.options:
            return None
        learner = learner_of(graph.origin, settings.cutoff)
        return None if learner is None else cls(graph, settings, learner)

    def _begin(self, graph: FactorGraph, learner: Learner) -> None:
        assert graph.origin is not None
        self._origin: Lowered = graph.origin
        self._model, self._learner = graph.snapshot(), learner
        self._status, self._iterations, self._trace = "running", 0, list[TracePoint]()
        self._labels: NDArray[np.int32] | None = None
        self._score, self._bound = -inf, self._model.trivial_bound

    def run(self, seconds: float, iterations: int) -> str:
        end = clock.now() + seconds if seconds >= 0 else inf
        target = self._iterations + iterations if iterations >= 0 else inf
        while self._status == "running" and self._iterations < target:
            better = self._learner.run(ITERATION)
            self._iterations += 1
            if better:
                self._look()
            if clock.now() >= end:
                break
        return self._status

    def _look(self) -> None:
        """What the learner knows now."""
        learner = self._learner
        if learner.labels is not None and (self._labels is None or learner.score > self._score):
            self._labels = self._origin.complete(learner.labels)
            self._score = max(self._score, self._model.score(self._labels))
        if learner.bound < inf:
            above = learner.bound + self._origin.rounding
            above = nextafter(above, inf) if self._origin.rounding else above
            self._bound = max(min(self._bound, above), self._score)
        self._trace.append(TracePoint(clock.now() - self._start, known(self._score), known(self._bound)))
        self._judge()

    def _judge(self) -> None:
        unit, cutoff = self._model.unit, self.settings.cutoff
        if self._bound == -inf or is_proof(self._bound, self._score, cutoff, unit):
            self._status = "optimal" if self._labels is not None else "infeasible"
            return
        gap = relative_gap(known(self._score), self._bound, unit)
        if gap is not None and gap <= self.settings.gap:
            self._status = "gap_reached"
        elif self._learner.status != "running":
            self._status = "converged"

    # -- what is known -----------------------------------------------------------------------------------------

    def labels(self) -> NDArray[np.int32] | None:
        return self._labels

    def now(self) -> LearningEngine:
        return self

    def progress(self) -> Progress:
        seconds, finder = clock.now() - self._start, None if self._labels is None else "clauses"
        said = known(self._score), known(self._bound)
        return Progress(seconds, self._iterations, *said, unit=self._model.unit, found_by=finder)

    def result(self) -> Result:
        found = self._labels is not None
        return Result(
            self.settings.method,
            cast(Status, self._status),
            None if self._labels is None else self._labels.copy(),
            self._score if found else None,
            known(self._bound) if self._bound > -inf else -inf,
            self._iterations,
            clock.now() - self._start,
            0.0,
            self.settings.threads,
            self.settings.seed,
            tuple(self._trace),
            statistics={"work": float(self._learner.work)},
            unit=self._model.unit,
            found_by="clauses" if found else None,
            proved_by="clauses" if self._status in PROOFS else None,
        )

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        if self._model.score(labels) > max(self._score, self.settings.cutoff):
            self._learner.offer(labels[: len(self._origin.cards)])
            self._look()

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # it sends none

    def update(self, graph: FactorGraph) -> None:
        labels, made = self._labels, None
        if graph.origin is not None:
            made = learner_of(graph.origin, self.settings.cutoff)
        if made is None:
            raise SolverError("the graph has become too large to be said as clauses; make a new solver")
        self.settings, self._start = replace(self.settings, start_time=clock.now()), clock.now()
        self._begin(graph, made)
        if labels is not None:
            self.offer(labels)
