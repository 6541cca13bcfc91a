"""Nothing false is said, whatever the unit of the scores, penalties and cancelling sums; tests/truth asks more."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import inf, ldexp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, Result, Solver, SqDiff, available_methods, solve

METHODS = sorted(set(available_methods()) - {"assignment"})  # which takes pairs alone


def grid(n: int, labels: int, rng: np.random.Generator, scale: float = 1.0) -> FactorGraph:
    index = np.arange(n * n).reshape(n, n)
    edges = [*zip(index[:, :-1].ravel(), index[:, 1:].ravel(), strict=True)]
    edges += [*zip(index[:-1].ravel(), index[1:].ravel(), strict=True)]
    unaries, tables = rng.normal(size=(n * n, labels)), rng.normal(size=(len(edges), labels, labels))
    return FactorGraph.from_arrays([labels] * (n * n), scale * unaries, edges, tables=scale * tables)


def exact_optimum(graph: FactorGraph) -> Fraction | None:
    """Over all labelings, in rationals; None if none is feasible."""
    best = None
    tables = [(f.variables, f.weight, f.transposed, graph.table(f.table)) for f in graph.factors()]
    for x in product(*(range(int(k)) for k in graph.cards)):
        scores = [graph.constant, *(float(graph.unary(i)[a]) for i, a in enumerate(x))]
        for variables, weight, transposed, table in tables:
            at = tuple(x[v] for v in variables)
            scores.append(weight * float(np.asarray(table)[at[::-1] if transposed else at]))
        if -inf not in scores:
            total = sum(map(Fraction, scores), Fraction(0))
            best = total if best is None else max(best, total)
    return best


def check(graph: FactorGraph, result: Result, best: Fraction | None) -> None:
    if result.status == "infeasible":
        assert best is None
    if best is None:
        return
    assert result.bound is None or result.bound >= best
    if result.is_optimal:
        assert result.score is not None
        assert best - Fraction(result.score) <= Fraction(1e-12) * max(
            abs(Fraction(result.score)), Fraction(result.unit)
        )


# -- the unit of the scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "bnb", "slabs"])
def test_small_scores_are_scores(method: str) -> None:
    rng = np.random.default_rng(0)
    large = solve(grid(4, 3, rng), method, gap=0)
    small = solve(grid(4, 3, np.random.default_rng(0), scale=1e-9), method, gap=0)
    assert large.is_optimal
    assert small.is_optimal
    assert large.labels is not None
    assert small.labels is not None
    assert small.labels.tolist() == large.labels.tolist()


def model(data: st.DataObject, k: int, *, seed: int) -> FactorGraph:
    """The same model for every k, with all scores times 2^k."""
    rng = np.random.default_rng(seed)
    spread = int(rng.integers(0, 55))

    def draw(*shape: int) -> Any:
        kind = rng.integers(3)
        x = (
            rng.integers(-3, 4, shape)
            if kind == 0
            else rng.normal(size=shape) * 2.0 ** rng.integers(-spread, spread + 1)
        )
        x = np.where(np.abs(x) < 2.0**-60, 0.0, x)
        return np.ldexp(np.where(rng.random(shape) < 0.1 * rng.integers(3), -inf, x), k)

    n = int(rng.integers(2, 7))
    graph = FactorGraph(rng.integers(2, 4, n))
    for i in range(n):
        graph.add_factor([i], draw(int(graph.cards[i])))
    for _ in range(int(rng.integers(1, 10))):
        scope = rng.permutation(n)[: int(rng.choice([2, 2, 2, 3]))].tolist()
        kind, weight = rng.integers(5), float(rng.choice([1.0, 2.5, 0.1]))
        w = float(np.ldexp(rng.random() + 0.01, k))
        if len(scope) == 2 and kind < 3:
            graph.add_factor(scope, [Potts(w, -w), AbsDiff(w, 1.5), SqDiff(w)][kind], weight=weight)
        else:
            graph.add_factor(scope, draw(*graph.cards[scope].tolist()), weight=weight)
    return graph


def answer(graph: FactorGraph, k: int, **settings: Any) -> tuple[Any, ...]:
    with Solver(graph, **settings) as solver:
        solver.run()
        r = solver.result()
    scaled = [None if x is None else ldexp(x, -k) for x in (r.score, r.bound, r.unit)]
    trace = [(p.score and ldexp(p.score, -k), p.bound and ldexp(p.bound, -k)) for p in r.trace]
    return r.status, r.iterations, r.gap, scaled, trace, None if r.labels is None else r.labels.tolist()


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data(), seed=st.integers(0, 10**6), k=st.integers(-900, 900))
@settings(max_examples=25, deadline=None)
def test_the_unit_changes_nothing_but_the_unit(method: str, data: st.DataObject, seed: int, k: int) -> None:
    options: dict[str, Any] = {
        "max_iterations": 3 if method == "auto" else 15,
        "gap": data.draw(st.sampled_from([0, 1e-6])),
    }
    if method in ("gdmm", "ad3"):
        options["rho"] = data.draw(st.sampled_from([0.0, 0.25]))
    if method == "trws":
        options["precision"] = data.draw(st.sampled_from([0, 1, 2]))
    moved = dict(options)
    if "rho" in moved:
        moved["rho"] = ldexp(options["rho"], k)
    if data.draw(st.booleans()):
        options["cutoff"], moved["cutoff"] = -1.5, ldexp(-1.5, k)
    first = answer(model(data, 0, seed=seed), 0, method=method, **options)
    assert answer(model(data, k, seed=seed), k, method=method, **moved) == first


@pytest.mark.parametrize("method", METHODS)
def test_the_unit_where_the_best_scores_are_zero(method: str) -> None:
    """Hard constraints and costs: neither ranges of tables nor their best scores tell how large scores are."""

    def costs(k: int) -> FactorGraph:
        graph = FactorGraph([3] * 4)
        for i in range(4):
            graph.add_factor([i], np.ldexp([0.0, -0.7 - i, -2.0], k))
            for j in range(i):
                graph.add_factor([i, j], Potts(-inf, 0.0))
        return graph

    first = answer(costs(0), 0, method=method, max_iterations=12)
    assert answer(costs(-900), -900, method=method, max_iterations=12) == first
    assert answer(costs(700), 700, method=method, max_iterations=12) == first


def test_where_branch_and_bound_splits_does_not_depend_on_the_unit() -> None:
    cards = (9, 4, 6, 3, 8, 5)

    def bound(seed: int, k: int) -> float:
        rng = np.random.default_rng(seed)
        graph = FactorGraph(cards)
        for i, j in combinations(range(6), 2):  # all maxima are 0, and costs differ in size
            costs = rng.choice([0.05, 0.3, 2.0]) * rng.integers(0, 6, (cards[j], cards[i]))
            graph.add_factor([j, i], np.ldexp(-costs, k))
        return ldexp(solve(graph, "bnb", gap=0.0, max_iterations=20).bound, -k)

    for seed in range(50):
        assert bound(seed, -7) == bound(seed, 0) == bound(seed, 9)


def test_the_gap_and_the_unit() -> None:
    graph = FactorGraph([2, 3])
    graph.add_factor([0], [5.0, 1.0])
    graph.add_factor([1], [2.0, 2.0, -inf])  # one finite score: no step
    graph.add_factor([0, 1], [[3.0, 3.0, 2.5], [0.0, 0.0, -7.0]], weight=2.0)
    assert graph.model.unit == 1.0  # 2 * (3 - 2.5)
    result = solve(graph, "trws", max_iterations=1)
    assert result.unit == 1.0
    assert FactorGraph([2, 2]).model.unit == 0.0
    zero = solve(FactorGraph([2, 2]))
    assert (zero.is_optimal, zero.gap) == (True, 0.0)


def test_unit_where_weights_make_two_scores_one() -> None:
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[np.nextafter(3.0, 4.0), 3.0], [1.0, -7.0]], weight=0.1)
    assert 0.1 * np.nextafter(3.0, 4.0) == 0.1 * 3.0
    assert graph.model.unit == 0.1 * 3.0 - 0.1 * 1.0


# -- penalties, cancelling sums, overflow ------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("digits", [9, 20, 39])
def test_large_finite_penalties(method: str, digits: int) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([3] * 4)
        for i in range(4):
            graph.add_factor([i], rng.normal(size=3))
        for i, j in ((0, 1), (1, 2), (2, 3), (0, 3), (0, 2)):
            table = rng.normal(size=(3, 3))
            graph.add_factor([i, j], np.where(rng.random((3, 3)) < 0.3, -(10.0**digits), table))
        check(graph, solve(graph, method, max_iterations=40), exact_optimum(graph))


def test_auto_makes_penalties_hard_and_proves() -> None:
    rng = np.random.default_rng(5)
    n = 12
    graph = FactorGraph([4] * n)
    for i in range(n):
        graph.add_factor([i], rng.normal(size=4))
        for j in range(i):
            table = rng.normal(size=(4, 4)) * 0.1
            np.fill_diagonal(table, -1e20 if (i - j) % 4 else 0.0)
            graph.add_factor([i, j], table)
    result = solve(graph, time_limit=60)
    assert result.is_optimal


def test_a_score_is_right_however_much_cancels() -> None:
    graph = FactorGraph([1, 1, 1])
    for i, score in enumerate((1e40, 1.0, -1e40)):
        graph.add_factor([i], [score])
    graph.add_factor([0, 1], [[1e-20]])
    assert graph.score([0, 0, 0]) == 1.0
    graph.add_factor([0, 2], [[-1.0]])
    assert graph.score([0, 0, 0]) == 1e-20


@pytest.mark.parametrize("method", METHODS)
def test_bounds_are_above_optima_that_cancel(method: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([2, 3, 2])
        for scope in ([0, 1], [1, 2], [0, 2], [0, 1, 2]):
            shape = graph.cards[scope].tolist()
            graph.add_factor(scope, np.round(3 * rng.normal(size=shape)) * 1e12 + rng.normal(size=shape))
        check(graph, solve(graph, method, max_iterations=30, gap=0), exact_optimum(graph))


@pytest.mark.slow
@pytest.mark.parametrize("access", ["auto", "sorted", "dense"])
@pytest.mark.parametrize("sweep", ["on", "off"])
def test_certificates_are_above_optima_of_tables_that_cancel(access: str, sweep: str) -> None:
    """Large offsets, which all states share: what rounding takes from a factor, the sum of all does not show."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels, offset = int(rng.integers(3, 7)), 10.0 ** rng.integers(2, 9)
        graph = FactorGraph([labels] * 3)
        for i in range(3):
            graph.set_unary(i, rng.normal(size=labels))
        for i, sign in enumerate((-1, 1)):
            graph.add_factor([i, i + 1], 0.3 * rng.normal(size=(labels, labels)) + sign * offset)
        result = solve(graph, "gdmm", access=access, sweep=sweep, search="off", max_iterations=200, gap=0)
        check(graph, result, exact_optimum(graph))


