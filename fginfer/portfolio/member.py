"""Members of a portfolio: solvers of the core that are given *work*, counted in table entries, instead of time.

Time differs from run to run and work does not, so a portfolio that shares out work gives the same answer on every
machine, with any number of threads, and however it is cut into slices.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.cliques import Lifted
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.core.solver import EVENT, proof_tolerance
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SettingsError, SolverError
from fginfer.portfolio.incumbent import Incumbent

log = logging.getLogger("fginfer")
# What an iteration costs beyond the entries it reads, so that tiny models count as work, too. Chosen, not measured.
ITERATION_WORK = 200
# The same of a factor in an iteration of gdmm: 9 us, of which the others read so many entries; of small tables 2 us.
ORACLE_WORK, SMALL_ORACLE, ORACLE_STATE = 4000.0, 500.0, 8.0
MOVED = 0.02  # of the gap: what a bound that gets on falls by
LEAST_EXPLORED = 0.05  # of a tree: before, how long it takes to its end is a guess
NEXT_LOOK, LOOKS = 1.5, 2  # times the work of the look before; how many tell how fast it gets on
ENDS = "optimal", "gap_reached", "infeasible"  # statuses of a member after which its part is done with


class Member:
    """A method of the core at work on one part: a class a method, below. `owe` adds work, `work_off` does it until a
    deadline and can be called again."""

    name: ClassVar[str]  # of the method

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        own = Settings(self.name, settings.gap, settings.seed, threads, None, settings.cutoff, settings.start_time)
        self.share = share
        self.threads = threads
        self.engine = NativeEngine(model, own)
        self.status = "running"
        self.error: Exception | None = None  # why the status is "failed"
        self.owed = 0.0
        self._chunk_begin = 0
        self._chunk_end: int | None = None  # iterations at which the chunk under way ends, unless what is owed is done
        self._chunk_size = 1
        self._chunk_work = 0.0  # counters at the start of the chunk
        self._seen = 0  # trace events handed out

    @property
    def running(self) -> bool:
        return self.status == "running"

    def offer(self, labels: NDArray[np.int32]) -> None:
        """A labeling of the part that is better than its own."""
        self.engine.offer(labels)

    def start_from(self, messages: NDArray[np.float64]) -> None:
        """Messages of another method; a method that has begun, or to which they are too large, does without."""
        with suppress(SettingsError, SolverError, MemoryError):
            self.engine.warm_start(messages)

    def owe(self, work: float) -> None:
        self.owed += self.share * work

    def work_off(self, deadline: float) -> None:
        """Works until nothing is owed (True below), the method is done, or the deadline passes."""
        while self.running and (self.owed > 0 or self._chunk_end is not None):
            left = deadline - clock.now()
            if left <= 0:
                return
            if self._chunk_end is None:
                self._chunk_begin, self._chunk_end = self.engine.steps, self.engine.steps + self._chunk_size
                self._chunk_work = self.work
                self.engine.native.pause_at(self.engine.info.entries_touched + int(self.owed) + 1)
            try:
                self.status = self.engine.run(left, self._chunk_end - self.engine.steps)
            except (SolverError, MemoryError) as error:  # the others go on, and what it has found stays
                log.warning("%s leaves: %s", self.name, error)
                self.status, self.error = "failed", error
                return
            steps = self.engine.steps
            if self.running and steps < self._chunk_end and not self.engine.info.paused:
                return  # out of time in the middle of a chunk, which goes on next time
            used = self.work - self._chunk_work
            self.owed -= used
            self._chunk_end = None
            each = max(used / max(steps - self._chunk_begin, 1), 1.0)
            self._chunk_size = max(1, min(2 * self._chunk_size, int(self.owed / each)))
            self._end_chunk()

    def _end_chunk(self) -> None:
        """Another look at how it gets on: at the same places whatever the slices."""

    @property
    def work(self) -> float:
        """Done so far."""
        return float(self.engine.info.entries_touched + ITERATION_WORK * self.engine.steps)

    @property
    def iterations(self) -> int:
        return int(self.engine.info.iterations)

    @property
    def busy(self) -> bool:
        """Work is owed, or a chunk is unfinished."""
        return self.running and (self.owed > 0 or self._chunk_end is not None)

    def events(self) -> NDArray[Any]:
        """The trace events that are new since the last call."""
        new = self.engine.native.events(self._seen)
        self._seen += len(new)
        return new

    @property
    def complete(self) -> bool:
        """Nothing is left to find."""
        return False

    @property
    def decides(self) -> bool:
        """The part is done with: its optimum is known, or as near as was asked for, or there is none."""
        return self.status in ENDS or self.complete

    def labels(self) -> NDArray[np.int32] | None:
        return self.engine.labels()

    @property
    def score(self) -> float:
        return float(self.engine.info.score)

    @property
    def bound(self) -> float:
        return float(self.engine.info.bound)


class Ascent(Member):
    """Coordinate ascent from many starts."""

    name = "icm"


class Clauses(Member):
    """Feasible labelings by learning from conflicts."""

    name = "clauses"


class Slabs(Member):
    """Tighter bounds on sparse parts with a loose relaxation."""

    name = "slabs"


class Search(Member):
    """Better labelings."""

    name = "search"


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


class Tree(Relaxation):
    """A search tree that ends with a proof. It is not told bounds: its own shows whether it gets on."""

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        super().__init__(model, settings, share, threads)
        self._seen_at: list[tuple[float, float]] = [(0.0, 0.0)]  # work, and what was explored by then

    def _end_chunk(self) -> None:
        if self.work >= NEXT_LOOK * self._seen_at[-1][0]:
            self._seen_at = [*self._seen_at[-LOOKS:], (self.work, float(self.engine.info.explored))]

    def work_left(self) -> float:
        """What it is likely to take to its end, by how fast it has been done with branches of late; inf: not known. The
        slowest of some looks counts: a large branch that ends at once says nothing about the others."""
        seen = self._seen_at
        slowest = min((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(seen)) if len(seen) > LOOKS else 0.0
        explored = float(self.engine.info.explored)
        return max(0.0, 1.0 - explored) / slowest if explored >= LEAST_EXPLORED and slowest > 0 else inf

    @property
    def _begins(self) -> bool:
        """It is still at the root."""
        return bool(self.engine.info.oracle_calls <= 1)

    @property
    def complete(self) -> bool:
        return self._ended_to_rounding


class Proof(Tree):
    """Branch and bound: few nodes, with the bounds of TRW-S."""

    name = "bnb"


class QuickTree(Tree):
    """Depth-first search: many nodes, with the bounds of soft arc consistency."""

    name = "edac"


class Dolls(Tree):
    """Depth-first search in a static order, with the optima of its last variables as bounds."""

    name = "dolls"

    def work_left(self) -> float:
        """The largest dolls may take many times as long as all others: not known."""
        return inf


class CliqueProof(Tree):
    """Branch and bound on the part with variables for cliques of labels that exclude each other.

    Labelings no better than `least`, the score of one in hand, may be missing there: no bound is below it."""

    name = "bnb"

    def __init__(self, lifted: Lifted, model: Model, settings: Settings, least: float) -> None:
        super().__init__(lifted.model, settings)
        self._lifted, self._model, self._least = lifted, model, least
        self._scored, self._score = -inf, -inf  # the engine's score, and that of the same labels in the part

    def offer(self, labels: NDArray[np.int32]) -> None:
        self.engine.offer(self._lifted.lift(labels))

    def work_off(self, deadline: float) -> None:
        super().work_off(deadline)
        if self.status == "infeasible" and self._least > -inf:
            self.status = "converged"  # nothing is better than what was in hand

    @property
    def complete(self) -> bool:
        return super().complete or (
            self.status == "converged" and self._least > -inf and self.engine.info.score == -inf
        )

    def labels(self) -> NDArray[np.int32] | None:
        labels = self.engine.labels()
        return None if labels is None else np.ascontiguousarray(labels[: self._lifted.n_original])

    @property
    def score(self) -> float:
        said = float(self.engine.info.score)
        if said != self._scored:
            labels = self.labels()
            self._scored, self._score = said, -inf if labels is None else self._model.score(labels)
        return self._score

    @property
    def bound(self) -> float:
        return max(float(self.engine.info.bound), self._least)

    def events(self) -> NDArray[Any]:
        """Scores are sums in another order there: what it finds is stamped at the end of a round."""
        return np.empty(0, EVENT)


class EliminationMember:
    """Bucket elimination as a member: no labeling and no bound until its end, when it has the optimum.

    It ends once the work granted covers what was estimated, so that the round of its end does not depend on the clock.
    """

    name, iterations, threads = "elimination", 0, 1
    error: Exception | None = None

    def __init__(self, model: Model, elimination: Elimination, settings: Settings, share: float = 1.0) -> None:
        self.elimination = elimination
        self.share = share
        self.status = "running"
        self._found = Incumbent(model, settings.start_time, settings.cutoff)
        self._granted = 0.0
        self._total = elimination.estimate.work

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def busy(self) -> bool:
        return self.running and (self._granted >= self._total or self._done < self._granted)

    @property
    def _done(self) -> float:
        return self.elimination.progress * self._total

    def owe(self, work: float) -> None:
        self._granted += self.share * work

    def work_off(self, deadline: float) -> None:
        while self.busy:
            left = deadline - clock.now()
            if left <= 0:
                return
            try:
                ended = self.elimination.run(min(left, 0.005))
            except (SolverError, MemoryError):  # more memory than it was allowed, or than there is
                self.status = "converged"
                return
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

    @property
    def decides(self) -> bool:
        return self.status in ENDS or self.complete

    def labels(self) -> NDArray[np.int32] | None:
        return self._found.labels

    @property
    def score(self) -> float:
        return self._found.score if self._found.wanted else -inf

    @property
    def bound(self) -> float:
        return self._found.bound

    def events(self) -> NDArray[Any]:
        return np.empty(0, EVENT)
