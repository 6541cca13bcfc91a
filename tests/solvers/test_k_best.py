"""k_best against enumeration."""

from __future__ import annotations

import sys
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph, Potts, k_best, ranked_parts
from fginfer.errors import SettingsError, SolverError

k_best_module = sys.modules["fginfer.k_best"]

SCORES = st.sampled_from([-inf, -3.0, -1.0, 0.0, 0.0, 1.0, 2.0, 0.5])


@st.composite
def graphs(draw: st.DrawFn) -> FactorGraph:
    """Small, with ties, forbidden states and factors over up to three variables; scores are exact in binary."""
    cards = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    graph = FactorGraph(cards)
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.permutations(range(len(cards))))[: draw(st.integers(1, min(3, len(cards))))]
        size = int(np.prod([cards[v] for v in scope]))
        graph.add_factor(scope, draw(st.lists(SCORES, min_size=size, max_size=size)))
    return graph


def ranked(graph: FactorGraph) -> list[tuple[float, tuple[int, ...]]]:
    every = [(graph.score(x), x) for x in product(*(range(c) for c in graph.cards))]
    return sorted((pair for pair in every if pair[0] > -inf), reverse=True)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 12), st.sampled_from([None, 0.0, 1.0, 2.5]))
def test_the_best_labelings_come_in_order(graph: FactorGraph, k: int, within: float | None):
    every = [pair for pair in ranked(graph)]
    expected = [s for s, _ in every if within is None or s >= every[0][0] - within][:k]
    found = k_best(graph, k, within=within)
    assert [r.score for r in found] == expected
    assert len({tuple(r.labels) for r in found}) == len(expected)
    for r in found:
        assert graph.score(r.labels) == r.score
        assert r.status == "optimal"
        assert r.bound is not None
        assert r.score <= r.bound <= r.score + 1e-9
    assert found.status == ("complete" if len(expected) == k else "exhausted")


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_solves_with_exclusions_find_the_same_scores(graph: FactorGraph, k: int):
    found = k_best(graph, k, method="auto")
    assert [r.score for r in found] == [s for s, _ in ranked(graph)][:k]
    assert len({tuple(r.labels) for r in found}) == len(found)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(2, 3))
def test_every_answer_is_the_best_that_keeps_its_distance(graph: FactorGraph, distance: int):
    distance = min(distance, graph.n_variables)
    answers: list[np.ndarray] = []
    for result in k_best(graph, 4, min_distance=distance):
        left = [s for s, x in ranked(graph) if all((np.array(x) != y).sum() >= distance for y in answers)]
        assert result.score == left[0]
        assert all((result.labels != y).sum() >= distance for y in answers)
        answers.append(result.labels)
    left = [s for s, x in ranked(graph) if all((np.array(x) != y).sum() >= distance for y in answers)]
    assert len(answers) == 4 or not left


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_evidence_is_in_every_answer(graph: FactorGraph, data: st.DataObject):
    label = data.draw(st.integers(0, int(graph.cards[0]) - 1))
    found = k_best(graph, 5, evidence={0: label})
    assert [r.score for r in found] == [s for s, x in ranked(graph) if x[0] == label][:5]
    assert all(r.labels[0] == label for r in found)


def test_more_labelings_than_candidates_are_kept_for():
    rng = np.random.default_rng(3)
    graph = FactorGraph.grid((3, 4), rng.normal(size=(3, 4, 2)), Potts(0.3, 0))
    expected = [s for s, _ in ranked(graph)]
    for k in (1, 7, 600, 4096, 5000):
        assert [r.score for r in k_best(graph, k)] == pytest.approx(expected[:k])


def test_the_cutoff_of_the_graph_ends_the_list():
    graph = FactorGraph([3])
    graph.add_factor([0], [0.0, 1.0, 2.0])
    graph.cutoff = 0.5
    assert [r.score for r in k_best(graph, 9)] == [2.0, 1.0]
    assert [r.score for r in k_best(graph, 9, method="auto")] == [2.0, 1.0]


def test_it_is_lazy_and_a_sequence():
    found = k_best(FactorGraph([2, 2, 2]), 5)
    assert found.found == []
    assert found[1].score == 0
    assert len(found.found) == 2
    assert next(found) is found.found[0]
    assert next(found) is found.found[1]
    assert len(found) == 5
    assert found.status == "complete"
    assert found[-1] is found[4]
    assert found[3:] == found.found[3:]
    with pytest.raises(IndexError):
        found[5]
    with pytest.raises(StopIteration):
        [next(found) for _ in range(9)]


def test_a_time_limit_keeps_what_was_found():
    found = k_best(FactorGraph([2] * 8), 200, time_limit=0.0)
    assert (len(found), found.status) == (0, "time_limit")


def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch):
    found = k_best(FactorGraph([2] * 4), 9)
    first = next(found)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(found._finder, "next", stop)
        with pytest.raises(KeyboardInterrupt):
            len(found)
    assert found.found == [first]
    assert len(found) == 9


def test_changes_of_the_graph_do_not_show():
    graph = FactorGraph([2])
    graph.add_factor([0], [0.0, 1.0])
    found = [k_best(graph, 2), k_best(graph, 2, method="auto")]
    graph.set_unary(0, [5.0, 0.0])
    assert [[r.score for r in f] for f in found] == [[1.0, 0.0]] * 2


