"""Evidence and solution files, right and wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fginfer import FactorGraph, FormatError, ModelError
from fginfer.formats import read_evidence, read_solution, write_evidence, write_solution


@pytest.fixture
def graph() -> FactorGraph:
    return FactorGraph([2, 3, 4])


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("0", {}),
        ("1 0", {}),
        ("1\n0\n", {}),
        ("1 2 3", {2: 3}),
        ("1\n1 2 3", {2: 3}),
        ("2 0 1 2 0\n", {0: 1, 2: 0}),
        ("1\n2 0 1\n2 0", {0: 1, 2: 0}),
        ("2 0 1 0 1", {0: 1}),
    ],
)
def test_both_layouts(tmp_path: Path, graph: FactorGraph, text: str, evidence: dict[int, int]) -> None:
    assert read_evidence(write(tmp_path / "m.evid", text), graph) == evidence


@pytest.mark.parametrize(
    ("text", "line", "token", "says"),
    [
        ("", 1, "end of file", "ends where"),
        ("1 5 0", 1, "5", "from 0 to 2"),
        ("2\n0 1\n-1 1", 3, "-1", "from 0 to 2"),
        ("1\n1\n1 3", 3, "3", "label of variable 1, from 0 to 2"),
        ("2 0 1", 1, "end of file", "ends where"),
        ("1 0 1 0 1", 1, "0", "extra text"),
        ("2 1 0 1", 1, "2", "neither"),
        ("2 0 1 0 0", 1, "0", "twice"),
        ("1 x 0", 1, "x", "whole number"),
        ("999999999999999999999999 0 0", 1, "end of file", "ends where"),
    ],
)
def test_wrong_evidence(tmp_path: Path, graph: FactorGraph, text: str, line: int, token: str, says: str) -> None:
    path = write(tmp_path / "m.evid", text)
    with pytest.raises(FormatError) as caught:
        read_evidence(path, graph)
    assert (caught.value.path, caught.value.line, caught.value.token) == (str(path), line, token)
    assert says in str(caught.value)


def test_evidence_round_trip(tmp_path: Path, graph: FactorGraph) -> None:
    write_evidence({2: 1, 0: 0}, tmp_path / "m.evid.gz")
    assert read_evidence(tmp_path / "m.evid.gz", graph) == {0: 0, 2: 1}


@pytest.mark.parametrize(
    "text", ["MPE\n3 1 2 3", "MAP 1 3 1 2 3", "MPE\n3 1 2 3\n", "1 2 3\n", "MPE 2 3 0 0 0 3 1 2 3"]
)
def test_solutions(tmp_path: Path, graph: FactorGraph, text: str) -> None:
    assert read_solution(write(tmp_path / "m.MPE", text), graph).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "token", "says"),
    [
        ("", "end of file", "label of variable 0"),
        ("MPE", "end of file", "number of variables"),
        ("MPE 3 1 2", "end of file", "label of variable 2"),
        ("MPE 2 1 2", "2", "number of variables, 3"),
        ("MPE 3 1 2 4", "4", r"label of variable 2 \(of 3\), from 0 to 3"),
        ("MPE 3 1 2 3 0 0", "0", "extra text after the labels of 3 variables"),
        ("1 2", "end of file", "label of variable 2"),
        ("1 2 x", "x", "label of variable 2"),
        ("1 2 3 0", "0", "extra text"),
    ],
)
def test_wrong_solutions(tmp_path: Path, graph: FactorGraph, text: str, token: str, says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        read_solution(write(tmp_path / "m.MPE", text), graph)
    assert caught.value.line == 1
    assert caught.value.token == token


def test_solution_round_trip(tmp_path: Path, graph: FactorGraph) -> None:
    write_solution(np.array([0, 2, 1]), tmp_path / "m.MPE")
    assert (tmp_path / "m.MPE").read_text() == "MPE\n3 0 2 1\n"
    assert read_solution(tmp_path / "m.MPE", graph).tolist() == [0, 2, 1]
    with pytest.raises(ModelError):
        write_solution([0.5], tmp_path / "m.MPE")


def test_evidence_is_read_without_a_graph_too(tmp_path):
    (tmp_path / "e.evid").write_text("2 7 1 900 0\n")
    assert read_evidence(tmp_path / "e.evid") == {7: 1, 900: 0}
    for text in ("2 7 1\n", "1 -1 0\n", "1 0 2147483647\n", "2 7 1 7 0\n"):
        (tmp_path / "e.evid").write_text(text)
        with pytest.raises(FormatError):
            read_evidence(tmp_path / "e.evid")
