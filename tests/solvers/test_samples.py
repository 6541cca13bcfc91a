"""sample: frequencies against enumeration, ways that are said, limits that keep what was drawn."""

from __future__ import annotations

import sys
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, sample
from fginfer.errors import Interrupted, ModelError, SettingsError, SolverError

samples_module = sys.modules["fginfer.samples"]


def small(seed: int, rules: bool = False) -> FactorGraph:
    rng = np.random.default_rng(seed)
    graph = FactorGraph([2, 3, 2, 1])
    graph.add_factor([0, 1], rng.normal(size=(2, 3)))
    graph.add_factor([1, 2, 3], rng.normal(size=(3, 2, 1)))
    graph.add_factor([2], [0.0, -inf] if seed % 5 == 4 else rng.normal(size=2))
    if rules:
        graph.add_at_most(1, [(0, 1), (1, 2), (2, 1)])
        graph.add_cardinality([(0, 0), (2, 0)], [0.0, 1.0, -1.0])
    return graph


def probabilities(graph: FactorGraph) -> dict[tuple[int, ...], float]:
    scores = {x: graph.score(x) for x in product(*(range(c) for c in graph.cards))}
    weights = {x: float(np.exp(s)) for x, s in scores.items() if s > -inf}
    total = sum(weights.values())
    return {x: w / total for x, w in weights.items()}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([None, "exact", "gibbs"]))
def test_frequencies_are_those_of_the_model(seed: int, rules: bool, method: str | None):
    graph = small(seed, rules)
    expected, n = probabilities(graph), 3000
    drawn = sample(graph, n, seed, method=method)
    assert drawn.labels.shape == (n, 4)
    assert (drawn.exact, drawn.method) == (method != "gibbs", method or "exact")
    for x, p in expected.items():
        seen = float((drawn.labels == x).all(axis=1).mean())
        assert abs(seen - p) < 6 * np.sqrt(p * (1 - p) / n) + (0.03 if method == "gibbs" else 1e-9)
    assert {tuple(row) for row in drawn.labels.tolist()} <= set(expected)


def test_perturbed_solves_are_right_where_nothing_is_joined():
    graph = FactorGraph([3, 2])
    graph.add_factor([0], [0.0, 1.0, 2.0])
    graph.add_factor([1], [0.0, -inf])
    drawn = sample(graph, 2000, method="perturb")
    assert (drawn.exact, drawn.method) == (False, "perturb")
    p = np.exp([0.0, 1.0, 2.0]) / np.exp([0.0, 1.0, 2.0]).sum()
    for a in range(3):
        assert abs((drawn.labels[:, 0] == a).mean() - p[a]) < 6 * np.sqrt(p[a] * (1 - p[a]) / 2000)
    assert (drawn.labels[:, 1] == 0).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_perturbed_solves_keep_hard_constraints(seed: int, rules: bool):
    graph = small(seed, rules)
    drawn = sample(graph, 10, seed, method="perturb")
    assert {tuple(row) for row in drawn.labels.tolist()} <= set(probabilities(graph))


@pytest.mark.parametrize("method", ["exact", "gibbs", "perturb"])
def test_the_same_seed_draws_the_same_with_evidence(method: str):
    graph = small(1, True)
    first, again = (sample(graph, 7, 3, method=method, evidence={0: 1}).labels for _ in range(2))
    assert first.tolist() == again.tolist()
    assert (first[:, 0] == 1).all()


def test_constraints_without_tables_to_sum_are_perturbed():
    graph = FactorGraph([2] * 3)
    graph.add_sparse([0, 1, 2], [[0, 0, 1], [1, 1, 1]], [1.0, 2.0], default=0.0)
    assert not graph.lowered().one_to_one
    assert sample(graph, 5).method == "perturb"
    with pytest.raises(SolverError, match="no tables whose sums"):
        sample(graph, 5, method="exact")


@pytest.mark.parametrize("method", [None, "gibbs", "perturb"])
def test_no_labeling_no_samples_no_variables(method: str | None):
    graph = FactorGraph([2])
    graph.add_factor([0], [-inf, -inf])
    with pytest.raises(ModelError, match="no labeling is allowed"):
        sample(graph, 3, method=method)
    assert sample(small(0), 0, method=method).labels.shape == (0, 4)
    assert sample(FactorGraph([]), 2, method=method).labels.shape == (2, 0)


def test_limits_and_ctrl_c_keep_what_was_drawn(monkeypatch: pytest.MonkeyPatch):
    assert len(sample(small(0), 10**9, method="gibbs", time_limit=0.05)) < 10**9
    drawn, solve = [], samples_module.solve

    def stop(*args: object, **settings: object) -> object:
        if len(drawn) == 2:
            raise KeyboardInterrupt
        drawn.append(solve(*args, **settings))
        return drawn[-1]

    monkeypatch.setattr(samples_module, "solve", stop)
    with pytest.raises(Interrupted) as caught:
        sample(small(0), 5, method="perturb")
    assert caught.value.found.labels.tolist() == [r.labels.tolist() for r in drawn]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": -1}, "n must be 0 samples or more"),
        ({"n": 1, "method": "magic"}, "method must be one of exact, gibbs, perturb"),
        ({"n": 1, "time_limit": -1}, "time_limit must be"),
        ({"n": 1, "memory": 0}, "memory must be a positive"),
    ],
)
def test_bad_input(settings: dict[str, object], message: str):
    with pytest.raises(SettingsError, match=message):
        sample(small(0), **settings)
