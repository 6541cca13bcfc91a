"""What the tables of the manual list is what the program has: options, statistics, fields of JSON."""

from __future__ import annotations

import json
import re
from inspect import getdoc, isclass, isfunction, ismodule, signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fginfer
import fginfer.learn
import fginfer.plots
from fginfer import FactorGraph
from fginfer.cli import main
from fginfer.extreme.settings import PD_OPTIONS, PPD_OPTIONS
from fginfer.learn.crf.sgd import SgdOptions
from fginfer.learn.crf.solver import OptimiserOptions
from fginfer.learn.solvers.batch import FrankWolfeOptions
from fginfer.learn.solvers.block import BlockOptions
from fginfer.learn.solvers.gdmm_options import GdmmOptions

START = Path(__file__).parents[2] / "docs" / "start"


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table after the heading, without its own heading."""
    text = (START / page).read_text()
    lines = text[text.index(heading) :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    table = [line for line in lines[first + 1 :]]
    end = next(i for i, line in enumerate([*table, ""]) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[:end]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    fginfer.write(FactorGraph.grid((4, 4), rng.normal(size=(4, 4, 3)), rng.normal(size=(3, 3))), tmp_path / "g.uai")
    return tmp_path / "g.uai"


def printed(capsys: pytest.CaptureFixture[str], *args: object) -> Any:
    main([str(a) for a in args])
    return json.loads(capsys.readouterr().out)


def test_every_setting_of_solve_is_in_the_table() -> None:
    listed = {name for cell, *_ in rows("options.md", "Settings of every method") for name in names(cell)}
    assert listed == set(signature(fginfer.solve).parameters) - {"graph", "method", "options"}


def test_what_auto_counts_is_in_its_tables(model: Path) -> None:
    members = {name for cell, *_ in rows("results.md", "## Statistics of auto") for name in names(cell)}
    counters = {name for cell, *_ in rows("results.md", "### Counters of a member") for name in names(cell)}
    removed = {name for cell, *_ in rows("results.md", "### What presolve did") for name in names(cell)}
    rng = np.random.default_rng(1)
    large = FactorGraph.grid((24, 24), rng.normal(size=(24, 24, 4)), rng.normal(size=(4, 4)))
    for graph in (fginfer.read(model), large):
        for name in fginfer.solve(graph, max_iterations=3).statistics:
            who, _, what = name.partition(".")
            assert who in members
            assert not what or what in (removed if who == "presolve" else counters)


def test_every_field_of_a_result_is_in_the_table() -> None:
    listed = {name for cell, *_ in rows("results.md", "# Reading a result") for name in names(cell)}
    assert listed <= set(dir(fginfer.solve(FactorGraph([2]))))


def test_fields_of_json_have_the_types_that_the_table_says(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    kinds = {"text": str, "number": (int, float), "whole": int, "list": list, "object": dict}
    for method in ("auto", "gdmm", "icm"):
        data = printed(
            capsys, "solve", model, "--json", "--trace", "--quiet", "--method", method, "--max-iterations", 3
        )
        for cell, kind, _ in rows("command_line.md", "## JSON of `solve`"):
            for name in names(cell):
                value = data.pop(name)
                assert isinstance(value, kinds[kind.split()[0]]) or (value is None and "null" in kind), (name, value)
        assert data == {}


def test_fields_of_json_of_the_other_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path, model: Path) -> None:
    listed = {command.strip("`"): names(fields) for command, fields in rows("command_line.md", "## JSON of the other")}
    main(["solve", str(model), "--quiet", "--out", str(tmp_path / "g.MPE")])
    (tmp_path / "train.txt").write_text("a x\nb y\n\nb y\na x\n\n")
    capsys.readouterr()
    assert list(printed(capsys, "check", model, tmp_path / "g.MPE", "--json")) == listed["check"]
    assert list(printed(capsys, "info", model, "--json")) == listed["info"]
    assert list(printed(capsys, "compare", model, "--methods", "icm", "--json")) == listed["compare"]
    trained = printed(capsys, "train", tmp_path / "train.txt", "-o", tmp_path / "t.npz", "--json", "--trace", "--quiet")
    assert list(trained) == listed["train"]
    measures = printed(capsys, "evaluate", tmp_path / "t.npz", tmp_path / "train.txt", "--json")
    assert set(measures) <= set(listed["evaluate"])


def defaults(heading: str) -> dict[str, str]:
    return {names(option)[0]: default for option, default, _ in rows("learning_options.md", heading)}


@pytest.mark.parametrize(
    ("heading", "options"),
    [
        ("StructuredSVM: bcfw", BlockOptions()),
        ("StructuredSVM: gdmm", GdmmOptions()),
        ("StructuredSVM: fw", FrankWolfeOptions()),
        ("proxqn, owlqn", OptimiserOptions()),
        (": sgd", SgdOptions()),
        (": ppd-sparse", PPD_OPTIONS),
        (": pd-sparse", PD_OPTIONS),
    ],
)
def test_every_option_of_the_learning_solvers_is_listed_with_its_default(heading: str, options: Any) -> None:
    has = options if isinstance(options, dict) else vars(options)
    listed = defaults(heading)
    assert listed.keys() == has.keys()
    for name, default in listed.items():
        text = default.strip("`").strip('"')
        assert text == str(has[name]) or float(text) == has[name], name


def test_every_public_function_and_property_says_what_it_does() -> None:
    silent = []
    for package in (fginfer, fginfer.learn, fginfer.plots):
        for name in package.__all__:
            thing = getattr(package, name)
            members = vars(thing).items() if isclass(thing) else ()
            own = [k for k, v in members if k[0] != "_" and (isfunction(v) or isinstance(v, property))]
            own = [k for k in own if not getdoc(getattr(thing, k))]  # what it inherits counts
            silent += [f"{name}.{k}" for k in own if k not in ("answer", "export", "restore", "restore_center")]
            silent += [name] if not ismodule(thing) and not thing.__doc__ else []
    assert silent == []
