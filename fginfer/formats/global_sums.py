"""toulbar2's global cost functions of sums and counts: what a sum of literals is off by has a price."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf

from fginfer.errors import ModelError
from fginfer.formats.global_function import Function
from fginfer.rules import Automaton

Weighted = list[tuple[tuple[int, int], int]]  # literals (variable, label), each with a weight
# Totals of a sum whose score is listed for each of them, entries of an automaton's table, and literals of all the
# constraints that one function is made of: what a line of text may ask for (chosen: some 100 MB).
_MOST_TOTALS, _MOST_ENTRIES, _MOST_LITERALS = 10**6, 10**7, 10**6


def _add_sum(f: Function, terms: Weighted, comparator: str, to: int, price: Callable[[int], float]) -> None:
    """The sum compares to a number, or the price of how far it is off counts; != is off by 1 or by nothing."""
    metric = f.metric("hard", "lin", "quad")
    if comparator == "!=" or (metric == "quad" and f.cost < inf):
        _add_listed(f, terms, comparator, to, price)
        return
    low = {"==": to, ">": to + 1, ">=": to}.get(comparator)
    high = {"==": to, "<": to - 1, "<=": to}.get(comparator)
    literals, weights = [literal for literal, _ in terms], [float(weight) for _, weight in terms]
    penalty = None if f.cost == inf else f.cost
    f.graph.add_linear(literals, weights, low, high, penalty=penalty, per_unit=metric == "lin" and penalty is not None)


def _add_listed(f: Function, terms: Weighted, comparator: str, to: int, price: Callable[[int], float]) -> None:
    """A score for each total: a literal stands as often as it weighs, the least weight of its variable being 0."""
    least: dict[int, int] = {}
    by_label = dict(terms)
    for v in dict.fromkeys(v for v, _ in by_label):
        least[v] = min(by_label.get((v, a), 0) for a in range(int(f.graph.cards[v])))
    adds = {(v, a): by_label.get((v, a), 0) - base for v, base in least.items() for a in range(int(f.graph.cards[v]))}
    totals = sum(adds.values())
    if totals > _MOST_TOTALS:
        raise ModelError(f"{f.kind} with {comparator} over {totals} values is too large")
    base = sum(least.values())
    literals = [literal for literal, times in adds.items() for _ in range(times)]
    off = [_off(base + total, comparator, to) for total in range(len(literals) + 1)]
    if literals or off[0]:
        f.graph.add_cardinality(literals, [0.0 - price(d) if d else 0.0 for d in off])


def _off(total: int, comparator: str, to: int) -> int:
    if comparator == "!=":
        return int(total == to)
    below = {"==": to - total, ">": to + 1 - total, ">=": to - total}.get(comparator, 0)
    above = {"==": total - to, "<": total + 1 - to, "<=": total - to}.get(comparator, 0)
    return max(0, below, above)


def _labels(f: Function, variables: list[int], sign: int = 1) -> Weighted:
    """The sum of the labels of variables."""
    return [((v, a), sign * a) for v in variables for a in range(1, int(f.graph.cards[v]))]


def _sum(f: Function) -> None:
    _add_sum(f, _labels(f, f.scope), f.comparator(), f.whole(f.get("to"), "to"), f.price())


def _variable_sum(f: Function) -> None:
    """The sum of all but the last variable compares to the last."""
    f.metric("hard", "lin")
    _add_sum(f, _labels(f, f.scope[:-1]) + _labels(f, f.scope[-1:], -1), f.comparator(), 0, f.price())


def _variable_among(f: Function) -> None:
    """So many of all but the last variable have one of the values as the last one says."""
    f.metric("hard")
    among = [(one, 1) for value in dict.fromkeys(f.words("values")) for one in f.literals(value, f.scope[:-1])]
    _add_sum(f, among + _labels(f, f.scope[-1:], -1), "==", 0, f.price())


def same(f: Function) -> None:
    """Both halves of the scope have each label equally often."""
    first, second = f.halves()
    for label in range(max(int(f.graph.cards[v]) for v in f.scope)):
        terms = [((v, label), 1) for v in first if label < int(f.graph.cards[v])]
        terms += [((v, label), -1) for v in second if label < int(f.graph.cards[v])]
        _add_sum(f, terms, "==", 0, f.price())


def _soft_same(f: Function) -> None:
    """The variables of one list that must change their label to make it a permutation of the other."""
    first, second = [f.own(word) for word in f.words("vars1")], [f.own(word) for word in f.words("vars2")]
    if len(first) != len(second) or sorted(first + second) != sorted(f.scope):
        raise ModelError(f"{f.kind} needs two lists of one length that have each variable of its scope once")
    cost = f.cost
    for label in range(max(int(f.graph.cards[v]) for v in f.scope)):
        terms = [((v, label), 1.0) for v in first if label < int(f.graph.cards[v])]
        terms += [((v, label), -1.0) for v in second if label < int(f.graph.cards[v])]
        literals, weights = [literal for literal, _ in terms], [weight for _, weight in terms]
        penalty = None if cost == inf else cost
        f.graph.add_linear(literals, weights, None, 0, penalty=penalty, per_unit=penalty is not None)


def _overlap(f: Function) -> None:
    """Positions at which both halves of the scope have the same label, which is not 0: an automaton counts them."""
    comparator, to, price = f.comparator(), f.whole(f.get("to"), "to"), f.price()
    f.metric("hard", "lin", "quad")
    first, second = f.halves()
    most = max(int(f.graph.cards[v]) for v in f.scope)
    states = (len(first) + 1) * (most + 1)
    if states * states * most > _MOST_ENTRIES:
        raise ModelError(f"{f.kind} over {len(f.scope)} variables of {most} labels is too large")
    moves = []
    for count in range(len(first)):
        at = count * (most + 1)  # as many overlaps; behind it, with the label of the first of a pair
        for a in range(most):
            moves.append((at, a, at + 1 + a))
            moves += [(at + 1 + a, b, at + (most + 1) * (a == b > 0)) for b in range(most)]
    ends = {
        c * (most + 1): 0.0 - price(d) if d else 0.0 for c in range(len(first) + 1) for d in [_off(c, comparator, to)]
    }
    f.graph.add_regular([v for pair in zip(first, second, strict=True) for v in pair], Automaton(moves, ends))


def _maximum(f: Function) -> None:
    """The largest of a cost for each variable: a level of the costs counts if some variable reaches it."""
    costs = {
        (v, a): f.number(f.get("defaultcost"), "defaultcost") for v in f.scope for a in range(int(f.graph.cards[v]))
    }
    for word, value, cost in f.rows("tuples", 3):
        for one in f.literals(str(value), [f.own(word)]):
            costs[one] = f.number(cost, "a cost")
    levels = sorted(set(costs.values()))
    lowest = max(min(costs[v, a] for a in range(int(f.graph.cards[v]))) for v in f.scope)
    levels = [level for level in levels if level >= lowest]  # one variable has as much in any case
    if len(levels) * len(costs) > _MOST_LITERALS:
        raise ModelError(f"{f.kind} with {len(levels)} costs over {len(costs)} values is too large")
    f.graph.add_factor([], 0.0 - levels[0])
    for below, level in pairwise(levels):
        reach = [one for one, cost in costs.items() if cost >= level]
        f.graph.add_at_most(0, reach, penalty=None if level >= f.top else level - below)


def _diverse(f: Function) -> None:
    """So many variables differ from their value in a list."""
    values = f.words("values")
    if len(values) != len(f.scope):
        raise ModelError(f"{f.kind} needs a value for each variable")
    differ = []
    always = 0
    for v, value in zip(f.scope, values, strict=True):
        found = f.literals(value, [v])
        always += not found
        differ += [(*one, False) for one in found]
    f.graph.add_at_least(max(0, f.whole(f.get("distance"), "distance") - always), differ)


def _knapsack(f: Function) -> None:
    if f.kind == "knapsack":
        words = f.words("weights")
        if len(words) != len(f.scope) or any(int(f.graph.cards[v]) > 2 for v in f.scope):
            raise ModelError(f"{f.kind} needs a weight for each variable, and variables of two values")
        pairs = [((v, 1), f.whole(w, "a weight")) for v, w in zip(f.scope, words, strict=True) if f.graph.cards[v] > 1]
    elif f.kind == "knapsackv":
        pairs = []
        for word, value, weight in f.rows("weightedvalues", 3):
            pairs += [(one, f.whole(weight, "a weight")) for one in f.literals(str(value), [f.own(word)])]
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


def _clique(f: Function) -> None:
    rows = f.get("values")
    if not isinstance(rows, list) or len(rows) != len(f.scope) or not all(isinstance(row, list) for row in rows):
        raise ModelError(f"{f.kind} needs a list of values for each variable")
    literals = [
        one for v, row in zip(f.scope, rows, strict=True) for value in row for one in f.literals(str(value), [v])
    ]
    f.graph.add_at_most(f.whole(f.get("rhs"), "rhs"), literals)


SUMS: dict[str, Callable[[Function], None]] = {
    "wsum": _sum,
    "wvarsum": _variable_sum,
    "wvaramong": _variable_among,
    "wsame": same,
    "ssame": _soft_same,
    "woverlap": _overlap,
    **dict.fromkeys(("max", "smaxdp"), _maximum),
    **dict.fromkeys(("wdiverse", "whdiverse", "wtdiverse"), _diverse),
    **dict.fromkeys(("knapsack", "knapsackp", "knapsackv"), _knapsack),
    "clique": _clique,
}
