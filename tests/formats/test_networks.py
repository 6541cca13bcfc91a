"""BIF and XMLBIF: names, the order of entries in either format, and every labeling's probability by definition."""

from __future__ import annotations

import json
import math
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError
from fginfer.cli import main

CORPUS = Path(__file__).parent.parent / "corpus"
HEAD = "variable a { type discrete [ 2 ] { no, yes }; }\nvariable b { type discrete [ 2 ] { no, yes }; }\n"


def read(tmp_path: Path, name: str, content: str) -> FactorGraph:
    (tmp_path / name).write_text(content)
    return fginfer.read(tmp_path / name)


def test_bif_has_names_and_probabilities():
    graph = fginfer.read(CORPUS / "rain.bif")
    assert graph.names is not None
    assert [graph.names.variable(i) for i in range(3)] == ["rain", "season", "wet"]
    assert graph.names.labels(1) == ("dry", "very wet", "3")
    season = {"dry": 0.5, "very wet": 0.25, "3": 0.25}
    rain = {"dry": 0.9, "very wet": 0.5, "3": 0.5}  # where there is no rain: one row, and the default
    dry = {  # not wet, given rain and season: the child is slowest, so the first six numbers are these
        ("no", "dry"): 1.0, ("no", "very wet"): 1.0, ("no", "3"): 0.75,
        ("yes", "dry"): 0.0, ("yes", "very wet"): 0.25, ("yes", "3"): 0.1,
    }  # fmt: skip
    for s, r, w in product(season, ("no", "yes"), ("no", "yes")):
        p = season[s] * (rain[s] if r == "no" else 1 - rain[s]) * (dry[r, s] if w == "no" else 1 - dry[r, s])
        labels = [graph.label("rain", r), graph.label("season", s), graph.label("wet", w)]
        assert math.exp(graph.score(labels)) == pytest.approx(p, rel=1e-14, abs=0)


def test_xmlbif_lists_the_child_fastest():
    graph = fginfer.read(CORPUS / "rain.xmlbif")
    assert graph.names is not None
    assert graph.names.labels(1) == ("a < b", "b", "c")
    wanted = [[0.375, 0.1875, 0.1875], [0.0, 0.0, 0.25]]
    for r, w in product(range(2), range(3)):
        assert math.exp(graph.score([r, w])) == pytest.approx(wanted[r][w], rel=1e-14, abs=0)


@pytest.mark.parametrize("suffix", [".bif", ".xmlbif", ".bif.gz"])
@pytest.mark.parametrize("name", ["rain.bif", "rain.xmlbif"])
def test_what_is_written_is_read(tmp_path: Path, name: str, suffix: str):
    graph = fginfer.read(CORPUS / name)
    fginfer.write(graph, tmp_path / f"m{suffix}")
    again = fginfer.read(tmp_path / f"m{suffix}")
    assert again.names == graph.names
    for labels in product(*map(range, graph.cards.tolist())):
        assert again.score(labels) == graph.score(labels)


def test_any_network_is_written_with_its_own_children(tmp_path: Path):
    rng = np.random.default_rng(1)
    for trial in range(30):
        cards = rng.integers(1, 4, 5)
        order = rng.permutation(5)
        graph = FactorGraph(cards)
        for k, child in enumerate(order):
            scope = [int(child), *map(int, order[:k][rng.random(k) < 0.5])]
            table = rng.dirichlet(np.ones(cards[child]), [cards[v] for v in scope[1:]])
            where = int(rng.integers(len(scope)))  # the child may stand anywhere in a factor
            scope.insert(where, scope.pop(0))
            graph.add_factor(scope, np.log(np.moveaxis(table, -1, where)))
        for suffix in (".bif", ".xml"):
            fginfer.write(graph, tmp_path / f"m{trial}{suffix}")
            again = fginfer.read(tmp_path / f"m{trial}{suffix}")
            for labels in product(*map(range, cards.tolist())):
                assert again.score(labels) == pytest.approx(graph.score(labels), abs=1e-13)


def test_what_is_no_network_is_not_written(tmp_path: Path):
    cycle = FactorGraph([2, 2])
    for scope in ([0, 1], [1, 0]):
        cycle.add_factor(scope, np.log([[0.25, 0.75], [0.5, 0.5]]))
    sums = FactorGraph([2])
    sums.add_factor([0], [0.0, 1.0])
    constant = FactorGraph([1])
    constant.add_factor([], 1.0)
    two = FactorGraph([2, 1])
    two.add_factor([0], np.log([0.5, 0.5]))
    two.add_factor([0, 1], np.zeros((2, 1)))
    two.add_factor([1, 0], np.log([[0.5, 0.5]]))
    low = FactorGraph([2])
    low.add_factor([0], [0.0, -800.0])
    cases = [(cycle, "distribution of variable 0"), (sums, "sum to 1"), (constant, "constant"), (two, "Bayesian"),
             (FactorGraph([2]), "distribution of variable 0"), (low, "too low")]  # fmt: skip
    for graph, message in cases:
        with pytest.raises(FormatError, match=message):
            fginfer.write(graph, tmp_path / "m.bif")
    named = FactorGraph(variables={'a"\n': 1})
    control = FactorGraph(variables={"a\x01": 1})
    with pytest.raises(FormatError, match="cannot be written"):
        fginfer.write(named, tmp_path / "m.bif")
    with pytest.raises(FormatError, match="cannot be written"):
        fginfer.write(control, tmp_path / "m.xmlbif")
    assert list(tmp_path.iterdir()) == []


