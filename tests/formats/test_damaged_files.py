"""Damaged files of every text format and of .npz: a model or a FormatError, never anything else."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fginfer
from fginfer import FactorGraph, FormatError
from fginfer.formats import read_evidence, read_solution

sys.path.insert(0, str(Path(__file__).parent.parent))
from readers import damaged_text

MODELS = Path(__file__).parent.parent.parent / "models"


def attack(original: bytes, path: Path, read: Callable[[Path], object], inputs: int) -> int:
    """How many of the damaged files were refused; any other exception fails the test."""
    rng = random.Random(path.name)
    refused = 0
    for _ in range(inputs):
        path.write_bytes(damaged_text(original, rng))
        try:
            read(path)
        except FormatError as error:
            refused += 1
            text = str(error)
            assert text.startswith(str(path))
            assert "\n" not in text
    return refused


@pytest.mark.parametrize("name", ["frequency.wcsp", "protein.cfn", "matching.npz", "multilabel.LG", "network.uai"])
def test_damaged_models(tmp_path: Path, name: str) -> None:
    assert attack((MODELS / name).read_bytes(), tmp_path / name, fginfer.read, 120) > 20


def test_damaged_evidence_and_solutions(tmp_path: Path) -> None:
    graph = FactorGraph([3] * 40)
    evidence = b"4 0 1 5 2 17 0 39 2\n"
    solution = b"MPE\n40 " + b"1 " * 40
    assert attack(evidence, tmp_path / "m.evid", lambda p: read_evidence(p, graph), 300) > 100
    assert attack(solution, tmp_path / "m.MPE", lambda p: read_solution(p, graph), 300) > 100
