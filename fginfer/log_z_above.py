"""An upper bound on log Z: the model as a mean of parts that elimination sums, which share unary scores.

log Z is convex: if the scores are the mean of those of m parts, log Z is at most the mean of the parts' log Z. A factor
that is in k of the m parts has m / k times its scores in each (tree-reweighted, with parts wider than trees). What the
parts move between their unary scores is what L-BFGS chooses; every choice gives a bound.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from fginfer.beliefs import SLICE
from fginfer.blocks import Links, Trees
from fginfer.core import clock
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.beliefs import Beliefs
from fginfer.core.model import Model
from fginfer.errors import SolverError
from fginfer.graph import FactorGraph

Reals = NDArray[np.float64]

PART_MEMORY = 2e6  # bytes for the tables of a part (chosen)
PART_EFFORT = 3e5  # work of the search for the order of a part (chosen)
MORE = 2.0  # factors that are tried at once grow by this where they fit, and shrink by it where not (chosen)
MISSES = 12  # tries in a row that do not fit before a part is as wide as it gets (chosen)
UNIT = 2.0**-50  # part of the scores: a bound on what rounding does to a pass


class Above:
    """`bound` is no less than log Z; `run` lowers it."""

    def __init__(self, graph: FactorGraph, seed: int, end: float = inf) -> None:
        arrays = graph.table_arrays()
        self._arrays, self._rng, self._end = arrays, np.random.default_rng(seed), end
        assert arrays.unary is not None
        self._unary = np.array(arrays.unary)
        self._open = self._unary > -inf
        self._n_factors, self.bound = arrays.n_factors, inf
        self._begin = arrays.factor_begin()
        chosen = self._split(Links(graph)) if self._n_factors else [np.zeros(0, np.int64)]
        self._m = len(chosen)
        times = np.zeros(self._n_factors)
        for part in chosen:
            times[part] += 1
        self._parts = [self._part(part, self._m / times[part]) for part in chosen]
        scores = self._unary[self._open]
        self.slack = UNIT * (1.0 + abs(arrays.constant) + self._m * float(np.abs(scores).sum()) + self._size(arrays))
        self._constant = arrays.constant

    @staticmethod
    def _size(arrays: ModelArrays) -> float:
        """No less than the largest scores of all factors together."""
        largest = float(np.abs(arrays.values[arrays.values > -inf]).max(initial=0.0))
        if arrays.params is not None:
            largest = max(largest, float(np.abs(arrays.params[np.isfinite(arrays.params)]).max(initial=0.0)) * 2**20)
        weights = arrays.n_factors if arrays.factor_weight is None else float(arrays.factor_weight.sum())
        return largest * weights * max(1, arrays.n_factors)

    def _part(self, factors: NDArray[np.int64], times: Reals | None = None) -> Model:
        """The model with these factors alone."""
        a = self._arrays
        weight = np.ones(len(factors)) if a.factor_weight is None else a.factor_weight[factors]
        sizes = np.diff(self._begin)[factors]
        at = np.repeat(self._begin[factors] - begins(sizes)[:-1], sizes) + np.arange(int(sizes.sum()))
        return replace(
            a,
            unary=self._unary,
            constant=0.0,
            factor_table=a.factor_table[factors],
            factor_weight=weight if times is None else weight * times,
            factor_transposed=None if a.factor_transposed is None else a.factor_transposed[factors],
            var_begin=begins(sizes),
            vars=a.vars[at],
            leftover_var=np.zeros(0, np.int32),
            leftover=np.zeros(0),
        ).build()

    def _fits(self, factors: list[int]) -> bool:
        try:
            found = Beliefs(self._part(np.array(sorted(factors), np.int64)), False, PART_MEMORY, PART_EFFORT)
        except SolverError:
            return False
        return found.runs == 1

    def _split(self, links: Links) -> list[NDArray[np.int64]]:
        """Parts that together have every factor, each as wide as the memory allows."""
        missing, out = set(range(self._n_factors)), []
        while missing:
            order = self._order(links, missing)
            part = _forest(links, order)
            rest = [k for k in order if k not in set(part)]
            step, misses, at = 8.0, 0, 0
            while at < len(rest) and misses < MISSES and clock.now() < self._end:
                some = rest[at : at + max(1, int(step))]
                if self._fits(part + some):
                    part += some
                    at += len(some)
                    step, misses = step * MORE, 0
                elif len(some) == 1:
                    at, misses = at + 1, misses + 1
                else:
                    step /= MORE * MORE
            missing -= set(part)
            out.append(np.array(sorted(part), np.int64))
        return out

    def _order(self, links: Links, missing: set[int]) -> list[int]:
        """Factors that are in no part yet, from one of them on to their neighbours; then the others in any order."""
        start = int(self._rng.choice(sorted(missing)))
        found, seen = [start], {start}
        for k in found:
            for v in links.scopes[k]:
                for other in links.beside[v]:
                    if other in missing and other not in seen:
                        seen.add(other)
                        found.append(other)
        later = [k for k in missing if k not in seen]
        others = [k for k in range(self._n_factors) if k not in missing]
        shuffled: list[int] = self._rng.permutation(np.array(others, np.int64)).tolist()
        return found + later + shuffled

    # -- lowering it -------------------------------------------------------------------------------------------

    def run(self, rounds: int, end: float = inf) -> None:
        """So many evaluations of all parts at most, or until the clock says `end`."""
        from scipy.optimize import minimize  # type: ignore[import-untyped, unused-ignore]

        self._end = end
        free = int(self._open.sum())
        start = np.zeros(free * self._m)
        try:
            if self._m == 1:
                self._look(start)
            else:
                minimize(self._look, start, jac=True, method="L-BFGS-B", options={"maxfun": rounds, "maxiter": rounds})
        except _Late:
            pass

    def _look(self, shifts: Reals) -> tuple[float, Reals]:
        """The bound with these shifts of the unary scores, and how it changes with them."""
        moved = shifts.reshape(self._m, -1)
        moved = moved - moved.mean(axis=0)
        total, slopes = 0.0, np.zeros_like(moved)
        for k, part in enumerate(self._parts):
            unary = self._unary.copy()
            unary[self._open] += moved[k]
            part.set_all_unary(unary)
            beliefs = Beliefs(part, False, 4 * PART_MEMORY, PART_EFFORT)
            while not beliefs.run(SLICE):
                if clock.now() >= self._end:
                    raise _Late
            if beliefs.value == -inf:
                self.bound = -inf
                raise _Late
            total += beliefs.value / self._m
            slopes[k] = beliefs.labels()[self._open] / self._m
        slack = self.slack + UNIT * float(np.abs(moved).sum())
        self.bound = min(self.bound, self._constant + total + slack)
        if clock.now() >= self._end:
            raise _Late
        return total, (slopes - slopes.mean(axis=0)).reshape(-1)


class _Late(Exception):
    """The time is over."""


def _forest(links: Links, order: list[int]) -> list[int]:
    """Factors in this order, each unless it closes a cycle."""
    trees = Trees(links.n)
    return [k for k in order if trees.join(links.scopes[k])]
