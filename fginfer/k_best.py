"""k_best(): the best labelings in order, each with a proof that nothing better is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import fsum, inf
from os import PathLike
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import STEPS
from fginfer.condition import Conditioned
from fginfer.core import clock
from fginfer.core.ranked import Ranking
from fginfer.core.solver import proof_tolerance
from fginfer.distances import apart
from fginfer.errors import SettingsError, SolverError
from fginfer.exact_scores import sum_above
from fginfer.folding import Leftovers
from fginfer.graph import FactorGraph
from fginfer.methods import check_proving
from fginfer.names import Names
from fginfer.options import check_number, check_settings, check_whole
from fginfer.ranked_parts import Narrowed, Thresholds
from fginfer.result import Result
from fginfer.solve import _model, solve
from fginfer.solver import SLICE, check_seconds

__all__ = ["KBest", "k_best"]

MORE_AHEAD = (
    8  # answers that are looked at beside those asked for, where rounding may have changed their order (chosen)
)
MOST_AHEAD = 1024  # answers that are looked at at once (chosen)
FIRST_EFFORT = 2e6  # work of the search for an order of the whole model: a wide one is soon known (chosen)
SWEEPS = 300  # sweeps of the message passing that tells which labels can matter (chosen)

End = Literal["running", "complete", "exhausted", "time_limit", "converged", "failed"]


class KBest(Sequence[Result]):
    """Results, best first, found when they are looked at: `for`, `next` and an index find as many as they need.

    `len` and a negative index find all. `found` holds those found so far, without any work; a time limit or Ctrl-C
    leaves them there. `status` is "running" while there may be more; "complete": as many as were asked for;
    "exhausted": there are no others; "time_limit"; "converged" or "failed": a solve ended without a proof.

    >>> from fginfer import FactorGraph, k_best
    >>> graph = FactorGraph([2, 2])
    >>> tie = graph.add_factor([0, 1], [[3.0, 1.0], [0.0, 2.0]])
    >>> [result.score for result in k_best(graph, 3)]
    [3.0, 2.0, 1.0]
    """

    def __init__(
        self,
        finder: _Ranked | _Narrowing | _Excluding,
        k: int,
        within: float | None,
        given: Conditioned | None,
        names: Names | None = None,
    ) -> None:
        self.found: list[Result] = []
        self.status: End = "running" if k > 0 else "complete"
        self._finder, self._k, self._given, self._names = finder, k, given, names
        self._within = inf if within is None else within
        self._cursor = 0
        self._ahead: list[tuple[float, int, Result]] = []  # found, but not yet known to be the best of what is left
        self._pulled, self._bound, self._ended = 0, inf, False

    def _advance(self) -> bool:
        """Finds one more; False where there is none, or no time."""
        if self.status != "running":
            return False
        result = self._next()
        if result is None:
            self.status = self._finder.status
            return False
        if self._given is not None:
            result = self._given.expand_result(result)
        elif self._names is not None:
            result = replace(result, names=self._names)
        assert result.score is not None
        if self.found and result.score < (self.found[0].score or 0.0) - self._within:
            self.status = "exhausted"
            return False
        self.found.append(result)
        if len(self.found) == self._k:
            self.status = "complete"
        return True

    def _next(self) -> Result | None:
        """The best that is left. Answers come in the order of rounded sums, so those that are as good but for rounding
        are looked at together, as many as may still be asked for."""
        most = min(self._k - len(self.found) + MORE_AHEAD, MOST_AHEAD)
        while not self._ended and len(self._ahead) < most:
            if self._ahead and self._bound <= -self._ahead[0][0]:
                break
            result = self._finder.next()
            if result is None:
                self._ended = True
                break
            assert result.score is not None
            assert result.bound is not None
            heappush(self._ahead, (-result.score, self._pulled, result))
            self._pulled, self._bound = self._pulled + 1, result.bound
        return heappop(self._ahead)[2] if self._ahead else None

    def __len__(self) -> int:
        while self._advance():
            pass
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> list[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | list[Result]:
        if isinstance(index, slice) or index < 0:
            len(self)
            return self.found[index]
        while len(self.found) <= index and self._advance():
            pass
        return self.found[index]

    def __iter__(self) -> Iterator[Result]:
        k = 0
        while k < len(self.found) or self._advance():
            yield self.found[k]
            k += 1

    def __next__(self) -> Result:
        if self._cursor >= len(self.found) and not self._advance():
            raise StopIteration
        self._cursor += 1
        return self.found[self._cursor - 1]

    def __repr__(self) -> str:
        return f"<KBest: {len(self.found)} of {self._k} found, {self.status}>"


def k_best(
    graph: FactorGraph | str | PathLike[str],
    k: int,
    min_distance: int = 0,
    within: float | None = None,
    *,
    evidence: Mapping[Any, Any] | str | PathLike[str] | None = None,
    method: str | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    threads: int = 1,
    memory: float = 1 << 30,
) -> KBest:
    """The k best labelings, best first, found one by one as they are looked at; ties are never lost.

    graph         a FactorGraph, or the name of a model file
    k             how many, at most
    min_distance  every answer differs from all earlier ones in at least so many variables; the first is the best of all
    within        only answers whose score is at most this much below the best
    evidence      variables that are known, as solve takes it
    method        of the solves, where the model is too wide for elimination; one that has bounds
    time_limit    seconds of work in all
    memory        bytes for the messages of elimination

    Each Result is optimal among the labelings that were left, and its `bound` is one on all of these. Where
    elimination fits into memory its messages rank all labelings, and an answer costs a pass over the variables. Where
    it does not, it may fit once the labels are gone that messages prove to be in none of the best. Else, and for a
    `min_distance` of two or more, each answer is a solve of the model with the earlier answers excluded by hard
    constraints (see `fginfer.distances`): presolve may lose ties inside of such a solve, for only its best score
    counts, and what it lost is still in the model of the next answer.

    >>> from fginfer import FactorGraph, Potts, k_best
    >>> chain = FactorGraph.from_arrays([2] * 3, [[0, 1], [0, 0], [0, 1]], [[0, 1], [1, 2]], tables=[Potts(0, -1)])
    >>> [(result.labels.tolist(), result.score) for result in k_best(chain, 2)]
    [([1, 1, 1], 2.0), ([0, 0, 0], 0.0)]
    >>> [result.labels.tolist() for result in k_best(chain, 8, min_distance=2)]
    [[1, 1, 1], [0, 0, 0]]
    """
    check_whole("k", k)
    check_whole("min_distance", min_distance)
    if k < 0:
        raise SettingsError(f"k must be 0 or more, not {k}")
    if within is not None:
        check_number("within", within)
        if not within >= 0:
            raise SettingsError(f"within must be 0 or more below the best score, not {within!r}")
    if method is not None:
        check_proving(method, "k_best")
    check_number("memory", memory, "a positive number of bytes")
    if memory <= 0:
        raise SettingsError(f"memory must be a positive number of bytes, not {memory!r}")
    check_settings(0.0, seed, threads, None, None)
    time_limit = check_seconds("time_limit", time_limit)
    model, given = _model(graph, evidence)
    if not 0 <= min_distance <= model.n_variables:
        raise SettingsError(f"min_distance must be from 0 to the {model.n_variables} variables, not {min_distance}")
    timer = _Timer(time_limit)
    finder: _Ranked | _Narrowing | _Excluding
    tables = _tables(model)
    try:
        if min_distance > 1 or method is not None or tables is None:
            raise SolverError("every answer needs a solve")
        finder = _Ranked(model, tables, k + MORE_AHEAD, memory, timer, seed, threads)
    except SolverError:
        settings = {"method": method, "seed": seed, "threads": threads}
        if min_distance > 1 or method is not None or model.rules or model.n_factors == 0:
            finder = _Excluding(model, max(1, min_distance), timer, settings)
        else:
            finder = _Narrowing(model, k + MORE_AHEAD, memory, timer, settings)
    return KBest(finder, k, within, given, model.shared_names() if given is None else None)


def _tables(graph: FactorGraph) -> FactorGraph | None:
    """A graph of tables with the same labelings and scores, and perhaps more variables; None: constraints have none."""
    if not graph.rules:
        return graph
    lowered = graph.lowered()
    return lowered.graph if lowered.one_to_one and lowered.rounding == 0 else None


class _Timer:
    """What is left of a time limit, of which only work counts."""

    def __init__(self, limit: float | None) -> None:
        self.left = inf if limit is None else limit

    def __enter__(self) -> None:
        self._began = clock.now()

    def __exit__(self, *_: object) -> None:
        self.left -= clock.now() - self._began


def _check_leftovers(graph: FactorGraph, unit: float) -> None:
    rows = [row for rows in Leftovers(graph.to_arrays()).rows.values() for row in rows]
    if fsum(float(row.max() - row.min()) for row in rows) > proof_tolerance(0.0, unit):
        raise SolverError("what rounding took may decide the order, and messages do not know it")


class _Ranked:
    """Answers from the messages of elimination."""

    def __init__(
        self, graph: FactorGraph, tables: FactorGraph, k: int, memory: float, timer: _Timer, seed: int, threads: int
    ) -> None:  # fmt: skip
        self.status: End = "exhausted"
        self._graph, self._model, self._cutoff, self._timer = graph.copy(), tables.snapshot(), graph.cutoff, timer
        _check_leftovers(tables, self._model.unit)
        size = tables.n_variables + tables.n_factors
        self._ranking = Ranking(self._model, memory, k, max(FIRST_EFFORT, STEPS * size))
        self._seed, self._threads, self._given = seed, threads, 0

    def next(self) -> Result | None:
        began = clock.now()
        with self._timer:
            while True:
                left = self._timer.left - (clock.now() - began)
                if left <= 0:
                    self.status = "time_limit"
                    return None
                answer = self._ranking.next(min(SLICE, left))
                if not self._ranking.running:
                    break
        if answer is None:
            return None
        labels = answer.labels[: self._graph.n_variables]
        score = self._graph.score(labels)
        if score <= self._cutoff:
            return None
        self._given += 1
        seconds = clock.now() - began
        bound = max(score, self._model.floor(sum_above(answer.bound, self._model.leftover_bound)))
        return Result("elimination", "optimal", labels, score, bound, self._given, seconds, 0.0, self._threads,
                      self._seed, unit=self._model.unit)  # fmt: skip


class _Narrowing:
    """Answers from elimination of the labels that can be part of them; where that is too wide, a solve each."""

    def __init__(self, graph: FactorGraph, k: int, memory: float, timer: _Timer, settings: dict[str, Any]) -> None:
        self.status: End = "exhausted"
        self._graph, self._k, self._memory, self._timer = graph, k, memory, timer
        self._model, self._settings = graph.snapshot(), settings
        self._others: _Excluding | None = None  # once narrow models are too wide
        self._seen, self._known = list[NDArray[np.int32]](), set[bytes]()
        self._models: Thresholds | None = None
        self._narrowed: Narrowed | None = None
        self._ranking: Ranking | None = None

    def next(self) -> Result | None:
        if self._others is None and not self._seen:
            return self._first()
        while self._others is None:
            with self._timer:
                began = clock.now()
                found = self._ranked(began)
            if found is not None or self._others is None:
                return found
        result = self._others.next()
        self.status = self._others.status
        return result

    def _first(self) -> Result | None:
        """The best of all, as a solve finds it."""
        first = _Excluding(self._graph, 1, self._timer, self._settings)
        result = first.next()
        self.status = first.status
        if result is not None:
            self._keep(result.labels)
        return result

    def _keep(self, labels: NDArray[np.int32] | None) -> None:
        assert labels is not None
        self._seen.append(labels)
        self._known.add(labels.tobytes())

    def _ranked(self, began: float) -> Result | None:
        """The next one of narrow models; None with the status of the end, or with `_others` made."""
        try:
            if self._models is None:
                self._models = self._thresholds()
            while True:
                if self._ranking is None:
                    self._narrowed, self._ranking = self._models.lower(self._memory, self._k)
                assert self._narrowed is not None
                left = self._timer.left - (clock.now() - began)
                if left <= 0:
                    self.status = "time_limit"
                    return None
                answer = self._ranking.next(min(SLICE, left))
                if self._ranking.running:
                    continue
                labels = None if answer is None else self._narrowed.whole(answer.labels)
                score = -inf if labels is None else self._model.score(labels)
                if labels is None or score < self._models.threshold:
                    if self._models.complete:
                        self.status = "exhausted"
                        return None
                    self._ranking = None
                    continue
                if score <= self._graph.cutoff:
                    self.status = "exhausted"
                    return None
                if labels.tobytes() in self._known:
                    continue
                self._keep(labels)
                assert answer is not None
                bound = max(score, self._model.floor(sum_above(answer.bound, self._model.leftover_bound)))
                return Result("elimination", "optimal", labels, score, bound, len(self._seen), clock.now() - began, 0.0,
                              self._settings["threads"], self._settings["seed"], unit=self._model.unit)  # fmt: skip
        except SolverError:
            self._others = _Excluding(self._graph, 1, self._timer, self._settings)
            self._others.exclude(self._seen)
            return None

    def _thresholds(self) -> Thresholds:
        """Messages tell how good a labeling with each label can be."""
        _check_leftovers(self._graph, self._model.unit)
        best = self._seen[0]
        limit = None if self._timer.left == inf else max(0.0, self._timer.left)
        method = "trws" if self._model.max_arity <= 2 else "mplp"
        dual = solve(self._graph, method, time_limit=limit, max_iterations=SWEEPS, trace=False)
        if dual.messages is None:
            raise SolverError("there are no messages")
        return Thresholds(self._graph, best, self._model.score(best), dual.messages, self._model.leftover_bound)


class _Excluding:
    """Answers by a solve each: all earlier ones, with what is too close to them, are excluded."""

    def __init__(self, graph: FactorGraph, distance: int, timer: _Timer, settings: dict[str, Any]) -> None:
        self.status: End = "exhausted"
        self._graph, self._distance, self._timer, self._settings = graph.copy(), distance, timer, settings
        self._unit = self._graph.table_model.unit
        self._answers: list[NDArray[np.int32]] = []

    def exclude(self, answers: list[NDArray[np.int32]]) -> None:
        """Labelings that were given before."""
        self._answers += answers

    def next(self) -> Result | None:
        n = self._graph.n_variables
        if n == 0 and self._answers:
            return None  # the only labeling has been given
        with self._timer:
            graph = apart(self._graph, self._answers, self._distance) if self._answers else self._graph
            limit = None if self._timer.left == inf else max(0.0, self._timer.left)
            result = solve(graph, gap=0.0, time_limit=limit, trace=False, dual=False, **self._settings)
        if result.status != "optimal" or result.labels is None:
            if result.status != "infeasible":
                self.status = "time_limit" if result.status == "time_limit" else "converged"
            return None
        labels = np.ascontiguousarray(result.labels[:n])
        self._answers.append(labels)
        score = self._graph.score(labels)
        return Result(result.method, "optimal", labels, score, max(score, result.bound or score), result.iterations,
                      result.seconds, result.setup_seconds, result.threads, result.seed, unit=self._unit,
                      statistics=result.statistics)  # fmt: skip
