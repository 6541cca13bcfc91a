"""Damaged files of every text format and of .npz: a model or a FormatError, never anything else."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import fginfer
from fginfer import FactorGraph, FormatError
from fginfer.formats import read_evidence, read_solution

MODELS = Path(__file__).parent.parent.parent / "models"
TOKENS = [
    b"-1",
    b"0",
    b"99999999999999999999",
    b"1e400",
    b"nan",
    b"-inf",
    b"x",
    b"[",
    b"]",
    b"{",
    b'"',
    b"\n",
    b"#",
    b"\xff\x00",
    b" ",
    b"-",
]


def damage(data: bytes, rng: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0 and at < len(text):
            text[at] = rng.randrange(256)
        elif kind == 1:
            del text[at : at + rng.randint(1, 20)]
        elif kind == 2:
            text[at:at] = rng.choice(TOKENS)
        elif kind == 3:
            text[at:at] = text[at : at + rng.randint(1, 40)]
        elif rng.random() < 0.3:
            del text[at:]
        else:  # another number in place of one
            while at < len(text) and not chr(text[at]).isdigit():
                at += 1
            text[at : at + 1] = str(rng.choice([0, 7, 31, 10**6, 10**15])).encode()
    return bytes(text)


def attack(original: bytes, path: Path, read: Callable[[Path], object], inputs: int) -> int:
    """How many of the damaged files were refused; any other exception fails the test."""
    rng = random.Random(path.name)
    refused = 0
    for _ in range(inputs):
        path.write_bytes(damage(original, rng))
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
