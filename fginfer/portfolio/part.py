"""PartState: a connected part of a model, the members at work on it, and what they have found."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fginfer.core.cliques import lift_cliques
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.portfolio.member import (
    Clauses,
    CliqueProof,
    EliminationMember,
    Greedy,
    Member,
    Proof,
    QuickTree,
    Relaxation,
    Search,
    Slabs,
    Sweeps,
)
from fginfer.portfolio.opening import FIRST_SWEEPS

if TYPE_CHECKING:
    from fginfer.portfolio.auto import AutoEngine

log = logging.getLogger("fginfer")

# Commits say on which instances a rule was tried. Most numbers are round ones: chosen, not measured. Half and twice of
# six of them on seven instances (two grids, side chains, detection, spot5/503, alignment, planning; 2 CPU s each):
# LONGEST_ROUND, NEAR_SHARE, SMALL_SHARE and PATIENCE change times by little more than two runs differ (15 %). Half of
# FIRST_ROUND: grid20 .65 -> .87 s, planning 1.5 -> 1.0 s; twice: as it is. Half of LITTLE_PATIENCE: grid20 .65 ->
# .51 s; twice: .85 s, and planning is not proven in 2 s.
FIRST_ROUND, LONGEST_ROUND = 5e5, 2e7  # work per member, in entries read: short enough to end early and to take turns
NEAR_PROOF, NEAR_SHARE = 0.01, 0.25  # of a round for the search: at this gap the proof is likely to find the rest
ELIMINATION_ROUND = 4  # when elimination is considered: the easy models are solved by then
WORTH_ELIMINATING = 3e10  # work of elimination, beyond which it is not begun
FEW_FACTORS, AT_ONCE = 2000, 3e7  # of a part: if it can be eliminated with so little work, nothing else is tried
CLIQUE_ROUND = 2  # when cliques of labels that exclude each other are looked for: the first may end without
TREE_ROUND, TREE_STATES = 4, 5e6  # when edac joins, which keeps whole-number costs of so many states at most
SOON_ROUND = 3  # when it does if there is no labeling yet
TREE_TRIAL, TREE_LEAD = 2e8, 0.05  # work by which it has to be ahead of the other proof by this part of the gap: ...
TREE_SHARES = 0.25, 2.0, 0.1  # ... its share until then, and after that, if it is and if it is not
TREE_LEVEL = 1.0  # its share if neither is ahead: its bound may rise only near the end
STALE_WORK, STALE_TIMES = 2e8, 4.0  # a search that has found nothing for so long, and so many times what it took to ...
# ... find the best, leaves its time to such a tree
TRIAL_SHARE, TRIAL_STATES = 0.5, 1e5  # of edac beside branch and bound, when both try a small model first
FEW_BITS = 300.0  # of a labeling: such a model is tried by edac first, ...
FEW_TRIAL, FEW_AGAIN, FEW_BEHIND = 4.0, 2.0, 0.5  # ... with these shares then, and this one while its bound is behind
FEWER_BITS, FEWER_TIMES = 100.0, 2.0  # with so few its shares are so many times as large
FEW_CLIQUES = 3e7  # work by which a proof by cliques has to be ahead where there are few labelings
LONG_PASS = 1.5e8  # entries: beyond this a model is huge, and sweeps over its tables are too slow ...
LARGE_TABLE, MANY_TABLES = 2.5e4, 50_000  # ... if they have so many entries, and are not as many as those of an image:
# gdmm reads a few rows of each, and TRW-S no more where one table is shared (250,000 pixels of 256 labels, 12 s: gaps
# of .23 and 3e-6; a million of 12: .09, and proven in 2 s)
FEW_LABELS = 8  # so few that messages take no time
DENSE_DEGREE = 50  # factors a variable: TRW-S sends so many messages by halves, thirds, ... that its bound stays behind
PASS_TOO_LONG = 2e7  # and beyond this, too slow for branch and bound: TRW-S alone
MANY_FACTORS = 1_000_000  # beyond this there is one relaxation, and no presolve: their memory and time are needed
MANY_BINARY, BINARY_DEGREE = 100_000, 20  # binary factors, and so many a variable: ...
FEW_ATTRACT = 0.1  # ... if no more than this part of them rewards two ones, gdmm touches few of them, else nearly all
LATE_SEARCH = 50  # iterations of that relaxation, by which it has found what it will soon
SOON = 4  # the same on dense graphs of binary variables, where its labelings are poor from the first to the last
PATIENCE = 5e8  # work after which a proof that has not moved the bound ...
FAR_PROOF, LITTLE_PATIENCE = 0.05, 1e8  # ... (less if the gap is this large) ...
# ... by MOVED (member.py) of the gap ...
SMALL_SHARE = 0.1  # ... is left with this share, and slabs join for a better bound ...
SLABS_SHARE = 0.2  # ... with this one: their first iterations bring most of it, and the search needs the time
FEW_PASSES = 3  # over the tables, at least, before another relaxation is left with that share, too


def work_of_round(number: int) -> float:
    """Rounds are counted from 1 and double up to the longest. Runs may have any number of them."""
    return min(FIRST_ROUND * 2.0 ** min(number - 1, 64), LONGEST_ROUND)


class Size:
    """How large a model is, and which relaxation that calls for."""

    def __init__(self, model: Model) -> None:
        self.pass_work = model.pass_work
        self._states = model.states
        cards, factors = model.cards, model.n_factors
        self._most_labels = int(cards.max(initial=1))
        self._dense_binary = (
            self._most_labels == 2
            and self.pass_work == 4 * factors
            and factors > max(MANY_BINARY, BINARY_DEGREE * len(cards))
        )
        self.touches_few = self._dense_binary and model.attraction <= FEW_ATTRACT  # gdmm finds the labelings, too
        self.is_sparse = factors < len(cards)  # as forests are, on which TRW-S ends after a sweep or two
        self._dense = factors > DENSE_DEGREE * len(cards) and self._most_labels > FEW_LABELS
        self.is_huge = factors > MANY_FACTORS or self.pass_work > LONG_PASS
        bits = float(np.log2(np.maximum(cards, 1)).sum())
        self.few_labelings = bits <= FEW_BITS and model.states <= TRIAL_STATES  # a tree may have seen all of them soon
        self.tree_times = FEWER_TIMES if self.few_labelings and bits <= FEWER_BITS else 1.0
        self._large_tables = (
            self.pass_work > LONG_PASS and self.pass_work > LARGE_TABLE * factors and factors <= MANY_TABLES
        )

    @property
    def is_small(self) -> bool:
        """A proof is worth a try before anything else."""
        return not self.is_huge and not self._dense_binary and self._states <= PASS_TOO_LONG

    @property
    def relaxation(self) -> type[Member]:
        """gdmm where sweeps over all tables would take too long, branch and bound where they take little time."""
        if self.touches_few or self._large_tables:
            return Greedy
        if self.is_small:
            return Proof
        return Greedy if self._dense else Sweeps

    @property
    def begins_with_unaries(self) -> bool:
        """The relaxation's own first labeling is that of the unaries: nobody else needs to score it."""
        return self.touches_few or self.relaxation is Sweeps

    @property
    def search_is_due(self) -> int:
        """Iterations of the relaxation of a huge model after which a search pays: 0, at once."""
        if not self._dense_binary:
            return LATE_SEARCH
        return 0 if self.touches_few else SOON


