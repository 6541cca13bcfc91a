"""Member: a solver of the core in a portfolio that is given *work*, counted in table entries, instead of time.

Time differs from run to run and work does not, so a portfolio that shares out work gives the same answer on every
machine, with any number of threads, and however it is cut into slices. A class a method: searches.py, relaxations.py,
trees.py; on a model of their own: narrow.py, cliques.py; elimination.py, which is no solver.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.engine import NativeEngine, Settings
from fginfer.errors import SettingsError, SolverError

log = logging.getLogger("fginfer")
# What an iteration costs beyond the entries it reads, so that tiny models count as work, too. Chosen, not measured.
ITERATION_WORK = 200
ENDS = "optimal", "gap_reached", "infeasible"  # statuses of a member after which its part is done with


class Member:
    """A method of the core at work on one part. `owe` adds work, `work_off` does it until a
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
