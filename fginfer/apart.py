"""ApartEngine: constraints that are too large for tables stay apart from them.

A constraint over a thousand variables that meets tables or other constraints is never expanded. Tables and constraints
are solved each for itself, and prices of labels (prices.py) make them agree: the sum of their bounds is a bound, which
steps along their disagreement lower (Lagrangian relaxation; Held and Karp 1971; steps by Polyak 1969). The labelings of
the tables are mended where they violate a constraint, and improved by changes that keep all of them
(csrc/primal/mender.c). The tables are the business of the method that was asked for. `auto` and `clauses` also search
all of it by learning from conflicts (fginfer/conflicts), with what prices say about labels as one more constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import floor, fsum, inf, isfinite, nextafter
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fginfer.conflicts import Learner, learner_of
from fginfer.core import clock
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.rules import MenderHandle
from fginfer.core.solver import is_proof
from fginfer.engine import Settings
from fginfer.graph import FactorGraph
from fginfer.prices import priced
from fginfer.result import PROOFS, Progress, Result, Status, TracePoint, known, relative_gap
from fginfer.rules import Rule
from fginfer.rules.question import common_step, numbers_of
from fginfer.rules.scores import score_with_rules

TABLE_STEPS = 8  # iterations of the method on the tables between two steps of the prices (chosen)
LEAST_PACE = 0.02  # part of a Polyak step; prices that gain nothing with less have come to their end (chosen)
PATIENCE = 8  # steps without a better bound before the pace is halved (chosen)
FORGETTING = 0.6  # how much the newest disagreement counts beside those before (chosen)
MEND_WORK, SCANS, TALLY = 20_000, 10, 8  # operations of a mending; looks at all labels; operations of a tally (chosen)
LONG_MEND, MOST_WORK = 30, 30_000_000  # times as much when prices have come to their end, and no more (chosen)
LEARNING, LEARNING_PIECE = 20_000_000, 1_000_000  # work of a learner a step; between looks at the clock (chosen)
MOST_LEARNING = 20_000_000_000  # work of a learner in all, about two minutes (chosen)
LEARNERS = ("auto", "clauses")  # methods that learn from conflicts
STALE = 30  # long mendings in a row that found nothing better: there is little more to gain (chosen)

MakeEngine = Callable[[FactorGraph, Settings], Any]


class Now(NamedTuple):
    """What is known at a moment."""

    labels: NDArray[np.int32] | None


class ApartEngine:
    """Any method on a graph that has constraints: it works on the tables, the rest is done here."""

    def __init__(self, graph: FactorGraph, settings: Settings, make: MakeEngine) -> None:
        self.settings, self._make = settings, make
        self._start = settings.start_time if settings.start_time >= 0 else clock.now()
        self._forget()
        self._take(graph)

    def _forget(self) -> None:
        self._iterations, self._trace = 0, list[TracePoint]()
        self._labels: NDArray[np.int32] | None = None
        self._score, self._bound, self._status = -inf, inf, "running"

    def _take(self, graph: FactorGraph) -> None:
        arrays, self._rules = graph.table_arrays(), graph.rules
        assert arrays.unary is not None
        self._model, self._base = graph.table_snapshot(), np.array(arrays.unary)
        self._tables = FactorGraph.from_model_arrays(replace(arrays, unary=self._base.copy()))
        begin = begins(arrays.cards)
        self._begin = begin[:-1]
        self._priced = [priced(rule, self._base, begin) for rule in self._rules]
        owned = [p.question.own for p in self._priced]
        excess = [_handle(rule.excess()) for rule in owned]
        variables = np.concatenate([p.variables for p in self._priced])
        handles = [p.question.handle for p in self._priced]
        self._mender = MenderHandle(self._model, handles, excess, variables)
        method = "trws" if self.settings.method == "auto" else self.settings.method
        options = {} if method != self.settings.method else self.settings.options
        inner = replace(
            self.settings, method=method, options=options, cutoff=-inf, gap=0.0, max_iterations=None, start_time=-1.0
        )
        self._inner = self._make(self._tables, inner)
        self._learner: Learner | None = None
        self._may_learn, self._learning_end, self._is_priced = self.settings.method in LEARNERS, 0, False
        self._origin = graph.origin
        self._unit, self._lattice = self._inner.progress().unit, _lattice(arrays, self._rules)
        self._scan = len(self._base) + TALLY * sum(len(p.places) for p in self._priced)
        self._last: NDArray[np.int32] | None = None  # labels of the tables
        self._closer: Any = None
        self._best_prices = [p.prices for p in self._priced]
        self._closed = inf  # the bounds of the constraints under these
        self._done, self._pace, self._waited, self._stale = 0, 1.0, 0, 0
        self._way: NDArray[np.float64] | None = None
        self._seeds = self.settings.seed

    # -- work --------------------------------------------------------------------------------------------------

    def run(self, seconds: float, iterations: int) -> str:
        end = clock.now() + seconds if seconds >= 0 else inf
        target = self._iterations + iterations if iterations >= 0 else inf
        while self._status == "running" and self._iterations < target:
            self._work(end)
            if clock.now() >= end:
                break
        return self._status

    def _work(self, end: float) -> None:
        """A step of the prices, or where these have come to their end a long mending; then a step of the learner."""
        if self._learning_end == 0 and not self._step_of_prices(end):
            return
        if self._is_learning_due and not self._learn(end):
            return
        self._iterations += 1
        self._judge()

    def _step_of_prices(self, end: float) -> bool:
        """False: the time was over before it was done."""
        if self._pace <= LEAST_PACE:
            if self._closed == inf:
                self._take_best_prices()
            return self._close_gap(end)
        if not self._advance_tables(end):
            return False
        self._advance_prices()
        return True

    def _advance_tables(self, end: float) -> bool:
        """Some iterations on the tables; False: the time was over before them."""
        if self._done < TABLE_STEPS:
            left = end - clock.now()
            before = self._inner.progress().iterations
            status = self._inner.run(left if isfinite(left) else -1.0, TABLE_STEPS - self._done)
            self._done += max(self._inner.progress().iterations - before, 1)
            if status == "running" and self._done < TABLE_STEPS:
                return False
            if status == "infeasible":
                self._status = "infeasible"
        self._done = 0
        return True

    def _advance_prices(self) -> None:
        found = self._inner.result()
        labels = self._model.unary_labels() if found.labels is None else found.labels
        asked = [p.ask(labels) for p in self._priced]
        if not all(asked) or found.status == "infeasible":
            self._status, self._bound = "infeasible", -inf
            return
        bound = inf if found.bound is None else found.bound + sum(p.bound for p in self._priced) + self._rounding()
        is_better = bound < self._bound - 1e-9 * max(abs(bound), self._unit)
        if bound < self._bound:
            self._best_prices = [p.prices.copy() for p in self._priced]
        self._lower_bound(bound)
        self._waited = 0 if is_better else self._waited + 1
        if self._waited >= PATIENCE:
            self._pace, self._waited = self._pace / 2, 0
        self._last = labels
        self._mend(labels, 1)
        self._step(labels, bound)

    def _lower_bound(self, bound: float) -> None:
        """A bound is known: no score is above it, nor above the largest one below it that can occur."""
        if not bound < self._bound:
            return
        bound, step = nextafter(bound, inf), self._lattice
        if 0 < step < inf and isfinite(bound / step):
            bound = min(bound, floor(bound / step) * step)
        self._bound = bound
        self._note()

    def _rounding(self) -> float:
        """What adding prices to unary scores may lose over all variables."""
        unary = np.abs(np.where(np.isfinite(self._priced_unary), self._priced_unary, 0.0))
        most = np.maximum.reduceat(unary, self._begin) if len(unary) else unary
        return float(most.sum()) * 4 * len(self._rules) * 2.0**-53

    @property
    def _priced_unary(self) -> NDArray[np.float64]:
        unary = self._base.copy()
        for p in self._priced:
            p.pay(unary)
        return unary

    def _step(self, labels: NDArray[np.int32], bound: float) -> None:
        """Along the disagreement, as far as the best labeling known says that there is something to gain."""
        way = np.concatenate(
            [0 * u if p.used is None else u - p.used for p, u in ((p, p.uses(labels)) for p in self._priced)]
        )
        if not way.any():
            self._pace = 0.0
            return
        way = way if self._way is None else FORGETTING * way + (1 - FORGETTING) * self._way
        self._way = way
        size = float(way @ way)
        if not isfinite(bound) or size == 0:
            return
        goal = self._score if self._score > -inf else bound - 0.05 * max(abs(bound), self._unit)
        length = self._pace * max(bound - goal, 1e-9 * max(abs(bound), self._unit)) / size
        ends = np.cumsum([len(p.prices) for p in self._priced])[:-1]
        self._set_prices([p.prices - length * part for p, part in zip(self._priced, np.split(way, ends), strict=True)])
        self._inner.update(self._tables)

    def _set_prices(self, prices: Sequence[NDArray[np.float64]]) -> None:
        for p, own in zip(self._priced, prices, strict=True):
            p.prices = own
        self._tables.set_unaries(self._priced_unary)

    # -- labelings ---------------------------------------------------------------------------------------------

    def _mend(self, labels: NDArray[np.int32], times: int) -> bool:
        """A labeling near this one that obeys the constraints is considered; was it better?"""
        work = min(MOST_WORK, times * (MEND_WORK + SCANS * self._scan))
        self._seeds += 1
        prices = np.zeros(len(self._base))
        for p in self._priced:
            p.pay(prices)
        found = self._mender.run(np.ascontiguousarray(labels, np.int32), prices, work, self._seeds)
        return found is not None and self._consider(found)

    def _close_gap(self, end: float) -> bool:
        """Prices have come to their end: `auto` has a closer look at the tables under the best of them, a round at a
        time, and there is time for mending. False: the time was over."""
        if self.settings.method == "auto" and not self._look_closer(end):
            return False
        start = self._labels if self._labels is not None else self._last
        start = self._model.unary_labels() if start is None else start
        self._stale = 0 if self._mend(start, LONG_MEND) else self._stale + 1
        if self._stale >= STALE and not self._may_learn:
            self._status = "converged"
        return True

    def _take_best_prices(self) -> None:
        self._set_prices(self._best_prices)
        labels = self._model.unary_labels() if self._last is None else self._last
        self._closed = sum(p.bound for p in self._priced if p.ask(labels)) + self._rounding()

    def _look_closer(self, end: float) -> bool:
        if self._closer is None:
            inner = replace(self.settings, cutoff=-inf, gap=0.0, max_iterations=None, start_time=-1.0)
            self._closer = self._make(self._tables, inner)
        left = end - clock.now()
        before = self._closer.progress().iterations
        status = self._closer.run(left if isfinite(left) else -1.0, 1)
        if status == "running" and self._closer.progress().iterations == before:
            return False
        found = self._closer.now()
        self._lower_bound(found.bound + self._closed)
        if found.labels is not None and self._mend(found.labels, 1):
            self._stale = 0
        return True

    # -- conflicts ---------------------------------------------------------------------------------------------

    @property
    def _is_learning_due(self) -> bool:
        """Once prices have come to their end, or where nobody has a labeling after some steps."""
        late = self._closed < inf or (self._score == -inf and self._iterations >= PATIENCE)
        return self._may_learn and late and self._status == "running"

    def _learn(self, end: float) -> bool:
        """A step of the learner; False: the time was over, and the step goes on when there is more."""
        if self._learner is None and self._origin is not None:
            self._learner = learner_of(self._origin, self.settings.cutoff)
        learner = self._learner
        if learner is None:
            self._may_learn = False
            return True
        if self._learning_end == 0:
            self._give_prices(learner)
            self._learning_end = learner.work + LEARNING
        if self._labels is not None:
            learner.offer(self._labels)
        while learner.status == "running" and learner.work < self._learning_end:
            learner.run(LEARNING_PIECE)
            if learner.labels is not None:
                self._consider(learner.labels)
            if clock.now() >= end:
                return False
        self._learning_end = 0
        if learner.bound == -inf:
            self._status, self._bound = "infeasible", -inf
        elif learner.bound < inf:
            self._lower_bound(learner.bound)
        if learner.status != "running" or learner.work >= MOST_LEARNING:
            self._may_learn = False
        return True

    def _give_prices(self, learner: Learner) -> None:
        """Once, where tables have no say in what a label may miss."""
        if self._is_priced or self._closed == inf or self._tables.n_factors:
            return
        self._is_priced, unary = True, self._priced_unary
        tops = np.maximum.reduceat(unary, self._begin).tolist()
        learner.take_prices(nextafter(fsum([*tops, self._model.constant, self._closed]), inf), unary)

    def _consider(self, labels: NDArray[np.int32]) -> bool:
        score = score_with_rules(self._model, self._rules, labels)
        if score <= self._score:
            return False
        self._score, self._labels = score, labels
        self._note()
        return True

    def _note(self) -> None:
        score = self._score if self._score > self.settings.cutoff else -inf
        bound = max(self._bound, self._score)
        self._trace.append(TracePoint(clock.now() - self._start, known(score), known(bound)))

    def _judge(self) -> None:
        if self._status != "running":
            return
        cutoff = self.settings.cutoff
        bound = max(self._bound, self._score)
        if is_proof(bound, self._score, cutoff, self._unit):
            self._status = "optimal" if self._score > cutoff else "infeasible"
            return
        gap = relative_gap(known(self._score), known(bound), self._unit) if self._score > cutoff else None
        if gap is not None and gap <= self.settings.gap:
            self._status = "gap_reached"

    # -- what is known -----------------------------------------------------------------------------------------

    def now(self) -> Now:
        return Now(self._labels if self._score > self.settings.cutoff else None)

    def labels(self) -> NDArray[np.int32] | None:
        return self.now().labels

    def progress(self) -> Progress:
        score = self._score if self._score > self.settings.cutoff else -inf
        bound = known(max(self._bound, self._score))
        seconds = clock.now() - self._start
        return Progress(seconds, self._iterations, known(score), bound, unit=self._unit, found_by=self._finder())

    def _finder(self) -> str | None:
        return None if self.now().labels is None else "mending"

    def result(self) -> Result:
        labels = self.now().labels
        bound = max(self._bound, self._score)
        return Result(
            self.settings.method,
            cast(Status, self._status),
            None if labels is None else labels.copy(),
            None if labels is None else self._score,
            None if bound == inf else bound,
            self._iterations,
            clock.now() - self._start,
            0.0,
            self.settings.threads,
            self.settings.seed,
            tuple(self._trace),
            statistics={"constraints apart": float(len(self._rules))},
            unit=self._unit,
            found_by=self._finder(),
            proved_by="prices" if self._status in PROOFS else None,
        )

    # -- what it is told ---------------------------------------------------------------------------------------

    def offer(self, labels: NDArray[np.int32]) -> None:
        self._consider(np.array(labels, np.int32))
        self._judge()

    def warm_start(self, messages: NDArray[np.float64]) -> bool:
        return False  # they are about tables without prices

    def update(self, graph: FactorGraph) -> None:
        labels = self._labels
        self.close()
        self.settings, self._start = replace(self.settings, start_time=clock.now()), clock.now()
        self._forget()
        self._take(graph)
        if labels is not None:
            self.offer(labels)

    def close(self) -> None:
        for engine in (self._inner, self._closer):
            if hasattr(engine, "close"):
                engine.close()


def _lattice(arrays: ModelArrays, rules: Sequence[Rule]) -> float:
    """A step of which all scores are multiples; 0: there is none."""
    numbers = [numbers_of(rule) for rule in rules]
    weighted = arrays.factor_weight is not None and bool((arrays.factor_weight != 1).any())
    if weighted or arrays.params is not None or any(n is None for n in numbers):
        return 0.0
    assert arrays.unary is not None
    every = np.concatenate([arrays.unary, arrays.values, [arrays.constant], *(n for n in numbers if n is not None)])
    return common_step(every[every > -inf], len(arrays.cards) + arrays.n_factors + len(rules) + 2)


def _handle(rule: Rule | None) -> Any:
    return None if rule is None else rule.native()
