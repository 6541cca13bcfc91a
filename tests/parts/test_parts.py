"""A model in parts: bounds, scores and answers against brute force and against the undivided model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import AbsDiff, FactorGraph, ModelError, Potts, SettingsError, SolverError, solve
from fginfer.core.arrays import ModelArrays
from fginfer.parts.crew import SLICED, PartsLost, SerialCrew
from fginfer.parts.plan import PartsPlan
from fginfer.parts.seams import Seams, numbers_of
from fginfer.parts.shard import Shard
from fginfer.parts.solver import PartsSolver
from fginfer.parts.split import Cut, by_growth, cuts_of, grid_shape, owners_of


@st.composite
def models(draw, most_arity: int = 3) -> tuple[FactorGraph, list[int]]:
    """A small model with tables of any kind, some states forbidden, and the part of each variable."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 6))
    cards = rng.integers(1, 4, n)
    graph = FactorGraph(cards)
    scale = draw(st.sampled_from([1.0, 1e-200, 3e150]))
    forbids = draw(st.booleans())
    for _ in range(draw(st.integers(0, 8))):
        scope = rng.choice(n, min(n, int(rng.integers(0, most_arity + 1))), replace=False)
        table = rng.normal(size=tuple(cards[scope])) * scale
        if forbids and table.size > 1:
            table[rng.random(table.shape) < 0.15] = -np.inf
        graph.add_factor(scope.tolist(), table)
    if n > 1 and draw(st.booleans()):
        graph.add_factor([0, 1], AbsDiff(scale, 2.0), weight=float(rng.random() + 0.1))
    parts = draw(st.integers(1, n))
    owner = np.append(np.arange(parts), rng.integers(0, parts, n - parts))
    return graph, rng.permutation(owner).tolist()


def optimum(graph: FactorGraph) -> float:
    return max(graph.score(list(x)) for x in product(*(range(c) for c in graph.cards)))


@settings(max_examples=150, deadline=None)
@given(models(), st.integers(1, 30), st.sampled_from(["trws", "gdmm", "auto"]))
def test_bound_is_above_the_optimum_and_score_below(model, rounds: int, method: str) -> None:
    graph, owner = model
    best = optimum(graph)
    try:
        result = solve(graph, method, parts=owner, max_iterations=rounds, gap=0.0)
    except SolverError:  # magnitudes that are too far apart
        assert method == "gdmm"
        return
    assert result.bound is None or result.bound >= best
    if result.labels is not None:
        assert result.score == graph.score(result.labels) <= best
    if result.status == "optimal":
        assert result.score >= best - 1e-12 * max(abs(best), result.unit)
    if result.status == "infeasible":
        assert best == -np.inf


@settings(max_examples=60, deadline=None)
@given(models())
def test_scores_of_parts_add_up(model) -> None:
    graph, owner = model
    cut = Cut(ModelArrays.of_model(graph.snapshot().plain()), owners_of(ModelArrays.of_model(graph.snapshot()), owner))
    crew = SerialCrew(cut.n_parts, cut.shard, {})
    parts = [crew.part(p) for p in range(cut.n_parts)]
    facts = [part.facts() for part in parts]
    assert Seams(facts).n_variables == graph.n_variables
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = np.array([rng.integers(c) for c in graph.cards], np.int32)
        total = sum(part.score_of(x[numbers_of(f)]) for part, f in zip(parts, facts, strict=True))
        assert total == pytest.approx(graph.score(x), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(models(), st.integers(0, 2**32))
def test_multipliers_sum_to_zero(model, seed: int) -> None:
    graph, owner = model
    arrays = ModelArrays.of_model(graph.snapshot().plain())
    cut = Cut(arrays, owners_of(arrays, owner))
    crew = SerialCrew(cut.n_parts, cut.shard, {})
    facts = [crew.part(p).facts() for p in range(cut.n_parts)]
    seams, rng = Seams(facts), np.random.default_rng(seed)
    for _ in range(4):
        beliefs = [rng.normal(size=int(f.cards.sum())) * f.largest for f in facts]
        for b in beliefs:
            b[rng.random(len(b)) < 0.1] = -np.inf
        seams.step(beliefs)
    seams.counts = seams.counts  # checks that they sum to 0
    total = {}
    for p, f in enumerate(facts):
        at = np.cumsum([0, *f.cards])
        for k, v in enumerate(f.border.tolist()):
            total[v] = total.get(v, 0) + seams.multipliers(p)[at[k] : at[k + 1]]
    assert all((x == 0).all() for x in total.values())


def grid(labels: int, shape: tuple[int, ...] = (16, 18), seed: int = 0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return FactorGraph.grid(shape, rng.normal(size=(*shape, labels)), Potts(0, -0.8))


@pytest.mark.parametrize(("labels", "parts"), [(2, 2), (2, 5), (4, 4)])
def test_a_grid_has_the_bound_of_the_undivided_relaxation(labels: int, parts: int) -> None:
    graph = grid(labels)
    whole = solve(graph, "trws", gap=0.0)
    apart = solve(graph, parts=parts, gap=0.0)
    assert apart.bound == pytest.approx(whole.bound, rel=1e-5)
    assert apart.score >= whole.score - 0.02 * abs(whole.score)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6))
