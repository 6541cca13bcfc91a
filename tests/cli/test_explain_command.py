"""fginfer explain: text, JSON, exit codes; and that "infeasible" points to it."""

from __future__ import annotations

import numpy as np
from cli_support import run, strict_json

from fginfer import FactorGraph, solve
from fginfer.formats import write
from fginfer.startup import INFEASIBLE

DIFFER = np.array([[-np.inf, 0.0], [0.0, -np.inf]])


def triangle(path):
    graph = FactorGraph([2, 2, 2, 2])
    for i, j in ((0, 1), (1, 2), (2, 3), (2, 0)):
        graph.add_factor([i, j], DIFFER)
    write(graph, path)
    return graph


def test_text_and_json(tmp_path, capsys):
    triangle(tmp_path / "t.uai")
    code, out, err = run(capsys, "explain", tmp_path / "t.uai")
    assert code == INFEASIBLE
    assert "these contradict each other (each is needed for it):" in out
    assert out.count("  factor") == 4
    assert "3 of them proven to be needed" in err
    code, out, err = run(capsys, "explain", tmp_path / "t.uai", "--json", "--quiet")
    data = strict_json(out)
    assert (code, err, data["infeasible"], data["minimal"], data["cheapest"]) == (INFEASIBLE, "", True, True, True)
    assert (data["factors"], data["cost"], len(data["relaxation"])) == ([0, 1, 3], 1, 1)


def test_evidence_takes_part(tmp_path, capsys):
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], DIFFER)
    write(graph, tmp_path / "g.npz")
    code, out, _ = run(capsys, "explain", tmp_path / "g.npz", "--quiet")
    assert (code, out) == (0, "a labeling is allowed\n")
    code, out, _ = run(capsys, "explain", tmp_path / "g.npz", "--given", "0=1", "--given", "1=1", "--json")
    data = strict_json(out)
    assert (code, data["evidence"], len(data["factors"])) == (INFEASIBLE, [0, 1], 1)
    code, _, _ = run(capsys, "explain", tmp_path / "g.npz", "--time-limit", 0)
    assert code == 2


def test_infeasible_points_to_it(tmp_path, capsys):
    graph = triangle(tmp_path / "t.uai")
    code, out, err = run(capsys, "solve", tmp_path / "t.uai")
    assert code == INFEASIBLE
    assert "fginfer explain" in err + out
    assert "fginfer.explain" in repr(solve(graph))
