"""The loop that drives a learning solver: time limit, trace, log, callback, Ctrl-C, checkpoints."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import inf, isfinite
from typing import Any, NamedTuple

from fginfer.core import clock
from fginfer.core.door import VERSION, cpu_path
from fginfer.errors import DataError, FormatError, SolverError
from fginfer.learn.run.interrupts import Interrupts, OutOfTime
from fginfer.learn.run.log import TrainingLog
from fginfer.learn.run.trainer import Measured, Trainer
from fginfer.log import logger, seconds_text, thousands

MEASURING = 0.05  # share of a time limit that measuring may take
MOST_PASSES = 2**53  # in files: as many as a JSON number keeps
SLICE = 0.05  # seconds of work between two looks at Ctrl-C, limits and checkpoints


class LearnPoint(NamedTuple):
    """State after some passes. primal, dual and gap are None where the solver has none or did not measure them.

    gap = max(0, primal - dual) / |primal|. infeasibility is 0 except for gdmm and soft-bcfw: the largest
    disagreement between a factor's marginals and those of its variables, relative to C (None: not measured).
    seconds, oracle_calls and entries_touched are those of training: measuring is not counted. sampled: the share of the
    examples that primal was measured on; below 1 it is an estimate from a sample, and there is no gap. products:
    multiplications of gdmm's unigram oracles, labels times features that are not zero; 0 for other solvers.
    """

    passes: int
    seconds: float
    primal: float | None
    dual: float | None
    gap: float | None
    infeasibility: float | None
    oracle_calls: int
    entries_touched: int
    sampled: float = 1.0
    products: int = 0


@dataclass
class Limits:
    """When a training run ends, and what it does on the way."""

    tol: float = 1e-3
    max_iter: int = 100
    time_limit: float | None = None
    eval_every: int = 0  # measure every so many passes; 0: only when the solver may be done, and at the end
    checkpoint_interval: float = 60.0


@dataclass(frozen=True)
class SoFar:
    """How far a run is; checkpoints keep it."""

    passes: int = 0
    seconds: float = 0.0  # seconds of training
    elapsed: float = 0.0  # seconds of everything: what time limits count
    gap: float | None = None  # if it was measured at this very point

    @classmethod
    def restored(cls, kept: Any) -> SoFar:
        """From what a file says, which may be anything: DataError for what no run has written."""
        names = [field.name for field in fields(cls)]
        if not isinstance(kept, dict) or set(kept) != set(names):
            raise DataError(f"its progress must have the entries {', '.join(names)}")
        for name in names:
            value, whole = kept[name], name == "passes"
            if name == "gap" and value is None:
                continue
            number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
            if not number or not 0 <= value <= (MOST_PASSES if whole else sys.float_info.max):
                raise DataError(f"its {name} must be a {'whole ' if whole else ''}number from 0 on")
        return cls(**kept)


BEGINNING = SoFar()


def drive(
    solver: Trainer,
    limits: Limits,
    verbose: int = 0,
    callback: Callable[[LearnPoint], Any] | None = None,
    save: Callable[[SoFar], None] | None = None,
    progress: SoFar = BEGINNING,
    begin: float | None = None,
) -> tuple[str, list[LearnPoint]]:
    """Runs a solver to its end: (status, trace).

    status: converged, stalled (no step helps any more), iteration_limit, time_limit, stopped (by the callback) or
    interrupted (Ctrl-C). The time limit
    counts everything since `begin` (default: now) and what was spent before a resume. Where it can, the run ends early
    enough to measure what it has reached; the last point of the trace then has it.
    """
    begin = (clock.now() if begin is None else begin) - progress.elapsed
    run = _Run(solver, limits, verbose, callback, save, progress, begin)
    stops = [part for part in (solver, solver.oracle) if hasattr(part, "deadline")]  # in the middle of a pass
    for part in stops:
        part.deadline = run.deadline
    with Interrupts() as interrupts:
        try:
            status = run.loop(interrupts)
        except KeyboardInterrupt:
            if interrupts.torn:
                raise
            status = "interrupted"
            run.record(run.unmeasured)
        finally:
            for part in stops:
                part.deadline = inf
        if status != "interrupted" or interrupts.waits:  # else it may be half-way through a step
            run.save()
    count = "1 pass" if run.done.passes == 1 else f"{run.done.passes} passes"
    kept = ": what was learned until then is kept" if status == "interrupted" else ""
    logger.info(f"{status.replace('_', ' ')}{kept} · {count} · {seconds_text(run.done.seconds)}")
    if work := solver.work():
        logger.info(work)
    return status, run.trace


class _Run:
    """The loop of :func:`drive` and what it keeps."""

    def __init__(
        self,
        solver: Trainer,
        limits: Limits,
        verbose: int,
        callback: Callable[[LearnPoint], Any] | None,
        save: Callable[[SoFar], None] | None,
        done: SoFar,
        begin: float,
    ) -> None:
        self.solver, self.limits, self.verbose, self.callback, self._save = solver, limits, verbose, callback, save
        self.done, self.begin, self._first = done, begin, done
        self.deadline = inf if limits.time_limit is None else begin + limits.time_limit
        self.trace: list[LearnPoint] = []
        self._log = TrainingLog()
        self._fresh = False  # whether the last point tells of the present weights
        self._measuring: float | None = None  # seconds the last measurement took
        self._measured = 0.0  # seconds of all

    @property
    def unmeasured(self) -> Measured:
        """What is known without measuring: next to nothing, but the objective of solvers that carry it along."""
        return Measured(self.solver.objective, infeasibility=0.0 if self.solver.feasible else None)

    def loop(self, interrupts: Interrupts) -> str:
        last_save = time.monotonic()
        if self._reached(self.done.gap) and self._reached(self._measure().gap):  # a resumed run that was at its end
            return "converged"
        while self.done.passes < self.limits.max_iter:
            now = clock.now()
            if now >= self.deadline - self._reserve():
                return self._end("time_limit")
            finished = stop = False
            try:
                finished = self.solver.advance(min(now + SLICE, self.deadline - self._reserve()))
            except OutOfTime:
                stop = True
            finally:
                self._fresh = False
                spent = clock.now() - now
                self.done = replace(
                    self.done, passes=self.done.passes + finished, seconds=self.done.seconds + spent, gap=None
                )
            if stop:
                return self._end("time_limit")
            status = self._after_pass() if finished else ""
            if self._save is not None and time.monotonic() - last_save >= self.limits.checkpoint_interval:
                self.save()
                last_save = time.monotonic()
            if status:
                return status
            interrupts.check()
        return self._end("iteration_limit")

    def _after_pass(self) -> str:
        """Measures and tells where that is due; a status when the run is over."""
        passes, limits = self.done.passes, self.limits
        due = limits.eval_every > 0 and passes % limits.eval_every == 0
        if self.solver.wants_certificate(limits.tol) or due or passes == limits.max_iter:
            measured = self._measure()
        elif self.callback is not None or self.verbose > 1:
            measured = self.record(self.unmeasured)
        else:
            return ""
        stop = self.callback is not None and self.callback(self.trace[-1])
        if self._reached(measured.gap):
            return "converged"
        if self.solver.stalled:
            return "stalled"
        return "" if not stop else self._end("stopped") if self._cost() <= 0.1 * self.done.seconds else "stopped"

    def _reached(self, gap: float | None) -> bool:
        return gap is not None and gap <= self.limits.tol

    def _end(self, status: str) -> str:
        if not self._fresh:
            self._measure(0.0 if self.limits.time_limit is None else 0.05 * self.limits.time_limit)
        return status

    # ---- measuring

    def _cost(self) -> float:
        """Seconds that measuring takes: as last time, or as the passes did."""
        if self._measuring is not None:
            return self._measuring
        passes = self.done.passes - self._first.passes
        if self.solver.measuring == 0.0:
            return 0.0
        return self.solver.measuring * (self.done.seconds - self._first.seconds) / passes if passes else inf

    def _reserve(self) -> float:
        """Time kept for the last measurement, if it is small against the whole."""
        limit, cost = self.limits.time_limit, 1.5 * self._cost()
        if limit is not None and self.solver.samples:
            return min(cost, MEASURING * limit)
        return cost if limit is not None and cost <= 0.4 * limit else 0.0

    def _measure(self, extra: float = 0.0) -> Measured:
        """What the solver measures, unless that would take longer than there is time."""
        now, deadline, limit = clock.now(), self.deadline + extra, self.limits.time_limit
        if self.solver.samples and limit is not None:  # a fixed share of it and, but at the end, of the time so far
            deadline = min(deadline, now + MEASURING * limit)
            if not extra and self._measured + min(self._cost(), MEASURING * limit) > MEASURING * (now - self.begin):
                return self.record(self.unmeasured)
        elif self._cost() and now + self._cost() > deadline:
            return self.record(self.unmeasured)
        try:
            measured = self.solver.measure(deadline)
        except OutOfTime:
            return self.record(self.unmeasured)
        finally:
            self._measured += clock.now() - now
        self._measuring = clock.now() - now if self.solver.measuring else 0.0
        self._fresh = True
        if measured.primal is not None and not isfinite(measured.primal):
            raise SolverError(self.solver.too_large)
        if measured.primal is not None and measured.dual is not None and measured.sampled == 1:
            excess = measured.dual - measured.primal
            if not excess <= 1e-6 * abs(measured.primal):  # only rounding does that: nothing is claimed
                measured = replace(measured, dual=None)
        return self.record(measured)

    def record(self, m: Measured) -> Measured:
        calls, touched = self.solver.counters()
        self.done = replace(self.done, gap=m.gap)
        point = LearnPoint(
            self.done.passes, self.done.seconds, m.primal, m.dual, m.gap, m.infeasibility, calls, touched,
            m.sampled, self.solver.products,
        )  # fmt: skip
        if self.trace and self.trace[-1][:2] == point[:2]:
            self.trace.pop()  # the same point, now measured
        self.trace.append(point)
        self._log(point, self._fresh)
        return m

    def save(self) -> None:
        self.done = replace(self.done, elapsed=clock.now() - self.begin)
        if self._save is None:
            return
        try:
            self._save(self.done)
        except (OSError, FormatError) as error:  # a full disk must not cost what was learned
            logger.warning(f"the checkpoint was not written, training goes on: {error}")


# ---- the log


def log_start(name: str, learner: Any, seed: int) -> None:
    """Two lines about a run that begins."""
    data, threads = learner.data, "1 thread" if learner.threads == 1 else f"{learner.threads} threads"
    logger.info(f"fginfer {VERSION} · {name} · {cpu_path()} · {threads} · seed {seed} · the primal is minimised")
    sizes = [(data.n_examples, "examples"), (int(data.token_begin[-1]), "tokens"), (data.n_labels, "labels")]
    sizes += [(data.rows.shape[1], "features"), (learner.dimension, "weights")]
    logger.info(", ".join(f"{thousands(n)} {what}" for n, what in sizes if n))


@contextmanager
def shown(verbose: int) -> Iterator[None]:
    """With verbose, the log is seen even where logging was not set up: on standard output, as scikit-learn prints."""
    if not verbose:
        yield
        return
    level, added = logger.level, None
    if not any(not isinstance(h, logging.NullHandler) for h in [*logger.handlers, *logging.getLogger().handlers]):
        added = logging.StreamHandler(sys.stdout)
        logger.addHandler(added)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        if added is not None:
            logger.removeHandler(added)
