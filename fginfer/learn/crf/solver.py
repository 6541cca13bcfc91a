"""CrfSolver: one training run of a random field, as the loop of :mod:`fginfer.learn.run.loop` drives it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.crf import CrfLoss
from fginfer.core.optimise import Optimiser
from fginfer.errors import SettingsError
from fginfer.learn.crf.observed import ObservedLoss
from fginfer.learn.data.examples import Encoded, Reals
from fginfer.learn.run.interrupts import OutOfTime
from fginfer.learn.run.trainer import Measured, Trainer

SOLVERS = ("proxqn", "owlqn", "proxgrad", "bcd")


@dataclass
class OptimiserOptions:
    """memory : pairs of L-BFGS. max_inner : passes of coordinate descent (proxqn), steps in a block (bcd). And of
    proxqn: shrink : work on the coordinates that matter. curvature : begin the model with the
    roots of second derivatives, not with the same number for all. forget : clear the memory whenever all coordinates
    come back, as Zhong et al. do."""

    memory: int = 10
    max_inner: int = 10
    shrink: bool = True
    curvature: bool = True
    forget: bool = False


class CrfPoint(NamedTuple):
    """After a step: training seconds, objective, non-zero weights, the largest violation of optimality on the working
    set against the first one, the working set's size, and how many values and gradients it took so far (`passes`:
    values and gradients over all the data; `derivatives`: partial derivatives against all weights)."""

    steps: int
    seconds: float
    objective: float
    nonzeros: int
    violation: float
    working_set: int
    passes: int
    derivatives: float


@dataclass(frozen=True)
class CrfMeasured(Measured):
    """The gap of a random field is its largest violation of optimality against the first one."""

    violation: float | None = None

    @property
    def gap(self) -> float | None:
        return self.violation


class CrfSolver(Trainer):
    """Minimises l1 |w|_1 + l2/2 |w|^2 - sum of log-likelihoods."""

    def __init__(
        self, name: str, loss: CrfLoss | ObservedLoss, data: Encoded, l1: float, l2: float, tol: float, seed: int,
        options: dict[str, Any], start: Reals | None = None,
    ) -> None:  # fmt: skip
        from fginfer.learn.solvers.registry import build  # the registry knows the other solvers

        if name not in SOLVERS:
            raise SettingsError(f"solver must be one of {', '.join(SOLVERS)}, not {name!r}")
        chosen = build(OptimiserOptions, options, name)
        self.name, self.loss = name, loss
        self.learner = SimpleNamespace(data=data, threads=loss.threads, dimension=loss.dimension)
        self.optimiser = Optimiser(
            loss.dimension, l1, l2, method=name, tol=tol, memory=chosen.memory, max_inner=chosen.max_inner,
            shrink=chosen.shrink, curvature=chosen.curvature, forget=chosen.forget,
            samples=max(1, loss.n_examples), seed=seed, start=start,
        )  # fmt: skip
        self.deadline = inf  # that of the run: passes end there, in their middle
        self.history: list[CrfPoint] = []
        self.seconds = 0.0
        self._stale = False  # whether the loss has forgotten the point that the optimiser is at

    @property
    def stalled(self) -> bool:
        """No step lowers the objective any more, though `tol` is not reached: rounding."""
        return self.optimiser.info.status == "stalled"

    @property
    def objective(self) -> float | None:
        """At the last step."""
        found = self.optimiser.info.objective
        return None if found == inf else found

    def advance(self, deadline: float) -> bool:
        begin, before = clock.now(), self.optimiser.info.iterations
        self.loss.set_deadline(self.deadline)
        if self._stale:
            q = self.optimiser.ask()
            if q is not None and not q.value:
                self.loss.value(q.w)
            if self.loss.late:
                self.loss.set_deadline(inf)
                raise OutOfTime
            self._stale = False
        try:
            while self.loss.serve(self.optimiser):
                if self.optimiser.info.iterations > before:
                    self._note(clock.now() - begin)
                    return True
                if clock.now() >= deadline:
                    return False
            if self.loss.late:
                self._stale = True
                raise OutOfTime
            return True
        finally:
            self.loss.set_deadline(inf)
            self.seconds += clock.now() - begin

    def _note(self, more: float) -> None:
        i = self.optimiser.info
        self.history.append(
            CrfPoint(
                i.iterations, self.seconds + more, i.objective, i.nonzeros,
                i.violation / i.first_violation if i.first_violation else 0.0, i.working_set, i.values + i.gradients,
                i.coordinates / self.loss.dimension,
            )
        )  # fmt: skip

    def wants_certificate(self, tol: float) -> bool:
        return self.optimiser.info.status != "running"

    def measure(self, deadline: float = inf) -> Measured:
        i = self.optimiser.info
        violation = (i.violation / i.first_violation if i.first_violation else 0.0) if i.full else None
        return CrfMeasured(self.objective, violation=violation)

    def counters(self) -> tuple[int, int]:
        info = self.loss.info
        return int(info.passes) * self.loss.n_examples, int(info.touched)

    def weights(self) -> Reals:
        found = self.optimiser.weights()
        return found if isinstance(self.loss, CrfLoss) else self.loss.spread(found)

    def export(self) -> dict[str, NDArray[Any]]:
        return {**self.optimiser.export(), "seconds": np.array([self.seconds])}

    def restore(self, saved: dict[str, NDArray[Any]]) -> None:
        self.optimiser.restore(saved)
        self.seconds = float(saved["seconds"][0])
        self._stale = True
