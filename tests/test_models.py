"""The models of models/: their files, their known optima, and the script that made them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fginfer
from fginfer.formats import read_evidence

FOLDER = Path(__file__).parent.parent / "models"
KNOWN: dict[str, dict[str, Any]] = json.loads((FOLDER / "known_optima.json").read_text())


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_models", FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_every_kind_is_there() -> None:
    assert len(KNOWN) >= 8
    assert {name.split(".")[1] for name in KNOWN} == {"uai", "LG", "cfn", "wcsp", "npz", "h5"}
    for path in FOLDER.iterdir():
        assert path.is_dir() or path.stat().st_size < 100_000


@pytest.mark.parametrize("name", KNOWN)
def test_known_optimum(name: str) -> None:
    known, graph = KNOWN[name], fginfer.read(FOLDER / name)
    evidence = read_evidence(FOLDER / known["evidence"], graph) if "evidence" in known else {}
    assert graph.score(known["labels"]) == pytest.approx(known["optimum"], rel=1e-12)
    assert all(known["labels"][v] == label for v, label in evidence.items())
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.integers(0, graph.cards)
        for v, label in evidence.items():
            x[v] = label
        assert graph.score(x) <= known["optimum"] + 1e-9
    reduced = graph.condition(evidence).graph if evidence else graph
    result = fginfer.solve(reduced)
    assert result.status == "optimal"
    assert result.score == pytest.approx(known["optimum"], rel=1e-9)
    assert result.bound is not None
    assert result.bound >= known["optimum"] - 1e-9


@pytest.mark.slow
def test_the_script_still_makes_them(tmp_path: Path) -> None:
    """The same files and the same optima, proven again."""
    again = generator().generate(tmp_path)
    assert list(again) == list(KNOWN)
    for name, known in KNOWN.items():
        assert again[name]["optimum"] == pytest.approx(known["optimum"], rel=1e-9)
        ours, theirs = fginfer.read(tmp_path / name).to_arrays(), fginfer.read(FOLDER / name).to_arrays()
        assert np.array_equal(ours.cards, theirs.cards)
        assert np.array_equal(ours.vars, theirs.vars)
        assert np.allclose(ours.values, theirs.values, rtol=1e-12, atol=0)
