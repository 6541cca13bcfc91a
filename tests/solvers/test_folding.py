"""Several factors over one variable: scores, bounds and statuses are those of the factors as they were given."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from fginfer import FactorGraph, ModelError, Solver, available_methods, k_best, read, solve, write
from fginfer.folding import expansion

METHODS = available_methods()
SCORES = [1e16, -1e16, 1.0, -1.0, 3.0, 0.1, -0.3, 1e-17, 2.0**60, -(2.0**60), 0.0, 1e30, -1e30]


class Factors:
    """A model as a list of factors, and its scores in exact arithmetic."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.cards = rng.integers(1, 4, rng.integers(1, 4)).tolist()
        self.factors: list[tuple[list[int], np.ndarray]] = []
        for v, card in enumerate(self.cards):
            for _ in range(rng.integers(0, 5)):
                self.factors.append(([v], self.draw(rng, (card,))))
        for _ in range(rng.integers(0, 3)):
            self.factors.append(([], self.draw(rng, ())))
        for v in range(len(self.cards) - 1):
            self.factors.append(([v, v + 1], self.draw(rng, (self.cards[v], self.cards[v + 1]))))

    @staticmethod
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        scores = rng.choice(SCORES, shape)
        return np.where(rng.random(shape) < 0.05, -inf, scores)

    def graph(self) -> FactorGraph:
        graph = FactorGraph(self.cards)
        for scope, table in self.factors:
            graph.add_factor(scope, table)
        return graph

    def score(self, labels: np.ndarray | tuple[int, ...]) -> Fraction | None:
        terms = [float(table[tuple(labels[v] for v in scope)]) for scope, table in self.factors]
        return None if -inf in terms else sum(map(Fraction, terms), Fraction(0))

    def optimum(self) -> Fraction | None:
        scores = [self.score(labels) for labels in itertools.product(*map(range, self.cards))]
        return max((s for s in scores if s is not None), default=None)


def check(model: Factors, result, cutoff: float = -inf) -> None:
    best = model.optimum()
    tolerance = Fraction(2e-12) * max(abs(best or 0), Fraction(result.unit))
    if result.labels is not None:
        exact = model.score(result.labels)
        assert exact is not None
        assert result.score == float(exact) > cutoff
    if result.bound is not None and best is not None:
        assert result.bound == inf or (result.bound > -inf and Fraction(result.bound) >= best)
    if result.is_optimal:
        assert best is not None
        assert result.score is not None
        assert best - Fraction(result.score) <= tolerance
    if result.status == "infeasible":
        assert best is None or float(best) <= cutoff


@pytest.mark.parametrize("method", METHODS)
def test_what_cancels_is_not_lost(method: str):
    for terms in itertools.permutations([1e16, 1.0, -1e16]):
        graph = FactorGraph([2, 2])
        for x in terms:
            graph.add_factor([0], [x, 0.0])
        graph.add_factor([0, 1], [[0.0, 0.5], [0.25, 0.0]])
        result = solve(graph, method, max_iterations=100)
        assert (result.score, result.status) == (1.5, "optimal")
        assert 1.5 <= result.bound <= 1.5 + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_nothing_false_is_said(method: str):
    for seed in range(40):
        model = Factors(seed)
        graph = model.graph()
        check(model, solve(graph, method, max_iterations=20, seed=seed))
        best = model.optimum()
        if best is not None:
            for cutoff in (float(best), np.nextafter(float(best), -inf), float(best) - 1.0):
                check(model, solve(graph, method, max_iterations=20, cutoff=cutoff), cutoff)


def test_a_cutoff_below_the_best_is_no_reason_to_say_infeasible():
    graph = FactorGraph([2, 2])
    graph.add_factor([0], [1e16, 0.0])
    graph.add_factor([0], [1.0, 0.0])
    graph.add_factor([0, 1], [[-1e16, -1e17], [-1e17, -1e17]])
    assert solve(graph, "bnb", cutoff=0.5).score == 1.0
    assert solve(graph, "bnb", cutoff=1.0).status == "infeasible"


