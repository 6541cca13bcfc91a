"""What toulbar2's global cost functions mean, as constraints of a graph: a score is minus a cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from operator import mul
from typing import Any

from fginfer.errors import ModelError
from fginfer.formats.global_text import Global
from fginfer.formats.lines import NUMBER
from fginfer.graph import FactorGraph
from fginfer.rules import Automaton


class _Function:
    """A global function over variables of a graph, with what it asks of its parameters."""

    def __init__(self, graph: FactorGraph, given: Global, top: float) -> None:
        self.graph, self.kind, self._params, self._top = graph, given.kind, given.params, top
        self.scope = [self._variable(word) for word in given.scope]
        if len(set(self.scope)) < len(self.scope):
            raise ModelError(f"{self.kind} names a variable twice")

    def _variable(self, word: str) -> int:
        names = self.graph.names
        if (names is None or not names.has_variable(word)) and word.isascii() and word.isdigit():
            return self.graph.variable(int(word[:10]))
        return self.graph.variable(word)

    def get(self, key: str) -> Any:
        if key not in self._params:
            raise ModelError(f"{self.kind} has no {key}")
        return self._params[key]

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
        return cost if cost < self._top else inf

    def metric(self, *known: str) -> str:
        metric = self.get("metric")
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

    def price(self) -> Callable[[int], float]:
        """What a distance costs."""
        cost, metric = self.cost, self.metric("hard", "lin", "quad", "var", "dec")
        if metric == "hard":  # whatever the distance: a cost at or above the bound of the file forbids
            return lambda distance: cost
        return lambda distance: cost * (distance * distance if metric == "quad" else distance)


def add_global(graph: FactorGraph, given: Global, top: float = inf) -> None:
    """Adds a global function to the graph; ModelError for parameters that it cannot have. A cost of `top` forbids."""
    function = _Function(graph, given, top)
    if function.scope:
        _ADDERS[given.kind](function)


def _all_different(f: _Function) -> None:
    metric = f.metric(*(("hard", "lin", "quad") if f.kind == "walldiff" else ("var", "dec", "decbi")))
    cost = f.cost
    if metric in ("var", "lin"):
        f.graph.add_all_different(f.scope, price=None if cost == inf else cost)
        return
    prices: dict[str, Callable[[int], float]] = {
        "hard": lambda d: cost,
        "quad": lambda d: cost * d * d,
        "dec": lambda d: cost * d * (d + 1) / 2,  # d variables too many make as many pairs equal
    }
    for label in range(max(int(f.graph.cards[v]) for v in f.scope)):
        literals = [(v, label) for v in f.scope if label < int(f.graph.cards[v])]
        f.count(literals, 0, 1, prices["dec" if metric == "decbi" else metric])


def _cardinality(f: _Function) -> None:
    known = ("hard", "lin", "quad") if f.kind == "wgcc" else ("var", "dec", "wdec") if f.kind == "sgcc" else ("var",)
    metric = f.metric(*known)
    n = len(f.scope)
    rows = f.rows("bounds", 5 if metric == "wdec" else 3)
    limits = [(str(row[0]), f.whole(row[1], "a lower bound"), f.whole(row[2], "an upper bound")) for row in rows]
    if metric == "var" and any(low > 0 for _, low, _ in limits) and any(high < n for _, _, high in limits):
        raise ModelError(f"{f.kind} with the metric var and bounds on both sides is not read")
    for row, (value, low, high) in zip(rows, limits, strict=True):
        if metric == "wdec":
            short, much = f.number(row[3], "a weight"), f.number(row[4], "a weight")
            f.count(f.literals(value), low, n, partial(mul, short))
            f.count(f.literals(value), 0, high, partial(mul, much))
        else:
            f.count(f.literals(value), low, high, f.price())


def _among(f: _Function) -> None:
    if f.kind != "wamong":
        f.metric("var")
    literals = [one for value in dict.fromkeys(f.words("values")) for one in f.literals(value)]
    f.count(literals, f.whole(f.get("min"), "min"), f.whole(f.get("max"), "max"), f.price())


def _regular(f: _Function) -> None:
    """Where a variable must change its value to follow the automaton, that costs."""
    f.metric("var")
    cost, most = f.cost, max(int(f.graph.cards[v]) for v in f.scope)
    known: dict[tuple[int, int, int], float] = {}
    for start, value, end in f.rows("transitions", 3):
        s, t, x = f.whole(start, "a state"), f.whole(end, "a state"), f.whole(value, "a value")
        for label in range(most):
            score = 0.0 if label == x else 0.0 - cost
            known[s, label, t] = max(known.get((s, label, t), -inf), score)
    _automaton(
        f,
        {f.whole(s, "a state"): 0.0 for s in f.words("starts")},
        known,
        {f.whole(s, "a state"): 0.0 for s in f.words("ends")},
    )


def _weighted_regular(f: _Function) -> None:
    known: dict[tuple[int, int, int], float] = {}
    for start, value, end, cost in f.rows("transitions", 4):
        key = f.whole(start, "a state"), f.whole(value, "a value"), f.whole(end, "a state")
        known[key] = max(known.get(key, -inf), 0.0 - f.number(cost, "a cost"))
    starts, ends = (
        {f.whole(s, "a state"): 0.0 - f.number(c, "a cost") for s, c in f.rows(key, 2)} for key in ("starts", "ends")
    )
    _automaton(f, starts, known, ends)


def _automaton(
    f: _Function, starts: dict[int, float], moves: dict[tuple[int, int, int], float], ends: dict[int, float]
) -> None:
    """State 0 is the start there: ours is a new one, which leads where the given starts lead."""
    states = f.whole(f.get("nb_states"), "nb_states")
    named = [*starts, *ends, *(s for start, _, end in moves for s in (start, end))]
    if any(not 0 <= s < states for s in named) or any(x < 0 for _, x, _ in moves):
        raise ModelError(f"{f.kind}: there is a state that is not among its {states}, or a negative value")
    transitions = [(s + 1, x, t + 1, score) for (s, x, t), score in moves.items()]
    transitions += [(0, x, t + 1, starts[s] + score) for (s, x, t), score in moves.items() if s in starts]
    f.graph.add_regular(f.scope, Automaton(transitions, {s + 1: score for s, score in ends.items()}))


def _sum(f: _Function) -> None:
    metric = f.metric("hard", "lin")
    to, comparator = f.whole(f.get("to"), "to"), str(f.get("comparator"))
    limits = {
        "==": (to, to),
        "=": (to, to),
        "<": (None, to - 1),
        "<=": (None, to),
        ">": (to + 1, None),
        ">=": (to, None),
    }
    if comparator not in limits:
        raise ModelError(f"{f.kind} with the comparator {comparator[:20]} is not read; read are {', '.join(limits)}")
    low, high = limits[comparator]
    literals = [(v, a) for v in f.scope for a in range(1, int(f.graph.cards[v]))]
    weights = [float(label) for _, label in literals]
    penalty = None if f.cost == inf else f.cost
    f.graph.add_linear(literals, weights, low, high, penalty=penalty, per_unit=metric == "lin" and penalty is not None)


def _knapsack(f: _Function) -> None:
    if f.kind == "knapsack":
        words = f.words("weights")
        if len(words) != len(f.scope) or any(int(f.graph.cards[v]) > 2 for v in f.scope):
            raise ModelError(f"{f.kind} needs a weight for each variable, and variables of two values")
        pairs = [((v, 1), f.whole(w, "a weight")) for v, w in zip(f.scope, words, strict=True) if f.graph.cards[v] > 1]
    else:
        rows = f.get("weightedvalues")
        if not isinstance(rows, list) or len(rows) != len(f.scope):
            raise ModelError(f"{f.kind} needs a list of values and weights for each variable")
        pairs = []
        for variable, row in zip(f.scope, rows, strict=True):
            if not isinstance(row, list) or not all(isinstance(one, list) and len(one) == 2 for one in row):
                raise ModelError(f"{f.kind}: weightedvalues must be pairs of a value and a weight")
            for value, weight in row:
                pairs += [(one, f.whole(weight, "a weight")) for one in f.literals(str(value), [variable])]
    literals, weights = [one for one, _ in pairs], [float(weight) for _, weight in pairs]
    f.graph.add_linear(literals, weights, f.whole(f.get("capacity"), "capacity"), None)


def _clique(f: _Function) -> None:
    rows = f.get("values")
    if not isinstance(rows, list) or len(rows) != len(f.scope) or not all(isinstance(row, list) for row in rows):
        raise ModelError(f"{f.kind} needs a list of values for each variable")
    literals = [
        one for v, row in zip(f.scope, rows, strict=True) for value in row for one in f.literals(str(value), [v])
    ]
    f.graph.add_at_most(f.whole(f.get("rhs"), "rhs"), literals)


_ADDERS: dict[str, Callable[[_Function], None]] = {
    **dict.fromkeys(("salldiff", "salldiffdp", "walldiff"), _all_different),
    **dict.fromkeys(("sgcc", "sgccdp", "wgcc"), _cardinality),
    **dict.fromkeys(("samong", "samongdp", "wamong"), _among),
    **dict.fromkeys(("sregular", "sregulardp"), _regular),
    "wregular": _weighted_regular,
    "wsum": _sum,
    **dict.fromkeys(("knapsack", "knapsackp"), _knapsack),
    "clique": _clique,
}
