"""PartsEngine: the rounds as an engine that a Solver drives, so limits, callbacks, logs and Ctrl-C are those of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.model import Model
from fginfer.core.solver import EVENT
from fginfer.engine import Settings
from fginfer.errors import SolverError
from fginfer.parts.crew import PartsCrew, PartsLost
from fginfer.parts.keep import Keeper
from fginfer.parts.rounds import Rounds, Script, Target
from fginfer.result import PROOFS, Progress, Result, Status, Trace, known


class PartsEngine:
    """Asks the crew what the script of the rounds wants, for as long as there is time."""

    def __init__(
        self, crew: PartsCrew, settings: Settings, sweeps: int, keeper: Keeper | None, model: Model | None
    ) -> None:
        self.settings, self._crew, self._keeper, self._model = settings, crew, keeper, model
        self._start = settings.start_time if settings.start_time >= 0 else clock.now()
        floor: Callable[[float], float] | None = None if model is None else model.floor
        score = None if model is None else model.score
        target = Target(settings.gap, settings.cutoff, settings.max_iterations, settings.seed, sweeps, floor)
        target = replace(target, score=score, proves=settings.method == "auto")
        self.rounds = Rounds(crew.n_parts, target, keeper, lambda: clock.now() - self._start)
        self._script: Script = self.rounds.script()
        self._offer: NDArray[np.int32] | None = None
        self._waiting = False  # for answers of the crew
        self._answers: dict[int, Any] | None = None
        self._ended: str | None = None
        self._first_round = 0.0  # seconds at which the first round began: the parts are where they work
        self._wait_seconds = 0.0
        self.faults = 0

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, seconds: float, iterations: int) -> str:
        deadline = clock.now() + seconds if seconds >= 0 else inf
        if self._ended is not None:
            return self._ended
        stop_at = inf if iterations < 0 else self.rounds.number + iterations
        while True:
            if not self._waiting:
                try:
                    ask = self._script.send(cast(Any, self._answers))
                except StopIteration as end:
                    self._ended = cast(str, end.value)
                    return self._ended
                self._answers = None
                if ask is not None:
                    self._crew.begin(ask)
                    self._waiting = True
                elif self._moves():
                    continue
                elif self.rounds.number >= stop_at or clock.now() >= deadline:
                    return "running"
            if self._waiting and not self._wait(deadline):
                return "running"

    def _wait(self, deadline: float) -> bool:
        """Until the crew has answered; False where the time is over before."""
        began = clock.now()
        try:
            self._answers = self._crew.wait(max(0.0, deadline - began))
            self._waiting = self._answers is None
        except PartsLost:
            self.faults += 1
            self._go_back()
        self._wait_seconds += clock.now() - began
        return not self._waiting

    def _go_back(self) -> None:
        self._script.close()
        self._script, self._waiting, self._answers = self.rounds.script(), False, None

    def _moves(self) -> bool:
        """After a round that was kept: whether parts have moved to workers that came late."""
        kept = None if self._keeper is None else self._keeper.kept
        if kept is None or kept.number != self.rounds.number or not self._crew.can_lose:
            return False
        try:
            self._crew.invite()
        except PartsLost:
            self._go_back()
            return True
        return False

    def prepare(self) -> None:
        """Has every part made and checked, before any work."""
        while not self.rounds.facts:
            ask = self._script.send(cast(Any, self._answers))
            assert ask is not None
            self._answers = None
            self._crew.begin(ask)
            self._waiting = True
            if ask.what == "facts":
                self._wait(inf)
        self._first_round = clock.now() - self._start

    def close(self) -> None:
        """Parts and what was kept for faults go."""
        self._crew.close()
        if self._keeper is not None:
            self._keeper.close()

    # -- what it knows -----------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        r = self.rounds
        best = r.best
        score, bound = known(best.score), known(best.bound)
        return Progress(clock.now() - self._start, r.number, score, bound, None, None, r.unit, best.by)

    def now(self) -> Result:
        """The result so far."""
        return self.result()

    def result(self) -> Result:
        r = self.rounds
        labels = r.labels()
        best = r.best
        score = best.score
        events = np.array(r.events, EVENT) if r.events else np.zeros(0, EVENT)
        bound = max(best.bound, score) if labels is not None else best.bound
        status = r.proof() or self._ended or "running"
        return Result(
            "parts",
            cast(Status, status),
            labels,
            known(score),
            bound if bound < inf else None,
            r.number,
            clock.now() - self._start,
            self._first_round,
            self.settings.threads,
            self.settings.seed,
            Trace(events),
            statistics=self._statistics(),
            unit=r.unit,
            found_by=None if labels is None else best.by,
            proved_by="parts" if status in PROOFS else None,
        )

    def _statistics(self) -> dict[str, float]:
        r = self.rounds
        out = {"rounds": float(r.number), "parts": float(r.n_parts), "faults": float(self.faults)}
        if r.facts:
            out["shared_variables"] = float(len(r.seams.variables))
            out["largest_part"] = float(max(f.n_factors for f in r.facts))
        out |= {"part_seconds": r.work_seconds, "wait_seconds": self._wait_seconds, "border_bytes": r.border_bytes}
        return out | self._crew.statistics()

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        """Kept if it is better than what is known."""
        if self._waiting:
            self._wait(inf)
        while not self._has_offered(labels):
            self._go_back()

    def _has_offered(self, labels: NDArray[np.int32]) -> bool:
        """False after a fault."""
        script, answers = self.rounds.offer(labels), None
        while True:
            try:
                ask = script.send(cast(Any, answers))
                assert ask is not None
                self._crew.begin(ask)
                answers = self._crew.wait(inf)
            except StopIteration:
                return True
            except PartsLost:
                self.faults += 1
                return False

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        """Messages of a whole model fit no part."""
        return False

    def update(self, graph: Any) -> None:
        raise SolverError("a model in parts takes no new numbers; make a new solver")
