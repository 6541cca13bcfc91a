"""What the loop asks of a learning solver, and what a solver answers when it measures."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from fginfer.learn.data.magnitudes import LARGEST

TOO_LARGE = f"the weights are no longer finite numbers of at most {LARGEST:g}: features, loss or C are too large"


def relative_gap(primal: float, dual: float) -> float:
    """(primal - dual) / |primal|, which does not depend on the scale of the loss; 0/0 is 0."""
    excess = max(0.0, primal - dual)
    return excess / abs(primal) if excess else 0.0


@dataclass(frozen=True)
class Measured:
    """primal and dual values as far as they are known."""

    primal: float | None = None
    dual: float | None = None
    infeasibility: float | None = 0.0
    sampled: float = 1.0

    @property
    def gap(self) -> float | None:
        if self.primal is None or self.dual is None or self.sampled < 1:
            return None
        return relative_gap(self.primal, self.dual)


class Trainer:
    """One training run. It keeps its place: `advance` may be called again after it returned at a deadline."""

    name: str
    measuring: float = 0.0  # passes over the data that `measure` is worth, about
    samples: bool = False  # whether `measure` can end at any time, with an estimate from a sample
    feasible: bool = True  # whether factors always agree with their variables, so that nothing is infeasible
    movable: bool = False  # whether it can begin with what was learned at another C
    approximates: bool = False  # whether it minimises something else than what is measured
    needs_best: bool = False  # whether the gap is only known if answers are best ones
    lacks: str = ""  # what it has not, so that no gap can close
    too_large: str = TOO_LARGE  # what is said when weights are no longer finite
    oracle: Any = None  # the user's, where it has one

    @property
    def stalled(self) -> bool:
        """Whether no step helps any more, though the end is not reached."""
        return False

    @property
    def objective(self) -> float | None:
        """Where it is known without measuring."""
        return None

    @property
    def products(self) -> int:
        """Multiplications of unigram oracles so far."""
        return 0

    def advance(self, deadline: float) -> bool:
        """Works until the end of a pass (True) or until `deadline` on the clock of fgi_clock (False)."""
        raise NotImplementedError

    def wants_certificate(self, tol: float) -> bool:
        """Whether the solver thinks that it may be done, so that measuring is worth a pass of the oracle."""
        return False

    def measure(self, deadline: float = inf) -> Measured:
        """Objective and bound at the weights it would give now; OutOfTime when the deadline comes first."""
        return Measured()

    def counters(self) -> tuple[int, int]:
        """(oracle calls, entries touched) so far, measuring not counted."""
        raise NotImplementedError

    def work(self) -> str:
        """What the oracles did, for the log; empty: nothing to add."""
        return ""

    def export(self) -> dict[str, Any]:
        """Arrays from which :meth:`restore` continues exactly."""
        raise NotImplementedError

    def restore(self, saved: dict[str, Any]) -> None:
        """Goes on from what :meth:`export` gave; DataError for what no run has written."""
        raise NotImplementedError
