"""fginfer sample: lines, names, JSON, files."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import run, strict_json

from fginfer import FactorGraph, sample
from fginfer.formats import write


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, FactorGraph]:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "wet": ["no", "some", "yes"]})
    graph.add_factor(["rain", "wet"], [[3.0, 1.0, 0.5], [0.0, 2.0, -float("inf")]])
    write(graph, tmp_path / "m.npz")
    return tmp_path / "m.npz", graph


def test_lines_and_json_are_those_of_python(model, capsys):
    path, graph = model
    code, out, _ = run(capsys, "sample", path, "-n", 5, "--seed", 3)
    expected = sample(graph, 5, 3).labels.tolist()
    assert code == 0
    assert out.splitlines()[0] == "# 5 samples, independent, exact"
    assert [[int(x) for x in line.split()] for line in out.splitlines()[1:]] == expected
    data = strict_json(run(capsys, "sample", path, "-n", 5, "--seed", 3, "--json")[1])
    assert (data["labels"], data["exact"], data["method"]) == (expected, True, "exact")


def test_names_evidence_and_a_file(model, capsys, tmp_path):
    code, out, _ = run(
        capsys, "sample", model[0], "--given", "rain=yes", "--named", "--method", "gibbs", "-o", tmp_path / "s"
    )
    lines = (tmp_path / "s").read_text().splitlines()
    assert (code, out, lines[0]) == (0, "", "# 10 samples, approximate (gibbs)")
    assert all(line in ("rain=yes wet=no", "rain=yes wet=some") for line in lines[1:])
    assert len(lines) == 11


def test_bad_input(model, capsys):
    code, _, err = run(capsys, "sample", model[0], "-n", -1)
    assert (code, "n must be 0 samples or more" in err) == (3, True)
    code, _, err = run(capsys, "sample", model[0], "--out", "/nowhere/at/all")
    assert code == 3
    assert "/nowhere/at/all" in err