@pytest.mark.parametrize("method", METHODS)
def test_bounds_are_above_optima_of_rounded_products(method: str) -> None:
    """A score is a weight times an entry, rounded: where most of it cancels, that is seen."""
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0], [0.3, -0.2])
    graph.add_factor([0, 1], np.full((2, 2), -1e22), weight=0.5)
    graph.add_factor([1, 2], np.full((2, 2), -1e22), weight=-0.3)
    graph.add_factor([0, 2], [[0.0, -5e21], [-5e21, 0.0]], weight=-0.3)
    for iterations in (1, 2, 40):
        check(graph, solve(graph, method, max_iterations=iterations), exact_optimum(graph))


@pytest.mark.parametrize("method", METHODS)
def test_bounds_are_above_optima_whose_last_digits_a_carry_has_lost(method: str) -> None:
    """Three equal terms round, the fourth makes the sum exact again: what stood in the carry meanwhile is gone."""
    graph = FactorGraph([2, 2])
    graph.add_factor([], -8.4e71)
    graph.set_unary(0, [3.3e109, 1.9e86])
    for _ in range(4):
        graph.add_factor([0, 1], [[1.1e71, 0.0], [2.3e160, 7e294]])
    result = solve(graph, method, max_iterations=40)
    check(graph, result, exact_optimum(graph))