def test_a_tree_is_solved(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    edges = [[int(rng.integers(max(0, i - 8), i)), i] for i in range(1, n)]
    graph = FactorGraph.from_arrays([3] * n, rng.normal(size=(n, 3)), edges, tables=rng.normal(size=(n - 1, 3, 3)))
    whole = solve(graph)
    apart = solve(graph, parts=parts, gap=0.0)
    assert apart.bound == pytest.approx(whole.score, rel=1e-5)
    assert apart.score == pytest.approx(whole.score, rel=1e-5)


def test_the_answer_depends_on_parts_alone() -> None:
    graph = grid(4)
    answers = [solve(graph, parts=4, max_iterations=40, threads=t, gap=0.0) for t in (1, 2, 3)]
    assert len({(r.score, r.bound, r.iterations, r.labels.tobytes()) for r in answers}) == 1


@pytest.mark.parametrize("method", ["gdmm", "auto"])
def test_other_methods_work_on_parts(method: str) -> None:
    rng = np.random.default_rng(3)
    graph = FactorGraph.grid((14, 14), rng.normal(size=(14, 14, 4)), Potts(0, -1.2))
    whole, relaxed = solve(graph), solve(graph, "trws", gap=0.0)
    most = {"gdmm": 40, "auto": 500}[method]
    answers = [solve(graph, method, parts=2, max_iterations=most, threads=t, gap=1e-5) for t in (1, 2)]
    assert answers[0].labels.tobytes() == answers[1].labels.tobytes()
    assert answers[0].bound == answers[1].bound >= whole.score
    if method == "auto":  # parts solved for themselves close most of the gap that their relaxation leaves
        assert answers[0].bound - whole.score < 0.3 * (relaxed.bound - whole.score)
    else:
        assert answers[0].bound <= relaxed.bound + 2e-3 * abs(relaxed.bound)


@pytest.mark.parametrize(("method", "lost_after"), [("trws", 3), ("trws", 110), ("gdmm", 35), ("auto", 380)])
def test_the_answer_after_a_fault_is_the_one_without(monkeypatch, tmp_path, method: str, lost_after: int) -> None:
    """Also where steps along subgradients and proofs of parts are sized by what was found."""
    graph = FactorGraph.grid((14, 14), np.random.default_rng(3).normal(size=(14, 14, 4)), Potts(0, -1.2))
    settings = {"gap": 0.0, "max_iterations": lost_after + (60 if lost_after == 110 else 8)}
    plain = solve(graph, method, parts=2, **settings)
    wait, rounds = SerialCrew.wait, []

    def lose(crew: SerialCrew, seconds: float):
        if crew._ask.what in SLICED:
            rounds.append(1)
            if len(rounds) == lost_after:
                crew._parts.clear()
                raise PartsLost
        return wait(crew, seconds)

    monkeypatch.setattr(SerialCrew, "wait", lose)
    with PartsSolver(
        graph, PartsPlan(2, checkpoint=str(tmp_path), keep_every=64 if lost_after > 64 else 32), method, **settings
    ) as solver:
        bounds = []
        solver.run(callback=lambda p: bounds.append(p.bound or np.inf) and False)
        later = solver.result()
    assert later.statistics["faults"] == 1
    assert bounds == sorted(bounds, reverse=True)  # nothing that was known is lost
    assert (later.bound, later.score, later.iterations) == (plain.bound, plain.score, plain.iterations)
    assert later.labels.tobytes() == plain.labels.tobytes()


def test_limits_callbacks_and_offers() -> None:
    graph = grid(4, (40, 40))
    seen = []
    result = solve(graph, parts=4, callback=lambda p: seen.append(p) or p.iterations >= 3, gap=0.0)
    assert result.status == "interrupted"
    assert seen
    assert result.bound >= result.score
    assert result.method == "parts"
    assert result.trace[-1].bound == result.bound
    assert solve(graph, parts=4, max_iterations=5).iterations == 5
    assert solve(graph, parts=4, time_limit=0.05).status in ("time_limit", "converged")
    start = solve(graph, "trws", gap=0.0)
    later = solve(graph, parts=4, max_iterations=1, warm_start=start)
    assert later.score >= start.score


def test_constraints_evidence_and_names() -> None:
    graph = FactorGraph(variables={"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]})
    graph.add_factor(["a", "b"], [[0, 1], [2, 0]])
    graph.add_factor(["b", "c"], [[0, 1], [2, 0]])
    graph.add_at_most(1, [("a", "y"), ("b", "y"), ("c", "y")])
    result = solve(graph, parts=2, gap=0.0)
    best = optimum(graph)
    assert result.bound >= best
    assert result.labels is None or graph.score(result.labels) <= best
    given_ = solve(graph, parts=2, evidence={1: 0})
    assert given_.labels is None or given_["b"] == "x"


def test_constraints_across_parts() -> None:
    """The auxiliary variables of a constraint go where its own are, and strips widen until all of it holds."""
    n, rng = 60, np.random.default_rng(0)
    chain = [[i, i + 1] for i in range(n - 1)]
    graph = FactorGraph.from_arrays([3] * n, rng.normal(size=(n, 3)), chain, tables=[Potts(0, -0.3)])
    graph.add_at_most(n // 5, [(i, 1) for i in range(n)])
    best = solve(graph)
    for parts in (4, [i * 4 // n for i in range(n)]):
        result = solve(graph, parts=parts, max_iterations=60)
        assert result.score == graph.score(result.labels) <= best.score + 1e-9
        assert result.score >= best.score - 0.02 * abs(best.score)
        assert result.bound >= best.score
    graph.add_cardinality([(i, 0) for i in range(n)], [0.0] * (n // 2) + [-1e6] * (n - n // 2 + 1))
    assert solve(graph, parts=2, max_iterations=3).bound >= solve(graph).score
    with pytest.raises(SettingsError, match="the part of each"):
        solve(graph, parts=[0, 1])


def test_a_score_at_the_cutoff_is_not_above_it() -> None:
    graph = grid(3, (6, 6))
    best = solve(graph)
    result = solve(graph, parts=3, cutoff=best.score, max_iterations=40, gap=0.0)
    assert result.labels is None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=3), st.integers(1, 7))
def test_grids_are_recognised_and_cut(shape: list[int], parts: int) -> None:
    n = int(np.prod(shape))
    graph = FactorGraph.grid(tuple(shape), np.zeros((*shape, 2)), Potts(0, -1))
    found = grid_shape(ModelArrays.of_model(graph.snapshot()))
    if found is not None:
        assert np.prod(found) == n
        assert tuple(s for s in found if s > 1) == tuple(s for s in shape if s > 1)
    if parts <= n:
        owner = owners_of(ModelArrays.of_model(graph.snapshot()), parts)
        assert owner.shape == (n,)
        assert set(owner.tolist()) == set(range(int(owner.max()) + 1))
    assert np.prod(cuts_of((100, 100), parts)) == parts


def test_growth_gives_balanced_parts_with_few_shared_variables() -> None:
    rng = np.random.default_rng(0)
    n = 400
    edges = np.array([[i, (i + d) % n] for i in range(n) for d in (1, 3)])
    order = rng.permutation(n)
    graph = FactorGraph.from_arrays([2] * n, None, order[edges], tables=[Potts(0, -1)])
    owner = by_growth(ModelArrays.of_model(graph.snapshot()), 4)
    sizes = np.bincount(owner)
    assert len(sizes) == 4
    assert sizes.max() <= 1.2 * n / 4
    assert (owner[order[edges]][:, 0] != owner[order[edges]][:, 1]).sum() < 60


def test_wrong_settings() -> None:
    graph = grid(2)
    for parts, words in ((0, "from 1 to"), (10**6, "from 1 to"), ([0, 1], "part of each"), ("many", "number of parts")):
        with pytest.raises(SettingsError, match=words):
            solve(graph, parts=parts)
    with pytest.raises(SettingsError, match="no variable is in part 1"):
        solve(graph, parts=[0] * 287 + [2])
    with pytest.raises(SettingsError, match="solved by trws, gdmm, auto, not by"):
        solve(graph, "bp", parts=2)
    with pytest.raises(SettingsError, match="say how many with parts"):
        solve(graph, checkpoint="folder")
    with pytest.raises(SettingsError, match="unknown option 'rho'"):
        solve(graph, parts=2, rho=0.1)
    with pytest.raises(ModelError, match="border must name"):
        Shard.of(graph, range(288), [900])
