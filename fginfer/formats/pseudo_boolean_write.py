"""Writes .opb: binary models with whole scores and hard linear constraints, as a sum of products that is minimised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.formats.assembly import Factors
from fginfer.formats.streams import write_atomically
from fginfer.graph import FactorGraph
from fginfer.names import variable_text
from fginfer.rules import Rule
from fginfer.rules.sums import SumRule

_MOST = 10**18  # a number that readers take


def write_opb(graph: FactorGraph, path: Path) -> None:
    """Writes the model whose cost is minus the score; what has no whole cost is refused by name."""
    if not (graph.cards == 2).all():
        who = variable_text(graph.names, int(np.argmax(graph.cards != 2)))
        raise ModelError(f"{who} does not have two labels: this is not Boolean")
    n = graph.n_variables
    lines = [line for rule in graph.rules for line in _linear(rule)]
    products: dict[tuple[int, ...], int] = {}
    factors = Factors(graph, beside_rules=True)
    every: list[tuple[tuple[int, ...], NDArray[np.float64]]] = [((i,), scores) for i, scores in factors.unaries()]
    every += [(scope, factors.scores(key)) for scope, key in factors]
    every += [((), np.array(constant)) for constant in factors.constants()]
    for scope, scores in every:
        lines += [_forbidden(scope, state) for state in np.argwhere(scores == -math.inf).tolist()]
        for some, coefficient in _coefficients(scope, scores).items():
            products[some] = products.get(some, 0) + coefficient
    constant = products.pop((), 0)
    terms = [(-c, [f"x{v + 1}" for v in some]) for some, c in sorted(products.items()) if c]
    if constant and not n:
        raise ModelError("a model without variables has no place for a constant")
    if constant:
        terms += [(-constant, ["x1"]), (-constant, ["~x1"])]
    if n:  # so that variables in no factor are not lost
        lines.append(f"+1 x{n} >= 0 ;\n")
    with write_atomically(path) as stream:
        stream.write(f"* #variable= {n} #constraint= {len(lines)}\n".encode())
        if terms or not lines:
            text = " ".join(f"{c:+d} {' '.join(some)}" for c, some in terms)
            stream.write(f"min: {text} ;\n".encode())
        stream.writelines(line.encode() for line in lines)


def _forbidden(scope: Sequence[int], state: Sequence[int]) -> str:
    """A clause: one of the variables has another label."""
    literals = " ".join(f"+1 {'~' if label else ''}x{v + 1}" for v, label in zip(scope, state, strict=True))
    return f"{literals or '+1 x1 +1 ~x1'} >= {1 if scope else 2} ;\n"


def _coefficients(scope: tuple[int, ...], scores: NDArray[np.float64]) -> dict[tuple[int, ...], int]:
    """The scores as a sum of products: forbidden states have clauses of their own and count as 0 here."""
    whole = [0 if s == -math.inf else _whole(s) for s in scores.reshape(-1).tolist()]
    table = np.array(whole, dtype=object).reshape(scores.shape)
    for axis in range(table.ndim):
        table = np.stack([table.take(0, axis), table.take(1, axis) - table.take(0, axis)], axis)
    out: dict[tuple[int, ...], int] = {}
    for at in np.ndindex(table.shape):
        if table[at]:
            out[tuple(sorted(v for v, inside in zip(scope, at, strict=True) if inside))] = int(table[at])
    return out


def _whole(score: float) -> int:
    if score != math.floor(score) or abs(score) >= _MOST:
        raise ModelError(f"a score of {score!r} is no whole number below 10^18, as coefficients are (convert --scale)")
    return int(score)


def _linear(rule: Rule) -> list[str]:
    """The constraint as one line, or two where both limits count."""
    if not isinstance(rule, SumRule) or rule.modulus:
        raise ModelError(f"a constraint ({rule.kind}) is not linear; .npz holds it")
    pieces = rule.steps.pieces
    if any(piece.slope or piece.base not in (0.0, -math.inf) for piece in pieces):
        raise ModelError(f"a constraint ({rule.kind}) is soft; .npz holds it")
    ends = [*(piece.start - 1 for piece in pieces[1:]), rule.steps.most]
    allowed = [(piece.start, end) for piece, end in zip(pieces, ends, strict=True) if piece.base == 0.0]
    if any(a[1] + 1 != b[0] for a, b in pairwise(allowed)):
        raise ModelError(f"a constraint ({rule.kind}) allows totals with gaps between them; .npz holds it")
    base = sum(add[0] for add in rule.adds)
    slopes = [(add[1] - add[0], v) for v, add in zip(rule.variables, rule.adds, strict=True)]
    if not allowed:
        return [_forbidden((), ())]
    low, high = allowed[0][0] - base, allowed[-1][1] - base
    if max([abs(low), abs(high), *(abs(slope) for slope, _ in slopes)]) >= _MOST:
        raise ModelError(f"a constraint ({rule.kind}) has a number above 10^18; .npz holds it")
    if low == high:
        return [_relation(slopes, "=", low)]
    lines = [_relation(slopes, ">=", low)] if allowed[0][0] > 0 else []
    if allowed[-1][1] < rule.steps.most:
        lines.append(_relation([(-slope, v) for slope, v in slopes], ">=", -high))
    return lines


def _relation(slopes: list[tuple[int, int]], sign: str, limit: int) -> str:
    terms = " ".join(f"{slope:+d} x{v + 1}" for slope, v in slopes if slope)
    return f"{terms or '+0 x1'} {sign} {limit} ;\n"
