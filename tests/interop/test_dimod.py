"""Models of dimod in and out, and fginfer as its sampler, against dimod's own exact solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import FactorGraph, ModelError, Potts, SettingsError

dimod = pytest.importorskip("dimod")

from fginfer.interop import DimodSampler, from_dimod, to_dimod  # noqa: E402

NUMBERS = st.sampled_from([-2.5, -1.0, 0.0, 0.1, 0.3, 1.0, 1e6, 1e-9])


@st.composite
def quadratic(draw: st.DrawFn):
    n = draw(st.integers(0, 5))
    names = draw(st.sampled_from([list(range(n)), list("badce")[:n], [(1, k) for k in range(n)]]))
    linear = {v: draw(NUMBERS) for v in names}
    pairs = [p for p in itertools.combinations(names, 2) if draw(st.booleans())]
    vartype = draw(st.sampled_from(["BINARY", "SPIN"]))
    return dimod.BinaryQuadraticModel(linear, {p: draw(NUMBERS) for p in pairs}, draw(NUMBERS), vartype)


def states(bqm):
    values = (-1, 1) if bqm.vartype is dimod.SPIN else (0, 1)
    return [dict(zip(bqm.variables, s, strict=True)) for s in itertools.product(values, repeat=bqm.num_variables)]


@given(quadratic())
@settings(max_examples=100, deadline=None)
def test_energies_are_minus_the_scores_both_ways(bqm) -> None:
    graph = from_dimod(bqm)
    back = to_dimod(graph, bqm.vartype.name)
    assert back.num_variables == bqm.num_variables
    for state in states(bqm):
        labels = [int(x == 1) for x in state.values()]
        energy = bqm.energy(state)
        assert -graph.score(labels) == pytest.approx(energy, rel=1e-12, abs=1e-8)
        again = dict(zip(back.variables, state.values(), strict=True))
        assert back.energy(again) == pytest.approx(energy, rel=1e-12, abs=1e-8)


@given(quadratic(), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_samples_are_the_best_in_order(bqm, reads: int) -> None:
    exact = sorted(bqm.energy(state) for state in states(bqm))
    found = DimodSampler().sample(bqm, num_reads=reads)
    assert found.vartype is bqm.vartype
    assert len(found) == min(reads, len(exact))
    energies = sorted(found.record.energy.tolist())
    assert energies == pytest.approx(exact[: len(energies)], rel=1e-12, abs=1e-8)
    assert found.info["bound"] <= exact[0] + 1e-8 * max(1.0, abs(exact[0]))
    assert len({tuple(sample.items()) for sample in found.samples()}) == len(found)


def test_it_is_a_sampler_to_dimod() -> None:
    sampler = DimodSampler()
    assert isinstance(sampler, dimod.Sampler)
    best = sampler.sample_ising({"a": 1.0}, {("a", "b"): -1.0}, seed=1, time_limit=5.0)
    assert (best.first.sample, best.first.energy, best.info["status"]) == ({"a": -1, "b": -1}, -2.0, "optimal")
    assert sampler.sample_qubo({(0, 0): -1.0, (0, 1): 2.0}).first.sample == {0: 1, 1: 0}
    assert dimod.TrackingComposite(sampler).sample_qubo({(0, 0): 1.0}).first.energy == 0.0
    assert len(sampler.sample_qubo({(0, 0): 1.0}, cutoff=-1.0)) == 0  # none has an energy below


def test_discrete_models_come_in() -> None:
    rng = np.random.default_rng(0)
    dqm = dimod.DiscreteQuadraticModel()
    for name, cases in (("a", 2), ("b", 3), ("c", 4)):
        dqm.add_variable(cases, name)
        dqm.set_linear(name, rng.normal(size=cases))
    for u, v in (("b", "a"), ("a", "c"), ("c", "b")):
        for i, j in itertools.product(range(dqm.num_cases(u)), range(dqm.num_cases(v))):
            dqm.set_quadratic_case(u, i, v, j, rng.normal())
    dqm.offset = 2.5
    graph = from_dimod(dqm)
    for labels in itertools.product(range(2), range(3), range(4)):
        energy = dqm.energy(dict(zip("abc", labels, strict=True)))
        assert -graph.score(labels) == pytest.approx(energy)
    assert list(graph.names.named([0, 0, 0])) == ["a", "b", "c"]


def test_what_is_not_quadratic_is_refused() -> None:
    for graph, said in (
        (FactorGraph([2, 3]), "variable 1 does not have two labels"),
        (with_factor([0, 1, 2], np.zeros((2, 2, 2))), "over 3 variables"),
        (with_factor([0, 1], [[0.0, -np.inf], [0.0, 0.0]]), "forbidden"),
    ):
        with pytest.raises(ModelError, match=said):
            to_dimod(graph)
    clause = FactorGraph([2] * 9)
    clause.add_clause([(i, 1) for i in range(9)])
    with pytest.raises(ModelError, match="constraint"):
        to_dimod(clause)
    limited = FactorGraph([2])
    limited.cutoff = 0.0
    with pytest.raises(ModelError, match="cutoff"):
        to_dimod(limited)
    with pytest.raises(SettingsError, match="vartype"):
        to_dimod(FactorGraph([2]), "TERNARY")
    with pytest.raises(ModelError, match="BinaryQuadraticModel"):
        from_dimod({"a": 1})
    with pytest.raises(ModelError, match="finite"):
        from_dimod(dimod.BinaryQuadraticModel({"a": np.nan}, {}, 0.0, "BINARY"))
    with pytest.raises(ModelError, match="two variables '1'"):
        from_dimod(dimod.BinaryQuadraticModel({1: 1.0, "1": 2.0}, {}, 0.0, "BINARY"))
    with pytest.raises(SettingsError, match="num_reads"):
        DimodSampler().sample_qubo({(0, 0): 1.0}, num_reads=0)


def with_factor(scope, table) -> FactorGraph:
    graph = FactorGraph([2, 2, 2])
    graph.add_factor(scope, table)
    return graph


def test_names_go_out() -> None:
    graph = FactorGraph(variables={"x": 2, "y": 2})
    graph.add_factor(["x", "y"], Potts(0.0, -1.0))
    assert to_dimod(graph, "SPIN") == dimod.BinaryQuadraticModel({"x": 0, "y": 0}, {("x", "y"): -0.5}, 0.5, "SPIN")
