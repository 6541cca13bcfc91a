"""Approximate marginals against enumeration: bounds hold, sums over everything are exact, limits are kept."""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fginfer import (
    FactorGraph,
    ModelError,
    Potts,
    SettingsError,
    SolverError,
    explain,
    marginals,
    max_marginals,
    sample,
)
from fginfer.approximate import Approximation
from fginfer.errors import Interrupted
from fginfer.gibbs import Averages, Block
from fginfer.log_z_above import Above
from fginfer.log_z_below import Below
from fginfer.sum_product import SumProduct


def random_graph(seed: int, forbidden: bool, scale: float) -> FactorGraph:
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, rng.integers(1, 7))
    graph = FactorGraph(cards)
    for _ in range(rng.integers(0, 10)):
        scope = rng.permutation(len(cards))[: rng.integers(0, min(3, len(cards)) + 1)]
        table = scale * rng.standard_normal(cards[scope])
        if forbidden and len(scope):
            table[rng.random(table.shape) < 0.2] = -np.inf
        graph.add_factor(scope, table, weight=float(rng.choice([1.0, 0.5])))
    return graph


def enumerated(graph: FactorGraph) -> tuple[float, np.ndarray]:
    states = np.array(list(itertools.product(*(range(k) for k in graph.cards))))
    scores = np.array([graph.score(x) for x in states])
    log_z = float(np.logaddexp.reduce(scores))
    with np.errstate(invalid="ignore"):
        p = np.exp(scores - log_z)
    rows = [[p[states[:, v] == a].sum() for a in range(k)] for v, k in enumerate(graph.cards)]
    return log_z, np.concatenate([np.zeros(0), *rows])


@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([0.1, 1.0, 8.0, 300.0]))
@example(19829, False, 1.0)
@settings(max_examples=60, deadline=None)
def test_log_z_is_between_the_bounds(seed: int, forbidden: bool, scale: float) -> None:
    graph = random_graph(seed, forbidden, scale)
    log_z, p = enumerated(graph)
    work = Approximation(graph, seed, None)
    if log_z == -np.inf:
        with pytest.raises(ModelError, match="no labeling"):
            work.run()
        return
    work.run()
    found = work.estimate()
    rounding = 1e-14 * max(1.0, abs(log_z))  # in the sum to compare with
    assert found.low <= log_z + rounding
    assert log_z - rounding <= found.high
    assert found.low <= found.log_z <= found.high
    flat = np.concatenate(found.variables)
    assert all(row.sum() == pytest.approx(1.0) for row in found.variables)
    if not forbidden:  # a chain of three labels a variable sees all there is
        assert np.abs(flat - p).max() < 0.25


@given(st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_messages_on_a_tree_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, 6)
    graph = FactorGraph(cards)
    for v in range(1, 6):
        parent = int(rng.integers(v))
        graph.add_factor([parent, v], 2 * rng.normal(size=(cards[parent], cards[v])))
    exact = marginals(graph)
    work = SumProduct(graph)
    work.run(500)
    assert work.converged
    assert work.log_z() == pytest.approx(exact.log_z, abs=1e-6)
    np.testing.assert_allclose(work.flat(), np.concatenate(exact.variables), atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_an_upper_bound_of_one_part_is_log_z_and_of_several_no_less(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    graph = FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 2)), 2 * rng.normal(size=(2, 2)))
    log_z = marginals(graph).log_z
    whole = Above(graph, seed)
    whole.run(1)
    assert log_z <= whole.bound <= log_z + 1e-9
    monkeypatch.setattr("fginfer.log_z_above.PART_MEMORY", 2000.0)
    forests = Above(graph, seed)
    forests.run(1)
    first = forests.bound
    forests.run(60)
    assert log_z <= forests.bound < first


@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([0.1, 1.0, 8.0]))
@settings(max_examples=60, deadline=None)
def test_mean_fields_are_below_log_z(seed: int, forbidden: bool, scale: float) -> None:
    graph, rng = random_graph(seed, forbidden, scale), np.random.default_rng(seed)
    log_z, p = enumerated(graph)
    outside = np.flatnonzero(rng.random(graph.n_variables) < 0.5).astype(np.int32)
    if log_z == -np.inf:
        return
    below = Below(graph, outside, p)
    below.run(4)
    assert below.bound <= log_z + 1e-12 * abs(log_z)
    if not len(outside):
        assert below.bound == pytest.approx(log_z, abs=1e-9)


def test_mean_fields_raise_the_bound() -> None:
    graph = wide(4, 5)
    exact = marginals(graph)
    first = Below(graph, np.arange(12, dtype=np.int32), np.concatenate(exact.variables))
    first.run(1)
    after = Below(graph, np.arange(12, dtype=np.int32), np.concatenate(exact.variables))
    after.run(30)
    assert exact.log_z - 8.0 < first.bound < after.bound < exact.log_z


def test_every_joint_label_of_a_cut_set_adds_up_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fginfer.gibbs.BLOCK_MEMORY", 1500.0)
    rng = np.random.default_rng(3)
    graph = FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 2)), 0.3 * rng.normal(size=(2, 2)))
    exact = marginals(graph)
    work = Averages(graph, graph.snapshot(), np.zeros(16, np.int32), 0)
    assert all(len(block.cut) for block in work.blocks)
    work.run(400, float("inf"))
    best: Block = max(work.blocks, key=lambda block: block.log_z_low)
    assert exact.log_z - 0.01 <= best.log_z_low <= exact.log_z + 1e-9
    np.testing.assert_allclose(best.mean, np.concatenate(exact.variables), atol=0.01)
    np.testing.assert_allclose(work.probabilities(), np.concatenate(exact.variables), atol=0.1)