def table(text: str) -> str:
    return f"{HEAD}probability ( a ) {{ table 0.5 0.5; }}\nprobability ( b | a ) {{\n{text}\n}}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD, "line 3 at 'end of file': variable 'a' has no table"),
        (table("(no) 0.5, 0.5;"), "line 6 at '}': the table has 1 rows for 2 combinations"),
        (table("(no) 0.5, 0.5; (no) 1, 0; (yes) 1, 0;"), "line 5 at '.': this combination"),
        (table("(no, yes) 0.5, 0.5;"), "line 5 at '.': expected the values of 1 parents, not 2"),
        (table("(maybe) 0.5, 0.5;"), "has no value 'maybe'"),
        (table("(no) 0.5;"), "line 5 at ';': a row has 2 probabilities, not 1"),
        (table("(no) 0.5 0.25 0.25;"), "line 5 at '0.25': a row has 2 probabilities; this is one more"),
        (table("(no) 1.5 -0.5;"), "line 5 at '1.5': expected a probability"),
        (table("(no) 1e999 0;"), "line 5 at '1e999': expected a probability"),
        (table("table 0.25 0.75 0.5 0.5;"), "the child fastest, as XMLBIF does"),
        (table("table 1 1 0 0; default 1 0;"), "line 5 at 'default': expected one 'table'"),
        (f"{HEAD}probability ( a | a ) {{ table 1 0 0 1; }}", "names a variable twice"),
        (f"{HEAD}probability ( a, b | a ) {{ table 1 0 0 1; }}", "line 3 at '|': expected one variable before"),
        (f"{HEAD}probability ( c ) {{ table 1 0; }}", "line 3 at 'c': there is no variable 'c'"),
        (HEAD + HEAD, "line 3 at 'a': there are two variables 'a'"),
        ("variable a { type discrete [ 3 ] { no, yes }; }", "has 2 values, not 3"),
        ("variable a { type discrete [ 2 ] { no, no }; }", "two values 'no'"),
        ("variable a { type continuous; }", "line 1 at 'continuous': expected 'discrete'"),
        ("variable a { }", "has no values"),
        ("/* remark", "a remark has no end"),
        ('variable "a\n{', "quoted name does not end"),
        ("nonsense", "line 1 at 'nonsense': expected 'network'"),
        ("variable", "the file ends where the name of a variable"),
    ],
)
def test_damaged_bif(tmp_path: Path, content: str, message: str):
    with pytest.raises(FormatError, match=message.replace("|", r"\|").replace("(", r"\(")):
        read(tmp_path, "m.bif", content)


def test_a_default_cannot_inflate(tmp_path: Path):
    many = "".join(f"variable v{i} {{ type discrete [ 10 ] {{ {' '.join('abcdefghij')} }}; }}\n" for i in range(20))
    parents = ", ".join(f"v{i}" for i in range(1, 20))
    row = "default " + "0.1 " * 10 + ";"
    with pytest.raises(FormatError, match=r"line 21 .*a table of 1e[+]20 entries would take"):
        read(tmp_path, "m.bif", f"{many}probability ( v0 | {parents} ) {{ {row} }}\n")
    with pytest.raises(FormatError, match=r"line 21 .*a table of 1e[+]20 entries would take"):
        read(tmp_path, "m.bif", f"{many}probability ( v0 | {parents} ) {{ table 0.1; }}\n")


