"""Team: the members at work on a part; who is due joins, and claims become shares. Trial: a whole model under two or
three proofs, before anything has been found out about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.members.elimination import EliminationMember
from fginfer.portfolio.members.proof import Assignment, CliqueProof, Dolls, Proof, QuickTree, Semidefinite
from fginfer.portfolio.members.relaxation import Cycles, Greedy, Slabs, Sweeps, Triples
from fginfer.portfolio.members.search import Clauses, NarrowSearch, Search
from fginfer.portfolio.part import Part, work_of_round
from fginfer.portfolio.threads import Threads
from fginfer.portfolio.worker import Worker

# The kinds that may join, by when they are asked whether they are due.
AT_FIRST: tuple[type[Worker], ...] = Proof, Sweeps, Greedy, Search
BEFORE_A_ROUND: tuple[type[Worker], ...] = (
    EliminationMember,
    CliqueProof,
    NarrowSearch,
    Cycles,
    Semidefinite,
    Triples,
    Assignment,
    QuickTree,
    Dolls,
)
AFTER_A_ROUND: tuple[type[Worker], ...] = Clauses, Search
HELPERS: tuple[type[Worker], ...] = Slabs, Greedy  # after a round, too; they hear the best labeling later


class Team(Part):
    """A part with a portfolio of members at work on it."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, memory: float) -> None:
        super().__init__(model, variables, settings)
        self.memory = memory
        self.begun: list[Worker] = []  # members that are under way already

    def prepare(self) -> None:
        if self._ask(EliminationMember):
            self.left_to_elimination = True
            return
        if not self.size.is_huge:  # there one member has most of the memory
            self.members += self.begun
        for kind in AT_FIRST:
            self._ask(kind)

    def _ask(self, kind: type[Worker]) -> bool:
        """One of this kind joins if it is due."""
        return kind.due(self) and self._add(kind)

    def _add(self, kind: type[Worker]) -> bool:
        self.asked.add(kind.name)
        return self.join(kind)

    def _welcome(self, kind: type[Worker]) -> None:
        """One joins in the middle of a run: it hears the best labeling, as does who has joined before it."""
        if self._add(kind):
            self.share_labels()

    def begin_round(self, threads: Threads, work: float | None = None) -> Iterator[None]:
        self.round += 1
        for kind in BEFORE_A_ROUND:
            if kind.due(self):
                yield from threads.aside(partial(self._welcome, kind))
        self._owe(work_of_round(self.round, self.rules) if work is None else work)

    def end_round(self) -> None:
        before = self.score
        self.collect()
        if self.score > before:
            self.improved_at = max((m.work for m in self.of("search", "narrow")), default=0.0)
        self._leave()
        if not self.running:
            return
        self.share_labels()
        for kind in AFTER_A_ROUND:
            if kind.due(self):
                self._welcome(kind)
        present = list(self.members)
        for kind in HELPERS:
            self._ask(kind)
        self._share_out(present)
        if not self.members:
            self.status = "converged"

    def _leave(self) -> None:
        """Who has ended goes. If that is everybody, and somebody failed, so has the part."""
        errors = [m.error for m in self.members if m.error is not None]
        self.members = [m for m in self.members if m.running]
        if errors and not self.members and self.running:
            raise errors[0]

    def _share_out(self, members: Sequence[Worker]) -> None:
        """Members hear the best bound and say what they want. Where a proof is at hand, the search has less; where
        bounds say nothing, nearly all is the search's."""
        search_is_first = self.search_is_first
        for member in members:
            member.hear_bound(self.bound)
            gives_way = search_is_first and member.gives_way
            member.share = self.rules.hopeless_share if gives_way else member.claim(self)
        if not search_is_first and let_end(self.members):
            for member in self.of("search", "narrow"):
                member.share = min(member.share, self.rules.near_share)


def let_end(members: Sequence[Worker]) -> bool:
    """Is a tree likely to end soon? Then it has the work, and those that are not likely to end as soon have little.
    Bounds do not tell: that of a depth-first search stays where it is until the last branch near the root."""
    trees = [(left, m) for m in members if (left := m.work_left()) is not None]
    least, first = min(trees, default=(inf, None), key=lambda of: of[0])
    if first is None or least > max(first.rules.soon_work, first.rules.soon_times * first.work):
        return False
    for left, tree in trees:
        if left > tree.rules.sooner * least:
            tree.share = min(tree.share, tree.rules.later_share)
    first.share = max(first.share, first.rules.first_share)
    return True


class Trial(Part):
    """Branch and bound, edac where the model is small, and cycles where it is binary: edac first, where there are few
    labelings. Nobody joins."""

    is_worth_more = False  # is one of them worth some more work, by what the last round has brought?

    def __init__(
        self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, begun: Proof | None
    ) -> None:
        super().__init__(model, variables, settings)
        self._begun = begun  # is under way already
        self._messages: NDArray[np.float64] | None = None

    def prepare(self) -> None:
        if self.model.states <= self.rules.trial_states:
            rules, few = self.rules, self.size.few_labelings
            if self.join(QuickTree):
                self.members[-1].share = rules.few_trial_share if few else rules.trial_share
        if self._begun is not None:
            self.members.append(self._begun)
        elif not self.size.few_labelings:
            self.join(Proof)
        if self.size.may_be_frustrated and not self.size.few_labelings:
            self.join(Cycles)

    def start_from(self, messages: NDArray[np.float64] | None) -> None:
        """Messages of sweeps over the model, for a root that has not begun: it need not do again what they did."""
        self._messages = messages
        if messages is not None:
            for member in self.of("bnb"):
                member.start_from(messages)

    def begin_round(self, threads: Threads, work: float | None = None) -> Iterator[None]:
        self.round += 1
        if self.round == 2 and self.size.few_labelings and self._begun is None:
            # Making it takes as long as many easy models.
            self.join(Proof)
            self.start_from(self._messages)
            self.share_labels()
        self._owe(work_of_round(1, self.rules) if work is None else work)
        yield from ()

    def end_round(self) -> None:
        before = self.bound
        self.collect()
        self.members = [m for m in self.members if m.running]
        if self.size.few_labelings:
            for member in self.members:
                member.share = self.rules.few_again_share if member.name == "edac" else 1.0
        soon = let_end(self.members)
        self.is_worth_more = soon or self._falls_from(before)
        self.share_labels()

    def _falls_from(self, before: float) -> bool:
        """Has the last round closed a part of a gap that is small?"""
        if self.score == -inf or self.bound == inf:
            return False
        gap, near = self.bound - self.score, self.distance(self.rules.sweeps_gap)
        return gap <= near and gap <= self.rules.trial_falls * (before - self.score)