class PartState:
    """A part under way: its members, its best labeling and its bound."""

    def __init__(self, model: Model, variables: NDArray[np.int32] | None, settings: Settings, memory: float) -> None:
        self.model = model
        self.variables = variables  # of the reduced model; None: all of them
        self.settings = settings
        self.labels: NDArray[np.int32] | None = None
        self.score = -inf
        self.bound = inf
        self.status = "running"
        self.unit = model.unit
        self.members: list[Member | EliminationMember] = []
        self.begun: Member | None = None  # a relaxation of this part that is under way already
        self._memory = memory
        self._elimination: Elimination | None = None  # once an order has been looked for
        self._round = 0
        self._few_labelings, self._tree_times = False, 1.0
        self._search_is_due = 0  # iterations of the relaxation after which a search joins; 0: it has
        self._huge = False  # sweeps take long, and are what gets on
        self._helped = False  # slabs or gdmm have been asked to join
        self._improved_at = 0.0  # work of the search when a better labeling was last found by anybody

    @property
    def running(self) -> bool:
        return self.status == "running"

    # -- which members -----------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Chooses the first members."""
        if self.model.n_factors <= FEW_FACTORS and self._consider_elimination(AT_ONCE):
            return
        size = Size(self.model)
        self._few_labelings, self._tree_times = size.few_labelings, size.tree_times
        if size.is_huge:  # one member, with all threads and most of the memory
            self.join(size.relaxation, threads=self.settings.threads)
            self._search_is_due = size.search_is_due
            if not self._search_is_due:
                self.join(Search, NEAR_SHARE)
            self._huge = True
            return
        if self.begun is not None:
            self.members.append(self.begun)
        else:
            self.join(size.relaxation)
        if size.relaxation is Sweeps:
            self._search_is_due = FIRST_SWEEPS
        else:
            self.join(Search, NEAR_SHARE if size.touches_few else 1.0)

    def join(self, kind: type[Member], share: float = 1.0, threads: int = 1) -> None:
        """A new member, unless the method cannot take the model."""
        try:
            self.members.append(kind(self.model, self.settings, share, threads))
        except (SolverError, MemoryError) as error:
            log.debug("%s does not join: %s", kind.name, error)

    def _has(self, kind: type[Member] | type[EliminationMember]) -> bool:
        return any(isinstance(member, kind) for member in self.members)

    def _consider_elimination(self, most_work: float) -> bool:
        """Elimination joins if it fits in memory and takes no more than this work."""
        if self.model.n_factors > MANY_FACTORS:
            return False
        if self._elimination is None:
            self._elimination = Elimination(self.model, self._memory)
        if not self._elimination.fits or self._elimination.estimate.work > most_work:
            return False
        self.members.append(EliminationMember(self.model, self._elimination, self.settings))
        return True

    def _consider_cliques(self) -> None:
        """Where many labels exclude each other, a proof that sees it joins."""
        least = max(self.score, self.settings.cutoff)
        try:
            lifted = lift_cliques(self.model, least)
            if lifted is not None:
                self.members.append(CliqueProof(lifted, self.model, self.settings, least))
                self._share_labels()
        except (SolverError, MemoryError) as error:
            log.debug("no cliques: %s", error)

    def _gets_on(self, relaxation: Relaxation) -> bool:
        """Has it moved its bound not long ago?"""
        return relaxation.idle_work(self.score) < (LITTLE_PATIENCE if self._is_far(relaxation) else PATIENCE)

    @property
    def _sweeps_get_on(self) -> bool:
        """Does TRW-S on a large part still close a gap that is not large? Then its labelings get better, too."""
        return any(not self._is_idle(m) and not self._is_far(m) for m in self.members if isinstance(m, Sweeps))

    def _is_idle(self, relaxation: Sweeps | Greedy) -> bool:
        """Has it hardly moved its bound in its last passes?"""
        patience = max(LITTLE_PATIENCE, FEW_PASSES * self.model.pass_work)
        return relaxation.idle_work(self.score) >= patience

    def _share_of_relaxation(self, relaxation: Sweeps | Greedy) -> float:
        """Little once it is as good as solved, and loose: the search needs the time. Complete 300 x 50, 10 s: 9621 to
        9675; four loose models of 5e7 entries: as good or better but for one by 1e-4."""
        if self.labels is None:
            return 1.0
        solved = self._is_idle(relaxation) and self._is_far(relaxation)
        return SMALL_SHARE if solved else 1.0

    def _share_of_cliques(self, proof: CliqueProof) -> float:
        """Little once its bound is behind that of the others."""
        trial = FEW_CLIQUES if self._few_labelings else TREE_TRIAL
        return 1.0 if proof.bound <= self.bound or proof.work < trial else SMALL_SHARE

    def _share_of_proof(self, proof: Proof) -> float:
        """All of it while the proof gets on, little once it has not moved the bound for long."""
        if self._trees_decide:
            return NEAR_SHARE
        if self._has(Slabs):  # it is they that move the bound now
            return SMALL_SHARE
        return 1.0 if self._gets_on(proof) else SMALL_SHARE

    @property
    def _tree_is_due(self) -> bool:
        """The proof takes its time, or nobody has found a labeling; at once, where a tree may be over soon."""
        due = self._round == TREE_ROUND or (self._round == SOON_ROUND and self.labels is None)
        due |= self._round == 1 and self._few_labelings
        return due and self.model.states <= TREE_STATES and self._has(Proof) and not self._has(QuickTree)

    def _share_of_tree(self, tree: QuickTree) -> float:
        """Many quick nodes with weak bounds: all or little, by whose bound is ahead after a while."""
        trial, ahead, behind = TREE_SHARES
        if self._few_labelings:
            trial, ahead, behind = self._tree_times * TREE_LEVEL, self._tree_times * ahead, FEW_BEHIND
        proof = min(
            (m.bound for m in self.members if isinstance(m, Proof)), default=inf
        )  # others are told the best bound
        lead = TREE_LEAD * (proof - self.score) if self.score > -inf else 0.0
        if tree.bound <= self.bound and proof - tree.bound > lead:
            return ahead
        if tree.work >= TREE_TRIAL:
            return TREE_LEVEL if tree.bound <= self.bound else behind
        others_get_on = any(self._gets_on(m) for m in self.members if isinstance(m, Proof | CliqueProof))
        return trial if self.labels is not None and others_get_on else TREE_LEVEL

    @property
    def _trees_decide(self) -> bool:
        """Whether there is any labeling is for edac and the clauses to find out."""
        return self._few_labelings and self.labels is None

    def _is_stale(self, search: Search) -> bool:
        """Has it found nothing for long, while a tree gets on that would show that there is nothing?"""
        since = search.work - self._improved_at
        return since > max(STALE_WORK, STALE_TIMES * self._improved_at) and any(
            isinstance(m, QuickTree) and m.share >= TREE_LEVEL for m in self.members
        )

    def _is_far(self, relaxation: Relaxation) -> bool:
        """Is it loose, so that a proof has a long way to go?"""
        return relaxation.bound - self.score > FAR_PROOF * max(self.unit, abs(self.score))

    # -- rounds ------------------------------------------------------------------------------------------------

    def begin_round(self, engine: AutoEngine, work: float | None = None) -> Iterator[None]:
        """Members that join in this round do, and all owe its work."""
        self._round += 1
        if self._round == ELIMINATION_ROUND and not (self._huge or self._has(EliminationMember)):
            yield from engine.aside(lambda: self._consider_elimination(WORTH_ELIMINATING))
        if self._round == CLIQUE_ROUND and self._has(Proof) and self.model.states <= TREE_STATES:
            yield from engine.aside(self._consider_cliques)
        if self._tree_is_due:
            soon = self.labels is None or self._few_labelings
            self.join(QuickTree, self._tree_times * TREE_LEVEL if soon else TREE_SHARES[0])
            self._share_labels()
        for member in self.members:
            member.owe(work_of_round(self._round) if work is None else work)

    def end_round(self) -> None:
        """All members have done what they owed."""
        self._collect()
        self._exchange()

    def _counted(self) -> Iterator[Member | EliminationMember]:
        """The members up to the first that has ended the search: what later ones do in its last round does not count,
        so that with one thread they need not do it."""
        for member in self.members:
            yield member
            if member.decides:
                return

    @property
    def busy(self) -> list[Member | EliminationMember]:
        """Who still owes work of this round that counts."""
        return [m for m in self._counted() if m.busy]

    def work_off(self, deadline: float) -> None:
        """One member after the other does what it owes."""
        for member in self._counted():
            member.work_off(deadline)

    def best(self, labels: bool = True) -> tuple[NDArray[np.int32] | None, float, float]:
        """Labels, score and bound, with what the members have found in a round that is not over."""
        found, score, bound = self.labels, self.score, self.bound
        for member in self._counted():
            if member.score > score:
                found, score = member.labels() if labels else None, member.score
            bound = min(bound, member.bound)
        return found, score, bound

    def _collect(self) -> None:
        """The end of a round: takes the members' labelings and bounds."""
        before = self.score
        self.labels, self.score, self.bound = self.best()
        if self.score > before:
            self._improved_at = max((m.work for m in self.members if isinstance(m, Search)), default=0.0)
        last = next((m for m in self._counted() if m.decides), None)
        if last is not None:
            self.status = "converged" if last.complete and last.status != "infeasible" else last.status

    def _take(self, labels: NDArray[np.int32], score: float) -> None:
        if score > self.score:
            self.labels, self.score = labels, score

    def offer(self, labels: NDArray[np.int32], score: float) -> None:
        """A labeling from outside: kept if it is better than what is known, and handed to the members."""
        self._take(labels, score)
        self._share_labels()

    def _share_labels(self) -> None:
        for member in self.members:
            if self.labels is not None and isinstance(member, Member) and self.score > member.engine.info.score:
                member.offer(self.labels)

    def _exchange(self) -> None:
        errors = [m.error for m in self.members if m.error is not None]
        self.members = [m for m in self.members if m.running]
        if errors and not self.members and self.running:
            raise errors[0]
        self._share_labels()
        # Hard constraints that nobody meets, or penalties that stand for such: on huge models its memory is for others.
        if self._round == 1 and (self.labels is None or not self._huge):
            self.join(Clauses, 1.0 if self.labels is None else NEAR_SHARE)
            self._share_labels()
        relaxation = self.members[0] if self.members else None
        if self._search_is_due and (relaxation is None or relaxation.iterations >= self._search_is_due):
            self._search_is_due = 0
            self.join(Search)
            self._share_labels()
        for member in list(self.members):
            if not isinstance(member, Member):
                continue
            if isinstance(member, Proof):
                member.share = self._share_of_proof(member)
                if member.share < 1.0 and not self._helped and not self._trees_decide:
                    self._helped = True
                    if self._is_far(member):
                        self.join(Slabs, SLABS_SHARE)
                    else:
                        self.join(Greedy)
                if any(m.bound < member.bound for m in self.members if isinstance(m, CliqueProof)):
                    member.share = SMALL_SHARE  # the same search, by a worse bound
            elif isinstance(member, CliqueProof):
                member.share = self._share_of_cliques(member)
            elif isinstance(member, QuickTree):
                member.share = self._share_of_tree(member)
            elif self.bound < member.bound:
                member.engine.offer_bound(self.bound)
            if isinstance(member, (Sweeps, Greedy)):
                member.share = self._share_of_relaxation(member)
            if isinstance(member, Search):
                near = self.labels is not None and self.bound - self.score <= NEAR_PROOF * max(
                    self.unit, abs(self.score)
                )
                less = near or self._huge or self._trees_decide or self._sweeps_get_on or self._is_stale(member)
                member.share = NEAR_SHARE if less else 1.0
        if not self.members and self.running:
            self.status = "converged"


class Trial(PartState):
    """A whole model under two proofs, before anything has been found out about it. Nobody joins them."""

    def prepare(self) -> None:
        self._few_labelings = Size(self.model).few_labelings
        if self.model.states <= TRIAL_STATES:
            self.join(QuickTree, FEW_TRIAL if self._few_labelings else TRIAL_SHARE)
        if not self._few_labelings:
            self.join(Proof)

    def begin_round(self, engine: AutoEngine, work: float | None = None) -> Iterator[None]:
        self._round += 1
        if self._round == 2 and self._few_labelings:  # making it takes as long as many easy models
            self.join(Proof)
            self._share_labels()
        for member in self.members:
            member.owe(work_of_round(1) if work is None else work)
        yield from ()

    def end_round(self) -> None:
        self._collect()
        self.members = [m for m in self.members if m.running]
        if self._few_labelings:
            for member in self.members:
                member.share = FEW_AGAIN if isinstance(member, QuickTree) else TREE_LEVEL
        self._share_labels()