def test_evidence_folds_exactly():
    for seed in range(60):
        model = Factors(seed)
        graph, rng = model.graph(), np.random.default_rng(seed)
        fixed = {v: int(rng.integers(card)) for v, card in enumerate(model.cards) if rng.random() < 0.5}
        given = graph.condition(fixed)
        for labels in itertools.product(*map(range, model.cards)):
            if all(labels[v] == label for v, label in fixed.items()):
                exact = model.score(labels)
                assert given.graph.score(given.reduce(labels)) == (-inf if exact is None else float(exact))
        result = solve(graph, evidence=fixed)
        if result.labels is not None:
            assert result.score == graph.score(result.labels) <= result.bound


@pytest.mark.parametrize("suffix", [".LG", ".cfn", ".h5", ".npz"])
def test_files_keep_what_rounding_takes(tmp_path, suffix: str):
    if suffix == ".h5":
        pytest.importorskip("h5py")
    for seed in range(30):
        model = Factors(seed)
        write(model.graph(), tmp_path / f"m{suffix}")
        same_scores(model, read(tmp_path / f"m{suffix}"))


def same_scores(model: Factors, graph: FactorGraph) -> None:
    for labels in itertools.product(*map(range, model.cards)):
        exact = model.score(labels)
        assert graph.score(labels) == (-inf if exact is None else float(exact))


def test_whole_costs_keep_what_rounding_takes(tmp_path):
    """A double holds 2^53 + 4 for 2^53 + 1 + 2."""
    listed = "".join(f"1 0 0 1\n0 {cost}\n0 {cost} 0\n" for cost in (2**53, 1, 2))
    (tmp_path / "m.wcsp").write_text(f"m 1 2 6 {2**60}\n2\n{listed}")
    graph = read(tmp_path / "m.wcsp")
    graph.add_factor([], 2.0**54)
    assert graph.score([0]) == -6.0
    assert graph.score([1]) == 2.0**53 - 3
    assert graph.condition({0: 0}).graph.score([]) == -6.0
    result = solve(graph)
    assert (result.labels.tolist(), result.score) == ([1], 2.0**53 - 3)


@pytest.mark.parametrize("big", [1e16, 1e300])
def test_files_that_list_a_variable_several_times(tmp_path, big: float):
    (tmp_path / "m.LG").write_text(
        f"MARKOV\n1\n2\n4\n1 0\n1 0\n1 0\n0\n\n2\n{big} 0\n\n2\n1 0\n\n2\n{-big} 0\n\n1\n0.5\n"
    )
    assert read(tmp_path / "m.LG").score([0]) == 1.5
    (tmp_path / "m.qubo").write_text(
        "p qubo 0 2 3 3\n" + "".join(f"{k} {v}\n" for k in ("0 0", "0 1") for v in (-1e16, -1, 1e16))
    )
    graph = read(tmp_path / "m.qubo")
    assert [graph.score(x) for x in ([0, 0], [1, 0], [1, 1])] == [0.0, 1.0, 2.0]


def test_potentials_are_added_as_logarithms(tmp_path):
    """exp(x) and its logarithm are rounded, but the sum of the logarithms is not."""
    potentials = [1e300, 2.0, 1e-300, 1e-300, 1e300]
    (tmp_path / "m.uai").write_text("MARKOV\n1\n1\n5\n" + "1 0\n" * 5 + "".join(f"\n1\n{p!r}\n" for p in potentials))
    logs = []
    for p in potentials:
        (tmp_path / "one.uai").write_text(f"MARKOV\n1\n1\n1\n1 0\n\n1\n{p!r}\n")
        logs.append(Fraction(read(tmp_path / "one.uai").score([0])))
    assert read(tmp_path / "m.uai").score([0]) == float(sum(logs))


