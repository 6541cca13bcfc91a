"""What toulbar2's global cost functions mean, as constraints of a graph: a score is minus a cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from operator import mul

from fginfer.errors import ModelError
from fginfer.formats.global_function import Function
from fginfer.formats.global_sums import SUMS, same
from fginfer.formats.global_tables import TABLES
from fginfer.formats.global_text import Global
from fginfer.graph import FactorGraph
from fginfer.rules import Automaton


def add_global(graph: FactorGraph, given: Global, top: float = inf, network: FactorGraph | None = None) -> None:
    """Adds a global function to the graph; ModelError for parameters that it cannot have. A cost of `top` forbids. A
    function that has a network inside takes that as a graph."""
    function = Function(graph, given, top, network)
    if function.scope:
        _ADDERS[given.kind](function)


def _all_different(f: Function) -> None:
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


def _cardinality(f: Function) -> None:
    known = ("hard", "lin", "quad") if f.kind == "wgcc" else ("var", "dec", "wdec") if f.kind == "sgcc" else ("var",)
    metric = f.metric(*known)
    n = len(f.scope)
    rows = f.rows("bounds", 5 if metric == "wdec" else 3)
    limits = [(str(row[0]), f.whole(row[1], "a lower bound"), f.whole(row[2], "an upper bound")) for row in rows]
    if (
        metric == "var"
        and f.kind == "sgcc"
        and any(low > 0 for _, low, _ in limits)
        and any(high < n for _, _, high in limits)
    ):
        raise ModelError(f"{f.kind} with the metric var and bounds on both sides is not read")
    for row, (value, low, high) in zip(rows, limits, strict=True):
        if metric == "wdec":
            short, much = f.number(row[3], "a weight"), f.number(row[4], "a weight")
            f.count(f.literals(value), low, n, partial(mul, short))
            f.count(f.literals(value), 0, high, partial(mul, much))
        else:
            f.count(f.literals(value), low, high, f.price())


def _same_cardinality(f: Function) -> None:
    """Both halves of the scope have each label equally often, and in each half the numbers of labels have limits."""
    same(f)
    for half in f.halves():
        for value, low, high in f.rows("bounds", 3):
            literals = f.literals(str(value), half)
            f.count(literals, f.whole(low, "a lower bound"), f.whole(high, "an upper bound"), f.price())


def _among(f: Function) -> None:
    if f.kind != "wamong":
        f.metric("var")
    literals = [one for value in dict.fromkeys(f.words("values")) for one in f.literals(value)]
    f.count(literals, f.whole(f.get("min"), "min"), f.whole(f.get("max"), "max"), f.price())


def _regular(f: Function) -> None:
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


def _weighted_regular(f: Function) -> None:
    known: dict[tuple[int, int, int], float] = {}
    for start, value, end, cost in f.rows("transitions", 4):
        key = f.whole(start, "a state"), f.whole(value, "a value"), f.whole(end, "a state")
        known[key] = max(known.get(key, -inf), 0.0 - f.number(cost, "a cost"))
    starts, ends = (
        {f.whole(s, "a state"): 0.0 - f.number(c, "a cost") for s, c in f.rows(key, 2)} for key in ("starts", "ends")
    )
    _automaton(f, starts, known, ends)


def _automaton(
    f: Function, starts: dict[int, float], moves: dict[tuple[int, int, int], float], ends: dict[int, float]
) -> None:
    """State 0 is the start there: ours is a new one, which leads where the given starts lead."""
    states = f.whole(f.get("nb_states"), "nb_states")
    named = [*starts, *ends, *(s for start, _, end in moves for s in (start, end))]
    if any(not 0 <= s < states for s in named) or any(x < 0 for _, x, _ in moves):
        raise ModelError(f"{f.kind}: there is a state that is not among its {states}, or a negative value")
    transitions = [(s + 1, x, t + 1, score) for (s, x, t), score in moves.items()]
    transitions += [(0, x, t + 1, starts[s] + score) for (s, x, t), score in moves.items() if s in starts]
    f.graph.add_regular(f.scope, Automaton(transitions, {s + 1: score for s, score in ends.items()}))


_ADDERS: dict[str, Callable[[Function], None]] = {
    **dict.fromkeys(("salldiff", "salldiffdp", "walldiff"), _all_different),
    **dict.fromkeys(("sgcc", "sgccdp", "wgcc"), _cardinality),
    **dict.fromkeys(("samong", "samongdp", "wamong"), _among),
    **dict.fromkeys(("sregular", "sregulardp"), _regular),
    "wregular": _weighted_regular,
    "wsamegcc": _same_cardinality,
    **SUMS,
    **TABLES,
}