def wide(seed: int, side: int = 40) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return FactorGraph.grid((side, side), rng.normal(size=(side, side, 3)), rng.normal(size=(3, 3)))


def test_a_wide_model_within_its_time() -> None:
    graph = wide(0)
    start = time.monotonic()
    found = marginals(graph, approximate=True, time_limit=1.5, evidence={0: 2})
    assert time.monotonic() - start < 10  # generous, since the machine may be busy
    assert not found.exact
    assert -np.inf < found.log_z_low <= found.log_z <= found.log_z_high < np.inf
    assert found.variables[0].tolist() == [0.0, 0.0, 1.0]
    assert len(found.variables) == 1600


def test_where_elimination_fits_it_is_exact() -> None:
    graph = wide(1, 6)
    assert marginals(graph, approximate=True).exact
    assert marginals(graph, approximate=True, time_limit=60.0).log_z == marginals(graph).log_z


def test_a_seed_has_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = wide(2, 16)
    monkeypatch.setattr("fginfer.approximate.SWEEPS", 3)
    monkeypatch.setattr("fginfer.approximate.EVALUATIONS", 3)
    one, two, other = (_estimate(graph, seed) for seed in (5, 5, 6))
    assert (one.low, one.high, one.log_z) == (two.low, two.high, two.log_z)
    assert other.low != one.low


def _estimate(graph: FactorGraph, seed: int):
    work = Approximation(graph, seed, None)
    work.run()
    return work.estimate()


def test_a_cutoff_leaves_sums_and_maxima_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = wide(3, 3)
    exact, best = marginals(graph), max_marginals(graph)
    graph.cutoff = best.score + 1.0  # a solve says infeasible
    assert marginals(graph).log_z == exact.log_z
    assert (sample(graph, 50, method="gibbs").labels < graph.cards).all()

    def refuse(*_: object) -> None:
        raise SolverError("too wide")

    monkeypatch.setattr(sys.modules["fginfer.marginals"], "probabilities", refuse)
    monkeypatch.setattr(sys.modules["fginfer.max_marginals"], "best_scores", refuse)
    about, bounds = marginals(graph, approximate=True), max_marginals(graph)
    assert about.log_z_low <= exact.log_z <= about.log_z_high
    assert bounds.score - 1e-9 <= best.score <= bounds.bound + 1e-9
    for low, real, high in zip(bounds.low, best.variables, bounds.high, strict=True):
        assert ((low - 1e-9 <= real) & (real <= high + 1e-9)).all()


def test_bad_settings() -> None:
    with pytest.raises(SettingsError, match="approximate"):
        marginals(FactorGraph([2]), approximate="yes")
    with pytest.raises(SettingsError, match="time_limit"):
        marginals(FactorGraph([2]), time_limit=1.0)
    with pytest.raises(SettingsError, match="time_limit"):
        marginals(FactorGraph([2]), approximate=True, time_limit=-1.0)
    with pytest.raises(SettingsError, match="seed"):
        marginals(FactorGraph([2]), approximate=True, seed=-1)


# -- Ctrl-C keeps what was found -------------------------------------------------------------------------------


def interrupt(monkeypatch: pytest.MonkeyPatch, target: str, after: int) -> None:
    """The call of this number of a method is a Ctrl-C."""
    module, name = target.rsplit(".", 1)
    import importlib

    owner = getattr(importlib.import_module(module.rsplit(".", 1)[0]), module.rsplit(".", 1)[1])
    real, calls = getattr(owner, name), [0]

    def call(*args, **kwargs):
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def test_ctrl_c_keeps_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = wide(0, 30)
    interrupt(monkeypatch, "fginfer.gibbs.Block.draw", 3)
    with pytest.raises(Interrupted) as stop:
        marginals(graph, approximate=True, time_limit=30.0, evidence={1: 0})
    found = stop.value.found
    assert found.variables[1].tolist() == [1.0, 0.0, 0.0]
    assert found.log_z <= found.log_z_high < np.inf


def test_ctrl_c_keeps_max_marginals(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = wide(0, 30)
    interrupt(monkeypatch, "fginfer.intervals.Intervals._lower_high", 1)
    with pytest.raises(Interrupted) as stop:
        max_marginals(graph, [0])
    found = stop.value.found
    assert (found.low[0] <= found.high[0]).all()
    assert found.score > -np.inf


def test_ctrl_c_keeps_what_contradicts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = FactorGraph([2] * 9)
    for v in range(9):
        graph.add_factor([v, (v + 1) % 9], [[-np.inf, 0.0], [0.0, -np.inf]])
    graph.add_factor([0, 4], Potts(0.0, -np.inf))
    interrupt(monkeypatch, "fginfer.explain._Search._ask", 3)
    with pytest.raises(Interrupted) as stop:
        explain(graph)
    assert stop.value.found.infeasible
    assert not stop.value.found.minimal
    assert 1 <= len(stop.value.found.factors) <= 10
