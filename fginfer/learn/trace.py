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


@dataclass(frozen=True)
class Progress:
    """How far a run is: whole passes, seconds of training, and the gap if it was measured at this very point."""

    passes: int = 0
    seconds: float = 0.0
    gap: float | None = None


def drive(
    solver: Solver,
    limits: Limits,
    verbose: int = 0,
    callback: Callable[[LearnPoint], Any] | None = None,
    save: Callable[[Progress], None] | None = None,
    progress: Progress | None = None,
) -> tuple[str, list[LearnPoint]]:
    """Runs a solver to its end: (status, trace). status: converged, iteration_limit, time_limit, or stopped (callback).

    Time limits count the seconds of training, those spent before a resume (`progress`) included, not the seconds spent
    measuring. The last point of the trace is the end of the run, and measured, unless a time limit or a callback ended
    it before 20 passes: measuring takes about one, and would overrun the limit.
    """
    now = Progress() if progress is None else progress
    trace: list[LearnPoint] = []
    status, begun, last_save = "iteration_limit", now.passes, time.monotonic()
    reported: tuple[Progress, bool] | None = None  # where the last point is, and whether it was measured

    def report(measuring: bool) -> None:
        nonlocal now, reported
        calls, touched = solver.counters()
        found = solver.measure() if measuring else Measured()
        point = LearnPoint(
            now.passes, now.seconds, found.primal, found.dual, found.gap, found.infeasibility, calls, touched
        )  # fmt: skip
        if reported is not None and reported[0] == now:
            trace.pop()  # the same point, now measured
        now = Progress(now.passes, now.seconds, found.gap)
        reported = now, measuring
        trace.append(point)
        if verbose:
            _print(point)

    if verbose:
        log.info("%6s %14s %14s %10s %10s %12s %9s", "pass", "primal", "dual", "gap", "infeas", "oracle calls", "time")
    while now.passes < limits.max_iter and not _reached(now.gap, limits.tol):
        left = 0.05 if limits.time_limit is None else min(0.05, limits.time_limit - now.seconds)
        if left <= 0:
            status = "time_limit"
            break
        if save is not None and time.monotonic() - last_save >= limits.checkpoint_interval:
            save(now)
            last_save = time.monotonic()
        begin = lib.fgi_clock()
        finished = solver.advance(begin + left)  # slices of 50 ms: Ctrl-C and limits are seen between them
        now = Progress(now.passes + finished, now.seconds + lib.fgi_clock() - begin)
        if not finished:
            continue
        due = limits.eval_every > 0 and now.passes % limits.eval_every == 0
        measuring = solver.wants_certificate(limits.tol) or due or now.passes == limits.max_iter
        if measuring or callback is not None or verbose > 1:
            report(measuring)
            if callback is not None and callback(trace[-1]):
                status = "stopped"
                break
    cheap = status == "iteration_limit" or now.passes - begun >= 20
    if reported is None or reported[0] != now or (cheap and not reported[1]):
        report(cheap)
    if status != "stopped" and _reached(now.gap, limits.tol):
        status = "converged"
    if save is not None:
        save(now)
    return status, trace


def _reached(gap: float | None, tol: float) -> bool:
    return gap is not None and gap <= tol


def _print(point: LearnPoint) -> None:
    def number(x: float | None, form: str) -> str:
        return "-" if x is None else format(x, form)

    log.info(
        "%6d %14s %14s %10s %10s %12d %8.2fs", point.passes, number(point.primal, ".6g"), number(point.dual, ".6g"),
        number(point.gap, ".1e"), number(point.infeasibility, ".1e"), point.oracle_calls, point.seconds,
    )  # fmt: skip
