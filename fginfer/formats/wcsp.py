"""toulbar2's .wcsp: whole non-negative costs to be minimised; a total at or above the upper bound is infeasible.

A score is minus a cost, the graph's cutoff minus the bound. No cost being negative, a single one that high forbids.
Functions are a default cost and the tuples that differ from it; shared ones (negative arity when defined, negative
number of tuples when used) stay shared. Binary arithmetic functions are expanded once, other functions given by a
keyword are refused.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError
from fginfer.formats.assembly import MOST_VARIABLES, Assembly, Factors, Function
from fginfer.formats.costs import ARITHMETIC, NEGATIVE, arithmetic
from fginfer.formats.streams import split_compression, write_atomically
from fginfer.formats.tokens import Tokens
from fginfer.graph import FactorGraph

_REPEATED = 1_000_000  # tuples that may be given again (the last counts)
_LARGEST = 2**62  # costs are 64-bit integers in toulbar2, with room for sums


# -- reading ---------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, path: Path, budget: Budget) -> None:
        self.tokens = Tokens(path, budget)
        self.budget = budget
        budget.fail = self.tokens.fail
        self.shared: list[tuple[tuple[int, ...], Function, int]] = []  # shape, scores, largest cost allowed
        self.most = 0  # no total is larger, but for what is forbidden

    def read(self) -> FactorGraph:
        tokens = self.tokens
        tokens.next("the name of the problem")
        tokens.split_signs()
        n = tokens.integer("the number of variables", 0, 2**31 - 1)
        largest = tokens.integer("the largest domain size", 0)
        functions = tokens.integer("the number of cost functions", 0)
        self.top = tokens.integer("the upper bound", 0)
        cards = []
        for i in range(n):
            negative = tokens.peek().startswith("-")
            size = tokens.integer(
                f"the domain size of variable {i}", -(2**62) if negative else 1, min(largest, 2**31 - 1)
            )
            if negative:
                tokens.fail(NEGATIVE.format(i))
            self.budget.take_unlisted(8.0 * size, f"variable {i} with {size} labels")
            cards.append(size)
        self.cards = cards
        self.assembly = Assembly(np.array(cards, np.int32))
        for f in range(functions):
            self.function(f)
        tokens.end(f"{functions} cost functions")
        graph = self.assembly.graph()
        if self.most >= self.top:  # else no total gets there
            graph.cutoff = -float(self.top)
        return graph

    def function(self, f: int) -> None:
        tokens = self.tokens
        signed = tokens.integer(f"the arity of cost function {f}", -len(self.cards), len(self.cards))
        variables = [
            tokens.integer(f"a variable of cost function {f}", 0, len(self.cards) - 1) for _ in range(abs(signed))
        ]
        if len(set(variables)) < len(variables):
            tokens.fail(f"cost function {f} names a variable twice")
        if len(variables) > MOST_VARIABLES:
            tokens.fail(f"cost function {f} has {len(variables)} variables; {MOST_VARIABLES} are the most")
        shape = tuple(self.cards[v] for v in variables)
        tokens.infinity = self.top
        default = tokens.integer(f"the default cost of cost function {f}, or -1", -1)
        if default == -1:
            self.keep(signed < 0, shape, variables, self.by_keyword(f, shape))
            return
        count = tokens.integer(f"the number of tuples of cost function {f}", -len(self.shared))
        if count < 0:
            known, stored, most = self.shared[-count - 1]
            if known != shape:
                tokens.fail(f"cost function {f} has label counts {shape}, the shared function {-count} has {known}")
            self.assembly.add(variables, stored)
            self.most += most
            return
        if not variables and count:
            tokens.fail(f"cost function {f} has no variables and so no tuples")
        self.keep(signed < 0, shape, variables, self.tuples(f, shape, default, count))

    def keep(self, shared: bool, shape: tuple[int, ...], variables: list[int], costs: NDArray[np.float64]) -> None:
        scores = np.where(costs >= self.top, -np.inf, 0.0 - costs)
        stored, most = self.assembly.function(scores), _largest(0.0 - scores)
        if shared:
            self.shared.append((shape, stored, most))
        self.assembly.add(variables, stored)
        self.most += most

    def tuples(self, f: int, shape: tuple[int, ...], default: int, count: int) -> NDArray[np.float64]:
        size = math.prod(shape)
        self.budget.take_unlisted(8.0 * size, f"cost function {f}, a table of {size} entries,")
        if count > size + _REPEATED:
            self.tokens.fail(f"cost function {f} has {size} entries; {count} tuples cannot be meant")
        width = len(shape) + 1
        numbers = self.tokens.integers(count * width, f"{count} tuples of cost function {f}")
        rows = numbers.reshape(count, width)
        out = np.full(size, float(default))
        at = np.zeros(count, np.int64)
        for k, labels in enumerate(shape):
            column = rows[:, k]
            if count and (column.min() < 0 or column.max() >= labels):
                bad = int(np.argmax((column < 0) | (column >= labels)))
                self.tokens.fail_back(bad * width + k, f"cost function {f}: expected a label from 0 to {labels - 1}")
            at = at * labels + column
        costs = rows[:, -1]
        if count and costs.min() < 0:
            self.tokens.fail_back(
                int(np.argmax(costs < 0)) * width + width - 1, f"cost function {f} has a negative cost"
            )
        out[at] = costs
        return out.reshape(shape)

    def by_keyword(self, f: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
        keyword = self.tokens.next(f"the keyword of cost function {f}")
        if keyword not in ARITHMETIC or len(shape) != 2:
            self.tokens.fail(f"cost function {f} is a global one of a kind that is not supported")
        size = math.prod(shape)
        self.budget.take_unlisted(8.0 * size, f"cost function {f}, a table of {size} entries,")
        what = f"a parameter of cost function {f}"
        parameters = [float(self.tokens.integer(what, -(2**62))) for _ in range(ARITHMETIC[keyword])]
        return arithmetic(keyword, parameters, (shape[0], shape[1]), float(self.top))


def read_wcsp(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a .wcsp file."""
    try:
        return _Reader(path, Budget(path) if budget is None else budget).read()
    except ModelError as error:
        raise FormatError(str(error), str(path)) from None


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


