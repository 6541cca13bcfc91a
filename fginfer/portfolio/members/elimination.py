"""EliminationMember: bucket elimination as a member, which is no solver of the core."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.known import Incumbent
from fginfer.portfolio.ledger import terms_of
from fginfer.portfolio.worker import View, Worker


class EliminationMember(Worker):
    """No labeling and no bound until its end, when it has the optimum.

    It ends once the work granted covers what was estimated, so that the round of its end does not depend on the clock.
    """

    name = "elimination"

    def __init__(self, model: Model, elimination: Elimination, settings: Settings) -> None:
        self.elimination = elimination
        terms = terms_of(settings)
        self.rules = terms.rules
        self.account = terms.ledger.open(self.name)
        self._found = Incumbent(model, settings.start_time, settings.cutoff)
        self._granted = 0.0
        self._total = elimination.estimate.work

    @classmethod
    def due(cls, team: View) -> bool:
        """Small parts are looked at first of all, the others once easy models have ended."""
        if team.round == 0:
            return team.model.n_factors <= team.rules.few_factors
        return team.round == team.rules.elimination_round and not (team.size.is_huge or team.has(cls.name))

    @classmethod
    def make(cls, team: View) -> Worker | None:
        """It has to fit in memory, and to take little work where it is alone."""
        most = team.rules.at_once if team.round == 0 else team.rules.worth_eliminating
        if team.elimination is None:
            team.elimination = Elimination(team.model, team.memory)
        if not team.elimination.fits or team.elimination.estimate.work > most:
            return None
        return cls(team.model, team.elimination, team.settings)

    @property
    def work(self) -> float:
        return min(self._granted, self._total)

    @property
    def busy(self) -> bool:
        return self.running and (self._granted >= self._total or self._done < self._granted)

    @property
    def _done(self) -> float:
        return self.elimination.progress * self._total

    def owe(self, work: float) -> None:
        self._granted += self.share * work
        self.account.work = self.work  # how far it is depends on the clock, what it was granted does not

    def work_off(self, deadline: float) -> None:
        while self.busy:
            left = deadline - clock.now()
            if left <= 0:
                return
            began = clock.now()
            try:
                ended = self.elimination.run(min(left, self.rules.elimination_slice))
            except (SolverError, MemoryError):  # more memory than it was allowed, or than there is
                self.status = "converged"
                return
            finally:
                self.account.seconds += clock.now() - began
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

    def labels(self) -> NDArray[np.int32] | None:
        return self._found.labels

    @property
    def score(self) -> float:
        return self._found.score if self._found.wanted else -inf

    @property
    def bound(self) -> float:
        return self._found.bound
