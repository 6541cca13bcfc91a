"""Random small models of every shape the core knows, and brute force over their labelings."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from fginfer.core.arrays import ABSDIFF, DENSE, POTTS, SQDIFF, ModelArrays
from fginfer.graph import FactorGraph
from fginfer.result import Result


@dataclass(frozen=True)
class Shape:
    """What a random model may contain."""

    variables: int = 6
    labels: int = 3
    factors: int = 8
    arity: int = 4
    forbidden: float = 0.0  # probability of a -inf entry
    implicit: float = 0.2
    shared: float = 0.3  # probability that a factor reuses a table
    weights: bool = True
    integers: bool = False  # integer scores: many ties
    binary: bool = False
    max_states: int = 4096


def random_arrays(rng: np.random.Generator, shape: Shape) -> ModelArrays:
    while True:
        n = int(rng.integers(1, shape.variables + 1))
        cards = np.full(n, 2) if shape.binary else rng.integers(1, shape.labels + 1, n)
        if np.prod(cards.astype(float)) <= shape.max_states:
            break

    def scores(size: int) -> NDArray[np.float64]:
        v = rng.integers(-3, 4, size).astype(float) if shape.integers else rng.normal(size=size) * 2
        v[rng.random(size) < shape.forbidden] = -np.inf
        return v

    kinds: list[int] = []
    arities: list[int] = []
    table_dims: list[tuple[int, ...]] = []
    params: list[tuple[float, float]] = []
    values: list[NDArray[np.float64]] = []
    factors: list[tuple[int, float, bool, list[int]]] = []
    for _ in range(int(rng.integers(0, shape.factors + 1))):
        arity = min(n, int(rng.choice([2, 2, 2, 3, 4][: max(1, shape.arity + 1)]) if shape.arity > 2 else 2))
        if arity < 2:
            continue
        scope = [int(i) for i in rng.permutation(n)[:arity]]
        if factors and rng.random() < 0.2:  # a second factor over the same variables, maybe in another order
            scope = [int(i) for i in rng.permutation(factors[-1][3])]
            arity = len(scope)
        dims = tuple(int(cards[i]) for i in scope)
        weight = float(rng.choice([0.5, 1.0, 2.0])) if shape.weights else 1.0
        transposed = arity == 2 and bool(rng.random() < 0.3)
        stored = dims[::-1] if transposed else dims
        fits = [t for t in range(len(kinds)) if table_dims[t] == stored or (kinds[t] != DENSE and arity == 2)]
        if fits and rng.random() < shape.shared:
            table = int(rng.choice(fits))
        else:
            table = len(kinds)
            if arity == 2 and rng.random() < shape.implicit:
                kind = int(rng.choice([POTTS, ABSDIFF, SQDIFF]))
                kinds.append(kind)
                two = scores(2)
                params.append(
                    (two[0], two[1]) if kind == POTTS else (float(rng.random()), float(rng.choice([1.0, 2.0, np.inf])))
                )
                table_dims.append(())
            else:
                kinds.append(DENSE)
                params.append((0.0, 0.0))
                table_dims.append(stored)
                values.append(scores(int(np.prod(stored))))
            arities.append(arity)
        factors.append((table, weight, transposed, scope))
    return ModelArrays(
        cards=cards.astype(np.int32),
        unary=scores(int(cards.sum())),
        constant=float(rng.normal()),
        table_kind=np.array(kinds, np.int32),
        table_arity=np.array(arities, np.int32),
        dims=np.array([d for dims in table_dims for d in dims], np.int32),
        params=np.array(params, np.float64).reshape(-1),
        values=np.concatenate(values) if values else np.zeros(0),
        factor_table=np.array([f[0] for f in factors], np.int32),
        factor_weight=np.array([f[1] for f in factors], np.float64),
        factor_transposed=np.array([f[2] for f in factors], np.uint8),
        var_begin=np.concatenate(([0], np.cumsum([len(f[3]) for f in factors]))).astype(np.int64),
        vars=np.array([i for f in factors for i in f[3]], np.int32),
    )


def random_graph(seed: int, shape: Shape) -> FactorGraph:
    return FactorGraph.from_model_arrays(random_arrays(np.random.default_rng(seed), shape))


def brute_force(graph: FactorGraph) -> float:
    """The best score over all labelings; -inf if none is feasible."""
    return max(graph.score(np.array(x, np.int32)) for x in itertools.product(*(range(k) for k in graph.cards)))


def close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


SHAPES = {
    "pairwise": Shape(arity=2),
    "dense higher order": Shape(implicit=0.0),
    "everything": Shape(forbidden=0.15),
    "ties": Shape(integers=True, forbidden=0.1),
    "often infeasible": Shape(forbidden=0.45),
    "binary": Shape(binary=True, variables=9, factors=14, max_states=512),
    "sparse": Shape(variables=9, factors=7, labels=3),
}


# For methods that search to a proof.
PROOF_SHAPES = (
    Shape(),
    Shape(integers=True),
    Shape(forbidden=0.2, integers=True),
    Shape(variables=7, labels=4, factors=14, arity=2, forbidden=0.1),
    Shape(variables=6, labels=4, factors=9, arity=3, integers=True, forbidden=0.3),
    Shape(variables=9, factors=25, arity=2, binary=True, max_states=512),
    Shape(variables=9, factors=25, arity=2, binary=True, max_states=512, integers=True),
)


def proof_graph(seed: int) -> FactorGraph:
    """One of these kinds."""
    return random_graph(seed, PROOF_SHAPES[seed % len(PROOF_SHAPES)])


def check_optimum(graph: FactorGraph, result: Result, best: float, slack: float = 0.0) -> None:
    """A proof of what brute force has found; slack: of the bound, relatively."""
    if best == -np.inf:
        assert result.status == "infeasible"
        assert result.labels is None
        return
    assert result.status == "optimal"
    assert result.score == pytest.approx(best, abs=1e-9, rel=1e-9)
    assert result.bound is not None
    assert result.bound >= best - slack * max(1.0, abs(best))
    assert result.labels is not None
    assert graph.score(result.labels) == result.score
