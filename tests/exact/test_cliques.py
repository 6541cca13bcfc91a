"""Cliques of labels that exclude each other: the same labelings with the same scores, and bounds that see them."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest

from fginfer import FactorGraph, solve
from fginfer.core.cliques import lift_cliques
from fginfer.portfolio.members.proof import CliqueProof
from fginfer.portfolio.worker import View, Worker


def exclusive(seed: int, penalty: float = inf) -> FactorGraph:
    """Groups of variables of which at most one takes one of its labels above 0, other factors between them."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, 7).tolist()
    graph = FactorGraph(cards)
    for i, k in enumerate(cards):
        graph.add_factor([i], rng.normal(size=k) + np.arange(k))
    pairs = {pair for _ in range(2) for pair in itertools.combinations(sorted(rng.permutation(7)[:5].tolist()), 2)}
    for i, j in sorted(pairs):
        table = np.zeros((cards[i], cards[j]))
        table[1:, 1:] = -penalty
        table += rng.normal(size=table.shape) * (rng.random() < 0.3)
        graph.add_factor([i, j], table)
    graph.add_factor([0, 3, 5], rng.normal(size=[cards[v] for v in (0, 3, 5)]))
    return graph


def packing(seed: int, n: int = 90, elements: int = 26) -> FactorGraph:
    rng = np.random.default_rng(seed)
    sets = [set(rng.permutation(elements)[: int(rng.integers(3, 6))].tolist()) for _ in range(n)]
    graph = FactorGraph([2] * n)
    for i in range(n):
        graph.add_factor([i], [0.0, float(rng.integers(20, 60))])
    for i, j in itertools.combinations(range(n), 2):
        if sets[i] & sets[j]:
            graph.add_factor([i, j], [[0.0, 0.0], [0.0, -inf]])
    return graph


@pytest.mark.parametrize("seed", range(20))
def test_labelings_keep_their_scores(seed: int) -> None:
    graph = exclusive(seed)
    lifted = lift_cliques(graph.model)
    assert lifted is not None
    best = -inf
    for labels in itertools.product(*map(range, graph.cards)):
        score = graph.score(list(labels))
        assert lifted.model.score(lifted.lift(labels)) == pytest.approx(score, rel=1e-12)
        best = max(best, score)
    result = solve(FactorGraph.from_model(lifted.model), gap=0.0)
    assert result.labels is not None
    assert result.score == pytest.approx(best, rel=1e-12)
    assert graph.score(result.labels[: graph.n_variables]) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_penalties_count_as_far_as_a_labeling_in_hand_says(seed: int) -> None:
    """What is better than it stays."""
    graph = exclusive(seed, penalty=12.0)
    scores = {x: graph.score(list(x)) for x in itertools.product(*map(range, graph.cards))}
    found = 0
    for least in sorted(scores.values())[:: len(scores) // 7]:
        lifted = lift_cliques(graph.model, least)
        found += lifted is not None
        for labels, score in scores.items() if lifted is not None else ():
            own = lifted.model.score(lifted.lift(labels)) if lifted is not None else 0.0
            assert own == pytest.approx(score, rel=1e-12) or (own == -inf and score <= least)
    assert found or seed
    best = max(scores.values())
    assert solve(graph, gap=0.0).score == pytest.approx(best, rel=1e-12)


def test_models_without_cliques_stay_as_they_are() -> None:
    rng = np.random.default_rng(1)
    graph = FactorGraph([3] * 8)
    for i, j in itertools.combinations(range(8), 2):
        graph.add_factor([i, j], rng.normal(size=(3, 3)))
    assert lift_cliques(graph.model) is None
    assert lift_cliques(FactorGraph([2, 2]).model) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_auto_proves_set_packing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, joined = packing(seed), []
    make = CliqueProof.make

    def note(team: View) -> Worker | None:
        made = make(team)
        joined.extend([] if made is None else [made])
        return made

    monkeypatch.setattr(CliqueProof, "make", note)
    result = solve(graph, gap=0.0, time_limit=120)
    assert result.status == "optimal"
    assert joined
    assert result.labels is not None
    assert result.score == graph.score(result.labels)
    again = solve(graph, gap=0.0, time_limit=120, threads=2)
    assert (again.score, again.bound, again.iterations) == (result.score, result.bound, result.iterations)
