"""Maximum flow and roof duality against brute force and networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Potts
from fginfer.core.exact import roof_duality
from fginfer.core.presolve import Reduction, presolve
from fginfer.errors import SolverError

from .models import brute_force, close

seeds = st.integers(0, 2**31)


def random_binary(seed: int, *, submodular: bool, flips: bool = False, n: int = 9, pull: float = 1.0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, n + 1))
    graph = FactorGraph([2] * n)
    flip = rng.integers(0, 2, n) if flips else np.zeros(n, int)
    for i in range(n):
        graph.add_factor([i], rng.normal(size=2) * pull)
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < 0.5:
            continue
        table = rng.integers(-4, 5, (2, 2)).astype(float) if seed % 2 else rng.normal(size=(2, 2)) * 3
        if submodular:
            lack = table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1]
            if lack > 0:
                table[0, 0] += lack / 2 + 0.1
                table[1, 1] += lack / 2 + 0.1
            table = np.roll(np.roll(table, flip[i], axis=0), flip[j], axis=1)
        graph.add_factor([i, j], table)
    return graph


@settings(max_examples=80, deadline=None)
@given(seed=seeds, flips=st.booleans())
def test_submodular_models_are_solved(seed: int, flips: bool) -> None:
    graph = random_binary(seed, submodular=True, flips=flips)
    roof, best = roof_duality(graph.model), brute_force(graph)
    assert roof.exact
    assert close(roof.bound, best)
    assert roof.bound >= best - 1e-12 * max(1.0, abs(best))
    assert close(graph.score(roof.labels), best)
    reduced = presolve(graph.model, Reduction.ROOF | Reduction.FIX)
    assert reduced.statistics.variables == 0
    assert close(graph.score(reduced.expand([])), best)


@settings(max_examples=80, deadline=None)
@given(seed=seeds, pull=st.sampled_from([1.0, 5.0]))
def test_persistent_labels_belong_to_an_optimum(seed: int, pull: float) -> None:
    graph = random_binary(seed, submodular=False, pull=pull)
    roof, best = roof_duality(graph.model), brute_force(graph)
    assert roof.bound >= best - 1e-9 * max(1.0, abs(best))
    options = [[int(x)] if x >= 0 else [0, 1] for x in roof.labels]
    assert close(max(graph.score(np.array(x, np.int32)) for x in itertools.product(*options)), best)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_the_flow_equals_that_of_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    graph, network = FactorGraph([2] * n), nx.DiGraph()
    constant = 0.0
    for i in range(n):
        c = float(rng.integers(-20, 21))
        graph.add_factor([i], [0.0, -c])
        if c > 0:
            network.add_edge("s", i, capacity=c)
        elif c < 0:
            network.add_edge(i, "t", capacity=-c)
            constant += c
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < 0.2:
            c = float(rng.integers(1, 20))
            graph.add_factor([i, j], [[0.0, -c], [0.0, 0.0]])
            network.add_edge(i, j, capacity=c)
    network.add_nodes_from(["s", "t"])
    roof = roof_duality(graph.model)
    assert roof.exact
    assert roof.bound == pytest.approx(-(constant + nx.maximum_flow_value(network, "s", "t")), abs=1e-9)
    assert graph.score(roof.labels) == pytest.approx(roof.bound, abs=1e-9)


def test_limits_and_refusals() -> None:
    graph = random_binary(4, submodular=False, n=9)
    multi = FactorGraph([3, 2])
    multi.add_factor([0, 1], Potts(1.0, 0.0))
    with pytest.raises(SolverError, match="labels"):
        roof_duality(multi.model)
    hard = FactorGraph([2, 2])
    hard.add_factor([0, 1], [[0.0, -np.inf], [0.0, 0.0]])
    with pytest.raises(SolverError, match="forbidden"):
        roof_duality(hard.model)
    assert roof_duality(graph.model).bound >= brute_force(graph) - 1e-9


def test_a_large_grid_is_cut_exactly() -> None:
    rng = np.random.default_rng(5)
    side = 60
    graph = FactorGraph([2] * (side * side))
    for i in range(side * side):
        graph.add_factor([i], rng.normal(size=2))
        for j in ([i + 1] if (i + 1) % side else []) + ([i + side] if i + side < side * side else []):
            graph.add_factor([i, j], Potts(0.4, 0.0))
    roof = roof_duality(graph.model)
    assert roof.exact
    assert graph.score(roof.labels) == pytest.approx(roof.bound, rel=1e-12)
