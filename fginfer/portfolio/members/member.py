"""Member: a solver of the core in a portfolio that is given *work*, counted in table entries, instead of time.

Time differs from run to run and work does not, so a portfolio that shares out work gives the same answer on every
machine, with any number of threads, and however it is cut into slices. Elsewhere: a member at work on another model
than its part.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from contextlib import suppress
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SettingsError, SolverError
from fginfer.portfolio.ledger import terms_of
from fginfer.portfolio.worker import View, Worker

log = logging.getLogger("fginfer")


class Member(Worker):
    """A method of the core at work on one part."""

    method: ClassVar[str | None] = None  # a method of the core, where the member has another name

    def __init__(self, model: Model, settings: Settings, share: float = 1.0, threads: int = 1) -> None:
        own = Settings(
            self.method or self.name, settings.gap, settings.seed, threads, None, settings.cutoff, settings.start_time
        )
        self.share = share
        self.threads = threads
        self.engine = NativeEngine(model, own)
        terms = terms_of(settings)
        self.rules = terms.rules
        self.account = terms.ledger.open(self.name)
        self.owed = 0.0
        self._chunk_begin = 0
        self._chunk_end: int | None = None  # iterations at which the chunk under way ends, unless what is owed is done
        self._chunk_size = 1
        self._chunk_work = 0.0  # counters at the start of the chunk
        self._seen = 0  # trace events handed out

    @classmethod
    def make(cls, team: View) -> Worker | None:
        return cls(team.model, team.settings)

    def hear(self, labels: NDArray[np.int32], score: float) -> None:
        if score > self.engine.info.score:
            self.offer(labels)

    def hear_bound(self, bound: float) -> None:
        if bound < self.bound:
            self.engine.offer_bound(bound)

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
        while self.running and (self.owed > 0 or self._chunk_end is not None):
            left = deadline - clock.now()
            if left <= 0:
                return
            if self._chunk_end is None:
                self._chunk_begin, self._chunk_end = self.engine.steps, self.engine.steps + self._chunk_size
                self._chunk_work = self.work
                self.engine.native.pause_at(self.engine.info.entries_touched + int(self.owed) + 1)
            try:
                self.status = self.advance(left, self._chunk_end - self.engine.steps)
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

    def advance(self, seconds: float, iterations: int) -> str:
        """Some work of the method, and what it took in the account of this member."""
        began, account = clock.now(), self.account
        try:
            return self.engine.run(seconds, iterations)
        finally:
            account.seconds += clock.now() - began
            account.work, account.iterations = self.work, self.iterations
            account.nodes, account.sweeps = self.nodes, self.sweeps

    @property
    def nodes(self) -> int:
        """The nodes of a search tree."""
        return 0

    @property
    def sweeps(self) -> int:
        """Passes of coordinate ascent over all tables."""
        return int(self.engine.info.sweeps)

    def _end_chunk(self) -> None:
        """Called at the end of a chunk of work, to note what progress it has made. Chunks do not depend on slices."""

    @property
    def work(self) -> float:
        return float(self.engine.info.entries_touched + self.rules.iteration_work * self.engine.steps)

    @property
    def iterations(self) -> int:
        return int(self.engine.info.iterations)

    @property
    def steps(self) -> int:
        return self.engine.steps

    @property
    def memory(self) -> int:
        return int(self.engine.info.memory)

    def rest(self, alone: bool) -> None:
        self.engine.native.rest(alone)

    @property
    def busy(self) -> bool:
        return self.running and (self.owed > 0 or self._chunk_end is not None)

    def events(self) -> NDArray[Any]:
        new = self.engine.native.events(self._seen)
        self._seen += len(new)
        return new

    def labels(self) -> NDArray[np.int32] | None:
        return self.engine.labels()

    @property
    def score(self) -> float:
        return float(self.engine.info.score)

    @property
    def bound(self) -> float:
        return float(self.engine.info.bound)


class Elsewhere(Member):
    """`_part` is the part's model, which a class sets: what is found is scored in its tables."""

    _part: Model
    _scored, _score = -inf, -inf  # the engine's score, and that of the same labels in the part

    @abstractmethod
    def _in_part(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels of the other model, as labels of the part."""

    def labels(self) -> NDArray[np.int32] | None:
        labels = self.engine.labels()
        return None if labels is None else self._in_part(labels)

    @property
    def score(self) -> float:
        said = float(self.engine.info.score)
        if said != self._scored:
            labels = self.labels()
            self._scored, self._score = said, -inf if labels is None else self._part.score(labels)
        return self._score

    def events(self) -> NDArray[Any]:
        """Its scores are sums in another order, its bounds not those of the part: what it finds is stamped at the end
        of a round."""
        return np.empty(0, EVENT)