@pytest.mark.parametrize("method", ["psdd", "ad3", "slabs"])
def test_unary_penalties_that_must_be_paid(method: str) -> None:
    """Methods that share unary scores out among factors: the shares add up to them only up to rounding."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([2] * 4)
        for i in range(4):
            graph.add_factor([i], -(10.0 ** rng.uniform(0, 15, 2)))
            for j in range(i):
                graph.add_factor([i, j], rng.normal(size=(2, 2)))
        check(graph, solve(graph, method, gap=0, max_iterations=40), exact_optimum(graph))


def test_offsets_that_were_large_once() -> None:
    """psdd's first steps are as large as the penalties, and what they have rounded away stays away."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([2, 3, 2])
        for scope in ([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]):
            shape = graph.cards[scope].tolist()
            scores = np.where(rng.random(shape) < 0.35, -(10.0 ** rng.uniform(0, 25, shape)), rng.normal(size=shape))
            graph.add_factor(scope, scores)
        check(graph, solve(graph, "psdd", gap=0, max_iterations=300), exact_optimum(graph))


def test_weights_too_small_for_single_precision() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([3] * 4)
        for i in range(4):
            graph.add_factor([i], rng.normal(size=3))
            for j in range(i):
                weight = float(rng.choice([1.0, 1e-60]))
                table = np.where(rng.random((3, 3)) < 0.3, -inf, rng.normal(size=(3, 3)))
                graph.add_factor([i, j], table / weight, weight=weight)
        check(graph, solve(graph, "trws", precision=2, max_iterations=30), exact_optimum(graph))


