"""Maximum cuts and binary quadratic models: every labeling has the value that the format's definition gives it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError

ENTRIES = [(1, 2, 3.0), (2, 4, -1.5), (3, 3, 2.0), (1, 4, 0.25), (4, 4, -7.0)]


def text(entries: list[tuple[int, int, float]], n: int = 4) -> str:
    return f"# remark\n{n} {len(entries)}\n" + "".join(f"{i} {j} {v}\n" for i, j, v in entries)


def written(tmp_path: Path, name: str, content: str) -> FactorGraph:
    (tmp_path / name).write_text(content)
    return fginfer.read(tmp_path / name)


def test_a_cut_is_the_weight_between_two_sides(tmp_path: Path):
    graph = written(tmp_path, "m.rud", text(ENTRIES))
    for x in product(range(2), repeat=4):
        assert graph.score(x) == sum(v for i, j, v in ENTRIES if x[i - 1] != x[j - 1])


def test_biqmac_lists_half_of_a_symmetric_matrix(tmp_path: Path):
    half = written(tmp_path, "m.sparse", text(ENTRIES))
    lower = written(tmp_path, "l.bq", text([(j, i, v) for i, j, v in ENTRIES]))
    both = [*ENTRIES, *((j, i, v) for i, j, v in ENTRIES if i != j)]
    whole = written(tmp_path, "w.bq", text(both))
    matrix = np.zeros((4, 4))
    for i, j, v in both:
        matrix[i - 1, j - 1] = v
    for x in product(range(2), repeat=4):
        assert half.score(x) == lower.score(x) == whole.score(x) == -(np.array(x) @ matrix @ np.array(x))
    with pytest.raises(FormatError, match="in both orders"):
        written(tmp_path, "half.bq", text([(1, 2, 1.0), (2, 1, 1.0), (2, 3, 1.0)]))


def test_qubo_counts_every_entry_once_and_is_written(tmp_path: Path):
    content = "c remark\np qubo 0 4 2 3\n0 0 -2\n3 3 1.5\n0 1 4\n2 0 -3\n1 3 1e-3\n"
    graph = written(tmp_path, "m.qubo", content)
    fginfer.write(graph, tmp_path / "again.qubo")
    again = fginfer.read(tmp_path / "again.qubo")
    listed = [(0, 0, -2), (3, 3, 1.5), (0, 1, 4), (2, 0, -3), (1, 3, 1e-3)]
    for x in product(range(2), repeat=4):
        assert graph.score(x) == pytest.approx(-sum(v * x[i] * x[j] for i, j, v in listed), abs=1e-15)
        assert again.score(x) == graph.score(x)


def test_what_qubo_cannot_hold(tmp_path: Path):
    three = FactorGraph([2, 2, 2])
    three.add_factor([0, 1, 2], np.arange(8.0))
    hard = FactorGraph([2, 2])
    hard.add_factor([0, 1], [[0.0, -np.inf], [0.0, 0.0]])
    constant = FactorGraph([2])
    constant.add_factor([0], [1.0, 2.0])
    cases = [(three, "3 variables"), (hard, "forbidden"), (constant, "constant"), (FactorGraph([3]), "two labels")]
    for graph, message in cases:
        with pytest.raises(FormatError, match=message):
            fginfer.write(graph, tmp_path / "m.qubo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.rud", "2 1\n1 3 4\n", "line 2 at '3': expected a variable, from 1 to 2"),
        ("m.rud", "2 1\n1 2 x\n", "line 2 at 'x': expected the value of an entry, a number"),
        ("m.rud", "2 1\n1 2 1e999\n", "line 2 at '1e999': .*too large"),
        ("m.rud", "2 2\n1 2 1\n", "the file ends where edge 2 of 2"),
        ("m.rud", "2 1\n1 2 1\n1 2 1\n", "line 3 at '1': extra text"),
        ("m.rud", "2\n", "line 1 at '2': expected the numbers"),
        ("m.rud", "", "the file ends"),
        ("m.rud", "2000000000 0\n", "line 1.* more than a file like this may"),
        ("m.qubo", "p cnf 3 2\n", "expected p qubo"),
        ("m.qubo", "p qubo 0 2 0 1\n0 2 1\n", "line 2 at '2'"),
        ("m.bq", "1_0 1\n1 1 1\n", "line 1 at '1_0'"),
        ("m.bq", "2 2\n1 2 1e308\n1 2 1e308\n", "more than a double holds"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str):
    with pytest.raises(FormatError, match=message):
        written(tmp_path, name, content)
