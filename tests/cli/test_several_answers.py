"""fginfer solve --k-best: table, JSON, exit codes, limits."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cli_support import run, strict_json

from fginfer import FactorGraph
from fginfer.formats import write

INF = float("inf")


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, FactorGraph]:
    rng = np.random.default_rng(1)
    graph = FactorGraph([2, 3, 2])
    graph.add_factor([0, 1], rng.normal(size=(2, 3)))
    graph.add_factor([1, 2], rng.normal(size=(3, 2)))
    write(graph, tmp_path / "m.npz")
    return tmp_path / "m.npz", graph


def scores(graph: FactorGraph) -> list[float]:
    return sorted((graph.score(x) for x in product(*(range(c) for c in graph.cards))), reverse=True)


def test_json_has_the_results_in_order(model, capsys):
    path, graph = model
    code, out, _ = run(capsys, "solve", path, "--k-best", 5, "--json")
    data = strict_json(out)
    assert (code, data["status"]) == (0, "complete")
    assert [r["score"] for r in data["results"]] == scores(graph)[:5]
    assert [graph.score(r["labels"]) for r in data["results"]] == scores(graph)[:5]
    assert set(data) == {"version", "model", "status", "results"}


def test_the_table_has_a_line_for_each(model, capsys):
    path, graph = model
    code, out, _ = run(capsys, "solve", path, "--k-best", 3, "--min-distance", 2, "--quiet")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["rank", "score", "below", "best", "differ", "labels"]
    first = lines[1].split()
    assert float(first[1]) == pytest.approx(scores(graph)[0])
    assert graph.score([int(x) for x in first[4:]]) == scores(graph)[0]
    assert all(int(line.split()[3]) >= 2 for line in lines[2:-1])
    assert lines[-1] == "status  complete"


def test_within_cutoff_and_evidence_end_the_list(model, capsys):
    path, graph = model
    best = scores(graph)
    _, out, _ = run(capsys, "solve", path, "--k-best", 99, "--within", best[0] - best[3], "--json")
    assert len(strict_json(out)["results"]) == 4
    _, out, _ = run(capsys, "solve", path, "--k-best", 99, "--cutoff", best[2], "--json")
    assert len(strict_json(out)["results"]) == 2
    _, out, _ = run(capsys, "solve", path, "--k-best", 99, "--given", "1=2", "--json")
    assert [r["labels"][1] for r in strict_json(out)["results"]] == [2] * 4


def test_no_labeling_and_no_time(tmp_path, capsys, model):
    graph = FactorGraph([2])
    graph.add_factor([0], [-INF, -INF])
    write(graph, tmp_path / "none.npz")
    code, out, _ = run(capsys, "solve", tmp_path / "none.npz", "--k-best", 2, "--json")
    assert (code, strict_json(out)["results"]) == (20, [])
    code, out, _ = run(capsys, "solve", model[0], "--k-best", 2, "--time-limit", 0, "--json")
    assert (code, strict_json(out)["status"]) == (2, "time_limit")


def test_ctrl_c_prints_what_was_found(model, capsys, monkeypatch):
    from fginfer.k_best import KBest

    advance = KBest._advance

    def stop_after_two(self: KBest) -> bool:
        if len(self.found) == 2:
            raise KeyboardInterrupt
        return advance(self)

    monkeypatch.setattr(KBest, "_advance", stop_after_two)
    code, out, _ = run(capsys, "solve", model[0], "--k-best", 5, "--json")
    data = strict_json(out)
    assert (code, data["status"], len(data["results"])) == (2, "interrupted", 2)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--k-best", -1), "k must be 0 or more"),
        (("--k-best", 1, "--min-distance", 4), "min_distance must be from 0 to the 3 variables"),
        (("--k-best", 1, "--trace"), "--trace has no meaning with --k-best"),
        (("--k-best", 1, "--out", "x.MPE"), "--out has no meaning with --k-best"),
        (("--within", 1), "--k-best N, which is missing"),
        (("--min-distance", 0), "--k-best N, which is missing"),
    ],
)
def test_bad_input(model, capsys, args, message):
    code, out, err = run(capsys, "solve", model[0], *args)
    assert (code, out) == (3, "")
    assert message in err
