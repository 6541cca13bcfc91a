"""toulbar2's global cost functions that no constraint of ours stands for: listed as tables, if they are small.

A grammar says which words its labels may spell, a spanning tree that every variable names its parent, and a network
inside of the file (`cfnconstraint`) has a cost of its own that must lie between two limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, prod

import numpy as np

from fginfer.errors import ModelError
from fginfer.formats.global_function import Function

_MOST_STATES = 1 << 16  # states of a function that is listed, each of which is looked at in Python (chosen)


def _listed(f: Function, cost: Callable[[tuple[int, ...]], float]) -> None:
    """The function as a table of all its states."""
    shape = tuple(int(f.graph.cards[v]) for v in f.scope)
    states = prod(shape)
    if states > _MOST_STATES:
        raise ModelError(f"{f.kind} over {len(f.scope)} variables has {states} states; up to {_MOST_STATES} are read")
    scores = [0.0 - cost(x) for x in product(*map(range, shape))]
    f.graph.add_factor(f.scope, np.array(scores).reshape(shape))


# -- grammars --------------------------------------------------------------------------------------------------

_Rules = list[tuple[tuple[int, ...], float]]  # a symbol with what it becomes, and what that costs


def _grammar(f: Function) -> None:
    """Rules in Chomsky's normal form. With `var` a label that must change costs, with `weight` every rule that is used;
    of all ways to spell a word the cheapest counts."""
    weighted = f.metric("var", "weight") == "weight"
    change = inf if weighted else f.cost
    symbols, start = f.whole(f.get("nb_symbols"), "nb_symbols"), f.whole(f.get("start"), "start")
    letters, pairs = (_rules(f, key, width, weighted) for key, width in (("terminals", 2), ("non_terminals", 3)))
    named = [start, *(s for rule, _ in letters for s in rule[:1]), *(s for rule, _ in pairs for s in rule)]
    if any(not 0 <= symbol < symbols for symbol in named):
        raise ModelError(f"{f.kind}: there is a symbol that is not among its {symbols}")
    if symbols * len(pairs) * len(f.scope) ** 3 > 10**6:
        raise ModelError(f"{f.kind} over {len(f.scope)} variables with {len(pairs)} rules is too large")
    _listed(f, lambda x: _spelled(x, symbols, letters, pairs, change)[start])


def _rules(f: Function, key: str, width: int, weighted: bool) -> _Rules:
    rows = f.rows(key, width + weighted)
    return [
        (tuple(f.whole(word, "a symbol") for word in row[:width]), f.number(row[-1], "a cost") if weighted else 0.0)
        for row in rows
    ]


def _spelled(
    word: Sequence[int],
    symbols: int,
    letters: _Rules,
    pairs: _Rules,
    change: float,
) -> list[float]:
    """What it costs to spell the word from each symbol, by the lengths of its parts."""
    n = len(word)
    cost = [[[inf] * symbols for _ in range(n + 1)] for _ in range(n)]  # begin, length, symbol
    for at, letter in enumerate(word):
        for (symbol, value), more in letters:
            total = more + (0.0 if value == letter else change)
            cost[at][1][symbol] = min(cost[at][1][symbol], total)
    for length in range(2, n + 1):
        for at in range(n - length + 1):
            best = cost[at][length]
            for (symbol, left, right), more in pairs:
                for k in range(1, length):
                    best[symbol] = min(best[symbol], cost[at][k][left] + cost[at + k][length - k][right] + more)
    return cost[0][n]


# -- trees -----------------------------------------------------------------------------------------------------


def _tree(f: Function) -> None:
    """Every variable has the number of its parent, and the root its own."""
    _listed(f, lambda parents: 0.0 if _is_tree(parents) else inf)


def _is_tree(parents: tuple[int, ...]) -> bool:
    n = len(parents)
    if any(parent >= n for parent in parents) or sum(parent == k for k, parent in enumerate(parents)) != 1:
        return False
    for k in range(n):
        at = k
        for _ in range(n):
            at = parents[at]
        if parents[at] != at:
            return False
    return True


# -- networks in networks --------------------------------------------------------------------------------------


def _network(f: Function) -> None:
    """The total cost of a network over the variables of the scope lies from lb to below ub."""
    inner = f.network
    if inner is None:
        raise ModelError(f"{f.kind} needs a network, as cfn: {{...}}")
    if f.get("strongduality", "0") != "0":
        raise ModelError(f"{f.kind} with strongduality is not read")
    low, high = f.number(f.get("lb"), "lb"), f.number(f.get("ub"), "ub")
    if inner.n_variables != len(f.scope) or (inner.cards != f.graph.cards[f.scope]).any():
        raise ModelError(f"{f.kind}: its network must have the variables of its scope in their order")
    _listed(f, lambda x: 0.0 if low <= _rounded(-inner.score(x)) < high else inf)


def _rounded(cost: float) -> float:
    """Costs are decimals: what is left of their sums by rounding does not count."""
    return round(cost, 9) if abs(cost) < inf else cost


TABLES: dict[str, Callable[[Function], None]] = {
    **dict.fromkeys(("sgrammar", "sgrammardp"), _grammar),
    **dict.fromkeys(("smst", "smstdp", "MST"), _tree),
    "cfnconstraint": _network,
}
