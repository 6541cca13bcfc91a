"""Team: the members at work on a part, who they are at first, and who joins them when."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fginfer.core.cliques import lift_cliques
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.cliques import CliqueProof
from fginfer.portfolio.elimination import EliminationMember
from fginfer.portfolio.member import Member
from fginfer.portfolio.narrow import NarrowSearch, narrow_labels
from fginfer.portfolio.opening import FIRST_SWEEPS
from fginfer.portfolio.part import Part, work_of_round
from fginfer.portfolio.relaxations import Cycles, Greedy, Relaxation, Slabs, Sweeps
from fginfer.portfolio.searches import Clauses, Search
from fginfer.portfolio.shares import (
    DOLLS_SHARE,
    HELPERS_TRIAL,
    NEAR_SHARE,
    favour_who_ends_soon,
    is_far,
    leading_proof,
    needs_help,
    share_of,
    share_of_new_tree,
)
from fginfer.portfolio.trees import Dolls, Proof, QuickTree
from fginfer.portfolio.workers import Workers

log = logging.getLogger("fginfer")

# Commits say on which instances a rule was tried. Most numbers are round ones: chosen, not measured.
FEW_FACTORS, AT_ONCE = 2000, 3e7  # of a part: if it can be eliminated with so little work, nothing else is tried
ELIMINATION_ROUND = 4  # when elimination is considered: the easy models are solved by then
WORTH_ELIMINATING = 3e10  # work of elimination, beyond which it is not begun
CYCLES_ROUND = 2  # when those of binary variables are: the first may end without
CLIQUE_ROUND = 2  # when cliques of labels that exclude each other are looked for: the first may end without
TREE_ROUND, TREE_STATES = 4, 5e6  # when edac joins, which keeps whole-number costs of so many states at most
SOON_ROUND = 3  # when it does if there is no labeling yet
NARROW_AFTER = 2  # sweeps of the relaxation, whose labeling says which labels promise most
SLABS_SHARE = 0.2  # of slabs where a proof does not get on: their first iterations bring most, search needs the time


class Team(Part):
    """A part with a portfolio of members at work on it."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, memory: float) -> None:
        super().__init__(model, variables, settings)
        self.begun: list[Member | EliminationMember] = []  # members that are under way already
        self.messages: NDArray[np.float64] | None = None  # of sweeps over this very model
        self.improved_at = 0.0  # work of the search when a better labeling was last found by anybody
        self._memory = memory
        self._elimination: Elimination | None = None  # once an order has been looked for
        self._round = 0
        self._search_is_due = 0  # iterations of the relaxation after which a search joins; 0: it has
        self._narrow_to: int | None = None  # labels a variable of a search among few of them that is to join
        self._helped = False  # slabs or gdmm have been asked to join

    def prepare(self) -> None:
        if self.model.n_factors <= FEW_FACTORS and self._consider_elimination(AT_ONCE):
            return
        size = self.size
        if size.is_huge:  # one member, with all threads and most of the memory
            self.join(size.relaxation, threads=self.settings.threads)
            self._search_is_due = size.search_is_due
            self._narrow_to = narrow_labels(self.model) if size.relaxation is Greedy else None
            if not self._search_is_due:
                self.join(Search, NEAR_SHARE)
            return
        self.members += self.begun
        if not self.has(size.relaxation):
            self.join(size.relaxation)
        if size.relaxation is Sweeps and not size.is_crowded:
            self._search_is_due = FIRST_SWEEPS
        else:
            self.join(Search, NEAR_SHARE if size.touches_few else 1.0)

    def begin_round(self, workers: Workers, work: float | None = None) -> Iterator[None]:
        self._round += 1
        if self._round == ELIMINATION_ROUND and not (self.size.is_huge or self.has(EliminationMember)):
            yield from workers.aside(lambda: self._consider_elimination(WORTH_ELIMINATING))
        if self._round == CLIQUE_ROUND and self.has(Proof) and self.model.states <= TREE_STATES:
            yield from workers.aside(self._consider_cliques)
        if self._few_labels_are_due:
            yield from workers.aside(self._search_few_labels)
        if self._round == CYCLES_ROUND and self.size.may_be_frustrated and not self.has(Cycles):
            self.join(Cycles)
            self.share_labels()
        if self._tree_is_due:
            self.join(QuickTree, share_of_new_tree(self))
            self.share_labels()
        if self._round == TREE_ROUND and self.model.states <= TREE_STATES and self.has(Proof):
            self.join(Dolls, DOLLS_SHARE)
            self.share_labels()
        for member in self.members:
            member.owe(work_of_round(self._round) if work is None else work)

    def end_round(self) -> None:
        before = self.score
        self.collect()
        if self.score > before:
            self.improved_at = max((m.work for m in self.members if isinstance(m, Search)), default=0.0)
        self._leave()
        if not self.running:
            return
        self.share_labels()
        self._join_late()
        for member in list(self.members):
            if isinstance(member, Member):
                self._adjust(member)
        favour_who_ends_soon(self)
        if not self.members:
            self.status = "converged"

    def _leave(self) -> None:
        """Who has ended goes. If that is everybody, and somebody failed, so has the part."""
        errors = [m.error for m in self.members if m.error is not None]
        self.members = [m for m in self.members if m.running]
        if errors and not self.members and self.running:
            raise errors[0]

    def _join_late(self) -> None:
        """Who had to wait for the end of a round."""
        # Hard constraints that nobody meets, or penalties that stand for such: on huge models its memory is for others.
        if self._round == 1 and (self.labels is None or not self.size.is_huge):
            self.join(Clauses, 1.0 if self.labels is None else NEAR_SHARE)
            self.share_labels()
        relaxation = self.members[0] if self.members else None
        if self._search_is_due and (relaxation is None or relaxation.iterations >= self._search_is_due):
            self._search_is_due = 0
            self.join(Search)
            self.share_labels()

    def _adjust(self, member: Member) -> None:
        """The best bound, for who can use it; help for a proof that does not get on; the share of the next round."""
        if not isinstance(member, Relaxation) and self.bound < member.bound:  # those are judged by their own
            member.engine.offer_bound(self.bound)
        if member is leading_proof(self) and not (self._helped or self.has(Cycles)) and needs_help(member, self):
            self._helped = True
            if not (is_far(member, self) and self.join(Slabs, SLABS_SHARE)):
                self._join_greedy()
        member.share = share_of(member, self)

    def _join_greedy(self) -> None:
        """gdmm, from the messages of sweeps where there are some: it goes on where they stood still."""
        self.join(Greedy, HELPERS_TRIAL)
        for member in self.members:
            if isinstance(member, Greedy) and self.messages is not None:
                member.start_from(self.messages)

    def _consider_elimination(self, most_work: float) -> bool:
        """Elimination joins if it fits in memory and takes no more than this work."""
        if self._elimination is None:
            self._elimination = Elimination(self.model, self._memory)
        if not self._elimination.fits or self._elimination.estimate.work > most_work:
            return False
        self.members.append(EliminationMember(self.model, self._elimination, self.settings))
        return True

    def _search_few_labels(self) -> None:
        """Where variables have many labels, a search among those that promise most joins."""
        most, self._narrow_to = self._narrow_to, None
        assert most is not None
        assert self.labels is not None
        try:
            self.members.append(NarrowSearch(self.model, self.settings, self.labels, most))
        except (SolverError, MemoryError) as error:
            log.debug("no search among few labels: %s", error)

    def _consider_cliques(self) -> None:
        """Where many labels exclude each other, a proof that sees it joins."""
        least = max(self.score, self.settings.cutoff)
        try:
            lifted = lift_cliques(self.model, least)
            if lifted is not None:
                self.members.append(CliqueProof(lifted, self.model, self.settings, least))
                self.share_labels()
        except (SolverError, MemoryError) as error:
            log.debug("no cliques: %s", error)

    @property
    def _few_labels_are_due(self) -> bool:
        """The relaxation has found a labeling that says which."""
        if self._narrow_to is None or self.labels is None or not self.members:
            return False
        relaxation = self.members[0]
        return isinstance(relaxation, Greedy) and relaxation.engine.steps >= NARROW_AFTER

    @property
    def _tree_is_due(self) -> bool:
        """The proof takes its time, or nobody has found a labeling; at once, where a tree may be over soon."""
        due = self._round == TREE_ROUND or (self._round == SOON_ROUND and self.labels is None)
        due |= self._round == 1 and self.size.few_labelings
        return due and self.model.states <= TREE_STATES and self.has(Proof) and not self.has(QuickTree)
