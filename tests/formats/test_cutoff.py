"""The bound on the total cost in .cfn and .wcsp: a cutoff, which is about totals and survives being written."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph, solve

METHODS = ["auto", "bnb", "trws", "gdmm", "slabs"]


def network(bound: str, *functions: str) -> str:
    body = ", ".join(f'"f{k}": {text}' for k, text in enumerate(functions))
    return (
        f'{{"problem": {{"name": "p", "mustbe": "{bound}"}}, "variables": {{"x": 2, "y": 2}}, "functions": {{{body}}}}}'
    )


def save(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("method", METHODS)
def test_negative_costs_pay_for_a_cost_above_the_bound(tmp_path: Path, method: str) -> None:
    unary, pair = "{scope: [x], costs: [1, 6]}", "{scope: [x, y], costs: [0, 0, -5.5, -5.2]}"
    graph = fginfer.read(save(tmp_path, "m.cfn", network("<5.0", unary, pair)))
    result = solve(graph, method)
    assert result.is_optimal
    assert result.energy == 0.5


def test_maximising_with_a_constant_below_the_bound(tmp_path: Path) -> None:
    functions = (
        "{scope: [], costs: [-6.0]}",
        "{scope: [x], costs: [1.0, 0.5]}",
        "{scope: [y], costs: [1.0, 0.5]}",
        "{scope: [x, y], costs: [-1.0, 0.5, -2.0, 5.5]}",
    )
    graph = fginfer.read(save(tmp_path, "m.cfn", network(">-5.0", *functions)))
    result = solve(graph)
    assert (result.status, result.score, graph.cutoff) == ("optimal", 0.5, -5.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("bound", "feasible"), [(4, False), (5, False), (6, True)])
def test_a_total_at_the_bound_is_infeasible(tmp_path: Path, method: str, bound: int, feasible: bool) -> None:
    # no labeling costs less than 5: 2 or 3 for each variable, 1 for different labels
    text = f"p 2 2 3 {bound}\n2 2\n1 0 0 2\n0 2\n1 3\n1 1 0 2\n0 3\n1 2\n2 0 1 1 2\n0 0 0\n1 1 0\n"
    result = solve(fginfer.read(save(tmp_path, "m.wcsp", text)), method)
    assert result.status == ("optimal" if feasible else "infeasible")
    assert (result.labels is None) == (not feasible)
    assert result.bound is not None
    assert result.bound >= -5


@pytest.mark.parametrize("method", ["auto", "edac", "trws"])
def test_a_decimal_total_at_the_bound_is_infeasible(tmp_path: Path, method: str) -> None:
    """The doubles next to 0.1 and 0.7 add up to less than the one next to 0.8, and are rounded to that, or less."""
    below = network("<0.8", "{scope: [x], costs: [0.1, 0.3]}", "{scope: [y], costs: [0.7, 0.9]}")
    assert solve(fginfer.read(save(tmp_path, "m.cfn", below)), method).status == "infeasible"
    above = network(">-0.8", "{scope: [x], costs: [-0.1, -0.3]}", "{scope: [y], costs: [-0.7, -0.9]}")
    assert solve(fginfer.read(save(tmp_path, "m.cfn", above)), method).status == "infeasible"
    fine = network("<0.9", "{scope: [x], costs: [0.1, 0.3]}", "{scope: [y], costs: [0.7, 0.9]}")
    result = solve(fginfer.read(save(tmp_path, "m.cfn", fine)), method)
    assert result.is_optimal
    assert result.energy == pytest.approx(0.8)


def test_a_written_bound_has_the_decimals_of_the_costs(tmp_path: Path) -> None:
    """toulbar2 works with as many decimals as the bound has."""
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[-0.25, -1.125], [0.0, -7.0]])
    graph.cutoff = -5.0
    fginfer.write(graph, tmp_path / "m.cfn")
    assert '"mustbe": "<5.000"' in (tmp_path / "m.cfn").read_text()


def test_a_bound_that_no_total_reaches_is_no_cutoff(tmp_path: Path) -> None:
    text = "p 2 2 2 6\n2 2\n1 0 0 1\n0 2\n1 1 0 1\n0 3\n"
    assert fginfer.read(save(tmp_path, "m.wcsp", text)).cutoff == -math.inf


def feasible_scores(graph: FactorGraph) -> dict[tuple[int, ...], float]:
    labelings = product(*(range(int(k)) for k in graph.cards))
    return {x: s for x in labelings if (s := graph.score(x)) > max(graph.cutoff, -math.inf)}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_feasible_survives_being_written(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from(["npz", "wcsp", "cfn"]))
    low, high = (-6, 0) if suffix == "wcsp" else (-6, 6)
    score = st.one_of(st.integers(low, high).map(float), st.just(-math.inf))
    graph = FactorGraph([2, 3])
    for variables in ([0], [1], [0, 1], [1, 0]):
        shape = tuple(int(graph.cards[v]) for v in variables)
        graph.add_factor(
            variables, np.array(data.draw(st.lists(score, min_size=math.prod(shape), max_size=math.prod(shape))))
        )
    graph.cutoff = data.draw(st.integers(-20, 10)) + data.draw(st.sampled_from([0.0, 0.5]))
    path = tmp_path_factory.mktemp("cutoff") / f"m.{suffix}"
    fginfer.write(graph, path)
    again = fginfer.read(path)
    assert feasible_scores(again) == feasible_scores(graph)
    if suffix == "npz":
        assert again.cutoff == graph.cutoff


@pytest.mark.parametrize("name", ["m.uai", "m.LG.gz", "m.h5"])
def test_formats_without_a_place_for_it_refuse_it(tmp_path: Path, name: str) -> None:
    graph = FactorGraph([2])
    graph.add_factor([0], [-1.0, -1.0])
    graph.cutoff = -0.5
    assert solve(graph).status == "infeasible"
    with pytest.raises(fginfer.FormatError, match=r"cutoff .*-0\.5.*\.wcsp, \.cfn, \.npz have one"):
        fginfer.write(graph, tmp_path / name)
    assert not list(tmp_path.iterdir())
    fginfer.write(graph, tmp_path / name, drop_cutoff=True)
    assert fginfer.read(tmp_path / name).cutoff == -math.inf
    assert graph.cutoff == -0.5


def test_a_cutoff_is_a_number() -> None:
    graph = FactorGraph([2])
    for wrong in (math.inf, math.nan):
        with pytest.raises(fginfer.ModelError, match="cutoff"):
            graph.cutoff = wrong
        with pytest.raises(fginfer.SettingsError, match="cutoff"):
            solve(graph, cutoff=wrong)
