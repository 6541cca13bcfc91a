"""The semidefinite branch and bound, against enumeration in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, Solver, solve

Terms = dict[tuple[int, ...], np.ndarray]


def draw(seed: int, n: int, kind: str) -> tuple[FactorGraph, Terms]:
    """A dense binary model: whole or real couplings, with or without fields."""
    rng = np.random.default_rng(seed)
    density = float(rng.choice([0.3, 0.6, 1.0]))
    terms: Terms = {}
    for i in range(n):
        if kind != "cut" and rng.random() < 0.7:
            terms[(i,)] = numbers(rng, kind, (2,))
        for j in range(i + 1, n):
            if rng.random() < density:
                w = float(rng.integers(-3, 4))
                terms[(i, j)] = np.array([[0.0, w], [w, 0.0]]) if kind == "cut" else numbers(rng, kind, (2, 2))
    graph = FactorGraph([2] * n)
    for variables, table in terms.items():
        graph.add_factor(list(variables), table)
    return graph, terms


def numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "whole":
        return rng.integers(-9, 10, shape).astype(float)
    return rng.normal(size=shape) * float(rng.choice([1e-3, 1.0, 1e6]))


def best_of(n: int, terms: Terms) -> Fraction | int:
    exact = {v: {x: Fraction(float(t[x])) for x in np.ndindex(*t.shape)} for v, t in terms.items()}
    return max(sum(t[tuple(x[i] for i in v)] for v, t in exact.items()) for x in product((0, 1), repeat=n))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from(["cut", "whole", "real"]))
def test_it_proves_the_optimum(seed: int, n: int, kind: str) -> None:
    graph, terms = draw(seed, n, kind)
    best = best_of(n, terms)
    result = solve(graph, method="sdp", gap=0)
    assert result.status == "optimal"
    assert result.score == pytest.approx(float(best), rel=1e-12, abs=1e-12)
    assert Fraction(result.bound) >= best


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from(["cut", "whole", "real"]), st.integers(1, 5))
def test_a_bound_holds_at_any_moment(seed: int, n: int, kind: str, iterations: int) -> None:
    graph, terms = draw(seed, n, kind)
    result = solve(graph, method="sdp", max_iterations=iterations)
    assert Fraction(result.bound) >= best_of(n, terms)


def test_cutoffs_at_and_below_the_optimum() -> None:
    graph, terms = draw(5, 7, "whole")
    best = float(best_of(7, terms))
    assert solve(graph, method="sdp", cutoff=best - 1).status == "optimal"
    assert solve(graph, method="sdp", cutoff=best).status == "infeasible"


@pytest.mark.parametrize("k", [-901, -1, 1, 300])
def test_the_unit_of_the_scores_changes_nothing(k: int) -> None:
    n = -np.inf
    unaries = {1: [-1, 0, -1], 2: [0, -1], 3: [1, 2], 4: [2, 0], 6: [-2, -1, 2], 7: [2, 0, -2]}
    tables = {
        (0, 1): [[-1, -1, n], [-2, -2, 2]],
        (1, 2): [[2, n], [n, 2], [n, n]],
        (3, 2): [[0, -2], [-1, 2]],
        (4, 3): [[0, -2], [-2, 0]],
        (4, 5): [[0, -1, n], [0, -1, 2]],
        (5, 6): [[-2, n, n], [n, -1, n], [n, n, 1]],
        (6, 7): [[0, -1, -1], [-1, 0, -1], [-1, -1, 0]],
        (0, 7): [[0, 0, n], [0, 0, 0]],
    }
    answers = []
    for exponent in (0, k):
        graph = FactorGraph([2, 3, 2, 2, 2, 3, 3, 3])
        for variable, scores in unaries.items():
            graph.add_factor([variable], np.ldexp(np.array(scores, float), exponent))
        for variables, table in tables.items():
            graph.add_factor(list(variables), np.ldexp(np.array(table, float), exponent))
        result = solve(graph, method="sdp", max_iterations=10, seed=857)
        answers.append((result.status, np.ldexp(result.score, -exponent), np.ldexp(result.bound, -exponent)))
    assert answers[0] == answers[1]


def test_triangles_beat_the_plain_relaxation() -> None:
    """Five spins that all want to differ: the plain relaxation says 6.25 edges, the optimum is 6."""
    graph = FactorGraph([2] * 5)
    for pair in combinations(range(5), 2):
        graph.add_factor(list(pair), [[0.0, 1.0], [1.0, 0.0]])
    result = solve(graph, method="sdp")
    assert (result.status, result.score, result.bound) == ("optimal", 6.0, 6.0)


def test_slices_change_nothing() -> None:
    graph, _ = draw(11, 30, "whole")
    whole = solve(graph, method="sdp", max_iterations=25)
    solver = Solver(graph, method="sdp", max_iterations=25)
    while solver.run(0.0005) == "running":
        pass
    sliced = solver.result()
    assert (sliced.score, sliced.bound, sliced.iterations) == (whole.score, whole.bound, whole.iterations)
    assert np.array_equal(sliced.labels, whole.labels)


def test_terms_that_are_no_spins_are_bounded() -> None:
    rng = np.random.default_rng(2)
    graph = FactorGraph([2, 2, 3, 2])
    tables = {v: rng.normal(size=[int(graph.cards[i]) for i in v]) for v in [(0, 1), (1, 2), (0, 1, 3), (0, 3)]}
    for v, t in tables.items():
        graph.add_factor(list(v), t)
    best = max(sum(t[tuple(x[i] for i in v)] for v, t in tables.items()) for x in np.ndindex(2, 2, 3, 2))
    result = solve(graph, method="sdp")
    assert result.status == "converged" or result.score == pytest.approx(best)
    assert result.bound >= best - 1e-12


def test_a_medium_model_is_proven_as_by_branch_and_bound() -> None:
    graph, _ = draw(21, 24, "whole")
    assert solve(graph, method="sdp").score == solve(graph, method="bnb").score


def test_auto_asks_it_where_local_bounds_say_nothing() -> None:
    """The same with one thread and two: who proves is decided by work, not by time."""
    rng = np.random.default_rng(2)
    graph = FactorGraph([2] * 45)
    for i, j in combinations(range(45), 2):
        graph.add_factor([i, j], rng.choice([-1.0, 1.0]) * np.array([[0.0, 1.0], [1.0, 0.0]]))
    result, other = solve(graph), solve(graph, threads=2)
    assert result.status == other.status == "optimal"
    assert result.proved_by == other.proved_by == "sdp"
    assert result.score == other.score == solve(graph, method="sdp").score
