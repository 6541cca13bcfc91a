"""method="auto": the best labeling that the time limit can buy, and how far it can be from optimal.

The policy, from first to last (all of it is in this file):

1. Tiny models: a few iterations of branch and bound, before anything else is set up. Most end here.
   Others: a labeling by coordinate ascent, within milliseconds. Where hard constraints stand against it, a search
   for a feasible one that learns from conflicts; what it does not find at once it goes on looking for in step 6.
2. A few sweeps of TRW-S, more of them where the gap is small: tight relaxations end here. Large models begin with them
   instead of ascent, and go on from there unless presolve removes much. Penalties far above all other costs are taken
   for constraints that the same search may meet. Then short runs of branch and bound and, on small models, of edac on
   the model as it is, edac first where there are few labelings; other easy models end here.
3. Presolve: exact reductions with a way back. What is left falls into connected parts.
4. Every part gets a portfolio of members: a *proof* (branch and bound, whose root is TRW-S) and a *search* for better
   labelings. Large parts get TRW-S alone instead of the proof. Parts with very large tables get gdmm, since one pass
   over them would cost more than its whole run.
5. A small part that is cheap to eliminate gets nothing but elimination. A part in which labels exclude each other in
   cliques gets a proof that sees them. One that is not solved after a few rounds gets edac as another proof (one with
   few labelings at once), and elimination as another member where its treewidth allows it. A part whose proof does not
   get on leaves it little work, and gets another relaxation: slabs where the gap is large and the part sparse enough,
   else gdmm.
6. Members work in rounds. A round gives every member of every part the same amount of work, counted in table entries;
   then the best labeling and the best bound of a part are handed to its members. Rounds grow from a fraction of a
   millisecond to some tens of them. With several threads the members of a round run at the same time: what they do does
   not depend on it.

Nothing is decided by the clock, which only says when to stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from math import inf, ldexp, nextafter
from sys import float_info
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fginfer.core import clock
from fginfer.core.exact import split
from fginfer.core.presolve import Presolved, presolve
from fginfer.crew import Crew, Task
from fginfer.engine import Settings
from fginfer.graph import FactorGraph
from fginfer.options import check_number, unknown_option
from fginfer.portfolio.division import Division
from fginfer.portfolio.incumbent import Incumbent
from fginfer.portfolio.member import Sweeps
from fginfer.portfolio.opening import (
    CLAUSES_FIRST,
    CLAUSES_WORK,
    LOOSE,
    SWEEPS_PASS,
    Opening,
    feasible_labeling,
    first_labeling,
    first_sweeps,
    prove_at_once,
    sweep_while_near,
)
from fginfer.portfolio.part import PartState, Size, Trial
from fginfer.result import Progress, Result, Status, known, relative_gap

log = logging.getLogger("fginfer")
T = TypeVar("T")

SMALL_STATES = 1e5  # of all tables: a pass takes a tenth of a millisecond, so that nothing takes long
TINY_STATES = 2000  # a few iterations of branch and bound take less than finding out what kind of model it is
REDUCED = 0.8  # of a large model's work: where presolve leaves more, its first sweeps are gone on with instead
PROOF_GAP = 1e-6  # allowed by default: who allows more does not mind a proof
WORTH_BESIDE = 1e6  # entries of a pass: presolve takes long enough to begin beside the sweeps, with what is known then
QUICK_WORK, QUICK_PASSES = 1.2e7, 6.0  # of the proof before presolve: at least so much work, and passes over the tables
QUICK_ROUNDS = 0.1, 0.3, 0.6  # by turns with the other proof, so that neither waits long for its end


def _times_power(number: float, exponent: int) -> float:
    """number * 2^exponent; where that is too large to be said, the largest number, or -inf."""
    try:
        return ldexp(number, exponent)
    except OverflowError:
        return float_info.max if number > 0 else -inf


class AutoEngine:
    """The portfolio behind method="auto". Options: presolve (True), memory (bytes that elimination may use)."""

    _END = object()

    def __init__(self, graph: FactorGraph, settings: Settings) -> None:
        options = dict(settings.options)
        self._presolve = bool(options.pop("presolve", True))
        memory = options.pop("memory", 1 << 30)
        check_number("memory", memory, "a number of bytes")
        self._memory = float(memory)
        if options:
            raise unknown_option(next(iter(options)), "auto", ("memory", "presolve"))
        self.settings = settings
        self._crew: Crew | None = None
        self._cancelled = np.zeros(1, np.int32)
        self._begin(graph, settings.start_time)

    def _begin(self, graph: FactorGraph, start: float) -> None:
        self._given = graph.snapshot()
        self._model, self._exponent = self._given.normalised()  # all work is done in its unit
        cutoff = _times_power(self.settings.cutoff, -self._exponent)
        self._known = Incumbent(self._model, start if start >= 0 else clock.now(), cutoff)
        self.settings = replace(self.settings, start_time=self._known.start)
        self._own = replace(self.settings, cutoff=cutoff)  # for members, who stamp events by the same clock
        self._division: Division | None = None  # into parts that are worked on
        self._cancelled = np.zeros(1, np.int32)  # 1: what is under way on other threads is not needed any more
        self._iterations = 0
        self._setup_seconds = 0.0
        self._status = "running"
        self._deadline = inf
        self._size = Size(self._model)
        self._small = self._model.states < SMALL_STATES  # nothing on it takes long
        self._trial: Task[Trial] | None = None  # of step 2, made beside step 1
        self._sweeps: Sweeps | None = None  # of a large model, from step 2 on
        self._presolving: Task[Presolved | None] | None = None  # of step 3, beside step 2
        self._allowed: float | None = None  # a score that presolve may take for granted, once that is fixed
        self._steps = self._policy()

    # -- the policy --------------------------------------------------------------------------------------------

    def _policy(self) -> Iterator[None]:
        """Yields whenever it may pause; a pause changes nothing but the time."""
        if self.settings.threads > 1 and self._size.is_small and not self._small:
            self._trial = self._threads.submit(self._make_trial)
        quick = self._feasible_labeling, self._quick_sweeps, self._avoid_penalties, self._quick_proof
        for stage in (self._first_labeling, *quick, self._reduce):
            yield from stage()
            if stage != self._quick_sweeps or self._known.proven or self.settings.gap > PROOF_GAP:
                self._settle()  # a small gap after sweeps is no reason not to try a proof
            if self._status != "running":
                return
        while self._status == "running":
            yield from self._round()
            if self._status != "running":
                return
            self._iterations += 1
            limit = self.settings.max_iterations
            if limit is not None and self._iterations >= limit:
                self._gather(self._known, fully=True)
                self._status = "iteration_limit"
            yield

    def _first_labeling(self) -> Iterator[None]:
        if self._model.states <= TINY_STATES:
            yield from self._open_with(prove_at_once, self._own)
        elif self._size.is_huge:
            if not self._size.begins_with_unaries:
                self._known.improve(self._model.unary_labels())
        else:
            sweeps_are_next = self._size.relaxation is Sweeps  # which find better labelings soon
            if sweeps_are_next:
                self._known.improve(self._model.unary_labels())
            if not sweeps_are_next or self._known.labels is None:
                yield from self._open_with(first_labeling, self._own)

    def _feasible_labeling(self) -> Iterator[None]:
        """Hard constraints that coordinate ascent does not meet: a short search by learning from conflicts."""
        if self._known.labels is None and not self._size.is_huge:
            work = CLAUSES_FIRST if self._size.few_labelings else CLAUSES_WORK
            yield from self._open_with(partial(feasible_labeling, first=work))

    def _quick_sweeps(self) -> Iterator[None]:
        size = self._size
        soon = size.is_small and size.pass_work <= SWEEPS_PASS
        if self._known.labels is not None and (soon or (size.is_sparse and not size.is_huge)):
            self._presolve_beside()
            yield from self._open_with(sweep_while_near)
        elif size.relaxation is Sweeps and not size.is_huge:
            self._sweeps = Sweeps(self._model, self._own, threads=self.settings.threads)
            bound = yield from first_sweeps(self._sweeps, self._known, lambda: self._deadline, self._presolve_beside)
            if bound is not None:
                self._finish_infeasible(bound)
            elif self._known.gap > LOOSE:
                yield from self._open_with(first_labeling, self._own)

    def _avoid_penalties(self) -> Iterator[None]:
        """Large finite penalties are often constraints in disguise. What meets them all is hard to find by ascent."""
        if self._known.labels is not None and self._size.is_small:
            yield from self._open_with(feasible_labeling)

    def _for_proofs(self) -> Settings:
        return self._own if self.settings.gap > PROOF_GAP else replace(self._own, gap=0.0)

    def _open_with(self, method: Opening, settings: Settings | None = None) -> Iterator[None]:
        own = settings or self._for_proofs()
        bound = yield from method(self._model, own, self._known, lambda: self._deadline)
        if bound is not None:
            self._finish_infeasible(bound)

    def _make_trial(self) -> Trial:
        """Takes nothing from what is known: it can be made at any time."""
        proof = Trial(self._model, None, self._for_proofs(), self._memory)
        proof.prepare()
        return proof

    def _quick_proof(self) -> Iterator[None]:
        """Both proofs on the model as it is: easy models are done before presolve has looked at them."""
        if not self._size.is_small:
            return
        proof = yield from (self.aside(self._make_trial) if self._trial is None else self._wait_for(self._trial))
        self._trial = None
        self._division = Division(self._model, [proof])
        if self._known.labels is not None:
            proof.offer(self._known.labels, self._known.score)
        work = max(QUICK_WORK, QUICK_PASSES * self._size.pass_work)
        for part in QUICK_ROUNDS:
            yield from self._round(part * work)
            if self._status != "running":
                return

    def _round(self, work: float | None = None) -> Iterator[None]:
        """Work for the members of all parts, and what has come of it."""
        assert self._division is not None
        parts = self._division.running
        for part in parts:
            yield from part.begin_round(self, work)
        while any(part.busy for part in parts):
            self._work_off(parts)
            if any(part.busy for part in parts):
                yield
        for part in parts:
            part.end_round()
        self._combine()

    def _presolve_beside(self) -> None:
        """From here on presolve may go on at any time: it looks at what is known now, whenever it begins."""
        if self._presolve and self._size.pass_work > WORTH_BESIDE:
            self._allowed = max(self._known.score, self._known.cutoff)
            if self.settings.threads > 1:
                self._presolving = self._threads.submit(self._presolve_job(self._allowed))

    def _presolve_job(self, least: float) -> Callable[[], Presolved | None]:
        """About the model of now, which `update` may replace. None where memory is short: it stays as it is."""
        model, cancelled = self._model, self._cancelled

        def job() -> Presolved | None:
            try:
                # What costs more than `least` leaves room for cannot be part of a better labeling.
                return presolve(model, cancelled=cancelled, least=least)
            except MemoryError as error:
                log.warning("no presolve: %s", error)
                return None

        return job

    def _presolve_now(self) -> Generator[None, None, Presolved | None]:
        """Or what has been begun beside the sweeps."""
        if not self._presolve:
            return None
        if self._allowed is None:
            self._allowed = max(self._known.score, self._known.cutoff)
        begun, self._presolving = self._presolving, None
        if begun is None:
            return (yield from self.aside(self._presolve_job(self._allowed)))
        return (yield from self._wait_for(begun))

    def _reduce(self) -> Iterator[None]:
        presolved = None if self._size.is_huge else (yield from self._presolve_now())
        least = -inf
        if presolved is not None:
            log.info("%s", presolved.log_line())
            if presolved.statistics.penalties and self._allowed is not None:
                least = self._allowed
            if presolved.infeasible:
                self._finish_infeasible(least)
                return
            if self._sweeps is not None and presolved.model.pass_work > REDUCED * self._model.pass_work:
                presolved, least = None, -inf  # what the first sweeps have done is worth more
        self._division = yield from self._divide(presolved, least)
        for part in self._division.parts:
            yield from self.aside(part.prepare)
        if self._known.labels is not None:
            self._division.offer(self._known.labels, self._known.score)
        self._setup_seconds = self._known.seconds()
        if not self._size.is_huge:
            self._combine()

    def _divide(self, presolved: Presolved | None, least: float) -> Generator[None, None, Division]:
        """What is left, in connected parts; huge models stay as they are."""
        model = self._model if presolved is None else presolved.model
        parts = [] if self._size.is_huge else (yield from self.aside(lambda: split(model)))
        if self._size.is_huge or len(parts) == 1:
            division = Division(self._model, [], presolved, least=least)
            own = replace(self._own, cutoff=self._own.cutoff - division.error)
            division.parts = [PartState(model, None, own, self._memory)]
        else:
            # Gaps of parts could add up to more than the gap allowed, and what a part may cost depends on the others.
            exact = replace(self._own, gap=0.0, cutoff=-inf)
            states = [PartState(c.model, c.variables, exact, self._memory) for c in parts]
            division = Division(self._model, states, presolved, model.constant, least)
        if division.is_whole:
            division.parts[0].begun = self._sweeps
        self._sweeps = None  # elsewhere its messages are about another model
        return division

    # -- work --------------------------------------------------------------------------------------------------

    def aside(self, job: Callable[[], T]) -> Generator[None, None, T]:
        """Runs what cannot be cut into slices on a thread, so that limits and Ctrl-C stay prompt."""
        if self._small:
            return job()
        return (yield from self._wait_for(self._threads.submit(job)))

    def _wait_for(self, task: Task[T]) -> Generator[None, None, T]:
        while not task.wait(min(self._left(), 60.0)):
            yield
        return task.result()

    @property
    def _threads(self) -> Crew:
        """Made when they are first needed: tiny models never need them."""
        if self._crew is None:
            self._crew = Crew(max(1, self.settings.threads - 1))
        return self._crew

    def close(self) -> None:
        """What is under way on other threads ends soon."""
        self._cancelled[0] = 1
        if self._crew is not None:
            self._crew.close()

    def __del__(self) -> None:
        if hasattr(self, "_crew"):
            self.close()

    def _left(self) -> float:
        return max(0.0, self._deadline - clock.now())

    def _work_off(self, parts: list[PartState]) -> None:
        """Members do what they owe, at the same time if there are threads."""
        members = [m for part in parts for m in part.busy]
        if self.settings.threads == 1 or len(members) < 2:
            for part in parts:
                part.work_off(self._deadline)
            return
        tasks = [self._threads.submit(partial(m.work_off, self._deadline)) for m in members[1:]]
        members[0].work_off(self._deadline)
        self._threads.help()
        for task in tasks:
            task.result()

    def run(self, seconds: float, iterations: int) -> str:
        self._deadline = clock.now() + seconds if seconds >= 0 else inf
        target = self._iterations + iterations if iterations >= 0 else None
        while self._status == "running" and (target is None or self._iterations < target):
            if next(self._steps, self._END) is self._END and self._status == "running":
                self._status = "converged"  # the policy has nothing more to try
            if clock.now() >= self._deadline:
                break
        if self._status != "running":
            self._cancelled[0] = 1  # presolve may be under way, and nobody will ask for it
        return self._status

    # -- what is known -----------------------------------------------------------------------------------------

    def _combine(self) -> None:
        """After a round: from the parts to the whole."""
        assert self._division is not None
        lost = next((p for p in self._division.parts if p.status == "infeasible"), None)
        if lost is not None:
            self._finish_infeasible(self._division.lost_bound(lost))
            return
        self._gather(self._known, fully=False)
        if not self._division.running:
            self._status = "converged"
        self._settle()

    def _gather(self, known: Incumbent, fully: bool) -> None:
        """Puts together what the parts have found so far; labels only where they can be the end, unless `fully`."""
        division = self._division
        if division is None:
            return
        if len(division.parts) == 1:  # its members' clocks are finer than ours
            for member in division.parts[0].members:
                events = member.events().tolist()
                known.points += [(t, division.at_least([score]), bound) for t, score, bound, _ in events]
        labels, score, bound = division.best()
        if labels is not None and score > known.score:
            if fully or division.is_whole or self._may_settle(division, score, bound):
                known.improve(division.expand(labels), score if division.is_whole else None)
            elif (certain := division.unexpanded_score(score)) is not None:
                known.points.append((known.seconds(), certain, inf))
        known.tighten(bound)

    def _may_settle(self, division: Division, score: float, bound: float) -> bool:
        """Could this be the end? If not, labels of reduced models need not be expanded, which takes passes over the
        whole. Their scores are those of that, but for rounding."""
        near = 2 * max(self.settings.gap, PROOF_GAP) * max(self._known.unit, abs(score)) + 2 * division.error
        return bound - score <= near or not division.running

    def _settle(self) -> None:
        """Is what is known good enough?"""
        if self._status in ("running", "converged"):
            if self._known.proven:
                self._status = "optimal" if self._known.wanted else "infeasible"
            elif self._known.gap <= self.settings.gap and self._gap_said() <= self.settings.gap:
                self._status = "gap_reached"

    def _gap_said(self) -> float:
        """The gap that callers see: in the unit of the model as given, numbers may have to be rounded (subnormal)."""
        if not self._exponent or self._known.labels is None:
            return self._known.gap
        bound, unit = self._scaled_bound(self._known.bound), self._scaled(self._known.unit)
        gap = relative_gap(self._given.score(self._known.labels), bound, unit)
        return inf if gap is None else gap

    def _finish_infeasible(self, bound: float) -> None:
        """No labeling is above the cutoff: `bound` is no higher, but for rounding."""
        self._status, self._known.bound = "infeasible", bound

    def _now(self) -> Incumbent:
        """What is known at this moment, in the middle of a round too. Looking changes nothing."""
        if self._status != "running":
            return self._known
        now = self._known.copy()
        self._gather(now, fully=True)
        self._known.points = list(now.points)  # events are handed out once
        return now

    def progress(self) -> Progress:
        """Without the labels, which would have to be copied, expanded and scored each time."""
        score, bound = self._known.score, self._known.bound
        if self._status == "running" and self._division is not None:
            _, found, of_parts = self._division.best(labels=False)
            score = max(score, found)
            bound = max(score, min(bound, of_parts))
        score = self._scaled(score) if score > self._known.cutoff else -inf
        unit = self._scaled(self._known.unit)
        bound = self._scaled_bound(bound)
        return Progress(self._known.seconds(), self._iterations, known(score), known(bound), unit=unit)

    def _scaled(self, score: float) -> float:
        """In the unit of the model as given."""
        return ldexp(score, self._exponent)

    def _scaled_bound(self, bound: float) -> float:
        """In that unit; where it cannot be said there exactly (subnormal, too large), no lower."""
        try:
            scaled = self._scaled(bound)
        except OverflowError:
            return inf
        return scaled if ldexp(scaled, -self._exponent) >= bound else nextafter(scaled, inf)

    def result(self) -> Result:
        now = self._now()
        if self._status == "running":
            now.fill()
        labels = now.labels if now.wanted else None
        bound = self._scaled_bound(now.bound)
        return Result(
            self.settings.method,
            cast(Status, self._status),
            labels,
            None if labels is None else self._given.score(labels) if self._exponent else now.score,
            None if bound == inf else bound,
            self._iterations,
            now.seconds(),
            self._setup_seconds,
            self.settings.threads,
            self.settings.seed,
            now.trace(self._exponent),
            unit=self._scaled(now.unit),
        )

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        self._known.improve(labels)

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # presolve changes the model that messages are about

    def update(self, graph: FactorGraph) -> None:
        labels = self._now().labels
        self._cancelled[0] = 1  # what is still under way is about the old numbers
        self._begin(graph, clock.now())
        if labels is not None:
            self.offer(labels)
