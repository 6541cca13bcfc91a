"""Calls that a newcomer gets wrong: each is refused with a sentence that says what to give instead."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FginferError, Potts, Solver, plots, solve

GRAPH = FactorGraph.grid((3, 4), np.random.default_rng(3).normal(size=(3, 4, 3)), Potts(0, -0.7))

WRONG = {
    "evidence as a list": (lambda: solve(GRAPH, evidence=[1, 2]), "evidence must be a dict"),
    "evidence out of range": (lambda: solve(GRAPH, evidence={0: 7}), "label 7, out of range 0..2"),
    "a callback that cannot be called": (lambda: solve(GRAPH, callback=3), "callback must be a function"),
    "an option of another method": (lambda: solve(GRAPH, "trws", rho=1.0), "'rho' for .* trws; there are precision"),
    "an option of a method without any": (lambda: solve(GRAPH, "icm", damping=0.5), "'damping' .* it has none"),
    "a solver of a file": (lambda: Solver("model.uai"), "takes a FactorGraph, not str; fginfer.read reads"),
    "iterations in words": (lambda: Solver(GRAPH).run(iterations="5"), "iterations must be a whole number"),
    "one graph for many": (lambda: fginfer.solve_many(GRAPH), "takes a list of graphs; solve takes one"),
    "workers in words": (lambda: fginfer.solve_many([GRAPH], workers="2"), "workers must be a whole number"),
    "marginals of a number": (lambda: fginfer.marginals(7), "takes a FactorGraph or the name of a model file, not int"),
    "memory in words": (lambda: fginfer.marginals(GRAPH, memory="1GB"), "memory must be a positive number of bytes"),
    "write, turned round": (lambda: fginfer.write("model.uai", GRAPH), "takes a FactorGraph, then the name of a file"),
    "write_solution, turned round": (lambda: fginfer.write_solution("x.MPE", [0, 1]), "then the name of a file"),
    "a folder": (lambda: fginfer.read("/"), "/: is a folder"),
    "a number for a networkx graph": (lambda: FactorGraph.from_networkx(3), "takes a networkx graph, not int"),
    "unary scores of another grid": (
        lambda: FactorGraph.grid((3, 3), np.zeros((2, 2, 2)), Potts(0, -1)),
        r"shape \(3, 3, labels\), not \(2, 2, 2\)",
    ),
    "a picture of no trace": (lambda: plots.plot_trace(solve(GRAPH, trace=False)), "auto has no trace"),
    "a picture of another shape": (lambda: plots.plot_labels(solve(GRAPH), (3, 3)), "12 labels do not fill"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_told_what_to_do(name: str) -> None:
    call, says = WRONG[name]
    with pytest.raises(FginferError, match=says):
        call()


def test_a_result_is_written_as_its_labels_are(tmp_path) -> None:
    result = solve(GRAPH)
    fginfer.write_solution(result, tmp_path / "a.MPE")
    fginfer.write_solution(result.labels, tmp_path / "b.MPE")
    assert (tmp_path / "a.MPE").read_text() == (tmp_path / "b.MPE").read_text()
    assert np.array_equal(fginfer.read_solution(tmp_path / "a.MPE", GRAPH), result.labels)
    nothing = solve(GRAPH, cutoff=1e6)
    with pytest.raises(FginferError, match="no labeling to write"):
        fginfer.write_solution(nothing, tmp_path / "c.MPE")


def test_markov_graphs_come_back() -> None:
    triple = FactorGraph([2, 3, 2])
    triple.add_factor([], 0.25)
    triple.add_factor([0], [0.5, -0.5])
    triple.add_factor([0, 1, 2], np.arange(12.0).reshape(2, 3, 2), weight=0.3)
    triple.add_factor([2, 0], Potts(0, -1))
    markov = triple.to_networkx("markov")
    assert isinstance(markov, networkx.Graph)
    assert sorted(markov.edges) == [(0, 1), (0, 2), (1, 2)]
    back = FactorGraph.from_networkx(markov)
    for labels in np.ndindex(2, 3, 2):
        assert back.score(labels) == pytest.approx(triple.score(labels))
