"""A global cost function over variables of a graph: what its parameters say, checked, and what it is made of.

All numbers stand for costs; what is added to the graph are scores.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from fginfer.errors import ModelError
from fginfer.formats.global_text import Global
from fginfer.formats.lines import NUMBER
from fginfer.graph import FactorGraph

COMPARATORS = ("==", "=", "<", "<=", ">", ">=", "!=")


class Function:
    """A global function over variables of a graph, with what it asks of its parameters."""

    def __init__(self, graph: FactorGraph, given: Global, top: float, network: FactorGraph | None = None) -> None:
        self.graph, self.kind, self._params, self.top = graph, given.kind, given.params, top
        self.network = network
        self.scope = [self._variable(word) for word in given.scope]
        if len(set(self.scope)) < len(self.scope):
            raise ModelError(f"{self.kind} names a variable twice")

    def _variable(self, word: str) -> int:
        names = self.graph.names
        if (names is None or not names.has_variable(word)) and word.isascii() and word.isdigit():
            return self.graph.variable(int(word[:10]))
        return self.graph.variable(word)

    def get(self, key: str, default: str | None = None) -> Any:
        if key not in self._params and default is None:
            raise ModelError(f"{self.kind} has no {key}")
        return self._params.get(key, default)

    def number(self, word: object, what: str) -> float:
        if not isinstance(word, str) or not NUMBER.fullmatch(word) or not abs(float(word)) < inf:
            raise ModelError(f"{self.kind}: {what} must be a number, not {str(word)[:40]!r}")
        return float(word)

    def whole(self, word: object, what: str) -> int:
        value = self.number(word, what)
        if value != int(value) or abs(value) > 10**9:
            raise ModelError(f"{self.kind}: {what} must be a whole number, not {str(word)[:40]!r}")
        return int(value)

    def rows(self, key: str, width: int) -> list[list[Any]]:
        rows = self.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == width for row in rows):
            raise ModelError(f"{self.kind}: {key} must be a list of lists of {width}")
        return rows

    def words(self, key: str) -> list[Any]:
        words = self.get(key)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ModelError(f"{self.kind}: {key} must be a list")
        return words

    @property
    def cost(self) -> float:
        """The cost of a violation, or of a unit of it; inf if one alone makes a labeling infeasible."""
        cost = self.number(self.get("cost"), "cost")
        if cost < 0:
            raise ModelError(f"{self.kind}: the cost of a violation is negative")
        return cost if cost < self.top else inf

    def metric(self, *known: str) -> str:
        metric = self.get("metric")
        if metric == "var" and self.kind.startswith("w"):  # another word for it there
            metric = "lin"
        if metric not in known:
            raise ModelError(f"{self.kind} with the metric {str(metric)[:40]} is not read; read are {', '.join(known)}")
        return str(metric)

    def literals(self, value: str, variables: list[int] | None = None) -> list[tuple[int, int]]:
        """The variables that can have a value, each with its label."""
        out = []
        for variable in self.scope if variables is None else variables:
            labels = None if self.graph.names is None else self.graph.names.labels(variable)
            if labels is not None and value in labels:
                out.append((variable, labels.index(value)))
            elif (label := self.whole(value, "a value")) < int(self.graph.cards[variable]) and label >= 0:
                out.append((variable, label))
        return out

    def count(self, literals: list[tuple[int, int]], low: int, high: int, price: Callable[[int], float]) -> None:
        """So many of the literals are true, or the price of what is missing or too much counts."""
        distance = [max(0, low - c, c - high) for c in range(len(literals) + 1)]
        scores = [0.0 - price(d) if d else 0.0 for d in distance]
        if len(self.scope) == 0 or not any(scores):
            return
        self.graph.add_cardinality(literals, scores)

    def comparator(self) -> str:
        comparator = str(self.get("comparator"))
        if comparator not in COMPARATORS:
            read = ", ".join(COMPARATORS)
            raise ModelError(f"{self.kind} with the comparator {comparator[:20]} is not read; read are {read}")
        return "==" if comparator == "=" else comparator

    def halves(self) -> tuple[list[int], list[int]]:
        """The two lists that the scope is, one after the other."""
        if len(self.scope) % 2:
            raise ModelError(f"{self.kind} needs two lists of one length, and has {len(self.scope)} variables")
        half = len(self.scope) // 2
        return self.scope[:half], self.scope[half:]

    def own(self, word: object) -> int:
        """A variable of the scope."""
        variable = self._variable(str(word))
        if variable not in self.scope:
            raise ModelError(f"{self.kind}: {str(word)[:40]!r} is not a variable of its scope")
        return variable

    def price(self) -> Callable[[int], float]:
        """What a distance costs."""
        cost, metric = self.cost, self.metric("hard", "lin", "quad", "var", "dec")
        if metric == "hard":  # whatever the distance: a cost at or above the bound of the file forbids
            return lambda distance: cost
        return lambda distance: cost * (distance * distance if metric == "quad" else distance)
