"""Members that look for labelings: search, narrow, clauses, icm."""

from __future__ import annotations

from math import inf, isqrt

import numpy as np
from numpy.typing import NDArray

from fginfer.core.model import Model
from fginfer.engine import Settings
from fginfer.portfolio.members.member import Elsewhere, Member
from fginfer.portfolio.rules import Rules
from fginfer.portfolio.worker import ENDS, View, Worker


class Ascent(Member):
    """Coordinate ascent from many starts."""

    name = "icm"


class Clauses(Member):
    """Feasible labelings by learning from conflicts."""

    name = "clauses"

    @classmethod
    def due(cls, team: View) -> bool:
        """Hard constraints that nobody meets, or penalties that stand for such: the memory of huge models is for
        others."""
        return team.round == 1 and (team.labels is None or not team.size.is_huge)

    @classmethod
    def make(cls, team: View) -> Worker | None:
        return cls(team.model, team.settings, 1.0 if team.labels is None else team.rules.near_share)


class Search(Member):
    """Better labelings."""

    name = "search"

    @classmethod
    def due(cls, team: View) -> bool:
        """At once, or when the relaxation has found what it finds soon."""
        if cls.name in team.asked or team.left_to_elimination:
            return False
        wait = cls._waits_for(team)
        if team.round == 0 or wait == 0:
            return team.round == 0 and wait == 0
        return not team.members or team.members[0].iterations >= wait

    @staticmethod
    def _waits_for(team: View) -> int:
        """Iterations of the relaxation."""
        if team.size.is_huge:
            return team.size.search_is_due
        sweeps = team.size.relaxation == "trws" and not team.size.is_crowded
        return team.rules.first_sweeps if sweeps else 0

    @classmethod
    def make(cls, team: View) -> Worker | None:
        others_find = team.round == 0 and team.size.touches_few
        return cls(team.model, team.settings, team.rules.near_share if others_find else 1.0)

    def claim(self, team: View) -> float:
        """Less where others are as likely to find what is missing."""
        if team.search_is_first:
            return 1.0
        less = self._is_near(team) or team.size.is_huge or team.trees_decide or team.cycles_lead
        less = less or self._sweeps_get_on(team) or self._is_stale(team)
        return self.rules.near_share if less else 1.0

    @staticmethod
    def _is_near(team: View) -> bool:
        """Is the proof likely to find the rest?"""
        return team.labels is not None and team.bound - team.score <= team.distance(team.rules.near_proof)

    @staticmethod
    def _sweeps_get_on(team: View) -> bool:
        """Does TRW-S on a large part still close a gap that is not large? Then its labelings get better, too."""
        return any(not m.is_idle(team) and not team.is_far(m) for m in team.of("trws"))

    def _is_stale(self, team: View) -> bool:
        """Has it found nothing for long, while a tree makes progress that would show that there is nothing?"""
        tree_gets_on = any(m.share >= self.rules.tree_level for m in team.of("edac"))
        return tree_gets_on and team.is_exhausted(self)


def narrow_labels(model: Model, rules: Rules) -> int | None:
    """How many labels a variable may keep; None: it is not worth it."""
    most = isqrt(int(rules.narrow_entries / max(model.n_factors, 1)))
    fits = most >= rules.least_labels and int(model.cards.max(initial=1)) >= rules.left_out * most
    return most if fits else None


class NarrowSearch(Elsewhere, Search):
    """Better labelings of a model by those of a narrow one (`Model.narrow`): nothing it proves is about the whole."""

    name, method = "narrow", "search"

    @classmethod
    def due(cls, team: View) -> bool:
        """The relaxation of a huge model has found a labeling that says which labels promise most."""
        if cls.name in team.asked or team.labels is None or not (team.size.is_huge and team.members):
            return False
        first = team.members[0]
        return first.name == team.size.relaxation == "gdmm" and first.steps >= team.rules.narrow_after

    @classmethod
    def make(cls, team: View) -> Worker | None:
        most = narrow_labels(team.model, team.rules)
        return None if most is None or team.labels is None else cls(team.model, team.settings, team.labels, most)

    def claim(self, team: View) -> float:
        """An entry takes gdmm an access to memory where tables are large; those of few labels fit a cache."""
        if team.search_is_first:
            return 1.0
        return (self.rules.near_share if self._is_near(team) else 1.0) * self.rules.narrow_times

    def __init__(self, model: Model, settings: Settings, labels: NDArray[np.int32], most: int) -> None:
        own, self._kept = model.narrow(labels, most)
        super().__init__(own, settings)
        self._part = model

    def offer(self, labels: NDArray[np.int32]) -> None:
        """Labelings with labels that are not kept are of no use to it."""
        at = self._kept == labels[:, None]
        if at.any(axis=1).all():
            self.engine.offer(at.argmax(axis=1).astype(np.int32))

    def work_off(self, deadline: float) -> None:
        super().work_off(deadline)
        if self.status in ENDS:
            self.status = "converged"  # there is nothing better among these labels

    @property
    def decides(self) -> bool:
        return False

    def _in_part(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.take_along_axis(self._kept, labels[:, None], 1)[:, 0].copy()

    @property
    def bound(self) -> float:
        return inf
