"""Names of variables and labels: given, used, kept by files, and absent where there are none."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError, ModelError, Result
from fginfer.cli import main
from fginfer.names import Names


def weather() -> FactorGraph:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3, "wet": ["dry", "wet"]})
    graph.add_factor(["rain", "wet"], [[0.5, 0.0], [0.0, 2.0]])
    graph.add_factor(["floor"], [0.0, 0.25, 0.0])
    return graph


def test_names_do_wherever_numbers_do():
    graph = weather()
    same = FactorGraph([2, 3, 2])
    same.add_factor([0, 2], [[0.5, 0.0], [0.0, 2.0]])
    same.add_factor([1], [0.0, 0.25, 0.0])
    assert graph.score([1, 1, 1]) == same.score([1, 1, 1])
    assert graph.unary("floor").tolist() == [0.0, 0.25, 0.0]
    graph.set_unary("floor", [1.0, 0.0, 0.0])
    assert graph.unary(1).tolist() == [1.0, 0.0, 0.0]
    assert (graph.variable("wet"), graph.label("wet", "dry"), graph.label(2, 1)) == (2, 0, 1)


def test_results_have_names():
    result = fginfer.solve(weather())
    assert (result["rain"], result["floor"], result[2]) == ("yes", 1, "wet")
    assert result.named() == {"rain": "yes", "floor": 1, "wet": "wet"}
    assert result.to_dict()["named"] == result.named()
    assert "rain=yes" in repr(result)
    given = fginfer.solve(weather(), evidence={"rain": "no", 1: 2})
    assert given.named() == {"rain": "no", "floor": 2, "wet": "dry"}
    assert given.score == weather().score([0, 2, 0])


def test_every_method_hands_names_on():
    for method in fginfer.available_methods():
        graph = weather()
        assert fginfer.solve(graph, method, max_iterations=3).names == graph.names


def test_conditioned_graphs_keep_the_names_that_are_left():
    left = weather().condition({"floor": 0}).graph
    assert left.names == Names.of({0: "rain", 1: "wet"}, {0: ["no", "yes"], 1: ["dry", "wet"]})


def test_a_graph_without_names_holds_none():
    graph = FactorGraph([2] * 5)
    assert graph.names is None
    assert fginfer.solve(graph).names is None
    assert "named" not in fginfer.solve(graph).to_dict()
    assert fginfer.solve(graph).named() == {0: 0, 1: 0, 2: 0, 3: 0, 4: 0}
    with pytest.raises(ModelError, match="no variable 'rain': the variables of this graph have no names"):
        graph.variable("rain")


def test_naming_later_changes_neither_copies_nor_results():
    graph = weather()
    copy, result = graph.copy(), fginfer.solve(graph)
    graph.name("floor", "storey", ["ground", "first", "second"])
    assert graph.label("storey", "second") == 2
    assert copy.variable("floor") == 1
    assert result["floor"] == 1
    assert pickle.loads(pickle.dumps(graph)).names == graph.names


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda g: g.name(0, "wet"), "two variables 'wet': 2 and 0"),
        (lambda g: g.name(0, ""), "not empty"),
        (lambda g: g.name(0, 7), "must be a text"),
        (lambda g: g.name(1, "x", ["a", "b"]), "variable 1 has 3 labels, and 2 names"),
        (lambda g: g.name(1, "x", ["a", "a", "b"]), "two labels 'a'"),
        (lambda g: g.name(1, "x", "abc"), "a list of names"),
        (lambda g: g.name(9, "x"), "no variable 9; there are 3"),
        (lambda g: g.name("rian", "x"), "no variable 'rian'; did you mean 'rain'"),
        (lambda g: g.add_factor(["rain", "west"], np.zeros((2, 2))), "no variable 'west'"),
        (lambda g: g.condition({"rain": "maybe"}), "variable 'rain' has no label 'maybe'; there are 'no', 'yes'"),
        (lambda g: g.condition({"floor": "first"}), "labels of variable 'floor' have no names"),
        (lambda g: g.condition({"rain": "no", 0: 1}), "variable 'rain' two labels"),
        (lambda g: g.condition({"rain": 2}), "variable 'rain' label 2, out of range"),
        (lambda g: fginfer.solve(g)["nothing"], "no variable 'nothing'"),
        (lambda g: fginfer.solve(g)[3], "no variable 3; there are 3"),
        (lambda g: FactorGraph([2], variables={"a": 2}), "cards or variables, not both"),
        (lambda g: FactorGraph(variables=["a"]), "a dict of names"),
        (lambda g: FactorGraph(variables={"a": 0}), "between 1 and"),
        (lambda g: FactorGraph(), "takes cards"),
    ],
)
def test_wrong_names_are_refused_and_change_nothing(wrong, message: str):
    graph = weather()
    before = graph.names.to_json()
    with pytest.raises(ModelError, match=message):
        wrong(graph)
    assert graph.names.to_json() == before


NAMED = {"a variable, 1": ["0", "1", "2"], "ζ": 2, "1": ["x", "y"], "p": 2, "q": ["7", "8"]}


def odd_names() -> FactorGraph:
    """Names that are numbers of others, labels that are numbers of others, and a table of more than three variables."""
    graph = FactorGraph(variables=NAMED)
    rng = np.random.default_rng(5)
    graph.add_factor([2, 0], np.round(rng.normal(size=(2, 3)), 3))
    graph.add_factor([0, 1, 2, 3], -np.round(rng.uniform(size=(3, 2, 2, 2)), 1))
    graph.add_factor([4], [0.5, 0.25])
    return graph


@pytest.mark.parametrize("name", ["m.cfn", "m.npz", "m.cfn.gz", "m.npz.xz"])
def test_files_keep_names(name: str, tmp_path: Path):
    graph = odd_names()
    fginfer.write(graph, tmp_path / name)
    again = fginfer.read(tmp_path / name)
    assert again.names == graph.names
    for labels in np.ndindex(*graph.cards):
        assert again.score(labels) == graph.score(labels)


def test_a_cfn_with_some_names(tmp_path: Path):
    graph = FactorGraph([2, 2, 2])
    graph.name(2, "x0", ["a", "b"])
    graph.add_factor([0, 2], [[0.0, -1.0], [-2.0, -3.0]])
    fginfer.write(graph, tmp_path / "m.cfn")
    again = fginfer.read(tmp_path / "m.cfn")
    assert [again.names.variable(i) for i in range(3)] == ["x0_", "x1", "x0"]
    assert again.score([1, 0, 0]) == -2.0
    graph.name(1, 'with "quotes"')
    with pytest.raises(FormatError, match="has no quotes"):
        fginfer.write(graph, tmp_path / "n.cfn")
    assert not (tmp_path / "n.cfn").exists()


def test_saved_results_keep_names(tmp_path: Path):
    result = fginfer.solve(weather())
    result.save(tmp_path / "r.npz")
    assert Result.load(tmp_path / "r.npz").named() == result.named()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"variables": 3, "labels": []}',
        '{"variables": [[0, 1]], "labels": []}',
        '{"variables": [[7, "a"]], "labels": []}',
        '{"variables": [[true, "a"]], "labels": []}',
        '{"variables": [[0, "a"], [1, "a"]], "labels": []}',
        '{"variables": [], "labels": [[0, ["a"]]]}',
        '{"variables": [], "labels": [[0, "ab"]]}',
        "[" * 100_000,
    ],
)
def test_damaged_names_are_refused(text: str):
    with pytest.raises(ModelError, match="the names are no good"):
        Names.from_json(text, [2, 2], 2)


def test_commands_use_names(tmp_path: Path, capsys):
    graph = weather()
    graph.add_factor(["rain", "wet"], [[0.0, -np.inf], [0.0, 0.0]])
    graph.add_factor(["wet"], [0.0, 0.0])
    path = str(tmp_path / "m.cfn")
    fginfer.write(graph, path)

    def run(*args: str) -> str:
        main(list(args))
        out = capsys.readouterr()
        return out.out + out.err

    assert json.loads(run("solve", path, "--json", "--quiet"))["named"] == {"rain": "yes", "floor": 1, "wet": "wet"}
    assert "rain=no floor=2 wet=dry" in run("solve", path, "--quiet", "--given", "rain=no", "--given", "1=2")
    assert "no label 'perhaps'" in run("solve", path, "--quiet", "--given", "rain=perhaps")
    assert "takes VARIABLE=LABEL" in run("solve", path, "--quiet", "--given", "rain")
    assert "contradicts" in run("solve", path, "--quiet", "--given", "rain=no", "--given", "0=1")
    assert "names            rain (no, yes), floor, wet (dry, wet)" in run("info", path)
    assert json.loads(run("info", path, "--json"))["names"]["wet"] == ["dry", "wet"]
    fginfer.write_solution([0, 0, 1], tmp_path / "s.MPE")
    answer = run("check", path, str(tmp_path / "s.MPE"), "--given", "rain=yes")
    assert "variables 'rain', 'wet': labels 'no', 'wet' are forbidden together" in answer
    assert "evidence: variable 'rain' has label 'no', not 'yes'" in answer


def forecast() -> FactorGraph:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3})
    graph.add_factor(["rain", "floor"], np.log([[0.1, 0.2, 0.1], [0.3, 0.1, 0.2]]))
    return graph


def test_marginals_are_asked_by_name() -> None:
    graph = forecast()
    found = fginfer.marginals(graph)
    assert found["rain"] == pytest.approx({"no": 0.4, "yes": 0.6})
    assert found["floor"] == found[1] == pytest.approx({0: 0.4, 1: 0.3, 2: 0.3})
    assert list(found.named()) == ["rain", "floor"]
    given = fginfer.marginals(graph, evidence={"rain": "yes"})
    assert given["rain"] == {"no": 0.0, "yes": 1.0}
    assert given["floor"][0] == pytest.approx(0.5)
    assert fginfer.marginals(graph, approximate=True).named().keys() == {"rain", "floor"}
    assert fginfer.marginals(FactorGraph([2])).named() == {0: pytest.approx({0: 0.5, 1: 0.5})}
    with pytest.raises(ModelError, match="there is no variable 'rian'; did you mean 'rain'"):
        found["rian"]
    with pytest.raises(ModelError, match="nothing is known of variable 2; 2 were asked for"):
        found[2]
    with pytest.raises(TypeError, match="its arrays are in `variables`"):
        list(found)


def test_max_marginals_are_asked_by_name() -> None:
    found = fginfer.max_marginals(forecast(), variables=["floor"])
    assert found["floor"] == pytest.approx(dict(enumerate(np.log([0.3, 0.2, 0.2]))))
    assert list(found.named()) == ["floor"]
    with pytest.raises(ModelError, match="nothing is known of variable 'rain'; 1 were asked for"):
        found["rain"]


def test_samples_have_names() -> None:
    drawn = fginfer.sample(forecast(), 5, seed=1, evidence={"rain": "yes"})
    assert drawn.named() == [{"rain": "yes", "floor": int(row[1])} for row in drawn.labels]


def test_labelings_by_name() -> None:
    graph = forecast()
    assert graph.score({"floor": 2, "rain": "yes"}) == graph.score([1, 2]) == -graph.energy({0: 1, 1: 2})
    result = fginfer.solve(graph)
    assert graph.score(result.named()) == result.score
    for labels, message in (
        ({"rain": "yes"}, "the labeling has no label for variable 'floor'"),
        ({"rain": "yes", "roof": 1}, "there is no variable 'roof'"),
        ({"rain": "maybe", "floor": 1}, "variable 'rain' has no label 'maybe'"),
        ({"rain": "yes", "floor": 3}, "label 3 of variable 'floor' is out of range 0..2"),
        ({"rain": "yes", "floor": 1.5}, "a label is a number or a name, not 1.5"),
        ({"rain": "yes", 7: 1}, "there is no variable 7; there are 2"),
    ):
        with pytest.raises(ModelError, match=message):
            graph.score(labels)


def fixed_rain(graph: FactorGraph) -> FactorGraph:
    graph.fix("rain", "yes")
    return graph


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda g: g.add_factor(["rain", "floor"], np.zeros(5)), r"variables \['rain', 'floor'\] need a table"),
        (lambda g: g.add_factor(["rain", "floor"], g.add_table(np.zeros((2, 2)))), r"\['rain', 'floor'\] need a table"),
        (lambda g: g.add_factor(["rain", 0], np.zeros((2, 2))), "names variable 'rain' twice"),
        (lambda g: g.add_clause([(0, 2)]), r"label 2 of variable 'rain' is out of range 0\.\.1"),
        (lambda g: g.add_all_different(["floor", 1]), "names variable 'floor' twice"),
        (lambda g: g.score([0, 3, 0]), r"label 3 of variable 'floor' is out of range 0\.\.2"),
        (lambda g: g.score([0, 2**40, 0]), "of variable 'floor' is out of range"),
        (lambda g: g.factor_scores([0, 3, 0]), "of variable 'floor' is out of range"),
        (lambda g: fginfer.solve(g, warm_start=[2, 0, 0]), "label 2 of variable 'rain' is out of range"),
        (lambda g: g.condition({"rain": 1}).reduce([2, 0, 0]), "label 2 of variable 'rain' is out of range"),
        (lambda g: g.set_unary("rain", [0.0]), r"variable 'rain': variables \['rain'\] need a table"),
        (lambda g: g.set_unary("rain", [0.0, np.nan]), r"variable 'rain': entry \(1,\) is NaN"),
        (lambda g: g.set_unaries([[0.0] * 2, [0.0] * 2, [0.0] * 2]), "variable 'floor' has 3 labels, its unary table"),
        (lambda g: g.set_unaries([[0.0]], ["wet"]), "variable 'wet' has 2 labels, its unary table has shape"),
        (lambda g: g.free("rain"), "variable 'rain' is not fixed"),
        (lambda g: fixed_rain(g).set_unary("rain", [0.0, 0.0]), "variable 'rain' is fixed to label 'yes'"),
        (lambda g: FactorGraph(variables={"a": 2, "b": 0}), "variable 'b' has 0 labels"),
        (lambda g: fginfer.write(g, "m.cnf", names=True), "variable 'floor' does not have two labels"),
        (lambda g: fginfer.write(g, "m.qubo", names=True), "variable 'floor' does not have two labels"),
        (lambda g: fginfer.write(g, "m.opb", names=True), "variable 'floor' does not have two labels"),
        (lambda g: fginfer.write(g, "m.bif"), "not a Bayesian network: .* of variable '"),
    ],
)
def test_refusals_call_variables_by_their_names(wrong, message: str) -> None:
    graph = weather()
    with pytest.raises((ModelError, FormatError), match=message):
        wrong(graph)


def test_refusals_call_variables_without_names_by_their_numbers() -> None:
    graph = FactorGraph([2, 3])
    graph.name(1, "floor")
    with pytest.raises(ModelError, match=r"variables \[0, 'floor'\] need a table of shape \(2, 3\)"):
        graph.add_factor([0, 1], [1.0])
    with pytest.raises(ModelError, match=r"variables \[0, 1\] need a table of shape \(2, 2\)"):
        FactorGraph([2, 2]).add_factor([0, 1], [1.0])
    with pytest.raises(ModelError, match="label 2 of variable 0 is out of range"):
        FactorGraph([2, 2]).score([2, 0])
