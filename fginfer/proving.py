"""Proving: what a run says about its steps, and the proof that is written afterwards where a run cannot say them."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, inf, ldexp
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import DENSE, POTTS, ModelArrays
from fginfer.core.exact import Elimination
from fginfer.core.model import Model
from fginfer.core.solver import NativeSolver, native_settings
from fginfer.errors import SettingsError, SolverError
from fginfer.graph import FactorGraph
from fginfer.proof import ProofFile
from fginfer.result import Result
from fginfer.shrinking import MOST_VARIABLES, Shrunk

# As in checker.py, where they are part of the format.
BITS = 44  # bits of the largest difference of scores in a table
BUDGET = 64  # units for each term
REACH = 50  # bits of all messages of a table together; a checker has room for 51
LOOK = 4096  # entries that are looked at for a step of scores before all of them are (chosen)
Reals = NDArray[np.float64]
Part = tuple[list[int], list[tuple[int, ...]]]  # variables and tables


@dataclass(frozen=True)
class Grain:
    """How fine the whole numbers of a checker are, and what a proof may do with that.

    lead     a threshold may lie so far above a labeling and still prove that nothing is better
    step     scores differ by multiples of it from `top`, the sum of all maxima; 0: they differ anyhow
    error    what rounding may add to a bound
    quantum  messages are whole multiples of it
    reach    messages to a label are not below minus this, all together
    """

    lead: float
    quantum: float
    reach: float
    step: float = 0.0
    top: float = 0.0
    error: float = 0.0

    def above(self, cutoff: float) -> float:
        """The lead of a threshold over a cutoff, which need not be a score that is possible."""
        if not self.step:
            return self.lead
        room = self.step - (cutoff - self.top) % self.step
        return 0.999 * (room if room > self.error else self.step)

    @classmethod
    def of(cls, arrays: ModelArrays, floor: float = -inf) -> Grain:
        """For a model; with a floor, for what scores above it."""
        tops, scores, scales = _entries(arrays)
        top = float(np.where(tops > -inf, tops, 0).sum()) + arrays.constant
        room = top - floor
        every, above = np.concatenate(scores), np.concatenate(scales)
        with np.errstate(invalid="ignore"):
            used = above - every
        counts = (used < inf) & (used <= room)
        if not counts.all():
            used, every, above = used[counts], every[counts], above[counts]
        largest = float(np.abs(tops[tops > -inf]).max(initial=abs(arrays.constant)))
        widest = float(used.max(initial=0))
        wide, large = (frexp(x)[1] if x else -1000 for x in (widest, largest))
        unit = max(-1000, wide - BITS, large - 60 if widest else large - BITS)
        arity = np.diff(arrays.factor_begin())
        assert arrays.unary is not None
        owner = np.repeat(np.arange(len(arrays.cards)), arrays.cards)
        terms = len(arity) + np.count_nonzero(np.bincount(owner[arrays.unary != 0])) + 1 + len(arrays.leftover_var)
        # Most scores that are no whole steps from each other show it soon, if not in the unaries.
        some = slice(None, None, max(1, len(every) // LOOK))
        alike = not len(arrays.leftover_var) and _alike(every[some], above[some], unit)
        alike = alike and _alike(every, above, unit)
        step = _step(used, unit) if alike else 0.0
        error = ldexp(BUDGET * terms, unit)
        step = step if step > error else 0.0
        lead = 0.999 * step if step else error / 2
        slots = max(1, int(arity.sum()))
        quantum = ldexp(1.0, max(unit + 1, frexp(lead / (4 * slots))[1] - 1))
        # What an entry of a table gets from the messages to all its variables must fit.
        reach = max(quantum, ldexp(1.0, unit + REACH) / max(2, int(arity.max(initial=1))))
        return cls(lead, quantum, reach, step, top, error)


def _entries(arrays: ModelArrays) -> tuple[Reals, list[Reals], list[Reals]]:
    """The maxima of all terms; scores of unaries and of each table in use, weights included, with their maxima."""
    assert arrays.unary is not None
    begin = np.concatenate(([0], np.cumsum(arrays.cards, dtype=np.int64)))[:-1]
    tops = [np.maximum.reduceat(arrays.unary, begin)] if len(begin) else [np.zeros(0)]
    scores, above = [arrays.unary], [np.repeat(tops[0], arrays.cards)]
    if len(arrays.leftover_var):  # terms of their own, for a checker
        sizes = np.where(arrays.leftover_var < 0, 1, arrays.cards[arrays.leftover_var])
        tops.append(np.maximum.reduceat(arrays.leftover, np.cumsum(sizes) - sizes))
        scores.append(arrays.leftover)
        above.append(np.repeat(tops[-1], sizes))
    n = len(arrays.factor_table)
    weights = np.ones(n) if arrays.factor_weight is None else arrays.factor_weight
    kinds = np.zeros(arrays.n_tables, np.int32) if arrays.table_kind is None else arrays.table_kind
    begins = arrays.values_begin()
    count = np.bincount(arrays.factor_table, minlength=arrays.n_tables)
    if not kinds.any() and (weights == 1).all() and count.all() and len(arrays.values):  # every table as it is
        sizes = np.diff(begins)
        table_tops = np.maximum.reduceat(arrays.values, begins[:-1])
        tops.append(np.repeat(table_tops, count))
        return np.concatenate(tops), [*scores, arrays.values], [*above, np.repeat(table_tops, sizes)]
    pairs, count = np.unique(np.column_stack([arrays.factor_table, weights]), axis=0, return_counts=True)
    for (t, weight), times in zip(pairs.tolist(), count.tolist(), strict=True):
        values = weight * _values(arrays, int(t), int(kinds[int(t)]), begins)
        scores.append(values)
        above.append(np.full(len(values), values.max(initial=-inf)))
        tops.append(np.full(times, values.max(initial=-inf)))
    return np.concatenate(tops), scores, above


def _values(arrays: ModelArrays, t: int, kind: int, begins: NDArray[np.int64]) -> Reals:
    """The scores of a table that differ."""
    if kind == DENSE:
        return arrays.values[begins[t] : begins[t + 1]]
    assert arrays.params is not None
    p0, p1 = arrays.params[2 * t : 2 * t + 2].tolist()
    first = arrays.factor_begin()[:-1][arrays.factor_table == t]
    most = max(int(arrays.cards[arrays.vars[first + k]].max(initial=1)) for k in (0, 1))
    if kind == POTTS:
        return np.array([p0, p1][: min(most, 2)])
    d = np.arange(most, dtype=np.float64)
    d = np.minimum(d if kind == 2 else d * d, p1)
    return np.asarray(-p0 * d)


def _alike(scores: Reals, tops: Reals, unit: int) -> bool:
    """Whether all scores of a table are raised alike when they are rounded to whole units."""
    units, top_units = np.ldexp(scores, -unit), np.ldexp(tops, -unit)
    return not ((units - np.floor(units)) != (top_units - np.floor(top_units))).any()


def _step(below: Reals, unit: int) -> float:
    """What all differences in a table are whole multiples of, in the whole numbers of a checker; 0: of nothing."""
    return ldexp(float(np.gcd.reduce(np.ldexp(below, -unit).astype(np.int64))), unit) if len(below) else 0.0


# Work of a proof that is written after a run, in table entries. Elimination comes first where it is little, and after a
# small tree where it is more than that; what is left of the model once it was made smaller comes last (chosen).
LITTLE_WORK, ELIMINATION_WORK, ELIMINATION_BYTES = 2e7, 1e9, 1 << 27
LITTLE_TREE, TREE_WORK = 2e8, 1e9
ROOT_STEPS = 50  # sweeps at most that bring messages back to the bound that was found before them (chosen)


class Prover:
    """The proof of one run: what the run says itself, or what is proven again once it has ended.

    `graph` has tables only: of a graph with constraints the one that stands for it (see FactorGraph.lowered).
    """

    def __init__(self, path: str | PathLike[str], graph: FactorGraph, unproven: str | None = None) -> None:
        """`unproven`: why nothing can be proven, which is then all that the proof says."""
        self.file, self.unproven = ProofFile(path), unproven
        self.said: str | None = None  # the status of the proof, once it is closed
        self._listened: NativeSolver | None = None
        self._floor = self._cutoff = -inf  # the cutoff only where nothing is above it
        if unproven is None:
            self.graph, self.arrays = graph, graph.table_arrays()
            self.model = graph.snapshot().plain()  # what rounding took from sums of scores is less than a unit

    def listen(self, native: NativeSolver) -> None:
        """From here on the steps of a solver are those of the proof, if it says any."""
        if not native.speaks or self.unproven is not None:
            return
        grain = Grain.of(self.arrays)
        if not native.speak(grain.lead, grain.quantum, grain.reach):
            return
        self._listened, self._lead = native, grain.lead
        self.file.head(self.arrays)
        self.file.whole_tree(self.arrays)

    def hear(self) -> None:
        """What was said in a slice."""
        if self._listened is not None:
            self.file.raw(self._listened.spoken())

    def finish(self, result: Result, cutoff: float = -inf, work: float = TREE_WORK) -> str:
        """Closes the proof; returns "complete" or what is without proof."""
        if self.said is None:
            try:
                self.said = self._finish(result, cutoff, work)
            finally:
                self.file.close()
            if self.file.broken is not None:
                self.said = f"without proof: it was broken off, for {self.file.broken}"
        return self.said

    def _finish(self, result: Result, cutoff: float, work: float) -> str:
        if self.unproven is not None:
            return f"without proof: {self.unproven}"
        if self._listened is not None:
            return self._end_tree(self._listened, result, self._lead)
        if result.labels is None and result.status != "infeasible":
            return "without proof: no labeling was found" + (" above the cutoff" if cutoff > -inf else "")
        self._cutoff = cutoff if result.labels is None else -inf
        least = self._cutoff if result.score is None else result.score
        self._floor = -inf if least == -inf else least - Grain.of(self.arrays).lead
        claims = result.status in ("optimal", "infeasible")
        self.file.head(self.arrays, self._floor)
        if claims and self._eliminates(LITTLE_WORK):
            return self._conclude(result, True)
        said = self._again(result, min(work, LITTLE_TREE) if claims else work)
        if said == "complete" or not claims or work < LITTLE_TREE:
            return said
        if self._restart() and self._eliminates(ELIMINATION_WORK):
            return self._conclude(result, True)
        if self._cutoff == -inf and self._restart() and (said := self._in_parts(result, work)) == "complete":
            return said
        return self._again(result, LITTLE_TREE if said else work) if self._restart() else said

    def _restart(self) -> bool:
        """Another way is tried, from the beginning."""
        if self.file.restart():
            self.file.head(self.arrays, self._floor)
            return True
        return False

    def _eliminates(self, most: float) -> bool:
        order = self._order(self.model, most)
        if order is not None:
            self.file.eliminate(order)
        return order is not None

    @staticmethod
    def _order(model: Model, most: float) -> list[int] | None:
        elimination = Elimination(model, ELIMINATION_BYTES)
        order = elimination.order() if elimination.fits and elimination.estimate.work <= most else None
        return None if order is None else [int(v) for v in order]

    def _in_parts(self, result: Result, work: float) -> str:
        """The model is made smaller, and what is left is proven part by part. Empty: that is no way to go."""
        if len(self.arrays.cards) > MOST_VARIABLES:
            return ""
        shrunk = Shrunk(self.graph, self._floor, self.file, result.labels)
        parts = [] if shrunk.state.dead else shrunk.parts()
        if not shrunk.steps and len(parts) == 1:  # the messages of the run are worth more
            return ""
        slots = [len(variables) + sum(map(len, scopes)) for variables, scopes in parts]
        for (variables, scopes), n in zip(parts, slots, strict=True):
            lead = shrunk.lead(n / sum(slots))
            if not scopes:
                self.file.eliminate(variables)
            elif (
                work := self._prove_part(shrunk.graph(variables, scopes), (variables, scopes), lead, shrunk, work)
            ) < 0:
                return "without proof"
        return self._conclude(result, True)

    def _prove_part(self, graph: FactorGraph, part: Part, lead: float, shrunk: Shrunk, work: float) -> float:
        """A tree over one part, or its elimination; the work that is left for others, -1 if this one is not proven."""
        variables, scopes = part
        number = {v: k for k, v in enumerate(variables)}
        order = self._order(graph.snapshot().plain(), ELIMINATION_WORK)
        if order is not None:
            self.file.eliminate([variables[k] for k in order])
            return work
        arrays = graph.table_arrays()
        grain = Grain.of(arrays)
        quantum = ldexp(1.0, max(frexp(grain.quantum)[1] - 1, frexp(lead / (4 * max(1, len(arrays.vars))))[1] - 1))
        try:
            native = NativeSolver(graph.snapshot(), native_settings("bnb", gap=0.0))
        except (SettingsError, SolverError, MemoryError):
            return -1
        native.speak(lead, min(quantum, grain.quantum), max(grain.reach, quantum))
        self.file.tree(variables, [len(s) for s in scopes], [number[v] for s in scopes for v in s])
        labels = shrunk.labels(variables)
        if labels is not None:
            native.offer(np.array(labels, np.int32))
        native.pause_at(int(work))
        while native.status == "running" and not native.info.paused and self.file.broken is None:
            native.run(0.05, -1)
            self.file.raw(native.spoken())
        reached = native.hush()
        self.file.raw(native.spoken())
        return -1 if reached < 0 or reached > lead else max(0.0, work - native.info.entries_touched)

    def _again(self, result: Result, work: float) -> str:
        """Branch and bound, told labeling and messages, proves once more what is claimed and says how."""
        grain = Grain.of(self.arrays, self._floor)
        settings = native_settings("bnb", gap=0.0, cutoff=self._cutoff)
        try:
            native = NativeSolver(self.model, settings)
        except (SettingsError, SolverError, MemoryError):
            return "without proof: the model is too large for branch and bound"
        lead = grain.lead if self._cutoff == -inf else grain.above(self._cutoff)
        native.speak(lead, min(grain.quantum, ldexp(1.0, frexp(lead)[1] - 1)), grain.reach)
        self.file.whole_tree(self.arrays)
        if result.labels is not None:
            native.offer(np.ascontiguousarray(result.labels, np.int32))
        if result.messages is not None:
            native.warm_start(np.where(np.isfinite(result.messages), result.messages, 0.0))
        native.pause_at(int(work))
        # For others the bound of their messages is all that there is to say.
        claims = result.status in ("optimal", "infeasible", "gap_reached") or result.method == "bnb"
        while claims and native.status == "running" and not native.info.paused and self.file.broken is None:
            native.run(0.05, -1)
            self.file.raw(native.spoken())
        while not claims and native.status == "running" and native.steps < ROOT_STEPS:
            if result.bound is None or native.info.bound <= result.bound:
                break
            native.run(0.05, 1)  # messages of the end may be worse than those of the best bound
            self.file.raw(native.spoken())
        return self._end_tree(native, result, lead)

    def _end_tree(self, native: NativeSolver, result: Result, enough: float) -> str:
        status, who = result.status, result.proved_by or result.method
        bound = inf if result.bound is None else result.bound
        lead = native.hush()
        self.file.raw(native.spoken())
        if lead < 0:
            self.file.break_off("the search ended before there was a bound to prove")
            return "without proof"
        labels = native.labels()
        if labels is not None:
            self.file.solution(labels)
        proven, score = lead <= enough, float(native.info.score)
        claim = b"U" if not proven or self._cutoff > -inf else b"O" if labels is not None else b"I"
        self.file.conclude(claim, inf if claim == b"U" else -inf if labels is None else score)
        reached = (score if self._cutoff == -inf else self._cutoff) + lead
        shown = reached <= bound + 1e-9 * max(1.0, abs(bound)) + enough
        if proven or (shown and status not in ("optimal", "infeasible")):
            return "complete"
        return f"without proof: {who}; what is proven is the bound {reached:.9g}"

    def _conclude(self, result: Result, optimal: bool) -> str:
        if result.labels is not None:
            self.file.solution(result.labels)
        claim = b"U" if not optimal or self._cutoff > -inf else b"I" if result.labels is None else b"O"
        value = -inf if claim == b"I" else inf if claim == b"U" else float(result.score or 0.0)
        self.file.conclude(claim, value)
        return "complete"
