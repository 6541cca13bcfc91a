"""Factors over more variables than numpy has axes: all but a few have one label, which is no reason to refuse."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, ModelError, Result, Solver, available_methods, read, solve, write

PROPER = (0, 30, 69)  # the variables with several labels
CARDS = [2 if i == 0 else 3 if i in PROPER else 1 for i in range(70)]
SCORES = -np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3.0])


def wide() -> FactorGraph:
    """One factor over all variables, one over constants alone, one over two proper ones and its shared table."""
    graph = FactorGraph(CARDS)
    graph.add_factor(range(70), SCORES)
    graph.add_factor([i for i in range(70) if i not in PROPER], [-2.0])
    graph.add_factor(list(range(70)), SCORES, weight=2)
    graph.add_factor([0, 69], -np.arange(6.0).reshape(2, 3))
    return graph


def definition(x: tuple[int, int, int]) -> float:
    entry = float(SCORES[(x[0] * 3 + x[1]) * 3 + x[2]])
    return entry - 2 + 2 * entry - (3 * x[0] + x[2])


def labeling(x: tuple[int, int, int]) -> list[int]:
    labels = [0] * 70
    for i, a in zip(PROPER, x, strict=True):
        labels[i] = a
    return labels


STATES = list(product(range(2), range(3), range(3)))
BEST = max(definition(x) for x in STATES)


def test_scores_are_those_of_the_definition() -> None:
    graph = wide()
    for x in STATES:
        assert graph.score(labeling(x)) == definition(x)
    assert [len(f.variables) for f in graph.factors()] == [70, 67, 70, 2]
    assert graph.table(0).shape == (18,)  # type: ignore[union-attr]
    graph.set_table(0, np.zeros(18))
    assert graph.score(labeling((1, 2, 2))) == -2 - 5


@pytest.mark.parametrize("method", sorted(set(available_methods()) - {"assignment"}))  # which takes pairs alone
def test_every_method_takes_it(method: str) -> None:
    result = solve(wide(), method, max_iterations=300)
    assert result.score == BEST
    assert result.bound is not None
    assert result.bound >= BEST
    assert solve(wide(), method, warm_start=result, max_iterations=300).score == BEST


@pytest.mark.parametrize("method", ["auto", "bnb", "edac", "trws", "gdmm"])
def test_scores_far_from_one_and_new_numbers(method: str) -> None:
    graph = wide()
    with Solver(graph, method) as solver:
        solver.run(iterations=300)
        graph.set_unary(30, [-100.0, 0.0, -100.0])
        solver.update()
        solver.run(iterations=300)
        assert solver.result().score == max(definition(x) for x in STATES if x[1] == 1)
    large = FactorGraph(CARDS)
    large.add_factor(range(70), SCORES * 2.0**300)
    assert solve(large, method, max_iterations=300).score == -(2.0**300)


def test_evidence_and_proofs() -> None:
    for x in STATES:
        result = solve(wide(), evidence=dict(zip(PROPER, x, strict=True)))
        assert result.status == "optimal"
        assert result.score == definition(x)
    graph = wide()
    graph.cutoff = BEST
    assert solve(graph).status == "infeasible"


@pytest.mark.parametrize("extension", ["uai", "LG", "wcsp", "cfn", "h5", "npz"])
def test_files_keep_its_scores(extension: str, tmp_path: Path) -> None:
    write(wide(), tmp_path / f"wide.{extension}")
    again = read(tmp_path / f"wide.{extension}")
    for x in STATES:
        assert again.score(labeling(x)) == pytest.approx(definition(x), rel=1e-12)


def test_networkx_and_descriptions() -> None:
    graph = wide()
    again = FactorGraph.from_networkx(graph.to_networkx())
    assert [again.score(labeling(x)) for x in STATES] == [definition(x) for x in STATES]
    assert graph.describe().max_arity == 70


def test_what_does_not_fit_is_a_model_error() -> None:
    graph = FactorGraph([2] * 70)
    with pytest.raises(ModelError, match="its 70 variables need a table of 1180591620717411303424 entries"):
        graph.add_factor(range(70), [0.0])
    with pytest.raises(ModelError, match=r"entry .* is NaN"):
        FactorGraph(CARDS).add_factor(range(70), np.full(18, np.nan))
    assert isinstance(solve(graph), Result)


def test_marginals_are_sums_over_all_labelings() -> None:
    found, exact = fginfer.marginals(wide()), np.exp([definition(x) for x in STATES])
    assert found.log_z == pytest.approx(np.log(exact.sum()), rel=1e-12)
    for k, i in enumerate(PROPER):
        shares = [exact[[x[k] == a for x in STATES]].sum() / exact.sum() for a in range(CARDS[i])]
        assert found.variables[i] == pytest.approx(np.array(shares), rel=1e-9)
    assert found.variables[1] == pytest.approx(np.ones(1), rel=1e-9)