XML = '<BIF VERSION="0.3"><NETWORK>\n{}\n</NETWORK></BIF>'
A = "<VARIABLE><NAME>a</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>"
B = A.replace("<NAME>a", "<NAME>b")
DEFINED = "<DEFINITION><FOR>a</FOR>{}</DEFINITION>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (XML.format(A), "variable 'a' has no table"),
        (XML.format(A + DEFINED.format("<TABLE>0.5</TABLE>")), "line 2 at 'a': .* has 1 numbers, not 2"),
        (XML.format(A + DEFINED.format("<TABLE>0.5 x</TABLE>")), "line 2 at 'x': expected a probability"),
        (XML.format(A + DEFINED.format("<TABLE>2 -1</TABLE>")), "line 2 at '2': expected a probability"),
        (XML.format(A + DEFINED.format("")), "one <FOR> and one <TABLE>"),
        (XML.format(A + DEFINED.format("<GIVEN>c</GIVEN><TABLE>1 0</TABLE>")), "no variable 'c'"),
        (
            XML.format(A + B + DEFINED.format("<GIVEN>b</GIVEN><TABLE>.25 .5 .75 .5</TABLE>")),
            "the child slowest, as BIF does",
        ),
        (XML.format(A + A), "two variables 'a'"),
        (XML.format("<VARIABLE><NAME>a</NAME></VARIABLE>"), "has no values"),
        (XML.format('<VARIABLE TYPE="utility">'), "line 2 at 'utility': only variables of type nature"),
        (XML.format("<COLOUR>"), "line 2 at 'COLOUR': an element <COLOUR> is not expected in <NETWORK>"),
        (XML.format("text"), "line 2 at 'text': text is not expected in <NETWORK>"),
        ("<BIF><NETWORK></BIF>", "line 1.*no good XML .mismatched tag"),
        ("", "no good XML"),
        ('<!DOCTYPE BIF [<!ENTITY a "aaaa">]><BIF>&a;</BIF>', "at 'a': entities of a file's own"),
        ('<!DOCTYPE BIF [<!ENTITY a SYSTEM "/etc/passwd">]><BIF>&a;</BIF>', "at 'a': entities of a file's own"),
        ('<?xml version="1.0" encoding="nonsense"?><BIF></BIF>', "no good XML"),
    ],
)
def test_damaged_xmlbif(tmp_path: Path, content: str, message: str):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, "m.xmlbif", content)


@pytest.mark.parametrize("suffix", [".uai", ".LG", ".h5"])
def test_names_are_not_lost_in_silence(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]):
    graph = fginfer.read(CORPUS / "rain.bif")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kept in (".bif", ".xml", ".npz"):
            fginfer.write(graph, tmp_path / f"m{kept}")
        fginfer.write(FactorGraph([2]), tmp_path / f"n{suffix}")
        fginfer.write(graph, tmp_path / f"m{suffix}", names=True)
    with pytest.warns(
        RuntimeWarning, match=rf"lost; .cfn, .npz, .bif, .xmlbif have.*--names\) writes o{suffix}\.names"
    ):
        fginfer.write(graph, tmp_path / f"o{suffix}")
    assert main(["convert", str(CORPUS / "rain.bif"), str(tmp_path / f"p{suffix}")]) == 0
    assert "the format has no names, so they are lost" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.uai", "m.LG.gz", "m.h5", "m.wcsp.xz"])
def test_names_beside_a_file(tmp_path: Path, name: str):
    graph = FactorGraph(variables={"rain": ["no", "yes"], "floor": 3, 'a "b" \u00e9': ["x", "y z"]})
    graph.add_factor(["rain", "floor"], -np.arange(6.0).reshape(2, 3))
    fginfer.write(graph, tmp_path / name, names=True)
    side = tmp_path / f"{name.removesuffix('.gz').removesuffix('.xz')}.names"
    assert json.loads(side.read_text())["rain"] == ["no", "yes"]
    again = fginfer.read(tmp_path / name)
    assert again.names == graph.names
    assert fginfer.solve(tmp_path / name, evidence={"floor": 2})["rain"] == "no"
    side.rename(tmp_path / "elsewhere")
    assert fginfer.read(tmp_path / name).names is None
    assert fginfer.read(tmp_path / name, names=tmp_path / "elsewhere").names == graph.names
    graph.take_names(None)
    graph.name(1, "floor")
    fginfer.write(graph, tmp_path / name, names=True)
    assert fginfer.read(tmp_path / name).names == graph.names
    with pytest.raises(FormatError, match="there is no such file"):
        fginfer.read(tmp_path / name, names=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"m.uai.names, line 1: no JSON of names"),
        ('{"a": 2,\n "b": }', r"m.uai.names, line 2: no JSON of names"),
        ("[2, 3]", "names are an object such as"),
        ('{"a": 2}', "names for 1 variables, and the model has 2"),
        ('{"a": 2, "b": 2}', "variable 'b' has 3 labels in the model, and 2 here"),
        ('{"a": 2, "a": 3}', "two variables 'a'"),
        ('{"a": ["x", "x"], "b": 3}', "has two labels 'x'"),
        ('{"a": [1, 2], "b": 3}', "a label of variable 'a' must be a text"),
        ('{"a": null, "b": 3}', "the labels of variable 'a' must be a list"),
        ('{"variables": [[7, "x"]], "labels": []}', "they are for variable 7; there are 2"),
        ("[" * 100000, "names"),
        ('{"a": 2, "b": 3\0}', "a byte is zero"),
    ],
)
def test_damaged_names(tmp_path: Path, text: str, message: str):
    fginfer.write(FactorGraph([2, 3]), tmp_path / "m.uai")
    (tmp_path / "m.uai.names").write_text(text)
    with pytest.raises(FormatError, match=message):
        fginfer.read(tmp_path / "m.uai")
