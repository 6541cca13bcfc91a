"""First calls that cannot be right: a sentence that says what to do, never somebody else's exception."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FginferError, Potts, plots, solve
from fginfer.cli import main
from fginfer.compare import expand_methods
from fginfer.formats import read_evidence, read_solution
from fginfer.learn import StructuredSVM
from fginfer.oracles import UpdatableTable


def _saved(graph: FactorGraph, folder: Path) -> tuple[Path, Path, Path]:
    """A result, a graph and a tagger, all of them .npz."""
    paths = folder / "result.npz", folder / "graph.npz", folder / "tagger.npz"
    solve(graph).save(paths[0])
    fginfer.write(graph, paths[1])
    fginfer.learn.StructuredSVM(max_iter=1).fit([[{"w": "a"}], [{"w": "b"}]], [["A"], ["B"]]).save(paths[2])
    return paths


WRONG: dict[str, tuple[Callable[[FactorGraph, Path], Any], str]] = {
    "a number for the shape": (lambda g, d: FactorGraph.grid(4, np.zeros((4, 2)), Potts(0, -1)), "a shape such as"),
    "unary of words": (lambda g, d: FactorGraph.grid((2,), [["a"], ["b"]], Potts(0, -1)), "unary scores as one array"),
    "unary 1-D": (lambda g, d: FactorGraph.grid((2, 2), [0, 1, 2, 3], Potts(0, -1)), r"shape \(2, 2, labels\)"),
    "pairwise a number": (lambda g, d: FactorGraph.grid((2,), np.zeros((2, 3)), 1.0), "an implicit one such as Potts"),
    "a chain by its length": (lambda g, d: FactorGraph.grid(4, np.zeros((4, 2)), Potts(0, -1)), r"has shape \(4,\)"),
    "cards a number": (lambda g, d: FactorGraph(3), "one for each variable"),
    "no table": (lambda g, d: g.add_factor([0, 1], None), "its table is not an array of numbers"),
    "score of a result": (lambda g, d: g.score(solve(g)), "not a Result; give its labels"),
    "seed below 0": (lambda g, d: solve(g, seed=-1), "seed must be from 0 to"),
    "seed too large": (lambda g, d: solve(g, seed=2**64), "seed must be from 0 to"),
    "method almost": (lambda g, d: solve(g, "TRW-S"), "did you mean trws"),
    "initial=": (lambda g, d: solve(g, initial=[0, 0]), "did you mean warm_start"),
    "max_memory=": (lambda g, d: solve(g, max_memory=1e9), "did you mean memory"),
    "an address": (lambda g, d: fginfer.read("https://a.org/b.uai"), "download it first"),
    "learn from nothing": (lambda g, d: fginfer.learn.ChainCRF().fit(None, None), "X must be examples.*not NoneType"),
    "learn from a word": (lambda g, d: fginfer.learn.StructuredSVM().fit("abc", [0]), "X must be examples.*not str"),
    "iterations below 0": (
        lambda g, d: solve(g, max_iterations=-1),
        "max_iterations must be a whole number of at least 0",
    ),
    "memory below 0": (lambda g, d: solve(g, memory=-1), "memory must be a number of bytes, 0 or more, not -1"),
    "presolve by a word": (lambda g, d: solve(g, presolve="no"), "presolve must be True or False, not 'no'"),
    "verbose by a word": (lambda g, d: solve(g, verbose="no"), "verbose must be True or False, not 'no'"),
    "trace by a word": (lambda g, d: solve(g, trace="no"), "trace must be True or False, not 'no'"),
    "dual by a word": (lambda g, d: fginfer.Solver(g).result(dual="no"), "dual must be True or False, not 'no'"),
    "drop_cutoff by a word": (
        lambda g, d: fginfer.write(g, d / "a.uai", drop_cutoff="no"),
        "drop_cutoff must be True or False, not 'no'",
    ),
    "per_unit by a word": (
        lambda g, d: g.add_at_most(1, [(0, 1), (1, 1)], penalty=1.0, per_unit="no"),
        "per_unit must be True or False, not 'no'",
    ),
    "minimize=": (lambda g, d: solve(g, minimize=True), "scores are always maximised.*signs changed.*Result.energy"),
    "sense=": (lambda g, d: fginfer.Solver(g, "trws", sense="min"), "scores are always maximised"),
    "start=": (lambda g, d: solve(g, start=[0, 0]), "unknown option 'start'.*did you mean warm_start"),
    "a setting with a typo": (lambda g, d: solve(g, tme_limit=5), "did you mean time_limit"),
    "timeout=": (lambda g, d: solve(g, timeout=5), "did you mean time_limit"),
    "random_state=": (lambda g, d: solve(g, "trws", random_state=5), "did you mean seed"),
    "read a result": (lambda g, d: fginfer.read(_saved(g, d)[0]), "for Result.load"),
    "load a graph": (lambda g, d: fginfer.Result.load(_saved(g, d)[1]), "for fginfer.read"),
    "graph for a tagger": (lambda g, d: fginfer.learn.StructuredSVM.load(_saved(g, d)[1]), "for fginfer.read"),
    "solve a tagger": (lambda g, d: solve(_saved(g, d)[2]), "fginfer predict"),
    "read nothing": (lambda g, d: fginfer.read(None), "name of a file"),
    "read a number": (lambda g, d: fginfer.read(3), "name of a file"),
    "read bytes": (lambda g, d: fginfer.read(b"a.uai"), "name of a file"),
    "read text": (lambda g, d: fginfer.read("MARKOV\n1\n2\n"), "this is text"),
    "format a number": (lambda g, d: fginfer.read(d / "a.uai", format=3), "format must be one of"),
    "load a number": (lambda g, d: fginfer.load(1), "load takes the name of a file"),  # 1 is standard output
    "load bytes": (lambda g, d: fginfer.load(b"a.npz"), "load takes the name of a file"),
    "load True": (lambda g, d: fginfer.Result.load(True), "load takes the name of a file"),
    "save to a number": (lambda g, d: solve(g).save(1), "save takes the name of a file"),
    "a proof into a number": (lambda g, d: solve(g, proof=1), "proof= takes the name of a file"),
    "write to nothing": (lambda g, d: fginfer.write(g, None), "name of a file"),
    "evidence for nothing": (lambda g, d: read_evidence(d / "a.evid", "a.uai"), "then the FactorGraph"),
    "solution for nothing": (lambda g, d: read_solution(d / "a.MPE", None), "then the FactorGraph"),
    "a folder": (lambda g, d: fginfer.read(d), "is a folder"),
    "no such folder": (lambda g, d: fginfer.read(d / "a"), "a: there is no such file or folder"),
    "not there": (lambda g, d: fginfer.read(d / "a.uai"), "no such file"),
    "time of words": (lambda g, d: solve(g, time_limit="5"), "number of seconds"),
    "time below 0": (lambda g, d: solve(g, time_limit=-1), "number of seconds"),
    "no workers": (lambda g, d: fginfer.solve_many([g], workers=-1), "at least 1, or None for one a core"),
    "an array": (lambda g, d: solve(np.zeros(3)), "takes a FactorGraph"),
    "evidence as a list": (lambda g, d: solve(g, evidence=[0]), "dict of variables"),
    "many models, one name": (lambda g, d: fginfer.solve_many("a.uai"), "takes a list of graphs; solve takes one"),
    "a plot of a graph": (lambda g, d: plots.plot_trace(g), "give a Result, or several by name"),
    "a plot of a list": (lambda g, d: plots.plot_gap([solve(g)]), "{'trws': result, ...}, not list"),
    "a table of one size": (lambda g, d: UpdatableTable(3), r"\(rows, columns\), not 3"),
    "a loss by name": (lambda g, d: StructuredSVM(loss="hamming").fit([[[0.0]]], [[0]]), r"loss matrix, cost\[truth\]"),
    "a method with a typo": (lambda g, d: expand_methods("auto,trw"), "did you mean trws"),
    "methods without commas": (lambda g, d: expand_methods("auto trws"), "put commas between them"),
}


BAD_STARTS: dict[str, tuple[Any, str]] = {
    "too short": ([0], r"needs 2 labels, not an array of shape \(1,\)"),
    "too long": ([0, 0, 0], r"needs 2 labels, not an array of shape \(3,\)"),
    "fractional": ([0, 0.5], "labels must be integers, not float64"),
    "whole, but no integers": ([0.0, 1.0], "labels must be integers, not float64"),
    "out of range": ([0, 3], "label 3 of variable 1 is out of range 0..2"),
    "below 0": ([0, -1], "label -1 of variable 1 is out of range 0..2"),
    "a word": ("01", "needs 2 labels, not a str"),
    "a dict": ({0: 1}, "needs 2 labels, not a dict"),
    "ragged": ([[0], [0, 1]], "needs 2 labels, not lists of several lengths"),
    "of another graph": (solve(FactorGraph([2, 3, 2])), r"needs 2 labels, not an array of shape \(3,\)"),
}


@pytest.mark.parametrize("method", [None, "trws"])
@pytest.mark.parametrize("name", BAD_STARTS)
def test_starts_that_are_no_labelings(name: str, method: str | None) -> None:
    graph, (start, says) = FactorGraph([2, 3]), BAD_STARTS[name]
    for call in (
        lambda: solve(graph, method, warm_start=start),
        lambda: solve(graph, method, warm_start=start, evidence={0: 1}),
        lambda: fginfer.Solver(graph, method, warm_start=start),
        lambda: fginfer.solve_many([graph], method, warm_start=start),
        lambda: fginfer.solve_many([graph], method, warm_start=start, evidence={0: 1}),
        lambda: fginfer.Solver(graph, method).warm_start(start),
    ):
        with pytest.raises(FginferError, match=says):
            call()


def test_a_start_without_room_for_labels_changes_no_messages() -> None:
    graph = FactorGraph.from_arrays([2, 3], [[0, 1], [2, 0, 1]], [[0, 1]], tables=[Potts(0, -1)])
    good = solve(graph, "trws", max_iterations=3)
    assert good.messages is not None
    solver = fginfer.Solver(graph, "trws")
    before = solver.result().messages
    with pytest.raises(FginferError, match="needs 2 labels"):
        solver.warm_start(dataclasses.replace(good, messages=good.messages + 1, labels=np.zeros(3, np.int32)))
    assert np.array_equal(before, solver.result().messages)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_say_what_to_do(name: str, tmp_path: Path) -> None:
    call, says = WRONG[name]
    with pytest.raises(FginferError, match=says):
        call(FactorGraph([2, 3]), tmp_path)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("predict train.txt tagger.npz", "the model comes first, then the data: tagger.npz train.txt"),
        ("evaluate train.txt tagger.npz", "the model comes first, then the data: tagger.npz train.txt"),
        ("predict tagger.npz train.txt --top-k 3", "--top-k belongs to models of very many labels"),
        ("solve m.uai --max-iterations -1", "max_iterations must be a whole number of at least 0, not -1"),
        ("solve m.uai --option memory=-1", "memory must be a number of bytes, 0 or more, not -1"),
        ("solve m.uai --option presolve=no", "presolve must be True or False, not 'no'"),
        ("solve m.uai --option minimize=true", "scores are always maximised"),
        ("compare .", "is a folder: name the models in it, as in *.uai"),
        ("info train.txt", "or name a format (format=, --format)"),
    ],
)
def test_wrong_commands_say_what_to_do(command: str, says: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("the D\ndog N\n")
    Path("m.uai").write_text("MARKOV\n1\n2\n0\n")
    assert main(["train", "train.txt", "--output", "tagger.npz", "--max-iter", "1", "--quiet"]) == 0
    assert main(command.split()) == 3
    assert says in capsys.readouterr().err


def test_byte_order_marks_are_no_part_of_the_text(tmp_path: Path) -> None:
    mark, graph = b"\xef\xbb\xbf", FactorGraph([2, 3])
    for name, text in (
        ("m.uai", b"MARKOV\n1\n2\n0\n"),
        ("m.wcsp", b"x 1 2 0 9\n2\n"),
        ("m.cfn", b"{{x <9} {a: 2} {}}"),
    ):
        (tmp_path / name).write_bytes(mark + text)
        assert fginfer.read(tmp_path / name).cards.tolist() == [2]
    (tmp_path / "m.evid").write_bytes(mark + b"1 0 1\n")
    assert read_evidence(tmp_path / "m.evid", graph) == {0: 1}
    (tmp_path / "m.MPE").write_bytes(mark + b"MPE 2 0 1\n")
    assert read_solution(tmp_path / "m.MPE", graph).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "room"),
    [("plot_trace", "plots"), ("compare", "compare"), ("StructuredSVM", "learn"), ("ChainCRF", "learn")],
)
def test_names_looked_for_at_the_top_say_where_they_live(name: str, room: str) -> None:
    says = f"from fginfer.{room} import {name}"
    code = f"""
import fginfer
try:
    fginfer.{name}
except AttributeError as error:
    assert str(error).endswith("; {says}"), error
else:
    raise AssertionError("it is there")
{says}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("is_clone", "says"), [(True, "start Python in another folder"), (False, "install it again")])
def test_sources_without_a_core_say_what_to_do(is_clone: bool, says: str, tmp_path: Path) -> None:
    shutil.copytree(Path(fginfer.__file__).parent, tmp_path / "fginfer", ignore=shutil.ignore_patterns("_core*"))
    if is_clone:
        (tmp_path / "csrc").mkdir()
    code = f"""
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, {str(tmp_path)!r})
try:
    import fginfer
except ImportError as error:
    assert {says!r} in str(error), error
else:
    raise AssertionError(fginfer.__file__)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
