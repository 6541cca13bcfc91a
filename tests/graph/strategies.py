"""Hypothesis strategies for small models."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fginfer import AbsDiff, Potts, SqDiff

# Weighted scores that lose digits by underflow are refused (tests/solvers/test_truth.py): none so small are drawn here.
scores = st.one_of(
    st.integers(-8, 8).map(float), st.floats(-100, 100, allow_nan=False).map(lambda x: x if abs(x) > 1e-300 else 0.0)
)
scores_or_forbidden = st.one_of(scores, st.just(-np.inf))


@st.composite
def tables(draw: Any, shape: tuple[int, ...], forbidden: bool = True) -> Any:
    n = int(np.prod(shape))
    values = draw(st.lists(scores_or_forbidden if forbidden else scores, min_size=n, max_size=n))
    return np.array(values, np.float64).reshape(shape)


@st.composite
def implicit(draw: Any) -> Any:
    kind = draw(st.sampled_from([Potts, AbsDiff, SqDiff]))
    if kind is Potts:
        return Potts(draw(scores), draw(scores))
    return kind(draw(scores), draw(st.one_of(st.just(np.inf), st.integers(1, 4).map(float))))


@st.composite
def models(draw: Any, max_vars: int = 5, max_card: int = 4, max_factors: int = 8) -> Any:
    """(cards, factors) with factors as (scope, table, weight, transposed)."""
    cards = draw(st.lists(st.integers(1, max_card), min_size=1, max_size=max_vars))
    factors = []
    for _ in range(draw(st.integers(0, max_factors))):
        arity = draw(st.integers(0, min(3, len(cards))))
        scope = tuple(draw(st.permutations(range(len(cards))))[:arity])
        weight = draw(st.sampled_from([1.0, 1.0, 0.0, -1.0, 0.5, -2.0]))
        transposed = arity == 2 and draw(st.booleans())
        if arity == 2 and draw(st.booleans()):
            table = draw(implicit())
        else:
            shape = tuple(cards[i] for i in scope)
            table = draw(tables(shape[::-1] if transposed else shape, forbidden=weight >= 0))
        factors.append((scope, table, weight, transposed))
    return cards, factors


@st.composite
def labelings(draw: Any, cards: Any) -> Any:
    return [draw(st.integers(0, int(k) - 1)) for k in cards]
