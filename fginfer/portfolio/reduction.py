"""Reduction: presolve of one model, which may go on beside other work."""

from __future__ import annotations

import logging
from collections.abc import Generator
from math import inf

import numpy as np

from fginfer.core.model import Model
from fginfer.core.presolve import Presolved, presolve
from fginfer.crew import Task
from fginfer.portfolio.workers import Workers

log = logging.getLogger("fginfer")


class Reduction:
    """What presolve makes of a model depends on a score that it may take for granted, and not on when it begins."""

    def __init__(self, model: Model, workers: Workers) -> None:
        self.allowed = -inf  # that score, once `begin` or `finish` has fixed it
        self.is_fixed = False
        self._model, self._workers = model, workers
        self._cancelled = np.zeros(1, np.int32)  # 1: its end is of no use any more
        self._task: Task[Presolved | None] | None = None
        self._presolved: Presolved | None = None
        self._is_known = False

    def begin(self, allowed: float) -> None:
        """Fixes what is known, and goes on beside other work if there is a thread for it."""
        self.allowed, self.is_fixed = allowed, True
        if self._workers.threads > 1:
            self._task = self._workers.submit(self._job)

    def finish(self, allowed: float) -> Generator[None, None, Presolved | None]:
        """The reduced model; `allowed` counts where `begin` has not been called. None where memory is short."""
        if not self.is_fixed:
            self.allowed, self.is_fixed = allowed, True
        if not self._is_known:
            task, self._task = self._task, None
            wait = self._workers.aside(self._job) if task is None else self._workers.wait_for(task)
            self._presolved = yield from wait
            self._is_known = True
        return self._presolved

    def forget(self) -> None:
        """What it has made belongs to the caller alone, from here on."""
        self._presolved = None

    def cancel(self) -> None:
        """What is under way ends soon."""
        self._cancelled[0] = 1

    def _job(self) -> Presolved | None:
        try:
            # What costs more than `allowed` leaves room for cannot be part of a better labeling.
            return presolve(self._model, cancelled=self._cancelled, least=self.allowed)
        except MemoryError as error:
            log.warning("no presolve: %s", error)
            return None
