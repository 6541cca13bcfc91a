"""CliqueProof: a proof where many labels exclude each other."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.cliques import Lifted
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.elsewhere import Elsewhere
from fginfer.portfolio.trees import Tree


class CliqueProof(Elsewhere, Tree):
    """Branch and bound on the part with variables for cliques of labels that exclude each other.

    Labelings no better than `least`, the score of one in hand, may be missing there: no bound is below it."""

    name = "bnb"

    def __init__(self, lifted: Lifted, model: Model, settings: Settings, least: float) -> None:
        super().__init__(lifted.model, settings)
        self._lifted, self._part, self._least = lifted, model, least

    def offer(self, labels: NDArray[np.int32]) -> None:
        self.engine.offer(self._lifted.lift(labels))

    def _in_part(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.ascontiguousarray(labels[: self._lifted.n_original])

    def work_off(self, deadline: float) -> None:
        super().work_off(deadline)
        if self.status == "infeasible" and self._least > -inf:
            self.status = "converged"  # nothing is better than what was in hand

    @property
    def complete(self) -> bool:
        return super().complete or (
            self.status == "converged" and self._least > -inf and self.engine.info.score == -inf
        )

    @property
    def bound(self) -> float:
        return max(float(self.engine.info.bound), self._least)