def write_wcsp(graph: FactorGraph, path: Path) -> None:
    """Writes a .wcsp file; scores must be whole and not positive. Its upper bound is the cutoff, if there is one."""
    factors = Factors(graph)
    uses = Counter(key for _, key in factors)
    # The upper bound forbids, so it must be above the cost of everything that is allowed.
    top = 1
    unaries: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
    if factors.constant is not None:
        unaries.append(((), _costs(np.array(factors.constant), "the constant", path)))
    for variable, scores in factors.unaries():
        unaries.append(((variable,), _costs(scores, f"variable {variable}", path)))
    for _, costs in unaries:
        top += _largest(costs)
    for key, n in uses.items():
        top += n * _largest(_costs(factors.scores(key), f"table {key[0]}", path))
    if graph.cutoff > -math.inf:
        top = min(top, max(0, math.ceil(0.0 - graph.cutoff)))  # costs are whole, and so are totals
    if top >= _LARGEST:
        raise FormatError(f"the costs sum up to {top}; .wcsp takes less than 2^62: write .cfn", str(path))
    n_functions = len(unaries) + sum(uses.values())
    largest = int(graph.cards.max()) if graph.n_variables else 0
    name = split_compression(path)[0].stem.replace(" ", "_") or "model"
    shared: dict[object, tuple[int, int]] = {}
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
            text, default = _function(scope, _costs(factors.scores(key), f"table {key[0]}", path), top, uses[key] > 1)
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
    default = Counter(whole).most_common(1)[0][0]
    labels = np.stack(np.unravel_index(np.arange(costs.size), costs.shape), axis=1).tolist()
    rows = [f"{' '.join(map(str, x))} {c}\n" for x, c in zip(labels, whole, strict=True) if c != default]
    head = f"{-len(scope) if shared else len(scope)} {' '.join(map(str, scope))} {default} {len(rows)}\n"
    return head + "".join(rows), default
