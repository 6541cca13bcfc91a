"""Trial: a whole model under two proofs, before anything has been found out about it."""

from __future__ import annotations

from collections.abc import Iterator

from fginfer.portfolio.member import Proof, QuickTree
from fginfer.portfolio.part import Part, work_of_round
from fginfer.portfolio.shares import let_end
from fginfer.portfolio.size import TRIAL_STATES
from fginfer.portfolio.workers import Workers

TRIAL_SHARE = 0.5  # of edac beside branch and bound
FEW_TRIAL, FEW_AGAIN = 4.0, 2.0  # the same where there are few labelings: in the first round, and after it


class Trial(Part):
    """Branch and bound, and edac where the model is small: edac first, where there are few labelings. Nobody joins."""

    _rounds = 0

    def prepare(self) -> None:
        if self.model.states <= TRIAL_STATES:
            self.join(QuickTree, FEW_TRIAL if self.size.few_labelings else TRIAL_SHARE)
        if not self.size.few_labelings:
            self.join(Proof)

    def begin_round(self, workers: Workers, work: float | None = None) -> Iterator[None]:
        self._rounds += 1
        if self._rounds == 2 and self.size.few_labelings:  # making it takes as long as many easy models
            self.join(Proof)
            self.share_labels()
        for member in self.members:
            member.owe(work_of_round(1) if work is None else work)
        yield from ()

    def end_round(self) -> None:
        self.collect()
        self.members = [m for m in self.members if m.running]
        if self.size.few_labelings:
            for member in self.members:
                member.share = FEW_AGAIN if isinstance(member, QuickTree) else 1.0
        let_end(self.members)
        self.share_labels()
