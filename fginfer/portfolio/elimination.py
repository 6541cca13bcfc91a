"""EliminationMember: bucket elimination as a member, which is no solver of the core."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.member import ENDS


class EliminationMember:
    """No labeling and no bound until its end, when it has the optimum.

    It ends once the work granted covers what was estimated, so that the round of its end does not depend on the clock.
    """

    name, iterations, threads = "elimination", 0, 1
    error: Exception | None = None

    def __init__(self, model: Model, elimination: Elimination, settings: Settings, share: float = 1.0) -> None:
        self.elimination = elimination
        self.share = share
        self.status = "running"
        self._found = Incumbent(model, settings.start_time, settings.cutoff)
        self._granted = 0.0
        self._total = elimination.estimate.work

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def busy(self) -> bool:
        return self.running and (self._granted >= self._total or self._done < self._granted)

    @property
    def _done(self) -> float:
        return self.elimination.progress * self._total

    def owe(self, work: float) -> None:
        self._granted += self.share * work

    def work_off(self, deadline: float) -> None:
        while self.busy:
            left = deadline - clock.now()
            if left <= 0:
                return
            try:
                ended = self.elimination.run(min(left, 0.005))
            except (SolverError, MemoryError):  # more memory than it was allowed, or than there is
                self.status = "converged"
                return
            if ended and self._granted >= self._total:
                self._finish()

    def _finish(self) -> None:
        """The labeling and the bound are the best there are; whether that is a proof is a matter of rounding."""
        bound, labels = self.elimination.bound, self.elimination.labels()
        assert bound is not None
        self._found.bound = bound
        if labels is not None:
            self._found.improve(labels)
        self._found.close_last_step()
        if self.elimination.infeasible or (self._found.proven and not self._found.wanted):
            self.status = "infeasible"
        else:
            self.status = "optimal" if self._found.proven else "converged"

    @property
    def complete(self) -> bool:
        """Nothing is left to find."""
        return self._found.bound < inf

    @property
    def decides(self) -> bool:
        return self.status in ENDS or self.complete

    def labels(self) -> NDArray[np.int32] | None:
        return self._found.labels

    @property
    def score(self) -> float:
        return self._found.score if self._found.wanted else -inf

    @property
    def bound(self) -> float:
        return self._found.bound

    def events(self) -> NDArray[Any]:
        return np.empty(0, EVENT)
