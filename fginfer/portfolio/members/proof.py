"""Members that end with a proof, by branching: bnb, edac, dolls, cliques, sdp, assignment."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.cliques import Lifted, lift_cliques
from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.members.member import Elsewhere
from fginfer.portfolio.members.relaxation import Relaxation
from fginfer.portfolio.worker import View, Worker


class Tree(Relaxation):
    """A search tree that ends with a proof. It is not told bounds: its own shows whether it makes progress."""

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        super().__init__(model, settings, share, threads)
        self._seen_at: list[tuple[float, float]] = [(0.0, 0.0)]  # work, and what was explored by then

    def _end_chunk(self) -> None:
        if self.work >= self.rules.next_look * self._seen_at[-1][0]:
            self._seen_at = [*self._seen_at[-self.rules.looks :], (self.work, float(self.engine.info.explored))]

    def work_left(self) -> float:
        """What it is likely to take to its end, by how fast it has been done with branches of late; inf: not known. The
        slowest of some looks counts: a large branch that ends at once says nothing about the others."""
        seen = self._seen_at
        slowest = min((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(seen)) if len(seen) > self.rules.looks else 0.0
        explored = float(self.engine.info.explored)
        return max(0.0, 1.0 - explored) / slowest if explored >= self.rules.least_explored and slowest > 0 else inf

    @property
    def nodes(self) -> int:
        return int(self.engine.info.nodes)

    @property
    def _begins(self) -> bool:
        """It is still at the root."""
        return self.nodes <= 1

    @property
    def complete(self) -> bool:
        return self._ended_to_rounding


class Proof(Tree):
    """Branch and bound: few nodes, with the bounds of TRW-S."""

    name = "bnb"
    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        return team.size.relaxation == cls.name and not team.has(cls.name)

    def claim(self, team: View) -> float:
        """All of it while the proof makes progress, little once it has not moved the bound for long."""
        rules = self.rules
        if team.trees_decide:
            share = rules.near_share
        elif team.has("slabs"):  # it is they that move the bound now
            share = rules.small_share
        else:
            share = 1.0 if team.gets_on(self) else rules.small_share
        behind = team.best_bound("cliques") < self.bound
        # The same search by a worse bound, or one that ends without a tree.
        return rules.small_share if behind or team.is_overtaken(self) else share


class QuickTree(Tree):
    """Depth-first search: many nodes, with the bounds of soft arc consistency."""

    name = "edac"
    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        """The proof takes its time, or nobody has found a labeling; at once, where a tree may be over soon."""
        rules = team.rules
        due = team.round == rules.tree_round or (team.round == rules.soon_round and team.labels is None)
        due |= team.round == 1 and team.size.few_labelings
        return due and team.model.states <= rules.tree_states and team.has("bnb") and not team.has(cls.name)

    @classmethod
    def make(cls, team: View) -> Worker | None:
        """Little work at first, unless it may be over soon."""
        soon = team.labels is None or team.size.few_labelings
        share = team.size.tree_times * team.rules.tree_level if soon else team.rules.tree_trial_share
        return cls(team.model, team.settings, share)

    def claim(self, team: View) -> float:
        """Many quick nodes with weak bounds: all or little, by whose bound is ahead after a while."""
        rules = self.rules
        trial, ahead, behind = rules.tree_trial_share, rules.tree_ahead_share, rules.tree_behind_share
        if team.size.few_labelings:
            times = team.size.tree_times
            trial, ahead, behind = times * rules.tree_level, times * ahead, rules.few_behind_share
        proof = team.best_bound("bnb")
        lead = rules.tree_lead * (proof - team.score) if team.score > -inf else 0.0
        # A better bound of gdmm, which ends above the optimum, says nothing about who gets there first.
        others = [m.bound for m in team.members if m.name not in ("gdmm", "search", "narrow")]
        leads = self.bound <= min(others, default=inf)
        if leads and proof - self.bound > lead:
            return ahead
        if self.work >= rules.tree_trial:
            return rules.tree_level if leads else behind
        others_get_on = any(team.gets_on(m) for m in team.of("bnb", "cliques"))
        return trial if team.labels is not None and others_get_on else rules.tree_level


class Dolls(Tree):
    """Depth-first search in a static order, with the optima of its last variables as bounds."""

    name = "dolls"
    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        rules = team.rules
        return team.round == rules.tree_round and team.model.states <= rules.tree_states and team.has("bnb")

    @classmethod
    def make(cls, team: View) -> Worker | None:
        return cls(team.model, team.settings, team.rules.dolls_share)

    def claim(self, team: View) -> float:
        """Where they suit a model, their bound is ahead of all others long before their end; elsewhere hardly ever."""
        if self.bound <= team.bound and self.work > 0:
            return self.rules.dolls_ahead_share
        return self.rules.dolls_share if self.work < self.rules.dolls_trial else self.rules.dolls_behind_share

    def work_left(self) -> float:
        """The largest dolls may take many times as long as all others: not known."""
        return inf


class Semidefinite(Tree):
    """A tree over semidefinite bounds, for binary parts whose variables meet many others."""

    name = "sdp"

    @classmethod
    def due(cls, team: View) -> bool:
        """At once where local bounds are known to say nothing, else when the others have had a little time."""
        is_time = team.round == (team.rules.crowded_sdp if team.size.is_crowded else team.rules.sdp_round)
        return is_time and team.size.suits_spins and team.bound > team.score

    def claim(self, team: View) -> float:
        """Most of it while its bound is ahead and near; little if it has had its trial and is behind."""
        rules = self.rules
        if self.bound <= team.bound and self.work > 0:
            return rules.sdp_share if team.is_far(self) else rules.first_share
        return rules.sdp_share if self.work < rules.sdp_trial else rules.small_share

    def work_left(self) -> float:
        """Nodes near the root close last: not known."""
        return inf


class Assignment(Tree):
    """A tree over the bounds of quadratic assignment, for parts whose variables must all differ."""

    name = "assignment"

    @classmethod
    def due(cls, team: View) -> bool:
        return team.round == team.rules.assignment_round and team.size.suits_assignment and team.bound > team.score

    def claim(self, team: View) -> float:
        """Most of it while its bound is ahead; little if it has had its trial and is behind."""
        rules = self.rules
        if self.bound <= team.bound and self.work > 0:
            return rules.first_share
        return rules.assignment_share if self.work < rules.assignment_trial else rules.small_share


class CliqueProof(Elsewhere, Tree):
    """Branch and bound on the part with variables for cliques of labels that exclude each other.

    Labelings no better than `least`, the score of one in hand, may be missing there: no bound is below it."""

    name, method = "cliques", "bnb"

    def __init__(self, lifted: Lifted, model: Model, settings: Settings, least: float) -> None:
        super().__init__(lifted.model, settings)
        self._lifted, self._part, self._least = lifted, model, least

    @classmethod
    def due(cls, team: View) -> bool:
        rules = team.rules
        return team.round == rules.clique_round and team.has("bnb") and team.model.states <= rules.tree_states

    @classmethod
    def make(cls, team: View) -> Worker | None:
        """Where many labels exclude each other."""
        least = max(team.score, team.settings.cutoff)
        lifted = lift_cliques(team.model, least)
        return None if lifted is None else cls(lifted, team.model, team.settings, least)

    def claim(self, team: View) -> float:
        """Little once its bound is behind that of the others, less once it has not moved it for long."""
        rules = self.rules
        trial = rules.few_cliques if team.size.few_labelings else rules.tree_trial
        if self.bound > team.bound and self.work >= trial:
            return rules.small_share
        return 1.0 if team.gets_on(self) else rules.idle_cliques_share

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
