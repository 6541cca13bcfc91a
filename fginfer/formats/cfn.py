"""toulbar2's .cfn: a cost function network in (relaxed) JSON, with names, decimal costs, and a bound on the total.

`mustbe: "<b"` minimises, and totals at or above b are infeasible; `">b"` maximises, and totals at or below b are. A
score is minus a cost, or the value itself when maximising; the bound becomes the graph's cutoff. A single cost forbids
only where it is so high that the negative costs of all other functions cannot pay for it. As in toulbar2, quotes,
commas and colons are optional and brackets are interchangeable. Tables are dense, or a default cost and the tuples that
differ, or the name of a function to share. The reader is csrc/io.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.budget import Budget
from fginfer.core.costs import CfnReader
from fginfer.formats.assembly import MOST_VARIABLES, Factors
from fginfer.formats.cfn_names import CfnNames
from fginfer.formats.costs import most_frequent, problem_name, read_costs
from fginfer.formats.global_text import split_cfn
from fginfer.formats.streams import write_atomically
from fginfer.graph import FactorGraph

_MOST_DECIMALS = 17  # and digits before the point: what 64-bit integers hold
_REMEMBERED = 1 << 16  # costs whose text is kept, at most

# -- reading ---------------------------------------------------------------------------------------------------


def read_cfn(path: Path, budget: Budget | None = None) -> FactorGraph:
    """Reads a .cfn file."""
    budget = Budget(path) if budget is None else budget
    return read_costs(path, budget, lambda b: CfnReader(str(path), MOST_VARIABLES, b.room, b.most), split_cfn)


# -- writing ---------------------------------------------------------------------------------------------------


def write_cfn(graph: FactorGraph, path: Path) -> None:
    """Writes a .cfn file that minimises; decimals are exact, tables that factors share are written once."""
    factors = Factors(graph)
    entries: list[tuple[tuple[int, ...], NDArray[np.float64]]] = []
    top = decimals = paid = 0
    entries += [((), np.array(constant)) for constant in factors.constants()]
    entries += [((variable,), scores) for variable, scores in factors.unaries()]
    uses = Counter(key for _, key in factors)
    for _, scores in entries:
        top += max(0, math.ceil(-scores.min(initial=0.0, where=np.isfinite(scores))))
        paid += max(0, math.ceil(scores.max(initial=0.0, where=np.isfinite(scores))))
        decimals = _more_decimals(decimals, scores)
    for key, n in uses.items():
        low, high = factors.range(key)
        if low <= high:
            top += n * max(0, math.ceil(-low))
            paid += n * max(0, math.ceil(high))
        if decimals < _MOST_DECIMALS:
            decimals = _more_decimals(decimals, factors.scores(key))
    # toulbar2 works with as many decimals as the bound shows, in 64-bit integers; we read the costs as they are.
    top += 1 + (top >> 50)  # above all of them as a double, too
    decimals = max(0, min(decimals, _MOST_DECIMALS - len(str(top))))
    zeros = f".{'0' * decimals}" if decimals else ""
    bound = str(top) + zeros
    if 0.0 - graph.cutoff < top:
        bound = _text(0.0 - graph.cutoff)
        missing = decimals - len(bound.partition(".")[2])
        bound += ("" if "." in bound or missing <= 0 else ".") + "0" * missing
        top = max(0, math.ceil(0.0 - graph.cutoff))
    forbidden = str(top + paid) + zeros  # the negative costs of all other functions do not pay for it
    name = problem_name(path)
    # toulbar2 shares tables of up to three variables and wants the function that others name to come last; of more
    # variables it reads a default cost and tuples only.
    last = {key: f"f{len(entries) + k}" for k, (_, key) in enumerate(factors)}
    texts = _Texts(forbidden)
    with write_atomically(path) as stream:
        stream.write(f'{{\n"problem": {{"name": "m_{name}", "mustbe": "<{bound}"}},\n"variables": {{'.encode())
        names = CfnNames(graph.names, graph.cards.tolist(), path)
        stream.write(names.declared().encode("utf-8", "surrogateescape"))
        stream.write(b'\n},\n"functions": {')
        n = 0
        for scope, scores in entries:
            stream.write(_function(n, names.scope(scope), _costs(scores, texts)))
            n += 1
        for scope, key in factors:
            if len(scope) < 4 and f"f{n}" != last[key]:
                costs = f'"costs": "{last[key]}"'
            elif len(scope) < 4:
                costs = _costs(factors.scores(key), texts)
            else:
                costs = _tuples(factors.scores(key), texts, names.states(scope))
            stream.write(_function(n, names.scope(scope), costs))
            n += 1
        stream.write(b"\n}\n}\n")


def _function(n: int, scope: str, costs: str) -> bytes:
    comma = "," if n else ""
    return f'{comma}\n"f{n}": {{"scope": [{scope}], {costs}}}'.encode("utf-8", "surrogateescape")


def _text(cost: float) -> str:
    """The shortest decimals that read back as the same double, without an exponent."""
    text = repr(cost)
    if "e" in text:
        return np.format_float_positional(cost, unique=True, trim="-")
    return text.removesuffix(".0")


def _more_decimals(known: int, scores: NDArray[np.float64]) -> int:
    """The most decimals of a cost, or known ones."""
    some = scores[np.isfinite(scores)][:4096]
    costs = set(some[some != np.floor(some)].tolist())
    return max(known, max((len(_text(c).partition(".")[2]) for c in costs), default=0))


class _Texts:
    """Costs as text; those seen before are remembered."""

    def __init__(self, forbidden: str) -> None:
        self._forbidden = {math.inf: forbidden}
        self._known = dict(self._forbidden)

    def of(self, scores: NDArray[np.float64]) -> list[str]:
        known, out = self._known, []
        if len(known) > _REMEMBERED:
            known = self._known = dict(self._forbidden)
        for cost in (0.0 - scores).reshape(-1).tolist():
            text = known.get(cost)
            if text is None:
                text = known[cost] = _text(cost)
            out.append(text)
        return out


def _costs(scores: NDArray[np.float64], texts: _Texts) -> str:
    """All costs, exactly."""
    return f'"costs": [{", ".join(texts.of(scores))}]'


def _tuples(scores: NDArray[np.float64], texts: _Texts, states: list[str]) -> str:
    """The most frequent cost, and the labels that have another one."""
    costs = texts.of(scores)
    default = most_frequent(costs)
    rows = [f"{x}, {c}" for x, c in zip(states, costs, strict=True) if c != default]
    return f'"defaultcost": {default}, "costs": [{", ".join(rows)}]'
