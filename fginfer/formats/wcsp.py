"""toulbar2's .wcsp: whole non-negative costs to be minimised; a total at or above the upper bound is infeasible.

A score is minus a cost, the graph's cutoff minus the bound. No cost being negative, a single one that high forbids.
Functions are a default cost and the tuples that differ from it; shared ones (negative arity when defined, negative
number of tuples when used) stay shared. Binary arithmetic functions are expanded once, other functions given by a
keyword are refused. The reader is csrc/io.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.core.costs import WcspReader
from fginfer.errors import FormatError
from fginfer.formats.assembly import MOST_VARIABLES, Factors, Key
from fginfer.formats.costs import label_texts, most_frequent, problem_name, read_costs
from fginfer.formats.global_text import split_wcsp
from fginfer.formats.streams import write_atomically
from fginfer.graph import FactorGraph

_BLOCK = 1 << 20  # entries that are checked together
_LARGEST = 2**62  # costs are 64-bit integers in toulbar2, with room for sums


# -- reading ---------------------------------------------------------------------------------------------------


def read_wcsp(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a .wcsp file."""
    budget = Budget(path) if budget is None else budget
    return read_costs(path, budget, lambda b: WcspReader(str(path), MOST_VARIABLES, b.room), split_wcsp)


# -- writing ---------------------------------------------------------------------------------------------------


def _costs(scores: NDArray[np.float64], what: str, path: Path) -> NDArray[np.float64]:
    """Minus the scores, as whole numbers; +inf where labels are forbidden."""
    costs = 0.0 - scores
    finite = np.isfinite(costs)
    wrong = finite & ((costs < 0) | (costs != np.floor(costs)) | (costs >= _LARGEST))
    if wrong.any():
        entry = int(np.argmax(wrong.reshape(-1)))
        cost = float(costs.reshape(-1)[entry])
        raise FormatError(
            f"{what}, entry {entry} has the cost {cost!r}; .wcsp holds whole costs >= 0: write .cfn, "
            "or convert --scale",
            str(path),
        )
    return costs


def _check_listed(factors: Factors) -> bool:
    """Whether all entries of dense tables are whole and not positive: a look at all of them in one go."""
    values = factors.arrays.values
    for begin in range(0, len(values), _BLOCK):
        scores = values[begin : begin + _BLOCK]
        if ((scores > 0) | (scores <= -_LARGEST) & np.isfinite(scores) | (scores != np.floor(scores))).any():
            return False
    return True


class _Costs:
    """The costs of a function: checked, unless all listed ones have been."""

    def __init__(self, factors: Factors, path: Path) -> None:
        self._factors, self._path = factors, path
        self._all_fit = _check_listed(factors)

    def of(self, key: Key) -> NDArray[np.float64]:
        scores = self._factors.scores(key)
        if self._all_fit and self._factors.is_listed(key):
            return 0.0 - scores
        return _costs(scores, f"table {key[0]}", self._path)

    def largest(self, key: Key) -> int:
        if not (self._all_fit and self._factors.is_listed(key)):
            self.of(key)
        low, high = self._factors.range(key)
        return int(0.0 - low) if low <= high else 0


def write_wcsp(graph: FactorGraph, path: Path) -> None:
    """Writes a .wcsp file; scores must be whole and not positive. Its upper bound is the cutoff, if there is one."""
    factors = Factors(graph)
    costs_of = _Costs(factors, path)
    uses = Counter(key for _, key in factors)
    # The upper bound forbids, so it must be above the cost of everything that is allowed.
    top = 1
    unaries: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
    for constant in factors.constants():
        unaries.append(((), _costs(np.array(constant), "the constant", path)))
    for variable, scores in factors.unaries():
        unaries.append(((variable,), _costs(scores, f"variable {variable}", path)))
    for _, costs in unaries:
        top += _largest(costs)
    for key, n in uses.items():
        top += n * costs_of.largest(key)
    if graph.cutoff > -math.inf:
        top = min(top, max(0, math.ceil(0.0 - graph.cutoff)))  # costs are whole, and so are totals
    if top >= _LARGEST:
        raise FormatError(f"the costs sum up to {top}; .wcsp takes less than 2^62: write .cfn", str(path))
    n_functions = len(unaries) + sum(uses.values())
    largest = int(graph.cards.max()) if graph.n_variables else 0
    name = problem_name(path)
    shared: dict[Key, tuple[int, int]] = {}
    with write_atomically(path) as stream:
        stream.write(f"{name} {graph.n_variables} {largest} {n_functions} {top}\n".encode())
        stream.write(" ".join(map(str, graph.cards.tolist())).encode() + b"\n")
        for scope, costs in unaries:
            stream.write(_function(scope, costs, top, False)[0].encode())
        for scope, key in factors:
            if key in shared:
                number, default = shared[key]
                stream.write(f"{len(scope)} {' '.join(map(str, scope))} {default} {-number}\n".encode())
                continue
            text, default = _function(scope, costs_of.of(key), top, uses[key] > 1)
            stream.write(text.encode())
            if uses[key] > 1:
                shared[key] = len(shared) + 1, default


def _largest(costs: NDArray[np.float64]) -> int:
    finite = costs[np.isfinite(costs)]
    return int(finite.max()) if finite.size else 0


def _function(scope: tuple[int, ...], costs: NDArray[np.float64], top: int, shared: bool) -> tuple[str, int]:
    """The text of a function, with its most frequent cost as the default."""
    whole = [top if c == math.inf else int(c) for c in costs.reshape(-1).tolist()]
    if not scope:
        return f"0 {whole[0]} 0\n", whole[0]
    default = most_frequent(whole)
    rows = [f"{x} {c}\n" for x, c in zip(label_texts(costs.shape, " "), whole, strict=True) if c != default]
    head = f"{-len(scope) if shared else len(scope)} {' '.join(map(str, scope))} {default} {len(rows)}\n"
    return head + "".join(rows), default
