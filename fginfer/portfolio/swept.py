"""Swept: the sweeps that have proven the last answer go on with new unary scores. A change costs a few passes."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import NativeEngine, Settings
from fginfer.graph import FactorGraph
from fginfer.journal import Changes, Unaries
from fginfer.portfolio.again import Again
from fginfer.portfolio.rules import Rules


class Swept(Again):
    """Has a solver that has ended, whose messages point one way."""

    def __init__(self, engine: NativeEngine, settings: Settings, rules: Rules) -> None:
        super().__init__(engine.native.model.n_variables, settings, rules)
        self._engine = engine
        self._touched = 0  # entries before the last change

    def _take(self, graph: FactorGraph, changes: Changes) -> bool:
        model = graph.built_model
        if model is None or model.has_leftovers or not all(isinstance(entry, Unaries) for entry in changes.entries):
            return False
        self._touched = self._engine.info.entries_touched
        return self._engine.native.update(model.snapshot())

    def _work_on(self, deadline: float) -> bool:
        left = self._rules.again_iterations - self._engine.steps
        seconds = deadline - clock.now() if deadline < inf else -1.0
        said = self._engine.run(seconds, left)
        if said in ("optimal", "gap_reached"):
            self.status = self._proof()
        elif said != "running" or self._engine.steps >= self._rules.again_iterations:
            self.is_stuck = True
        return clock.now() < deadline

    @property
    def score(self) -> float:
        return float(self._engine.info.score)

    @property
    def bound(self) -> float:
        return float(self._engine.info.bound)

    @property
    def unit(self) -> float:
        return float(self._engine.info.unit)

    def labels(self) -> NDArray[np.int32] | None:
        return self._engine.labels()

    def messages(self) -> NDArray[np.float64] | None:
        return self._engine.messages()

    def model(self) -> Model:
        return self._engine.native.model

    def statistics(self) -> dict[str, float]:
        info = self._engine.info
        return {"again.work": float(info.entries_touched - self._touched), "again.sweeps": float(info.iterations)}