@pytest.mark.parametrize("method", ["auto", "bnb"])
def test_what_a_rounded_score_hides(method: str) -> None:
    """Penalties that every labeling pays: the optimum is not a double, and its nearest one is no bound."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = FactorGraph([2] * 4)
        for scope in ([0], [1], [0, 1], [1, 2], [2, 3], [0, 1, 3], [1, 3]):
            shape = graph.cards[scope].tolist()
            graph.add_factor(scope, np.where(rng.random(shape) < 0.5, -(10.0 ** (seed % 30)), rng.normal(size=shape)))
        best = exact_optimum(graph)
        assert best is not None
        check(graph, solve(graph, method, gap=0), best)
        at_it = solve(graph, method, gap=0, cutoff=float(best))
        assert at_it.bound is not None
        assert at_it.bound >= best


def test_sums_that_could_overflow_are_refused() -> None:
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], np.full((2, 2), -1e308))
    with pytest.raises(ModelError, match=r"factor over variables 1, 2: .*overflow"):
        graph.add_factor([1, 2], np.full((2, 2), -1e308))
    assert solve(graph).score == -1e308  # as if the second had never been given
    one = FactorGraph([2, 2])
    one.add_factor([0, 1], [[-8e307, 8e307], [0.0, 0.0]])
    assert solve(one).score == 8e307
    with pytest.raises(ModelError, match=r"factor over variables 0, 1: .*overflow"):
        one.set_unary(1, [0.0, 1.7e308])
    assert one.score([0, 1]) == 8e307  # nothing has changed


def test_a_refused_factor_is_named_by_its_variables() -> None:
    """Factors over one variable are folded: a number would be another one for who has counted them."""
    graph = FactorGraph([2] * 7)
    graph.add_factor([0], [0.0, 1.0])
    graph.add_factor([0, 1], np.zeros((2, 2)))
    with pytest.raises(ModelError, match=r"factor over variables 3, 2: weight 3 times its table overflows"):
        graph.add_factor([3, 2], [[1e308, 0.0], [0.0, 0.0]], weight=3.0)
    large = FactorGraph([2] * 7)
    large.add_factor([0], [0.0, 1.0])
    large.add_factor([6, 5, 4, 3, 2], np.full(32, -1.7e308))
    with pytest.raises(ModelError, match=r"factor over variables 5, 4, 3, 2, \.\.\.: .*overflow"):
        large.add_factor([5, 4, 3, 2, 1], np.full(32, -1.7e308))


@pytest.mark.parametrize("method", METHODS)
def test_differences_do_not_overflow(method: str) -> None:
    """The range of a table may be more than a double holds, if its weight is small."""
    graph = FactorGraph([1, 2, 2])
    graph.add_factor([1, 0], [[-inf], [0.0]], weight=0.3)
    graph.add_factor([2, 1], [[1.7e308, -1.7e308], [1.0, 1.0]], weight=0.25)
    check(graph, solve(graph, method, max_iterations=40), exact_optimum(graph))
    unweighted = FactorGraph([2, 2])  # 3.4e308 is no number: a gap in it could not be said
    unweighted.add_factor([0, 1], [[1.7e308, -1.7e308], [1.0, 1.0]])
    with pytest.raises(ModelError, match=r"factor over variables 0, 1: .*overflow"):
        solve(unweighted, method)
    apart = FactorGraph([2, 2])
    apart.add_factor([0], [0.0, 1e-290])
    apart.add_factor([0, 1], [[1e290, 0.0], [0.0, 1e290]])
    with pytest.raises(ModelError, match=r"variable 0 has .* too far apart"):
        solve(apart, method)
    lost = FactorGraph([2, 2])
    lost.add_factor([0, 1], [[1e-200, 0.0], [0.0, 1e200]])
    lost.add_factor([0, 1], [[1e-200, 1.0], [0.0, 1.0]], weight=1e-200)
    with pytest.raises(ModelError, match=r"factor over variables 0, 1: .*underflow"):
        solve(lost, method)


def test_searches_end_where_unweighted_differences_overflow() -> None:
    """Label scores that are no numbers were better than any, again and again."""
    table = [[8e307, 1.7e308, 8e307], [1e307, -1.7e308, 1.0], [1e307, -8e307, 0.0], [8e307, -8e307, 1.7e308]]
    for seed in range(10):
        graph = FactorGraph([3, 4, 2, 2])
        graph.add_factor([1], [1e307, -8e307, 0.0, 1e307])
        graph.add_factor([1, 0], table, weight=1e-200)
        for wanted in (np.eye(2), 1 - np.eye(2)):  # not both: the sum of the maxima proves nothing
            graph.add_factor([2, 3], 1e306 * wanted)
        result = solve(graph, "search", seed=seed, max_iterations=20, gap=0, time_limit=60)
        assert (result.status, result.score) == ("iteration_limit", 1e307 + 1e306)


@pytest.mark.parametrize("method", METHODS)
def test_the_weight_of_nothing_but_zeros_does_not_matter(method: str) -> None:
    graph = FactorGraph([2, 2, 2])
    graph.add_factor([0, 1], [[-1e60, 0.0], [3.0, 1e60]])
    graph.add_factor([1, 2], [[0.0, -inf], [0.0, 0.0]], weight=1e-300)
    assert solve(graph, method, max_iterations=40).score == 1e60


@pytest.mark.parametrize("method", METHODS)
def test_a_gap_that_is_reached_is_known(method: str) -> None:
    """Any gap will do, but there must be one: inf is also that of a missing bound or labeling."""
    for seed in range(4):
        with Solver(grid(3, 3, np.random.default_rng(seed)), method, gap=inf, max_iterations=30) as solver:
            for _ in range(40):
                status = solver.run(iterations=1)
                if status == "gap_reached":
                    assert solver.result().gap is not None
                if status != "running":
                    break
            assert status != "running"


# -- what is exact says so ---------------------------------------------------------------------------------------


def test_chains_and_trees_are_optimal() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        graph = FactorGraph([3] * n)
        for i in range(n):
            graph.add_factor([i], rng.normal(size=3))
            if i:
                graph.add_factor([int(rng.integers(i)) if seed % 2 else i - 1, i], rng.normal(size=(3, 3)))
        for method in ("auto", "bnb"):
            assert solve(graph, method, gap=0).is_optimal


@pytest.mark.parametrize("method", METHODS)
def test_cutoffs(method: str) -> None:
    rng = np.random.default_rng(1)
    graph = grid(3, 2, rng)
    best = solve(graph).score
    assert best is not None
    above = solve(graph, method, cutoff=best + 1e-3, max_iterations=30)
    assert above.labels is None
    assert above.score is None
    assert above.status in (
        ("infeasible",) if method in ("auto", "bnb") else ("infeasible", "iteration_limit", "converged")
    )
    assert above.bound is None or above.bound >= best
    assert all(point.score is None for point in above.trace)
    below = solve(graph, method, cutoff=best - 1e-3, max_iterations=30)
    assert below.score is None or below.score == best
    if method in ("auto", "bnb"):
        assert below.is_optimal


def test_gdmm_goes_on_where_its_search_has_ended() -> None:
    """Its trivial bound tells the search that nothing reaches the cutoff: there is no labeling, and no more to try."""
    graph = FactorGraph([2, 2])
    graph.add_factor([1], [1.5059018986129734e39] * 2)
    graph.add_factor([0, 1], [[-1.5059018986129734e39] * 2, [-1.5059018986129308e39] * 2])
    best = solve(graph, "gdmm", gap=0.0).score
    result = solve(graph, "gdmm", cutoff=1.125 * best, max_iterations=40, time_limit=60)
    assert result.status in ("infeasible", "converged", "iteration_limit")
    assert result.labels is None
    assert result.bound >= best


@pytest.mark.parametrize("seed", range(12))
def test_gaps_of_subnormal_scores_are_those_that_are_said(seed: int) -> None:
    """In the model's own unit the bound is finer than what can be said of it: a gap that was reached there is not
    one that callers can see."""
    rules = {"tiny_states": 0, "quick_work": 0, "quick_passes": 0}  # through presolve and parts
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 9)
    for i in range(9):
        for j in range(i + 1, 9):
            graph.add_factor([i, j], rng.integers(-3, 4, (3, 3)) * 5e-324)
    for gap in (0.05, 0.1, 0.2, 0.4, 0.8):
        result = solve(graph, gap=gap, max_iterations=3, rules=rules)
        assert result.status != "gap_reached" or (result.gap is not None and result.gap <= gap)


def test_entries_that_no_state_reads_do_not_count() -> None:
    """A Potts factor over single labels never differs: that its score for it vanishes under its weight is no matter."""
    graph = FactorGraph([1, 1, 2])
    graph.add_factor([0, 1], Potts(-6e141, 7e-278), weight=1e-300)
    graph.add_factor([2], np.array([1e258, -1e200]))
    result = solve(graph, gap=0)
    assert result.status == "optimal"
    assert result.score == 1e258


def test_a_node_that_rounding_keeps_open_is_split_the_same_way_in_every_unit():
    """What is left to close is below 0 there: a cost of that sign, beside a least one of 1, depended on the unit."""
    rng = np.random.default_rng(2082)
    tables = [np.where(rng.random((3, 3)) < 0.4, -1e14, rng.normal(size=(3, 3))) for _ in range(9)]
    scopes = [[int(v) for v in rng.choice(6, 2, replace=False)] for _ in tables]
    answers = set()
    for k in (0, -20, 60):
        graph = FactorGraph([3] * 6)
        for scope, table in zip(scopes, tables, strict=True):
            graph.add_factor(scope, np.ldexp(table, k))
        result = solve(graph, method="bnb", gap=0.0, threads=1)
        answers.add((result.status, ldexp(result.score, -k), ldexp(result.bound, -k)))
    assert len(answers) == 1
