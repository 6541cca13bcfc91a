"""Random tables, messages and states, rich in what is hard: ties, rounding, forbidden entries, negative messages."""

from __future__ import annotations

from math import inf, prod

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fginfer import FactorGraph, Potts, SqDiff

# Small integers tie often; thirds round; 1e16 makes rounding swallow whole scores.
scores = st.one_of(
    st.integers(-3, 3).map(float),
    st.integers(-9, 9).map(lambda k: k / 3),
    st.floats(-10, 10, allow_nan=False).map(lambda x: x if abs(x) > 1e-290 else 0.0),  # weighted ones may not underflow
    st.sampled_from([0.0, -0.0, 1e16, -1e16]),
)


@st.composite
def tables(draw: st.DrawFn, shape: tuple[int, ...], forbidden: bool = True) -> NDArray[np.float64]:
    """A table drawn from a few values (ties) or from many, with some -inf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["few", "many", "sparse", "one"]))
    pool = np.array(draw(st.lists(scores, min_size=1, max_size={"few": 4, "one": 1}.get(kind, 12))))
    table = pool[rng.integers(0, len(pool), shape)]
    if kind == "many":
        table = table + rng.normal(size=shape)
    if kind == "sparse":
        table = np.where(rng.random(shape) < 0.9, 0.0, table)
    if forbidden and draw(st.booleans()):
        table = np.where(rng.random(shape) < draw(st.sampled_from([0.1, 0.5, 0.95])), -inf, table)
    return table


@st.composite
def messages(draw: st.DrawFn, card: int) -> dict[int, float]:
    """A sparse signed message; now and then on every label, or with equal values."""
    labels = draw(st.one_of(st.just(range(card)), st.lists(st.integers(0, card - 1), max_size=6, unique=True)))
    if draw(st.booleans()):
        value = draw(scores)
        return dict.fromkeys(labels, value)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pool = draw(st.lists(scores, min_size=1, max_size=6))
    return {a: float(pool[rng.integers(0, len(pool))]) for a in labels}


@st.composite
def states(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    flat = draw(st.integers(-1, prod(shape) - 1))
    return None if flat < 0 else tuple(int(a) for a in np.unravel_index(flat, shape))


def dense_argmax(
    table: NDArray[np.float64], given: list[dict[int, float]], excluded: tuple[int, ...] | None
) -> tuple[tuple[int, ...] | None, float]:
    """The definition: subtract, take the first maximum."""
    value = table.copy()
    for k, message in enumerate(given):
        delta = np.zeros(table.shape[k])
        delta[list(message)] = list(message.values())
        value -= delta.reshape([-1 if axis == k else 1 for axis in range(table.ndim)])
    if excluded is not None:
        value[excluded] = -inf
    best = int(value.argmax())
    if value.flat[best] == -inf:
        return None, -inf
    return tuple(int(a) for a in np.unravel_index(best, table.shape)), float(value.flat[best])


KINDS = st.sampled_from(["pairwise", "transposed", "ternary", "potts", "squares", "updatable"])


@st.composite
def one_factor(draw: st.DrawFn, kind: str) -> tuple[FactorGraph, NDArray[np.float64]]:
    """A graph of one factor of that kind, and its scores written out."""
    shape = tuple(draw(st.lists(st.integers(1, 18), min_size=2, max_size=2)))
    if kind == "ternary":
        shape = (*tuple(min(n, 7) for n in shape), 5)
    a, b = np.indices(shape[:2])
    table = draw(tables(shape))
    graph = FactorGraph(shape)
    if kind == "potts":
        table = np.where(a == b, 0.5, -0.25)
        graph.add_factor([0, 1], Potts(0.5, -0.25))
    elif kind == "squares":
        table = -0.5 * np.minimum((a - b) ** 2, 4.0)
        graph.add_factor([0, 1], SqDiff(0.5, 4.0))
    elif kind == "transposed":
        graph.add_factor([0, 1], table.T, transposed=True)
    else:
        graph.add_factor(range(len(shape)), table)
    return graph, table


def less_messages(table: NDArray[np.float64], given: list[dict[int, float]]) -> NDArray[np.float64]:
    """The scores of all states under messages, one sparse message a variable."""
    value = table.copy()
    for k, message in enumerate(given):
        delta = np.zeros(table.shape[k])
        delta[list(message)] = list(message.values())
        value -= delta.reshape([-1 if axis == k else 1 for axis in range(table.ndim)])
    return value
