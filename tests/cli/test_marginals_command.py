"""fginfer marginals: probabilities, best scores, UAI files."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest
from cli_support import run, strict_json

from fginfer import FactorGraph, marginals, max_marginals
from fginfer.formats import write


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, FactorGraph]:
    graph = FactorGraph(variables={"rain": ["no", "yes"], "wet": ["no", "some", "yes"], "c": 2})
    graph.add_factor(["rain", "wet"], [[3.0, 1.0, 0.5], [0.0, 2.0, -np.inf]])
    graph.add_factor(["wet", "c"], [[0.0, 1.0], [1.0, 0.5], [0.25, 0.0]])
    write(graph, tmp_path / "m.npz")
    return tmp_path / "m.npz", graph


def test_json_has_log_z_and_probabilities(model, capsys):
    path, graph = model
    code, out, _ = run(capsys, "marginals", path, "--json", "--variable", "wet", "--variable", 0)
    data, expected = strict_json(out), marginals(graph)
    assert (code, data["exact"], data["variables"]) == (0, True, [1, 0])
    assert data["log_z"] == data["log_z_low"] == data["log_z_high"] == expected.log_z
    assert data["probabilities"] == [expected.variables[1].tolist(), expected.variables[0].tolist()]


def test_uai_files_with_evidence(model, capsys, tmp_path):
    path, graph = model
    (tmp_path / "e.evid").write_text("1 0 1")
    code, out, _ = run(
        capsys, "marginals", path, "--evidence", tmp_path / "e.evid", "-o", tmp_path / "m.MAR", "--pr", "-"
    )
    expected = marginals(graph, evidence={0: 1})
    words = (tmp_path / "m.MAR").read_text().split()
    assert (code, words[:3]) == (0, ["MAR", "3", "2"])
    numbers, at = [], 2
    for p in expected.variables:
        assert int(words[at]) == len(p)
        numbers += [float(x) for x in words[at + 1 : at + 1 + len(p)]]
        at += 1 + len(p)
    assert at == len(words)
    np.testing.assert_allclose(numbers, np.concatenate(expected.variables), atol=1e-11)
    assert out.split()[0] == "PR"
    assert float(out.split()[1]) == pytest.approx(expected.log_z / log(10), rel=1e-15)


def test_the_lines_show_names(model, capsys):
    _, out, _ = run(capsys, "marginals", model[0])
    lines = out.splitlines()
    assert lines[0].startswith("log Z")
    assert "rain" in lines[1]
    assert "no 0." in lines[1]
    _, out, _ = run(capsys, "marginals", model[0], "--max", "--given", "rain=yes")
    assert "forbidden" in out
    assert "(exact)" in out


def test_best_scores(model, capsys):
    path, graph = model
    _, out, _ = run(capsys, "marginals", path, "--max", "--json")
    data, expected = strict_json(out), max_marginals(graph)
    assert (data["score"], data["exact"]) == (expected.score, True)
    assert data["low"] == data["high"] == [x.tolist() for x in expected.variables]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--max", "--pr", "x"), "--out and --pr hold probabilities"),
        (("--time-limit", 1), "--time-limit is for --max and --approximate"),
        (("--json", "--pr", "-"), "only one of"),
        (("--variable", "fog"), "fog"),
        (("--given", "rain=yes", "--given", "wet=yes"), "no labeling is allowed"),
        (("--memory", "-1"), "no amount of memory"),
    ],
)
def test_bad_input(model, capsys, args, message):
    try:
        code, _, err = run(capsys, "marginals", model[0], *args)
    except SystemExit as end:
        code, err = end.code, capsys.readouterr().err
    assert code == 3
    assert message in err


def test_approximations_say_so(capsys, tmp_path):
    rng = np.random.default_rng(0)
    write(FactorGraph.grid((30, 30), rng.normal(size=(30, 30, 3)), rng.normal(size=(3, 3))), tmp_path / "wide.npz")
    code, out, _ = run(capsys, "marginals", tmp_path / "wide.npz", "--approximate", "--time-limit", 1, "--json")
    data = strict_json(out)
    assert (code, data["exact"]) == (0, False)
    assert data["log_z_low"] <= data["log_z"] <= data["log_z_high"]
    _, out, _ = run(capsys, "marginals", tmp_path / "wide.npz", "--approximate", "--time-limit", 1)
    assert out.splitlines()[1].startswith("between ")
    for wrong in (["--time-limit", 1], ["--max", "--approximate"], ["--approximate", "--seed", -1]):
        assert run(capsys, "marginals", tmp_path / "wide.npz", *wrong)[0] == 3


def test_a_picture_of_confidence(model, capsys, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    code, out, _ = run(capsys, "marginals", model[0], "--plot", tmp_path / "a.svg")
    assert (code, out) == (0, "")
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()
    code, out, _ = run(capsys, "marginals", model[0], "--max", "--plot", tmp_path / "b.png", "--json")
    assert strict_json(out)["exact"]
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capsys, "marginals", model[0], "--plot", tmp_path / "c.xyz")
    assert (code, "--plot writes .png, .pdf, .svg files" in err) == (3, True)
