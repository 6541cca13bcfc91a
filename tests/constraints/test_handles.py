"""Handles, names, new weights, removals and new variables; bad calls leave a graph as it was."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer import AbsDiff, Automaton, FactorGraph, FormatError, ModelError, Potts, read, solve, write
from fginfer.cli import main


def every_score(graph: FactorGraph) -> dict[Any, float]:
    return {x: graph.score(x) for x in product(*(range(int(k)) for k in graph.cards))}


@st.composite
def factor_lists(draw: Any) -> Any:
    out = []
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["constant", "unary", "dense", "potts", "difference", "clause"]))
        weight = draw(st.sampled_from([1.0, 2.0, -1.0, 0.0, 0.5]))
        table: Any = {
            "constant": 2.0,
            "unary": [1.0, -3.0],
            "dense": draw(st.sampled_from([[[1.0, 2.0], [0.0, 4.0]], [[0.0, 1.0], [5.0, -2.0]]])),
            "potts": Potts(1.0, -1.0),
            "difference": AbsDiff(2.0, 1.0),
            "clause": None,
        }[kind]
        scope = {"constant": [], "unary": [draw(st.integers(0, 2))]}.get(kind, draw(st.permutations(range(3)))[:2])
        out.append((scope, table, abs(weight) if table is None else weight))
    return out


def add(graph: FactorGraph, scope: list[int], table: Any, weight: float) -> Any:
    if table is None:
        handle = graph.add_clause([(v, 1) for v in scope], penalty=3.0)
        graph.set_weight(handle, weight)
        return handle
    return graph.add_factor(scope, table, weight=weight)


@settings(max_examples=150, deadline=None)
@given(factor_lists(), st.lists(st.tuples(st.integers(0, 6), st.sampled_from([None, 0.0, 1.0, -2.0, 3.0])), max_size=6))
def test_changes_by_handle_are_the_graph_built_anew(given: Any, changes: Any) -> None:
    graph, now = FactorGraph([2, 2, 2]), [list(f) for f in given]
    handles = [add(graph, *f) for f in given]
    for k, weight in changes:
        if k >= len(given) or now[k] is None:
            continue
        if weight is None:
            graph.remove_factor(handles[k])
            now[k] = None
        else:
            weight = abs(weight) if now[k][1] is None else weight
            graph.set_weight(handles[k], weight)
            now[k][2] = weight
    fresh = FactorGraph([2, 2, 2])
    for f in now:
        if f is not None:
            add(fresh, *f)
    assert every_score(graph) == every_score(fresh)
    assert graph.n_factors == fresh.n_factors
    assert solve(graph).score == solve(fresh).score


def test_names_copies_and_foreign_handles() -> None:
    graph = FactorGraph([2, 2])
    prior = graph.add_factor([0], [0.0, 1.0], name="prior")
    clause = graph.add_clause([(0, 0), (1, 0)], name="both")
    assert repr(clause) == "<Handle: factor 1 'both'>"
    with pytest.raises(ModelError, match="already a factor named 'prior'"):
        graph.add_clause([(0, 0)], name="prior")
    with pytest.raises(ModelError, match="must be a text"):
        graph.add_factor([1], [0.0, 1.0], name=3)  # type: ignore[arg-type]
    assert graph.n_factors == 2
    for other in (graph.copy(), pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        other.remove_factor(clause)
        other.set_weight("prior", 4)
        assert other.score([1, 1]) == 4.0
        late = other.add_factor([1], [0.0, 1.0])
        graph.add_factor([1], [0.0, 0.0])
        with pytest.raises(ModelError, match="no handle of this graph"):
            graph.set_weight(late, 2.0)
    with pytest.raises(ModelError, match="no handle of this graph"):
        FactorGraph([2]).remove_factor(prior)
    graph.set_unary(0, [5.0, 0.0])
    with pytest.raises(ModelError, match="no longer in the graph"):
        graph.set_weight(prior, 2.0)
    with pytest.raises(ModelError, match="no factor named 'prior'"):
        graph.remove_factor("prior")
    graph.remove_factor("both")
    with pytest.raises(ModelError, match="no longer in the graph"):
        graph.remove_factor(clause)
    with pytest.raises(ModelError, match="by its handle or its name"):
        graph.remove_factor(3)  # type: ignore[arg-type]


def test_a_handle_of_a_shared_table_follows_it() -> None:
    graph = FactorGraph([2, 2])
    mine = graph.add_table([[1.0, 0.0], [0.0, 1.0]])
    tie = graph.add_factor([0, 1], mine, weight=-1.0)
    graph.set_weight(tie, 2.0)
    graph.set_table(mine, [[7.0, 0.0], [0.0, 0.0]])
    assert graph.score([0, 0]) == 14.0
    graph.set_weight(tie, -1.0)
    assert graph.score([0, 0]) == -7.0


@pytest.mark.parametrize("start", [[], [2, 3]])
def test_variables_may_come_late(start: list[int]) -> None:
    graph = FactorGraph(start)
    for k in range(40):
        v = graph.add_variable(2, name=f"v{k}")
        graph.add_factor([f"v{k}"], [0.0, 1.0])
        if k:
            graph.add_factor([v - 1, v], Potts(0.0, 0.5))
        if k == 20:
            assert graph.score([0] * graph.n_variables) == 0.0  # builds the model
    late = graph.add_variable(["no", "yes"])
    graph.add_implication(("v0", 1), (late, "yes"))
    result = solve(graph)
    assert result.score == solve_by_hand()
    assert len(result.labels) == len(start) + 41 == graph.n_variables
    assert graph.unary("v7").tolist() == [0.0, 1.0]
    for bad in (0, -1, True, 2.5, "ab", [], ["a", "a"], None):
        with pytest.raises(ModelError):
            graph.add_variable(bad)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="two variables 'v3'"):
        graph.add_variable(2, name="v3")
    assert graph.n_variables == len(start) + 41
    assert graph.cards.tolist() == start + [2] * 41


def solve_by_hand() -> float:
    """Forty variables that score 1 at label 1, and neighbours that score 0.5 where they differ."""
    best = [0.0, 1.0]
    for _ in range(39):
        best = [max(best[0], best[1] + 0.5), 1.0 + max(best[1], best[0] + 0.5)]
    return max(best)


huge = 10**400
BAD: dict[str, tuple[Callable[[FactorGraph], Any], str]] = {
    "negative k": (lambda g: g.add_at_most(-1, [(0, 1)]), "0 or more, not -1"),
    "real k": (lambda g: g.add_at_least(1.5, [(0, 1)]), "whole"),
    "a flag for k": (lambda g: g.add_at_most(True, [(0, 1)]), "whole"),
    "limits": (lambda g: g.add_between(3, 2, [(0, 1)]), "lower limit 3 is above the upper limit 2"),
    "linear limits": (lambda g: g.add_linear([(0, 1)], [1], 0.5, 0.25), "above the upper limit"),
    "no limit": (lambda g: g.add_linear([(0, 1)], [1]), "needs a lower limit"),
    "unknown name": (lambda g: g.add_clause([("snow", 1)]), "'snow'"),
    "unknown label name": (lambda g: g.add_clause([("rain", "maybe")]), "no label 'maybe'"),
    "variable out of range": (lambda g: g.add_clause([(3, 0)]), "refers to variable 3; there are 3"),
    "label out of range": (lambda g: g.add_clause([(2, 3)]), "label 3 of variable 'x' is out of range 0..2"),
    "negative label": (lambda g: g.add_clause([(2, -1)]), "out of range"),
    "no literal": (lambda g: g.add_clause([5]), "a literal is"),
    "long literal": (lambda g: g.add_clause([(0, 1, True, 1)]), "a literal is"),
    "text for a flag": (lambda g: g.add_clause([(0, 1, "no")]), "a literal is"),
    "literals no list": (lambda g: g.add_clause(7), "must be a list"),
    "weights": (lambda g: g.add_budget([(0, 1)], [1, 2], 1), "1 literals need as many weights, not 2"),
    "weight nan": (lambda g: g.add_budget([(0, 1)], [float("nan")], 1), "must be finite"),
    "weight inf": (lambda g: g.add_budget([(0, 1)], [inf], 1), "must be finite"),
    "weight text": (lambda g: g.add_budget([(0, 1)], ["1"], 1), "must be a number"),
    "overflow": (lambda g: g.add_budget([(0, 1)], [huge], 1, penalty=1.0, per_unit=True), "overflows"),
    "penalty": (lambda g: g.add_clause([(0, 1)], penalty=-1), ">= 0"),
    "penalty inf": (lambda g: g.add_clause([(0, 1)], penalty=inf), "finite"),
    "per unit": (lambda g: g.add_at_most(1, [(0, 1)], per_unit=True), "needs a penalty"),
    "when": (lambda g: g.add_at_most(1, [(0, 1)], when=(9, 0)), "refers to variable 9"),
    "counts": (lambda g: g.add_cardinality([(0, 1)], [1.0]), "1 literals need 2 scores"),
    "score inf": (lambda g: g.add_cardinality([(0, 1)], [inf, 0.0]), "finite or -inf"),
    "twice": (lambda g: g.add_all_different([0, 0]), "names variable 'rain' twice"),
    "nobody": (lambda g: g.add_all_different([]), "needs a variable"),
    "price": (lambda g: g.add_all_different([0, 1], price=-2), ">= 0"),
    "gcc limits": (lambda g: g.add_global_cardinality([0, 1], [1, 0], [0, 0]), "label 0 has the lower limit 1"),
    "gcc labels": (lambda g: g.add_global_cardinality([0, 1], {7: 1}, {}), "no label 7"),
    "gcc negative": (lambda g: g.add_global_cardinality([0, 1], {0: -1}, {}), "0 or more"),
    "automaton": (lambda g: g.add_regular([0], [(0, 0, 0)]), "takes an Automaton"),
    "automaton state": (lambda g: g.add_regular([0], Automaton([(-1, 0, 0)], [0])), "0 or more"),
    "automaton score": (lambda g: g.add_regular([0], Automaton([(0, 0, 0, inf)], [0])), "finite or -inf"),
    "states": (lambda g: g.add_sparse([0, 1], [[0]], 1.0), "rows of 2 labels"),
    "state range": (lambda g: g.add_sparse([0, 1], [[0, 2]], 1.0), "out of range"),
    "state twice": (lambda g: g.add_sparse([0, 1], [[0, 1], [0, 1]], 1.0), "listed twice"),
    "state scores": (lambda g: g.add_sparse([0, 1], [[0, 1]], [1.0, 2.0]), "need as many scores"),
    "weight of a constraint": (lambda g: g.set_weight("first", -1.0), "0 or more"),
    "weight overflow": (lambda g: g.set_weight("first", 1e308), "overflows"),
    "weight no number": (lambda g: g.set_weight("first", "2"), "finite number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_say_why_and_change_nothing(case: str) -> None:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "wet": 2, "x": 3})
    graph.add_clause([("rain", "yes"), (1, 0)], penalty=10.0, name="first")
    before, rules, count = every_score(graph), graph.rules, graph.n_factors
    call, text = BAD[case]
    with pytest.raises(ModelError) as error:
        call(graph)
    assert text in str(error.value)
    assert "\n" not in str(error.value)
    assert (every_score(graph), graph.rules, graph.n_factors) == (before, rules, count)
    graph.add_clause([(2, 2)])
    assert graph.score([1, 0, 2]) == 0.0


def test_what_cannot_hold_constraints_refuses_by_name(tmp_path: Path) -> None:
    graph = FactorGraph([3, 3, 3, 3])
    graph.add_all_different([0, 1, 2])
    graph.add_at_most(1, [(v, 0) for v in range(4)])
    for call in (graph.to_arrays, graph.snapshot, lambda: graph.to_networkx("markov")):
        with pytest.raises(ModelError, match=r"constraints \(all different, at most\)"):
            call()
    for name in ("m.uai", "m.cfn", "m.wcsp", "m.h5"):
        with pytest.raises(FormatError, match="no place for constraints"):
            write(graph, tmp_path / name)
        assert not (tmp_path / name).exists()
    write(graph, tmp_path / "m.cfn", lower=True)
    tables = read(tmp_path / "m.cfn")
    assert tables.n_variables >= 4
    assert solve(tables).score == solve(graph).score
    there_and_back = FactorGraph.from_networkx(graph.to_networkx())
    assert every_score(there_and_back) == every_score(graph)


def test_commands_know_constraints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = FactorGraph(variables={"a": 3, "b": 3, "c": 3})
    graph.add_all_different(["a", "b", "c"])
    graph.add_factor(["a"], [0.0, 0.0, 5.0])
    path, solution = tmp_path / "m.npz", tmp_path / "m.MPE"
    write(graph, path)
    assert main(["solve", str(path), "--out", str(solution), "--quiet"]) == 0
    assert main(["check", str(path), str(solution)]) == 0
    solution.write_text("MPE\n3 0 0 1\n")
    capsys.readouterr()
    assert main(["check", str(path), str(solution)]) == 20
    assert "(all different)" in capsys.readouterr().out
    assert main(["info", str(path)]) == 0
    assert "1 all different" in capsys.readouterr().out
    assert main(["convert", str(path), str(tmp_path / "m.wcsp")]) == 3
    assert "--lower" in capsys.readouterr().err
    assert main(["convert", str(path), str(tmp_path / "m.uai"), "--lower"]) == 0


def test_descriptions_count_constraints() -> None:
    graph = FactorGraph([2] * 6)
    graph.add_clause([(0, 1), (1, 1)])
    graph.add_clause([(2, 1), (3, 1)], penalty=1.0)
    d = graph.describe()
    assert d.rules == {"clause": 2}
    assert (d.constraints, d.components, d.forest, d.submodular) == (1, 4, True, None)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_constraints_in_files_are_refused(seed: int, tmp_path: Path) -> None:
    from fginfer.rules.files import rules_from_json, rules_to_json

    graph = FactorGraph([2, 3])
    graph.add_at_most(1, [(0, 1), (1, 2)], penalty=2.0)
    graph.add_all_different([0, 1])
    graph.add_regular([0, 1], Automaton([(0, 0, 0)], [0]))
    graph.add_sparse([0, 1], [[0, 1]], 1.0)
    text = rules_to_json(graph.rules)
    rng = np.random.default_rng(seed)
    for _ in range(400):
        at = int(rng.integers(len(text)))
        damaged = text[:at] + chr(int(rng.integers(32, 127))) + text[at + int(rng.integers(0, 3)) :]
        try:
            rules = rules_from_json(damaged, [2, 3])
        except ModelError:
            continue
        for rule in rules:
            for x in product(range(2), range(3)):
                assert rule.score([x[v] for v in rule.variables]) < inf
