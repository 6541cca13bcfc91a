"""Models over true and false, as CNF, WCNF, OPB and WBO files have them: products of literals and linear constraints.

A literal is a variable and the label that makes it true. A clause is violated where all its literals are false, so it
is a product of the opposite literals that is forbidden, or that costs its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.formats.assembly import Assembly
from fginfer.graph import FactorGraph

Exact = int | Fraction
Literal = tuple[int, int]  # variable, label
FEW = 6  # literals of a table with an entry for each of their states; of more, a constraint that is never expanded
_PER_VARIABLE, _PER_FACTOR, _PER_LITERAL = 100, 300, 100  # bytes that a reader takes


class Linear(NamedTuple):
    """A linear constraint: the slopes of the binary variables that are 1 add up to something from low to high."""

    variables: list[int]
    slopes: list[Exact]
    low: Exact | None
    high: Exact | None
    penalty: float

    @classmethod
    def of(
        cls,
        literals: Sequence[Literal],
        weights: Sequence[Exact],
        low: Exact | None,
        high: Exact | None,
        penalty: float = inf,
    ) -> Linear:
        """The constraint over literals, which may repeat and contradict one another."""
        slopes: dict[int, Exact] = {}
        constant: Exact = 0
        for (variable, label), weight in zip(literals, weights, strict=True):
            slopes[variable] = slopes.get(variable, 0) + (weight if label else -weight)
            constant += 0 if label else weight
        slopes = {variable: slope for variable, slope in slopes.items() if slope}
        lowest, highest = (None if limit is None else limit - constant for limit in (low, high))
        return cls(list(slopes), list(slopes.values()), lowest, highest, penalty)

    def add_to(self, graph: FactorGraph) -> None:
        """A constraint of the graph, stored as it was said."""
        literals = [(variable, 1) for variable in self.variables]
        penalty = None if self.penalty == inf else self.penalty
        if self.low is not None and self.high is not None and self.low > self.high:
            graph.add_factor([], 0.0 - self.penalty)  # never holds
        elif len(self.variables) <= FEW:
            graph.add_factor(self.variables, self.table())
        elif self.low is not None or self.high is not None:
            graph.add_linear(literals, self.slopes, self.low, self.high, penalty=penalty)  # type: ignore[arg-type]

    def table(self) -> NDArray[np.float64]:
        """The scores of all states; sums are exact."""
        totals: list[Exact] = [0]
        for slope in self.slopes:
            totals = [total + more for total in totals for more in (0, slope)]
        low, high = self.low, self.high
        bad = [(low is not None and total < low) or (high is not None and total > high) for total in totals]
        return np.where(bad, 0.0 - self.penalty, 0.0).reshape((2,) * len(self.slopes))


class Boolean:
    """Collects products and constraints over literals. `fail` raises an error at the word that was read last."""

    def __init__(self, budget: Budget, fail: Callable[[str], NoReturn]) -> None:
        self._budget, self._fail = budget, fail
        self._products: list[tuple[dict[int, int], float]] = []
        self._linear: list[Linear] = []
        self._n = 0

    def variables(self, n: int) -> None:
        """There are at least n variables."""
        if n > self._n:
            self._budget.take_unlisted(_PER_VARIABLE * float(n - self._n), f"a model of {n} variables")
            self._n = n

    def product(self, literals: Sequence[Literal], score: float) -> None:
        """A score that counts where all literals are true; -inf forbids that."""
        distinct: dict[int, int] = {}
        for variable, label in literals:
            if distinct.setdefault(variable, label) != label:
                return  # a literal and its opposite are never both true
        self._budget.take(_PER_FACTOR + _PER_LITERAL * len(distinct), "the model")
        if score:
            self._products.append((distinct, score))

    def clause(self, literals: Sequence[Literal], penalty: float = inf) -> None:
        """One of the literals is true, or the penalty counts."""
        self.product([(variable, 1 - label) for variable, label in literals], 0.0 - penalty)

    def linear(
        self,
        literals: Sequence[Literal],
        weights: Sequence[Exact],
        low: Exact | None,
        high: Exact | None,
        penalty: float = inf,
    ) -> None:
        """The weights of the true literals add up to something from low to high, or the penalty counts."""
        rule = Linear.of(literals, weights, low, high, penalty)
        self._budget.take(2 * _PER_FACTOR + 4 * _PER_LITERAL * len(rule.variables), "the model")
        self._linear.append(rule)

    def exactly_one(self, literals: Sequence[Literal], at_most: bool = False) -> None:
        """One of the literals is true, or none if that will do."""
        self.linear(literals, [1] * len(literals), None if at_most else 1, 1)

    def graph(self) -> FactorGraph:
        """The model."""
        made = Assembly(np.full(self._n, 2, np.int32))
        long = []
        for literals, score in self._products:
            if len(literals) > FEW:
                long.append((literals, score))
                continue
            table = np.zeros((2,) * len(literals))
            table[tuple(literals.values())] = score
            made.add(list(literals), made.function(table))
        self._products.clear()
        graph = made.graph()
        for literals, score in long:
            if score < 0:
                opposite = [(variable, 1 - label) for variable, label in literals.items()]
                graph.add_clause(opposite, penalty=None if score == -inf else -score)
            else:
                graph.add_cardinality(list(literals.items()), [0.0] * len(literals) + [score])
        for rule in self._linear:
            rule.add_to(graph)
        return graph
