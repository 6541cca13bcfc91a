"""fginfer solve --parts and fginfer shard."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, Potts, solve, write
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
