"""TRW-S against a plain numpy twin, brute force and itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph
from fginfer.core.arrays import ABSDIFF, POTTS, SQDIFF, ModelArrays
from fginfer.core.door import lib

from .message_passing import Dense, ReferenceTrws, Solver, random_model


@pytest.mark.parametrize(
    ("seed", "labels", "mixed"), [(s, 6, True) for s in range(12)] + [(k, k, False) for k in range(2, 10)]
)
def test_agrees_with_the_reference(seed: int, labels: int, mixed: bool) -> None:
    model = random_model(np.random.default_rng(seed), n=9, labels=labels, edges=0.6, mixed=mixed)
    reference, solver = ReferenceTrws(model), Solver(model.arrays().build(), "trws", precision=1)
    best = model.score([int(np.argmax(u)) for u in model.unary])  # the labeling at hand before the first sweep
    for _ in range(30):
        reference.iterate()
        best = max(best, model.score(reference.labels))
        solver.run(iterations=1)
        if solver.info.status != lib.FGI_RUNNING:
            break
        assert solver.info.bound == pytest.approx(reference.bound, abs=1e-9)
        assert solver.info.score == pytest.approx(best, abs=1e-9)
        np.testing.assert_allclose(solver.messages(), reference.multipliers(), rtol=0, atol=1e-9)
        if best == model.score(reference.labels):
            np.testing.assert_array_equal(solver.labels[: len(model.cards)], reference.labels)


def test_reference_multipliers_certify_the_bound() -> None:
    model = random_model(np.random.default_rng(3), n=9, labels=5, edges=0.6)
    solver = Solver(model.arrays().build(), "trws").run(iterations=4)
    assert model.best() <= model.dual(solver.messages()) <= solver.info.bound + 1e-9


@given(
    seed=st.integers(0, 10**6),
    labels=st.integers(1, 5),
    edges=st.floats(0.1, 1.0),
    forbidden=st.sampled_from([0.0, 0.2, 0.6]),
)
@settings(max_examples=60, deadline=None)
def test_bound_optimum_score_and_monotony(seed: int, labels: int, edges: float, forbidden: float) -> None:
    model = random_model(np.random.default_rng(seed), n=6, labels=labels, edges=edges, forbidden=forbidden)
    best = model.best()
    solver, last = Solver(model.arrays().build(), "trws"), np.inf
    while solver.info.status == lib.FGI_RUNNING and solver.info.iterations < 60:
        solver.run(iterations=1)
        assert last >= solver.info.bound >= best - 1e-12
        assert solver.info.score <= best + 1e-12
        assert model.dual(solver.messages()) >= best - 1e-9
        last = solver.info.bound
    if solver.info.status == lib.FGI_INFEASIBLE:
        assert best == -np.inf


@pytest.mark.parametrize("seed", range(10))
def test_exact_on_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = [int(k) for k in rng.integers(1, 5, 8)]
    model = Dense(cards, [rng.normal(size=k) for k in cards])
    for j in range(1, 8):
        i = int(rng.integers(0, j))
        model.factors.append(
            ((i, j), rng.normal(size=(cards[i], cards[j])))
            if rng.random() < 0.5
            else ((j, i), rng.normal(size=(cards[j], cards[i])))
        )
    solver = Solver(model.arrays().build(), "trws").run(iterations=100)
    best = model.best()
    assert solver.info.status == lib.FGI_OPTIMAL
    assert solver.info.score == pytest.approx(best, abs=1e-12)
    assert solver.info.bound == pytest.approx(best, abs=1e-10)


KINDS = [(POTTS, 0.5, -1.0), (POTTS, -1.0, 0.5), (POTTS, 0.0, -np.inf), (POTTS, -np.inf, 0.0), (ABSDIFF, 0.7, np.inf)]
KINDS += [(ABSDIFF, 0.7, 2.0), (ABSDIFF, 0.0, 1.0), (SQDIFF, 0.2, np.inf), (SQDIFF, 0.5, 3.5), (SQDIFF, 0.0, np.inf)]


def implicit_at(kind: int, p0: float, p1: float, a: int, b: int) -> float:
    if kind == POTTS:
        return p0 if a == b else p1
    d = abs(a - b) if kind == ABSDIFF else (a - b) ** 2
    return -p0 * min(d, p1)


@pytest.mark.parametrize("cards", [[4, 6, 1, 5, 6, 3], [5] * 6, [12, 9, 1, 10, 15, 3]], ids=["mixed", "few", "many"])
@pytest.mark.parametrize(("kind", "p0", "p1"), KINDS)
def test_implicit_tables_equal_their_expansion(kind: int, p0: float, p1: float, cards: list[int]) -> None:
    rng = np.random.default_rng(1)
    pairs = [(0, 1), (2, 1), (3, 1), (3, 4), (0, 4), (5, 4), (5, 0)]
    weights = rng.uniform(0.5, 2, len(pairs))
    dense = Dense(cards, [rng.normal(size=k) for k in cards])
    for (i, j), w in zip(pairs, weights, strict=True):
        table = np.array([[implicit_at(kind, p0, p1, a, b) for b in range(cards[j])] for a in range(cards[i])])
        dense.factors.append(((i, j), w * table))
    implicit = ModelArrays(
        cards=np.array(cards, np.int32),
        unary=np.concatenate(dense.unary),
        table_kind=np.array([kind], np.int32),
        table_arity=np.array([2], np.int32),
        params=np.array([p0, p1]),
        factor_table=np.zeros(len(pairs), np.int32),
        factor_weight=weights,
        vars=np.array(pairs, np.int32).ravel(),
    )
    a, b = Solver(implicit.build(), "trws"), Solver(dense.arrays().build(), "trws")
    for _ in range(10):
        a.run(iterations=1)
        b.run(iterations=1)
        assert a.info.bound == pytest.approx(b.info.bound, abs=1e-10)
        assert a.info.score == pytest.approx(b.info.score, abs=1e-10)
    np.testing.assert_allclose(a.messages(), b.messages(), atol=1e-9)


def test_shared_weighted_transposed_tables_equal_copies() -> None:
    rng = np.random.default_rng(2)
    cards = [3, 4, 3, 4, 3, 4]
    table = rng.normal(size=(3, 4))
    pairs = [(0, 1), (3, 0), (2, 1), (3, 2), (4, 5), (5, 2), (1, 4)]
    transposed = [cards[i] == 4 for i, _ in pairs]
    weights = rng.uniform(0.5, 2, len(pairs))
    dense = Dense(cards, [rng.normal(size=k) for k in cards])
    dense.factors = [(p, w * (table.T if t else table)) for p, t, w in zip(pairs, transposed, weights, strict=True)]
    shared = ModelArrays(
        cards=np.array(cards, np.int32),
        unary=np.concatenate(dense.unary),
        table_arity=np.array([2], np.int32),
        dims=np.array([3, 4], np.int32),
        values=table.ravel(),
        factor_table=np.zeros(len(pairs), np.int32),
        factor_weight=weights,
        factor_transposed=np.array(transposed, np.uint8),
        vars=np.array(pairs, np.int32).ravel(),
    )
    a, b = Solver(shared.build(), "trws").run(iterations=7), Solver(dense.arrays().build(), "trws").run(iterations=7)
    np.testing.assert_allclose(a.messages(), b.messages(), atol=1e-12)
    assert a.info.bound == pytest.approx(b.info.bound, abs=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", ["grid", "chain"])
def test_rows_of_shared_tables_that_cannot_matter_are_left_out(shape: str, threads: int) -> None:
    """The same bits as with a copy of the table for every factor, by less work."""
    rng = np.random.default_rng(4)
    n, labels = 36, 200 if shape == "chain" else 40
    index = np.arange(n).reshape((6, 6) if shape == "grid" else (1, n))
    right, down = (index[:, :-1], index[:, 1:]), (index[:-1], index[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in (right, down)])
    edges[::3] = edges[::3, ::-1]
    table, unary = rng.normal(size=(labels, labels)), 9 * rng.normal(size=(n, labels))
    table[rng.random(table.shape) < 0.001] = -np.inf
    runs = []
    for tables in ([table], np.repeat(table[None], len(edges), 0)):
        graph = FactorGraph.from_arrays(
            np.full(n, labels), unary, edges, tables=tables, table_ids=np.arange(len(edges)) % len(tables)
        )
        solver = Solver(graph.snapshot(), "trws", precision=1, threads=threads).run(iterations=6)
        runs.append(solver)
    shared, copied = runs
    assert (shared.info.score, shared.info.bound) == (copied.info.score, copied.info.bound)
    np.testing.assert_array_equal(shared.messages(), copied.messages())
    assert shared.info.entries_touched < 0.9 * copied.info.entries_touched


@pytest.mark.parametrize("precision", [1, 2])
def test_slices_do_not_change_the_result(precision: int) -> None:
    model = random_model(np.random.default_rng(5), n=40, labels=12, edges=0.3).arrays().build()
    whole = Solver(model, "trws", precision=precision).run(iterations=20)
    by_iteration, by_time = (
        Solver(model, "trws", precision=precision),
        Solver(model, "trws", precision=precision, max_iterations=20),
    )
    for _ in range(20):
        by_iteration.run(iterations=1)
    while by_time.info.status == lib.FGI_RUNNING:
        by_time.run(seconds=0)
    for other in (by_iteration, by_time):
        assert other.info.bound == whole.info.bound
        assert other.info.score == whole.info.score
        np.testing.assert_array_equal(other.messages(), whole.messages())


def test_infeasible_is_proven() -> None:
    # Three variables, two labels, all different.
    table = np.where(np.eye(2) > 0, -np.inf, 0.0)
    chain = Dense([2, 2], [np.array([0.0, -np.inf]), np.array([0.0, -np.inf])], [((0, 1), table)])
    solver = Solver(chain.arrays().build(), "trws").run(iterations=10)
    assert solver.info.status == lib.FGI_INFEASIBLE
    assert solver.info.bound == -np.inf
    assert solver.labels is None
    forbidden = Dense([2, 2], [np.zeros(2), np.zeros(2)], [((0, 1), np.full((2, 2), -np.inf))])
    assert Solver(forbidden.arrays().build(), "trws").run(iterations=10).info.status == lib.FGI_INFEASIBLE


def test_forbidden_labels_propagate() -> None:
    # A chain of equalities with one end fixed: only one labeling is feasible.
    table = np.where(np.eye(3) > 0, 0.0, -np.inf)
    unary = [np.zeros(3) for _ in range(6)]
    unary[5] = np.array([-np.inf, 0.0, -np.inf])
    unary[0] = np.array([5.0, 0.0, 5.0])
    model = Dense([3] * 6, unary, [((i, i + 1), table) for i in range(5)])
    solver = Solver(model.arrays().build(), "trws").run(iterations=5)
    assert solver.info.status == lib.FGI_OPTIMAL
    assert list(solver.labels[:6]) == [1] * 6


def test_models_without_edges_or_variables() -> None:
    for cards, best in (([3, 1, 2], 2 + 0.25), ([], 0.25)):
        model = Dense(cards, [np.arange(k) * 1.0 - (k == 2) for k in cards], constant=0.25)
        solver = Solver(model.arrays().build(), "trws").run(iterations=3)
        assert solver.info.status == lib.FGI_OPTIMAL
        assert solver.info.score == best


def test_warm_start_continues_from_the_messages() -> None:
    model = random_model(np.random.default_rng(8), n=12, labels=4, edges=0.5)
    first = Solver(model.arrays().build(), "trws").run(iterations=50)
    mu = first.messages()
    second = Solver(model.arrays().build(), "trws")
    second.warm_start(mu)
    second.run(iterations=1)
    assert second.info.bound <= model.dual(mu) + 1e-9
    assert second.info.bound <= first.info.bound + 1e-9
    # Any multipliers will do: the first bound is at most their dual value.
    noise = np.random.default_rng(0).normal(size=len(mu))
    third = Solver(model.arrays().build(), "trws")
    third.warm_start(noise)
    third.run(iterations=1)
    assert model.best() <= third.info.bound <= model.dual(noise) + 1e-9
    noise[3] = np.nan
    with pytest.raises(Exception, match="not finite"):
        third.warm_start(noise)


def test_converges_and_says_so() -> None:
    # A frustrated triangle: the relaxation leaves a gap.
    table = np.where(np.eye(2) > 0, 0.0, 1.0)
    model = Dense([2] * 3, [np.zeros(2)] * 3, [(p, table) for p in ((0, 1), (1, 2), (0, 2))])
    solver = Solver(model.arrays().build(), "trws").run(iterations=1000)
    assert solver.info.status == lib.FGI_CONVERGED
    assert solver.info.bound == pytest.approx(3, abs=1e-9)
    assert solver.info.score == 2


@pytest.mark.parametrize("seed", range(5))
def test_single_precision_gives_valid_bounds_and_ends_in_double(seed: int) -> None:
    model = random_model(np.random.default_rng(seed), n=7, labels=5, edges=0.8, forbidden=0.05 * (seed % 2))
    best = model.best()
    exact = Solver(model.arrays().build(), "trws", precision=1).run(iterations=3000)
    single = Solver(model.arrays().build(), "trws", precision=2)
    while single.info.status == lib.FGI_RUNNING and single.info.iterations < 3000:
        single.run(iterations=1)
        assert single.info.bound >= best
    assert single.info.status == exact.info.status
    # Not the same path, so not quite the same fixed point; but both are converged.
    assert single.info.bound == pytest.approx(exact.info.bound, rel=1e-5)


def test_huge_scores_stay_in_double() -> None:
    model = random_model(np.random.default_rng(1), n=5, labels=3)
    model.factors = [(v, t * 1e60) for v, t in model.factors]
    solver = Solver(model.arrays().build(), "trws", precision=2).run(iterations=200)
    assert np.isfinite(solver.info.bound)
    assert solver.info.bound >= model.best()


def test_bounds_less_than_a_step_away_are_proofs_where_scores_are_whole() -> None:
    closed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        tables = [((i, j), rng.integers(-9, 10, (3, 3)).astype(float)) for j in range(5) for i in range(j)]
        model = Dense([3] * 5, [rng.integers(-9, 10, 3).astype(float) for _ in range(5)], tables)
        solver = Solver(model.arrays().build(), "trws").run(iterations=60)
        best, said = model.best(), solver.info.status == lib.FGI_OPTIMAL
        assert solver.info.bound >= best
        assert not said or solver.info.score == best
        relaxed = model.dual(solver.messages())
        if best + 0.01 < relaxed < best + 0.99 and solver.info.score == best:
            assert said
            closed += 1
    assert closed >= 5  # the messages alone prove nothing here
