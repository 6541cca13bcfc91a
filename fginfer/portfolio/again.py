"""Again: a model that was solved, followed while its numbers change.

Where sweeps have proven the last answer their messages prove most of the next one, too. A Kept has them in a keeper of
the core, which works around what has changed, and a Swept goes on with the sweeps themselves, which takes less where
much has changed. What they cannot prove within a share of what a new start is likely to take is left to the portfolio,
which begins with their labels.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT, is_proof
from fginfer.engine import Settings
from fginfer.errors import FginferError
from fginfer.graph import FactorGraph
from fginfer.journal import Changes
from fginfer.portfolio.rules import Rules
from fginfer.result import Progress, Result, Trace, known

log = logging.getLogger("fginfer")


class Again(ABC):
    """At work under the settings of a solver. After an error it is good for nothing."""

    def __init__(self, n_variables: int, settings: Settings, rules: Rules) -> None:
        self.n_variables = n_variables
        self.was_wide = False  # did much change the last time?
        self._settings, self._rules = settings, rules
        self._start = 0.0
        self.status = "running"
        self.is_stuck = False
        self.trace: list[tuple[float, float, float, int]] = []

    # -- changes -----------------------------------------------------------------------------------------------

    def take(self, graph: FactorGraph, changes: Changes, start: float) -> bool:
        """Takes what has changed; False: it cannot."""
        try:
            taken = self._take(graph, changes)
        except (FginferError, MemoryError) as error:
            log.debug("changes are not followed: %s", error)
            return False
        self._start, self.status, self.is_stuck, self.trace = start, "running", False, []
        return taken

    @abstractmethod
    def _take(self, graph: FactorGraph, changes: Changes) -> bool: ...

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Until it is done, stuck, or the time is over."""
        deadline = clock.now() + seconds if seconds >= 0 else inf
        while self.status == "running" and not self.is_stuck and self._work_on(deadline):
            pass
        if self.status != "running":
            self.trace = [(clock.now() - self._start, self.score, self.bound, 0)]

    @abstractmethod
    def _work_on(self, deadline: float) -> bool:
        """A piece of work; False: the time is over."""

    def _proof(self) -> str:
        return "optimal" if is_proof(self.bound, self.score, -inf, self.unit) else "gap_reached"

    # -- what is known -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def score(self) -> float: ...

    @property
    @abstractmethod
    def bound(self) -> float: ...

    @property
    @abstractmethod
    def unit(self) -> float: ...

    @abstractmethod
    def labels(self) -> NDArray[np.int32] | None: ...

    @abstractmethod
    def messages(self) -> NDArray[np.float64] | None:
        """For the other kind; None: the factors are not those of a model of the core any more."""

    @abstractmethod
    def model(self) -> Model:
        """The model as it is now."""

    @abstractmethod
    def statistics(self) -> dict[str, float]: ...

    def progress(self) -> Progress:
        return Progress(clock.now() - self._start, 0, known(self.score), known(self.bound), unit=self.unit)

    def result(self) -> Result:
        s, labels = self._settings, self.labels()
        return Result(
            s.method,
            self.status,  # type: ignore[arg-type]
            labels,
            known(self.score),
            known(self.bound),
            0,
            clock.now() - self._start,
            0.0,
            s.threads,
            s.seed,
            Trace(np.array(self.trace, EVENT)),
            statistics=self.statistics(),
            unit=self.unit,
            found_by=None if labels is None else "again",
            proved_by="again" if self.status != "running" else None,
        )
