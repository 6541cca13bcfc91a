"""What every learning solver reports, and the loop that drives it: time limit, log, callback, checkpoints."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fginfer.native import lib

log = logging.getLogger("fginfer")


class LearnPoint(NamedTuple):
    """State after some passes. primal, dual and gap are None where the solver has none or did not measure them.

    gap = max(0, primal - dual) / max(1, |primal|). infeasibility is 0 except for gdmm and soft-bcfw: the largest
    disagreement between a factor's marginals and those of its variables, relative to C.
    """

    passes: int
    seconds: float
    primal: float | None
    dual: float | None
    gap: float | None
    infeasibility: float
    oracle_calls: int
    entries_touched: int


@dataclass(frozen=True)
class Measured:
    """primal and dual values as far as they are known."""

    primal: float | None = None
    dual: float | None = None
    infeasibility: float = 0.0

    @property
    def gap(self) -> float | None:
        if self.primal is None or self.dual is None:
            return None
        return max(0.0, self.primal - self.dual) / max(1.0, abs(self.primal))


class Solver(Protocol):
    """One training run. It keeps its place: `advance` may be called again after it returned at a deadline."""

    name: str

    def advance(self, deadline: float) -> bool:
        """Works until the end of a pass (True) or until `deadline` on the clock of fgi_clock (False)."""
        ...

    def wants_certificate(self, tol: float) -> bool:
        """Whether the solver thinks that it may be done, so that measuring is worth a pass of the oracle."""
        ...

    def measure(self) -> Measured: ...

    def counters(self) -> tuple[int, int]:
        """(oracle calls, entries touched) so far, measuring not counted."""
        ...

    def export(self) -> dict[str, Any]:
        """Arrays from which :meth:`restore` continues exactly."""
        ...

    def restore(self, saved: dict[str, Any]) -> None: ...


@dataclass
class Limits:
    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    eval_every: int = 0  # measure every so many passes; 0: only when the solver may be done, and at the end
    checkpoint_interval: float = 60.0


def drive(
    solver: Solver,
    limits: Limits,
    verbose: int = 0,
    callback: Callable[[LearnPoint], Any] | None = None,
    save: Callable[[int, float], None] | None = None,
    passes: int = 0,
    spent: float = 0.0,
) -> tuple[str, list[LearnPoint]]:
    """Runs a solver to its end: (status, trace). status: converged, iteration_limit, time_limit, or stopped (callback).

    Time limits count the seconds of training, those spent before a resume included, not the seconds spent measuring.
    """
    trace: list[LearnPoint] = []
    status, last_save = "iteration_limit", time.monotonic()
    if verbose:
        log.info("%6s %14s %14s %10s %10s %12s %9s", "pass", "primal", "dual", "gap", "infeas", "oracle calls", "time")
    while passes < limits.max_iter:
        begin = lib.fgi_clock()
        left = 0.05 if limits.time_limit is None else min(0.05, limits.time_limit - spent)
        if left <= 0:
            status = "time_limit"
            break
        finished = solver.advance(begin + left)  # slices of 50 ms: Ctrl-C and limits are seen between them
        spent += lib.fgi_clock() - begin
        if save is not None and time.monotonic() - last_save >= limits.checkpoint_interval:
            save(passes + finished, spent)
            last_save = time.monotonic()
        if not finished:
            continue
        passes += 1
        due = limits.eval_every > 0 and passes % limits.eval_every == 0
        sure = solver.wants_certificate(limits.tol)
        if not (due or sure or passes == limits.max_iter or callback is not None or verbose > 1):
            continue
        calls, touched = solver.counters()
        measured = solver.measure() if due or sure or passes == limits.max_iter else Measured()
        point = LearnPoint(
            passes, spent, measured.primal, measured.dual, measured.gap, measured.infeasibility, calls, touched
        )  # fmt: skip
        trace.append(point)
        if verbose:
            _print(point)
        if callback is not None and callback(point):
            status = "stopped"
            break
        if measured.gap is not None and measured.gap <= limits.tol:
            status = "converged"
            break
    if save is not None:
        save(passes, spent)
    return status, trace


def _print(point: LearnPoint) -> None:
    def number(x: float | None, form: str) -> str:
        return "-" if x is None else format(x, form)

    log.info(
        "%6d %14s %14s %10s %10s %12d %8.2fs", point.passes, number(point.primal, ".6g"), number(point.dual, ".6g"),
        number(point.gap, ".1e"), number(point.infeasibility, ".1e"), point.oracle_calls, point.seconds,
    )  # fmt: skip
