"""fginfer solve --parts and fginfer shard."""

from __future__ import annotations

import json
from pathlib import Path

import distributed
import numpy as np
import pytest

from fginfer import FactorGraph, Potts, read_solution, solve, write
from fginfer.cli import main


def test_parts_and_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = FactorGraph.grid((8, 9), np.random.default_rng(0).normal(size=(8, 9, 2)), Potts(0, -0.5))
    path = str(tmp_path / "grid.npz")
    write(graph, path)
    assert main(["solve", path, "--parts", "3", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "parts"
    assert found["score"] == pytest.approx(solve(graph).score)
    assert main(["shard", path, str(tmp_path / "parts"), "--parts", "3"]) == 0
    assert solve(tmp_path / "parts").score == pytest.approx(found["score"])
    assert main(["solve", path, "--checkpoint", str(tmp_path / "kept")]) == 3
    assert "say how many with --parts" in capsys.readouterr().err


def test_a_folder_of_parts_is_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = FactorGraph.grid((8, 9), np.random.default_rng(0).normal(size=(8, 9, 2)), Potts(0, -0.5))
    path, folder = str(tmp_path / "grid.npz"), str(tmp_path / "parts")
    write(graph, path)
    assert main(["shard", path, folder, "--parts", "3"]) == 0
    assert main(["solve", folder, "--json", "--max-memory", "1MB", "--out", str(tmp_path / "labels")]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert "a model in 3 parts" in captured.err
    sizes = found["model"]
    assert (sizes["variables"], sizes["factors"], sizes["max_labels"]) == (72, 8 * 8 + 7 * 9, 2)
    assert sizes["table_entries"] >= 144  # copies of border variables have scores, too
    assert found["score"] == pytest.approx(solve(graph).score)
    assert graph.score(read_solution(tmp_path / "labels", graph)) == pytest.approx(found["score"])
    for words in (["--proof", "p"], ["--evidence", "e"], ["--format", "uai"], ["--start", "s"]):
        assert main(["solve", folder, *words]) == 3
        assert f"{words[0]} is for a model in one piece" in capsys.readouterr().err
    assert main(["solve", folder, "--parts", "2"]) == 3
    assert "the model has 3 parts already" in capsys.readouterr().err
    assert main(["solve", str(tmp_path), "--quiet"]) == 3
    assert "holds no shards" in capsys.readouterr().err


def test_a_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = FactorGraph.grid((8, 9), np.random.default_rng(0).normal(size=(8, 9, 2)), Potts(0, -0.5))
    path, folder = str(tmp_path / "grid.npz"), str(tmp_path / "parts")
    write(graph, path)
    assert main(["shard", path, folder, "--parts", "3"]) == 0
    quiet = {"threads_per_worker": 1, "dashboard_address": None, "worker_dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, processes=False, **quiet) as cluster:
        address = cluster.scheduler_address
        for model, words in ((path, ["--parts", "3"]), (path, []), (folder, [])):
            assert main(["solve", model, "--scheduler", address, *words, "--json", "--quiet"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert found["statistics"]["workers"] == 2
            assert found["score"] == pytest.approx(solve(graph).score)
    assert main(["solve", path, "--scheduler", "tcp://127.0.0.1:1", "--quiet"]) == 3
    assert "no scheduler at" in capsys.readouterr().err
