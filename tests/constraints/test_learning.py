"""The learner (fginfer/conflicts): mixtures of tables and constraints against every labeling, and solvers with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer import FactorGraph, Solver, solve
from fginfer.conflicts.program import FALSE, TRUE, Program

TRUTH = str(Path(__file__).resolve().parents[1] / "truth")


def queens(n: int) -> FactorGraph:
    graph = FactorGraph([n] * n)
    graph.add_all_different(range(n))
    for total in range(1, 2 * n - 2):
        graph.add_at_most(1, [(i, total - i) for i in range(n) if 0 <= total - i < n])
        graph.add_at_most(1, [(i, i + total - n + 1) for i in range(n) if 0 <= i + total - n + 1 < n])
    return graph


def knapsacks(n: int, limits: int) -> tuple[FactorGraph, Any, Any]:
    rng = np.random.default_rng(0)
    weights, gains = rng.integers(5, 50, (limits, n)), rng.integers(5, 50, n)
    graph = FactorGraph([2] * n)
    graph.set_unaries(np.stack([np.zeros(n), gains], axis=1))
    for row in weights.tolist():
        graph.add_budget([(i, 1) for i in range(n)], row, sum(row) // 3)
    return graph, weights, gains


def test_mixtures_of_tables_and_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TRUTH)
    import differential_learning

    assert [fault for seed in range(120) if (fault := differential_learning.check(seed))] == []
    for name in [n for n, m in sys.modules.items() if (m.__dict__.get("__file__") or "").startswith(TRUTH)]:
        del sys.modules[name]


def test_queens_are_placed_by_learning() -> None:
    result = solve(queens(30), time_limit=60)
    assert result.status == "optimal"
    assert result.found_by == "clauses"
    x, rows = result.labels, np.arange(30)
    assert all(len(set(line.tolist())) == 30 for line in (x, x + rows, x - rows))


def test_prices_and_learning_prove_knapsacks() -> None:
    """Several budgets over the same things keep a gap under prices alone."""
    graph, weights, gains = knapsacks(40, 4)
    result = solve(graph, time_limit=60)
    assert result.status == "optimal"
    assert result.bound == result.score == 604
    assert gains @ result.labels == 604
    assert all(weights @ result.labels <= weights.sum(axis=1) // 3)


def test_slices_change_nothing() -> None:
    whole = solve(knapsacks(30, 3)[0])
    pieces = Solver(knapsacks(30, 3)[0])
    for _ in range(10_000):
        if pieces.run(seconds=0.002) != "running":
            break
    assert pieces.result().score == whole.score
    assert pieces.result().status == whole.status == "optimal"


def test_clauses_reads_constraints_as_they_were_said() -> None:
    """With costs, to the proof; the same after changes of numbers."""
    rng = np.random.default_rng(3)
    graph = FactorGraph([4] * 8)
    unary = rng.integers(0, 9, (8, 4)).astype(float)
    graph.set_unaries(unary)
    graph.add_global_cardinality(range(8), low={0: 2}, high={1: 1, 2: 2, 3: 3})
    graph.add_budget([(v, a) for v in range(8) for a in range(4)], [1.0, 0.5, 2.0, 0.1] * 8, 6.5)
    solver = Solver(graph, "clauses")
    assert solver.run() == "optimal"
    assert solver.result().score == solve(graph, "bnb").score
    graph.set_unary(2, [20.0, 0.0, 0.0, 0.0])
    solver.update()
    assert solver.run() == "optimal"
    assert solver.result().score == solve(graph, "bnb").score
    assert solver.result().labels[2] == 0
    best = solver.result().score
    assert solve(graph, "clauses", cutoff=best).status == "infeasible"
    assert solve(graph, "clauses", cutoff=best - 1).score == best


def test_what_cannot_be_is_proved_by_learning() -> None:
    graph = queens(12)
    graph.add_at_least(7, [(i, a) for i in range(12) for a in range(12) if (i + a) % 2 == 0 and i < 6])
    assert solve(graph, time_limit=60).status == "infeasible"


def test_a_cutoff_and_an_offer_are_for_the_learner_too() -> None:
    graph = knapsacks(30, 3)[0]
    best = solve(graph)
    assert solve(graph, cutoff=best.score).status == "infeasible"
    above = solve(graph, cutoff=best.score - 1)
    assert above.status == "optimal"
    assert above.score == best.score
    again = solve(graph, warm_start=best)
    assert again.status == "optimal"
    assert again.score == best.score


def test_terms_in_their_normal_form() -> None:
    program = Program()
    a, b = program.new(), program.new()
    program.at_least([(a, 3), (b, 3), (TRUE, 1), (FALSE, 9)], 3)  # one of them is true
    assert program.clauses[1:] == [[a, b]]
    assert not program.linears
    program.at_most([(a, 4), (a ^ 1, 1), (b, -2)], 1)  # 3 a + 2 (1 - b) <= 2
    assert program.linears == [([a, b ^ 1], [3, 2], 2)]
    program.at_most([(a, 2), (b, 2)], 4)
    program.clause([a, a ^ 1])
    assert len(program.clauses) == 2
    assert len(program.linears) == 1
    program.at_most([(a, 1)], -1)
    assert program.clauses[-1] == []
