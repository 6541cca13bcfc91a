"""The algorithm as printed, in Python: its bound is a bound, it reaches the relaxation, and the core agrees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fginfer
from fginfer.reference import ReferenceGdmm


def model(seed: int, cycle: bool) -> fginfer.FactorGraph:
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (2, 3)] + [(0, 3)] * cycle
    graph = fginfer.FactorGraph([5, 4, 5, 4])
    for i in range(4):
        graph.set_unary(i, rng.normal(size=graph.cards[i]))
    for i, j in edges:
        table = rng.normal(size=(graph.cards[i], graph.cards[j]))
        table[0, 0] = -np.inf
        graph.add_factor([i, j], table)
    return graph


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.parametrize("eta", [None, 0.3])
def test_algorithm_8_as_printed(seed: int, cycle: bool, eta: float | None) -> None:
    graph = model(seed, cycle)
    optimum = fginfer.solve(graph).score
    method, bounds = ReferenceGdmm(graph, rho=0.7, eta=eta), []
    for _ in range(400):
        method.iterate()
        bounds.append(method.bound())
    assert min(bounds) >= optimum - 1e-9
    core = fginfer.solve(graph, "gdmm", access="sorted", sweep="off", gap=0.0, max_iterations=3000)
    assert bounds[-1] == pytest.approx(core.bound, abs=2e-3)
    if not cycle:
        assert graph.score(method.labels()) == pytest.approx(optimum)
    assert all(len(f.y) <= 4 for f in method.factors)  # active sets stay small


def test_implicit_and_shared_tables() -> None:
    graph = fginfer.FactorGraph([4, 4, 4])
    graph.set_unary(0, [0.0, 0.0, 2.0, 0.0])
    graph.set_unary(2, [0.5, 0.0, 0.0, 0.0])
    graph.add_factor([0, 1], fginfer.Potts(1.0, 0.0), weight=2.0)
    graph.add_factor([1, 2], fginfer.AbsDiff(0.25, 2.0))
    method = ReferenceGdmm(graph, rho=0.5)
    for _ in range(300):
        method.iterate()
    assert method.bound() == pytest.approx(fginfer.solve(graph).score, abs=1e-3)
    graph.add_factor([0, 1, 2], np.zeros((4, 4, 4)))
    with pytest.raises(ValueError, match="pairwise"):
        ReferenceGdmm(graph)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_the_reference_is_that_of_the_core(seed: int) -> None:
    """D(mu) at the multipliers of the reference, as the core's certificate has it: the first bound of a run that starts
    from them, without sweeps, with sorted and with dense oracles."""
    graph = model(seed, cycle=True)
    method = ReferenceGdmm(graph, rho=0.7)
    for iterations in (0, 1, 10):
        for _ in range(iterations):
            method.iterate()
        mu = [np.array([f.mu[side].get(a, 0.0) for a in range(graph.cards[f.variables[side]])])
              for f in method.factors for side in (0, 1)]  # fmt: skip
        for access in ("sorted", "dense"):
            with fginfer.Solver(graph, "gdmm", access=access, sweep="off", gap=0.0) as solver:
                solver.warm_start(replace(solver.result(), messages=np.concatenate(mu)))
                solver.run(iterations=1)
                first = next(p.bound for p in solver.result().trace if p.bound is not None)
            assert first == pytest.approx(method.bound(), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cards", [5, 2], ids=["lists", "binary"])
@pytest.mark.parametrize("eta", [1.0, 0.3])
def test_the_core_does_the_same_steps(seed: int, cards: int, eta: float) -> None:
    """variant="published" against the algorithm as printed in Python: multipliers and marginals of every step."""
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    tables = [rng.normal(size=(cards, cards)) for _ in edges]
    graph = fginfer.FactorGraph.from_arrays([cards] * 4, rng.normal(size=(4, cards)), edges, tables=tables)
    method = ReferenceGdmm(graph, rho=0.7, eta=0.7 * eta)
    bounds = [method.bound()]
    with fginfer.Solver(graph, "gdmm", variant="published", rho=0.7, eta=eta, gap=0.0) as solver:
        for step in range(40):
            solver.run(iterations=1)
            result = solver.result()
            if result.iterations == step:  # proven by the certificate of the step before
                break
            method.iterate()
            bounds.append(method.bound())
            expected = [f.mu[side].get(a, 0.0) for f in method.factors for side in (0, 1) for a in range(cards)]
            assert result.messages == pytest.approx(expected, abs=1e-12)
            shares = [x.get(a, 0.0) for x in method.x for a in range(cards)]
            assert np.concatenate(result.marginals) == pytest.approx(shares, abs=1e-12)
            assert result.statistics["rho"] == 0.7
        assert step > 8
        assert result.statistics["sweeps"] == result.statistics["closed_forms"] == 0
        assert result.bound == pytest.approx(min(bounds[0], *bounds[1::8]), abs=1e-9)  # every eight steps


@pytest.mark.parametrize("options", [{"formulation": "binary"}, {"access": "dense"}, {"sweep": "on"}, {"search": "on"}])
def test_what_was_not_printed_is_refused_beside_it(options: dict[str, str]) -> None:
    with pytest.raises(fginfer.SettingsError, match="published"):
        fginfer.solve(model(0, cycle=True), "gdmm", variant="published", **options)


def test_one_step_of_a_factor_and_a_variable_by_hand() -> None:
    """Two variables, one factor, rho = 1: the numbers of the formulas, worked out."""
    graph = fginfer.FactorGraph.from_arrays(
        [2, 2], [[0.0, 0.5], [0.0, 0.0]], [[0, 1]], tables=[[[2.0, 0.0], [0.0, 1.0]]]
    )
    method = ReferenceGdmm(graph, rho=1.0)
    assert method.x == [{1: 1.0}, {0: 1.0}]  # the best unaries
    f = method.factors[0]
    assert method.messages(f) == [{1: -1.0}, {0: -1.0}]  # delta = mu + rho (M y - x), nothing is active yet
    method.factor_step(f)
    assert f.y == {(0, 0): 1.0}  # theta - delta: 2 + 1 at (0, 0), 0 + 2 at (1, 0), 0 at (0, 1), 1 + 1 at (1, 1)
    for i in (0, 1):
        method.variable_step(i)
    # [theta / rho + M y + mu / rho] / 1: (1, .5) for the first, (1, 0) for the second, projected onto the simplex.
    assert method.x == [{0: 0.75, 1: 0.25}, {0: 1.0}]
    assert method.bound() == pytest.approx(0.5 + 0.0 + 2.0)  # D(0)
    method = ReferenceGdmm(graph, rho=1.0, eta=0.5)
    method.iterate()
    assert dict(method.factors[0].mu[0]) == {0: 0.125, 1: -0.125}  # eta (M y - x)
