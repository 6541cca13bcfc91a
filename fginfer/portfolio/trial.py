"""Trial: a whole model under two or three proofs, before anything has been found out about it."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.opening import SWEEPS_GAP
from fginfer.portfolio.part import Part, work_of_round
from fginfer.portfolio.relaxations import Cycles
from fginfer.portfolio.shares import let_end
from fginfer.portfolio.size import TRIAL_STATES
from fginfer.portfolio.trees import Proof, QuickTree
from fginfer.portfolio.workers import Workers

TRIAL_SHARE = 0.5  # of edac beside branch and bound
FALLS = 0.8  # what a round leaves of the gap where it is worth another one
FEW_TRIAL, FEW_AGAIN = 4.0, 2.0  # the same where there are few labelings: in the first round, and after it


class Trial(Part):
    """Branch and bound, edac where the model is small, and cycles where it is binary: edac first, where there are few
    labelings. Nobody joins."""

    _rounds = 0
    gets_on = False  # is one of them worth some more work, by what the last round has brought?

    def __init__(
        self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, begun: Proof | None
    ) -> None:
        super().__init__(model, variables, settings)
        self._begun = begun  # is under way already
        self._messages: NDArray[np.float64] | None = None

    def prepare(self) -> None:
        if self.model.states <= TRIAL_STATES:
            self.join(QuickTree, FEW_TRIAL if self.size.few_labelings else TRIAL_SHARE)
        if self._begun is not None:
            self.members.append(self._begun)
        elif not self.size.few_labelings:
            self.join(Proof)
        if self.size.may_be_frustrated and not self.size.few_labelings:
            self.join(Cycles)

    def start_from(self, messages: NDArray[np.float64] | None) -> None:
        """Messages of sweeps over the model, for a root that has not begun: it need not do again what they did."""
        self._messages = messages
        for member in self.members:
            if isinstance(member, Proof) and messages is not None:
                member.start_from(messages)

    def begin_round(self, workers: Workers, work: float | None = None) -> Iterator[None]:
        self._rounds += 1
        if self._rounds == 2 and self.size.few_labelings and self._begun is None:
            # Making it takes as long as many easy models.
            self.join(Proof)
            self.start_from(self._messages)
            self.share_labels()
        for member in self.members:
            member.owe(work_of_round(1) if work is None else work)
        yield from ()

    def end_round(self) -> None:
        before = self.bound
        self.collect()
        self.members = [m for m in self.members if m.running]
        if self.size.few_labelings:
            for member in self.members:
                member.share = FEW_AGAIN if isinstance(member, QuickTree) else 1.0
        soon = let_end(self.members)
        self.gets_on = soon or self._falls_from(before)
        self.share_labels()

    def _falls_from(self, before: float) -> bool:
        """Has the last round closed a part of a gap that is small?"""
        if self.score == -inf or self.bound == inf:
            return False
        gap, near = self.bound - self.score, SWEEPS_GAP * max(self.unit, abs(self.score))
        return gap <= near and gap <= FALLS * (before - self.score)
