"""A model made smaller by presolve, and the parts it falls into, each with its first members: the long step before the
rounds of auto. It changes nothing that others see, so that it may run on a thread beside them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.exact import split
from fginfer.core.model import Model
from fginfer.core.presolve import Presolved, presolve
from fginfer.engine import Settings
from fginfer.portfolio.part import PartState, Size

log = logging.getLogger("fginfer")


@dataclass
class Reduction:
    """What is left of a model."""

    presolved: Presolved | None = None
    parts: list[PartState] = field(default_factory=list)
    constant: float = 0.0  # beside the scores of several parts
    error: float = 0.0  # how far scores of the reduced model can be from those of the whole
    infeasible: bool = False

    def restrict(self, labels: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """A labeling of each part near one of the whole model."""
        near = labels if self.presolved is None else self.presolved.restrict(labels)
        return [near if p.variables is None else np.ascontiguousarray(near[p.variables]) for p in self.parts]


@dataclass(frozen=True)
class Plan:
    """How a model is to be reduced."""

    model: Model
    settings: Settings  # of the parts
    memory: float
    wants_presolve: bool
    least: float  # what costs more than that leaves room for cannot be part of a better labeling
    cancelled: NDArray[np.int32]  # 1: not needed any more

    def carry_out(self) -> Reduction:
        """Does all of it."""
        if Size(self.model).is_huge:
            whole = PartState(self.model, None, self.settings, self.memory)
            whole.prepare()
            return Reduction(parts=[whole])
        presolved = self._presolve() if self.wants_presolve else None
        model = self.model if presolved is None else presolved.model
        if presolved is not None and presolved.infeasible:
            return Reduction(presolved, infeasible=True)
        reduction = Reduction(presolved, error=0.0 if presolved is None else presolved.statistics.error)
        parts = split(model)
        if len(parts) == 1:
            own = replace(self.settings, cutoff=self.settings.cutoff - reduction.error)
            reduction.parts = [PartState(model, None, own, self.memory)]
        else:
            reduction.constant = model.constant
            # Gaps of parts could add up to more than the gap allowed, and what a part may cost depends on the others.
            exact = replace(self.settings, gap=0.0, cutoff=-inf)
            reduction.parts = [PartState(c.model, c.variables, exact, self.memory) for c in parts]
        for state in reduction.parts:
            if self.cancelled[0]:
                break
            state.prepare()
        return reduction

    def _presolve(self) -> Presolved | None:
        """None where memory is short: the model stays as it is."""
        try:
            return presolve(self.model, cancelled=self.cancelled, least=self.least)
        except MemoryError as error:
            log.warning("no presolve: %s", error)
            return None