def test_copies_keep_what_rounding_takes():
    pytest.importorskip("networkx")
    for seed in range(30):
        model = Factors(seed)
        graph = model.graph()
        graph.score([0] * len(model.cards))
        for kind in ("bipartite", "markov"):
            same_scores(model, FactorGraph.from_networkx(graph.to_networkx(kind)))
        same_scores(model, graph.copy())
        same_scores(model, pickle.loads(pickle.dumps(graph)))


def test_new_scores_forget_what_old_ones_lost():
    for started in (False, True):
        graph = FactorGraph([2, 2])
        for v in (0, 1):
            graph.add_factor([v], [1e16, 0.0])
            graph.add_factor([v], [1.0, 0.0])
        if started:
            graph.score([0, 0])
        graph.set_unary(0, [0.0, 0.0])
        graph.add_factor([1], [-1e16, 0.0])
        assert graph.score([0, 0]) == 1.0
        graph.set_unaries([0.0] * 4)
        assert graph.score([0, 0]) == 0.0


def test_a_refused_sum_changes_nothing():
    graph = FactorGraph([2])
    graph.add_factor([0], [1e16, 1.5e308])
    graph.add_factor([0], [1.0, 0.0])
    with pytest.raises(ModelError, match="more than a double holds"):
        graph.add_factor([0], [-1e16, 1.5e308])
    graph.add_factor([0], [-1e16, 0.0])
    assert graph.score([0]) == 1.0


def test_a_solver_goes_on_with_new_scores():
    graph = FactorGraph([2, 2])
    for x in (1e16, 1.0):
        graph.add_factor([0], [x, 0.0])
    graph.add_factor([0, 1], [[-1e16, -1e16], [-1e17, -1e17]])
    with Solver(graph, "bnb") as solver:
        solver.run()
        assert solver.progress().score == solver.result().score == 1.0 <= solver.result().bound
        graph.set_unary(1, [0.0, 5.0])
        solver.update()
        solver.run()
        assert solver.result().score == 6.0 == graph.score(solver.result().labels)


def test_the_best_labelings_in_their_order():
    for seed in range(30):
        model = Factors(seed)
        scores = [model.score(labels) for labels in itertools.product(*map(range, model.cards))]
        order = sorted((s for s in scores if s is not None), reverse=True)
        for k, result in enumerate(k_best(model.graph(), 3)):
            assert result.score == float(model.score(result.labels))
            assert abs(Fraction(result.score) - order[k]) <= Fraction(2e-12) * max(abs(order[k]), Fraction(result.unit))


def test_an_expansion_is_the_sum():
    rng = np.random.default_rng(0)
    for _ in range(300):
        terms = (rng.choice(SCORES, 6) * rng.random(6)).tolist()
        parts = expansion(terms)
        total = sum(map(Fraction, terms), Fraction(0))
        assert sum(map(Fraction, parts), Fraction(0)) == total
        assert parts[0] == float(total)


def test_constraints_beside_what_rounding_takes():
    graph = FactorGraph([2, 2])
    for x in (1e16, 1.0):
        graph.add_factor([0], [0.0, x])
    graph.add_factor([0, 1], [[-1e17, -1e17], [-1e16, -1e16]])
    graph.add_exactly_one([(0, 1), (1, 1)])
    with Solver(graph, "bnb") as solver:
        solver.run()
        assert (solver.result().labels.tolist(), solver.result().score) == ([1, 0], 1.0)
        graph.set_unary(1, [4.0, 0.0])
        solver.update()
        solver.run()
        assert solver.result().score == 5.0 <= solver.result().bound
    assert solve(graph, evidence={0: 1}).score == 5.0


def test_factors_that_go_or_weigh_more():
    graph = FactorGraph([1])
    graph.add_factor([0], [1e16])
    one = graph.add_factor([0], [1.0])
    less = graph.add_factor([0], [-1e16])
    graph.set_weight(one, 3.0)
    assert graph.score([0]) == 3.0
    graph.remove_factor(less)
    graph.add_factor([0], [-1e16])
    assert graph.score([0]) == 3.0
