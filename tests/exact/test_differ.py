"""Variables that must all differ: what presolve makes of cliques of such constraints."""

import itertools

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, Potts
from fginfer.core.presolve import presolve

FORBIDDEN = -np.inf


def all_different(domains: list[list[int]], labels: int, rng: np.random.Generator, potts: bool = False) -> FactorGraph:
    """Variables with these domains, pairwise different, with random scores."""
    graph = FactorGraph([labels] * len(domains))
    for i, domain in enumerate(domains):
        unary = np.full(labels, FORBIDDEN)
        unary[domain] = rng.normal(size=len(domain))
        graph.add_factor([i], unary)
    for i, j in itertools.combinations(range(len(domains)), 2):
        table = rng.normal(size=(labels, labels))
        np.fill_diagonal(table, FORBIDDEN)
        graph.add_factor([i, j], Potts(FORBIDDEN, 0.0) if potts else table)
    return graph


@pytest.mark.parametrize("pigeons", [6, 11, 30])
@pytest.mark.parametrize("potts", [False, True])
def test_pigeons_without_room(pigeons: int, potts: bool) -> None:
    domains = [list(range(pigeons - 1))] * pigeons
    graph = all_different(domains, pigeons - 1, np.random.default_rng(0), potts)
    assert presolve(graph.snapshot()).infeasible


@pytest.mark.parametrize("seed", range(40))
def test_keeps_the_best_matching(seed: int) -> None:
    """Small domains, so that many labels are in no matching of all variables: what goes is never what is needed."""
    rng = np.random.default_rng(seed)
    labels, n = 7, 6
    domains = [sorted(int(a) for a in rng.choice(labels, size=rng.integers(2, 4), replace=False)) for _ in range(n)]
    graph = all_different(domains, labels, rng)
    assignments = [x for x in itertools.product(*domains) if len(set(x)) == n]
    result = fginfer.solve(graph, gap=0.0)
    if not assignments:
        assert presolve(graph.snapshot()).infeasible
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.score == pytest.approx(max(graph.score(list(x)) for x in assignments), abs=1e-9)
