"""Bucket elimination and subset re-optimisation against brute force."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts
from fginfer.core.exact import Elimination, components, split
from fginfer.errors import SolverError

from .models import SHAPES, Shape, brute_force, close, random_graph

seeds = st.integers(0, 2**31)


def finished(graph: FactorGraph, seconds: float | None = None) -> Elimination:
    e = Elimination(graph.model)
    while not e.run(seconds):
        pass
    return e


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_equals_brute_force(name: str, seed: int) -> None:
    graph = random_graph(seed, SHAPES[name])
    e, best = finished(graph), brute_force(graph)
    assert e.value is not None
    assert close(e.value, best)
    assert e.infeasible == (best == -inf)
    labels = e.labels()
    if best == -inf:
        assert labels is None
    else:
        assert labels is not None
        assert close(graph.score(labels), best)


def grid(rng: np.random.Generator, rows: int, cols: int, labels: int) -> FactorGraph:
    graph = FactorGraph([labels] * (rows * cols))
    for i in range(rows * cols):
        graph.add_factor([i], rng.normal(size=labels))
        for j in ([i + 1] if (i + 1) % cols else []) + ([i + cols] if i + cols < rows * cols else []):
            graph.add_factor([i, j], rng.normal(size=(labels, labels)))
    return graph


def test_slices_do_not_change_the_answer() -> None:
    graph = grid(np.random.default_rng(0), 14, 14, 2)  # large enough for blocks, freed inputs and stored labels
    whole, sliced = finished(graph), finished(graph, seconds=0.0)
    assert whole.estimate.width is not None
    assert whole.estimate.width >= 14
    a, b = whole.labels(), sliced.labels()
    assert a is not None
    assert b is not None
    np.testing.assert_array_equal(a, b)
    assert close(graph.score(a), whole.value or 0.0)


def test_memory_limit_is_respected() -> None:
    graph = grid(np.random.default_rng(1), 12, 12, 3)
    e = Elimination(graph.model, memory=1e5)
    assert not e.fits
    with pytest.raises(SolverError, match="limit"):
        e.run()
    roomy = Elimination(graph.model, memory=1e9)
    assert roomy.fits
    assert roomy.estimate.memory > 1e5


def test_a_long_chain_with_many_labels_and_implicit_tables() -> None:
    rng = np.random.default_rng(2)
    n, labels = 40, 50
    graph = FactorGraph([labels] * n)
    unary = rng.normal(size=(n, labels))
    for i in range(n):
        graph.add_factor([i], unary[i])
    for i in range(n - 1):
        graph.add_factor([i, i + 1], Potts(0.7, 0.0))
    forward = unary[0].copy()
    for i in range(1, n):
        forward = unary[i] + np.maximum(forward + 0.7, forward.max())
    e = finished(graph)
    assert e.estimate.width == 1
    assert e.value == pytest.approx(forward.max())
    assert graph.score(e.labels()) == pytest.approx(forward.max())


def test_a_star_and_a_model_without_factors() -> None:
    graph = FactorGraph([2] * 3001)
    for i in range(1, 3001):
        graph.add_factor([0, i], [[0.0, 1.0], [1.0, 0.0]])
    assert finished(graph).value == pytest.approx(3000)
    lonely = FactorGraph([3, 1])
    lonely.add_factor([0], [0.0, 2.0, 1.0])
    assert finished(lonely).value == 2.0


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_components_split_the_score(seed: int) -> None:
    graph = random_graph(seed, Shape(variables=8, factors=4, labels=2, forbidden=0.1))
    number, count = components(graph.model)
    parts = split(graph.model)
    assert len(parts) == count == len(set(number.tolist()))
    assert sorted(i for part in parts for i in part.variables.tolist()) == list(range(len(graph.cards)))
    labels = np.random.default_rng(seed).integers(0, graph.cards).astype(np.int32)
    total = float(graph.constant) + sum(part.score(labels[part.variables]) for part in parts)
    assert close(total, graph.score(labels))


def test_progress_moves_within_a_bucket() -> None:
    """In a clique the first bucket is nearly all of the work: who shares time with it has to see where it is."""
    graph = FactorGraph([9] * 7)
    rng = np.random.default_rng(0)
    for i in range(7):
        for j in range(i):
            graph.add_factor([i, j], rng.normal(size=(9, 9)))
    e = Elimination(graph.model)
    assert not e.run(0.0)
    assert 0 < e.progress < 0.1
    while not e.run(0.0):
        assert e.progress < 1
    assert e.progress == 1.0
