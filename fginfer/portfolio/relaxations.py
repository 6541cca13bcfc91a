"""Members whose bounds fall with the work, without a tree."""

from __future__ import annotations

from math import inf

from fginfer.core.model import Model
from fginfer.core.solver import proof_tolerance
from fginfer.engine import Settings
from fginfer.portfolio.member import Member

# What a factor costs in an iteration of gdmm: 9 us, of which others read so many entries; of small tables 2 us.
ORACLE_WORK, SMALL_ORACLE, ORACLE_STATE = 4000.0, 500.0, 8.0
FACTOR_WORK = 250.0  # the same of ad3: factors of nine binary variables, as long as a factor of TRW-S reads so many
MOVED = 0.02  # of the gap: what a bound that gets on falls by


class Slabs(Member):
    """Tighter bounds on sparse parts with a loose relaxation."""

    name = "slabs"


class Relaxation(Member):
    """A bound that falls with the work, for as long as the relaxation gets on."""

    _moved_at, _moved_bound = 0.0, inf  # work and bound when it last got on

    def idle_work(self, score: float) -> float:
        """Done since the bound moved by a part of the gap to the best score."""
        bound = float(self.engine.info.bound)
        if self._begins or self._moved_bound - bound > MOVED * (bound - score):
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
        nearly = 1e3 * proof_tolerance(info.score, info.unit)
        return self.status == "converged" and bool(info.bound - info.score <= nearly)


class Cycles(Relaxation):
    """Bounds from frustrated cycles of binary parts, which are tight on many sparse ones."""

    name = "cycles"

    @property
    def complete(self) -> bool:
        return self._ended_to_rounding


class Sweeps(Relaxation):
    """TRW-S: the relaxation where one pass over the tables takes little time."""

    name = "trws"


class Greedy(Relaxation):
    """gdmm: the relaxation where a pass takes long, and another one where the proof does not get on."""

    name = "gdmm"

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        super().__init__(model, settings, share, threads)
        states = model.states / max(1, model.n_factors)
        self._call_work = min(ORACLE_WORK, SMALL_ORACLE + ORACLE_STATE * states)
        self.iteration_work = self._call_work * model.n_factors  # at least, once there are iterations

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
        return super().work + FACTOR_WORK * float(self.engine.info.oracle_calls)
