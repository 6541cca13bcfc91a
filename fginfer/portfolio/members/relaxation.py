"""Members whose bounds fall with the work, without a tree: trws, gdmm, ad3, cycles, slabs, triples."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

from fginfer.core.model import Model
from fginfer.core.solver import proof_tolerance
from fginfer.engine import Settings
from fginfer.portfolio.members.member import Member
from fginfer.portfolio.worker import View, Worker


class Slabs(Member):
    """Tighter bounds on sparse parts with a loose relaxation."""

    name = "slabs"

    @classmethod
    def due(cls, team: View) -> bool:
        """A proof needs help, and has a long way to go."""
        proof = team.leading_proof() if cls.name not in team.asked and team.help_is_due else None
        return proof is not None and team.is_far(proof)

    @classmethod
    def make(cls, team: View) -> Worker | None:
        return cls(team.model, team.settings, team.rules.slabs_share)


class Relaxation(Member):
    """A bound that falls with the work, for as long as the relaxation makes progress."""

    _moved_at, _moved_bound = 0.0, inf  # work and bound when it last got on

    def hear_bound(self, bound: float) -> None:
        """It is judged by its own."""

    def idle_work(self, score: float) -> float:
        bound = float(self.engine.info.bound)
        if self._begins or self._moved_bound - bound > self.rules.moved * (bound - score):
            self._moved_at, self._moved_bound = self.work, bound
        return self.work - self._moved_at

    @property
    def _begins(self) -> bool:
        """Too early to judge it by its bound."""
        return False

    @property
    def _ended_to_rounding(self) -> bool:
        """Nothing is left to find, though rounding may stand between that and a proof."""
        info = self.engine.info
        nearly = self.rules.rounding_times * proof_tolerance(info.score, info.unit)
        return self.status == "converged" and bool(info.bound - info.score <= nearly)


class Cycles(Relaxation):
    """Bounds from frustrated cycles of binary parts, which are tight on many sparse ones."""

    name = "cycles"
    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        is_time = team.round == team.rules.cycles_round
        return is_time and team.size.may_be_frustrated and not team.has(cls.name)

    def claim(self, team: View) -> float:
        """Most of it while they make progress, or lead: then they are likely to end with a proof."""
        gets_on = self.idle_work(team.score) < self.rules.patience
        return self.rules.first_share if team.cycles_lead or gets_on else self.rules.small_share

    @property
    def complete(self) -> bool:
        return self._ended_to_rounding


class Triples(Relaxation):
    """Bounds from triples of variables, for parts whose variables meet many others and whose bounds are far off."""

    name = "triples"
    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        """When the others have had a little time: there is a labeling, and a wide gap above it."""
        is_time = team.round == team.rules.triples_round and team.size.suits_triples
        return is_time and -inf < team.score and team.bound - team.score > team.distance(team.rules.far_proof)

    def claim(self, team: View) -> float:
        """As much as others while it has its trial, or is ahead and gets on; little after that."""
        is_ahead = self.bound <= team.bound and self.idle_work(team.score) < self.rules.patience
        on_trial = self.work < self.rules.triples_trial
        return self.rules.triples_share if on_trial or is_ahead else self.rules.small_share


class Descent(Relaxation):
    """The relaxation of a team without a proof, or one that helps a proof."""

    gives_way = True

    @classmethod
    def due(cls, team: View) -> bool:
        return team.round == 0 and team.size.relaxation == cls.name and not team.has(cls.name)

    @classmethod
    def make(cls, team: View) -> Worker | None:
        """On a huge model it is alone, with all threads."""
        return cls(team.model, team.settings, threads=team.settings.threads if team.size.is_huge else 1)

    def claim(self, team: View) -> float:
        """Little once it is as good as solved, and loose: the search needs the time."""
        if team.labels is None:
            return 1.0
        proof = team.leading_proof()
        if self.is_idle(team) and (proof is not None or team.is_far(self)):
            return self.rules.small_share
        if proof is None:
            return 1.0
        if proof.bound < self.bound:
            return self.rules.helpers_share
        return self.rules.first_share if proof.name == "bnb" and team.is_overtaken(proof) else 1.0

    def is_idle(self, team: View) -> bool:
        return self.idle_work(team.score) >= max(self.rules.little_patience, self._patience(team.model.pass_work))

    @abstractmethod
    def _patience(self, pass_work: float) -> float:
        """Work without a better bound that is not yet idle."""


class Sweeps(Descent):
    """TRW-S: the relaxation where one pass over the tables takes little time."""

    name = "trws"

    def _patience(self, pass_work: float) -> float:
        return self.rules.idle_sweeps * pass_work

    @property
    def sweeps(self) -> int:
        return self.iterations


class Greedy(Descent):
    """gdmm: the relaxation where a pass takes long, and another one where the proof makes no progress."""

    name = "gdmm"

    @classmethod
    def due(cls, team: View) -> bool:
        return super().due(team) if team.round == 0 else team.help_is_due

    @classmethod
    def make(cls, team: View) -> Worker | None:
        """As a helper it goes on from the messages of sweeps where they stood still."""
        if team.round == 0:
            return super().make(team)
        made = cls(team.model, team.settings, team.rules.helpers_share)
        if team.messages is not None:
            made.start_from(team.messages)
        return made

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        super().__init__(model, settings, share, threads)
        states = model.states / max(1, model.n_factors)
        each = self.rules.small_oracle + self.rules.oracle_state * states
        self._call_work = min(self.rules.oracle_work, each)
        self.iteration_work = self._call_work * model.n_factors  # at least, once there are iterations

    def _patience(self, pass_work: float) -> float:
        passes = self.rules.idle_passes * pass_work
        return max(passes, self.rules.idle_iterations * self.iteration_work) if self.iterations > 0 else passes

    @property
    def work(self) -> float:
        info = self.engine.info
        inside = info.local_operations + info.search_operations  # for labelings of its own
        return super().work + float(self._call_work * info.oracle_calls + inside)


class Alternating(Relaxation):
    """ad3: where factors have many variables, coordinate ascent stalls far from the optimum of the relaxation, and its
    labelings stay poor; ADMM does not stall, and has a labeling when it is there."""

    name = "ad3"

    @property
    def work(self) -> float:
        return super().work + self.rules.factor_work * float(self.engine.info.oracle_calls)