def test_answers_have_the_names_of_the_graph():
    graph = FactorGraph(variables={"rain": ["no", "yes"], "wind": ["calm", "storm"]})
    graph.add_factor(["rain", "wind"], [[0.0, 1.0], [2.0, 4.0]])
    named = [{"rain": "yes", "wind": "storm"}, {"rain": "yes", "wind": "calm"}]
    assert [r.named() for r in k_best(graph, 2)] == named
    assert [r.named() for r in k_best(graph, 2, method="auto")] == named
    assert [r.named() for r in k_best(graph, 9, evidence={"rain": "yes"})] == named


def test_no_variables_and_no_labelings():
    assert [r.score for r in k_best(FactorGraph([]), 3)] == [0.0]
    assert [r.score for r in k_best(FactorGraph([]), 3, method="auto")] == [0.0]
    graph = FactorGraph([2])
    graph.add_factor([0], [-inf, -inf])
    for method in (None, "auto"):
        found = k_best(graph, 3, method=method)
        assert (list(found), found.status) == ([], "exhausted")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": -1}, "k must be 0 or more, not -1"),
        ({"k": 1.5}, "k must be"),
        ({"k": 1, "method": "icm"}, "needs a method that proves its answers, and icm has no bounds"),
        ({"k": 0, "method": "btrws"}, "there is no method 'btrws'; .*did you mean trws"),
        ({"k": 1, "method": 3}, "there is no method 3"),
        ({"k": 1, "min_distance": 4}, "min_distance must be from 0 to the 3 variables, not 4"),
        ({"k": 1, "min_distance": -1}, "min_distance must be from 0"),
        ({"k": 1, "within": -1.0}, "within must be 0 or more"),
        ({"k": 1, "memory": 0}, "memory must be a positive"),
        ({"k": 1, "time_limit": -1}, "time_limit must be"),
    ],
)
def test_bad_input(settings: dict[str, object], message: str):
    with pytest.raises(SettingsError, match=message):
        k_best(FactorGraph([2, 2, 2]), **settings)


def test_the_name_is_public():
    assert fginfer.k_best is k_best


# -- models that are too wide for elimination as they are -----------------------------------------------------


def too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SolverError("too wide")

    monkeypatch.setattr(k_best_module._Ranked, "__init__", refuse)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 12), st.sampled_from([None, 0.0, 1.0, 2.5]), st.sampled_from([1, 2, 32]))
def test_few_labels_at_a_time_find_the_same(graph: FactorGraph, k: int, within: float | None, extra: int):
    with pytest.MonkeyPatch.context() as patch:
        too_wide(patch)
        patch.setattr(ranked_parts, "FIRST_EXTRA", extra)
        every = ranked(graph)
        expected = [s for s, _ in every if within is None or s >= every[0][0] - within][:k]
        found = k_best(graph, k, within=within)
        assert [r.score for r in found] == expected
        assert len({tuple(r.labels) for r in found}) == len(expected)
        assert all(r.score <= r.bound <= r.score + 1e-9 and graph.score(r.labels) == r.score for r in found)
        assert found.status == ("complete" if len(expected) == k else "exhausted")


@pytest.mark.parametrize("seed", range(4))
def test_a_grid_ranked_as_a_whole_and_by_few_labels(seed: int, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(seed)
    graph = FactorGraph.grid((12, 12), rng.normal(size=(12, 12, 3)), 0.5 * rng.normal(size=(3, 3)))
    whole = [r.score for r in k_best(graph, 60)]
    too_wide(monkeypatch)
    few = k_best(graph, 60)
    assert [r.score for r in few] == pytest.approx(whole, abs=1e-9)
    assert few.status == "complete"


def test_a_hundred_best_segmentations_that_no_elimination_takes():
    rng = np.random.default_rng(0)
    graph = FactorGraph.grid((60, 60), rng.normal(size=(60, 60, 2)), Potts(0.8, 0.0))
    found = k_best(graph, 100)
    scores = [r.score for r in found]
    assert (len(scores), scores) == (100, sorted(scores, reverse=True))
    assert {r.method for r in found.found[1:]} == {"elimination"}
    assert len({r.labels.tobytes() for r in found}) == 100


def test_a_cutoff_ends_the_list(monkeypatch: pytest.MonkeyPatch):
    too_wide(monkeypatch)
    graph = FactorGraph([3, 2])
    graph.add_factor([0], [0.0, 1.0, 2.0])
    graph.add_factor([0, 1], np.zeros((3, 2)))
    graph.cutoff = 0.5
    found = k_best(graph, 10)
    assert [r.score for r in found] == [2.0, 2.0, 1.0, 1.0]
    assert found.status == "exhausted"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_decimals_that_round_differently_still_come_in_order(seed: int, wide: bool):
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 5)
    for i in range(4):
        graph.add_factor([i, i + 1], np.round(rng.normal(size=(3, 3)), 1))
        graph.add_factor([i], np.round(rng.normal(size=3), 1))
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            too_wide(patch)
        scores = [r.score for r in k_best(graph, 60)]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([s for s, _ in ranked(graph)][:60], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 12), st.data())
def test_constraints_are_ranked_like_factors(graph: FactorGraph, k: int, data: st.DataObject):
    literal = st.tuples(st.integers(0, graph.n_variables - 1), st.just(0), st.booleans())
    graph.add_at_most(data.draw(st.integers(0, 2)), data.draw(st.lists(literal, min_size=1, max_size=4)))
    graph.add_cardinality([(v, 0) for v in range(graph.n_variables)], [0.5 * v for v in range(graph.n_variables + 1)])
    found = k_best(graph, k)
    assert [r.score for r in found] == [s for s, _ in ranked(graph)][:k]
    assert len({tuple(r.labels) for r in found}) == len(found)
    assert all(r.method == "elimination" and len(r.labels) == graph.n_variables for r in found)
