"""QAPLIB, .dd, QPLIB and AD3 files: every labeling has the value that the format's definition gives it."""

from __future__ import annotations

from itertools import permutations, product
from math import inf
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError

CORPUS = Path(__file__).parent.parent / "corpus"


def read(tmp_path: Path, name: str, content: str, format: str | None = None) -> FactorGraph:
    (tmp_path / name).write_text(content)
    return fginfer.read(tmp_path / name, format=format)


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True), (False, False)])
def test_quadratic_assignment(tmp_path: Path, first: bool, second: bool):
    rng = np.random.default_rng(first + 2 * second)
    a, b = rng.integers(-3, 6, (2, 4, 4))
    a, b = a + a.T if first else a, b + b.T if second else b
    a[0, 1] = a[1, 0] = 0
    text = "4 17\n" + "\n".join(" ".join(map(str, row)) for row in [*a.tolist(), *b.tolist()])
    graph = read(tmp_path, "nug4.dat", text)
    for p in product(range(4), repeat=4):
        cost = sum(a[i, j] * b[p[i], p[j]] for i in range(4) for j in range(4))
        assert graph.score(p) == (-cost if len(set(p)) == 4 else -inf)
    best = fginfer.solve(graph)
    costs = [sum(a[i, j] * b[p[i], p[j]] for i in range(4) for j in range(4)) for p in permutations(range(4))]
    assert best.score == -min(costs)


def test_graph_matching():
    graph = fginfer.read(CORPUS / "small.dd")
    assert graph.names is not None
    assert graph.names.labels(1) == ("none", "0", "1", "2")
    assigned = [(0, 0, -1.5), (0, 1, 2.0), (1, 0, -1.0), (1, 1, 0.5), (1, 2, -2.0)]
    edges = [(0, 3, -4.0), (4, 1, 1.25), (0, 4, 0.75), (2, 4, 9.0)]
    for x in product(range(3), range(4)):
        chosen = [k for k, (left, right, _) in enumerate(assigned) if x[left] == right + 1]
        cost = sum(assigned[k][2] for k in chosen) + sum(c for a, b, c in edges if a in chosen and b in chosen)
        good = len({assigned[k][1] for k in chosen}) == len(chosen)
        assert graph.score(x) == (-cost if good else -inf)


def test_qplib():
    graph = fginfer.read(CORPUS / "small.qplib")
    assert graph.variable("second") == 1
    q = np.array([[2.0, -1, 0], [-1, 0, 4], [0, 4, -1]])  # symmetric, of which the lower triangle is listed
    for x in product(range(2), repeat=3):
        v = np.array(x)
        value = v @ q @ v / 2 + np.array([-0.5, 0.25, -0.5]) @ v + 1.5
        good = x[0] + x[1] <= 1 and x[1] + 2 * x[2] >= 3  # tenths: .1 + .2 is .3 here
        assert graph.score(x) == (pytest.approx(-value, abs=1e-15) if good else -inf)


def test_an_upper_triangle_counts_half_if_the_file_says_so(tmp_path: Path):
    text = "NAME\nQBN\nMaximize\n2\n1 # nonzeros in upper triangle of H\n1 2 4.0\n0\n0\n0\n1e20\n"
    assert read(tmp_path, "m.qplib", text).score([1, 1]) == 2.0
    with pytest.raises(FormatError, match="whole or half"):
        read(tmp_path, "m.qplib", text.replace("upper", "some"))
    assert read(tmp_path, "m.qplib", text.replace("upper", "lower").replace("1 2 4", "2 1 4")).score([1, 1]) == 4.0


def test_ad3():
    graph = fginfer.read(CORPUS / "small.fg")
    for x in product(range(2), repeat=4):
        a, b, c, d = x
        good = (
            (a or b or not c)
            and a + d == 1
            and (1 - b) + c <= 1
            and d == (a or b)
            and a + b + c + (1 - d) <= 3
            and 2.5 * a + c <= 3
            and a + b == 1
            and c + d == 1
        )
        dense = {(0, 0): 0.5, (0, 1): -1.0, (1, 0): 2.0, (1, 1): 0.0}
        score = 0.75 * a + 1.25 * b - 0.5 * c + 2 * d - 1.05 * a * b + (dense[1 - a, 1 - c] if good else 0)
        assert graph.score(x) == (pytest.approx(score, abs=1e-15) if good else -inf)
    assert any(graph.score(x) > -inf for x in product(range(2), repeat=4))


@pytest.mark.parametrize(
    ("factor", "holds"),
    [
        ("XOR 3 1 -2 3", lambda a, b, c: a + (1 - b) + c == 1),
        ("XOROUT 3 1 2 3", lambda a, b, c: a + b == c),
        ("ANDOUT 3 1 -2 3", lambda a, b, c: c == (a and not b)),
        ("OROUT 3 -1 -2 -3", lambda a, b, c: c == (a and b)),
    ],
)
def test_logic_of_ad3(tmp_path: Path, factor: str, holds):
    graph = read(tmp_path, "m.fg", f"3\n1\n0\n0\n0\n{factor}\n")
    for x in product(range(2), repeat=3):
        assert (graph.score(x) == 0.0) == bool(holds(*x))


def test_one_of_many(tmp_path: Path):
    n = 20  # more than a table has room for
    listed = " ".join(str(k + 1) for k in range(n))
    text = f"{n}\n1\n" + "1.5\n" * n + f"ATMOSTONE {n} {listed}\n"
    graph = read(tmp_path, "m.fg", text)
    assert graph.score([0] * n) == 0.0
    assert graph.score([0] * (n - 1) + [1]) == 1.5
    assert graph.score([1] + [0] * (n - 2) + [1]) == -inf


QP = "N\nQBL\nmin\n2\n1\n0\n0\n0\n0\n{}\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.dat", "2\n1 2\n3 4\n", "line 3 at 'end of file': the file ends where entry 5 of 8"),
        ("m.dat", "1\n1\n2\n3\n", "line 4 at '3': extra numbers"),
        ("m.dat", "1\n1\nx\n", "line 3 at 'x': expected an entry"),
        ("m.dat", "1 x\n1\n1\n", "line 1 at 'x': expected the optimum"),
        ("m.dat", "1000001\n", "line 1 at '1000001': expected the size"),
        ("m.dd", "p 1 1 1\n", "line 1 at '1': expected p LEFT RIGHT"),
        ("m.dd", "p 1 1 1 0\na 1 0 0 1\n", "line 2 at '1': expected assignment 0"),
        ("m.dd", "p 1 1 1 0\na 0 1 0 1\n", "line 2 at '1': expected a left point"),
        ("m.dd", "p 1 1 1 0\na 0 0 0 1\ne 0 1 1\n", "line 3 at '1': expected an assignment"),
        ("m.dd", "p 1 1 2 0\na 0 0 0 1\n", "1 assignments and 0 edges, not 2 and 0"),
        ("m.dd", "p 1 1 2 0\na 0 0 0 1\na 1 0 0 1\n", "have two assignments"),
        ("m.dd", "p 2000000000 1 0 0\n", "line 1.*would take"),
        ("m.dd", "p 1 1 0 0\nz\n", "line 2 at 'z': expected a line of a"),
        ("m.qplib", "N\nQMB\n", "line 2 at 'QMB': only problems whose variables are all binary"),
        ("m.qplib", "N\nQBQ\n", "line 2 at 'QBQ': quadratic constraints are not read"),
        ("m.qplib", "N\nABC\n", "line 2 at 'ABC': expected the type"),
        ("m.qplib", "N\nQBN\nup\n", "line 3 at 'up': expected minimize"),
        ("m.qplib", "N\nQBN\nmin\n2000000000\n", "line 4.*would take"),
        ("m.qplib", QP.format("1\n1 3 1"), "line 11 at '3': expected an index, from 1 to 2"),
        ("m.qplib", QP.format("1\n1 1 1e300\n"), "the file ends where the value of infinity"),
        ("m.qplib", QP.format("1\n1 1 x\n"), "line 11 at 'x': expected a linear term"),
        ("m.fg", "1\n1\n0\nTREE 1 1\n", "line 4 at 'TREE': factors of type TREE are not read"),
        ("m.fg", "1\n1\n0\nXOR 2 1\n", "line 4 at '2': expected the number of variables of a factor"),
        ("m.fg", "1\n1\n0\nXOR 1 2\n", "line 4 at '2': expected a variable"),
        ("m.fg", "1\n1\n0\nXOR 1 0\n", "line 4 at '0': expected a variable; they count from 1"),
        ("m.fg", "1\n0\n0\n\n1\n0\n0\n", "line 5 at '1': text after 0 factors"),
        ("m.fg", "2\n1\n0\n0\nPAIR 2 1 2\n", "line 5 at '2': expected 2 variables and a score"),
        ("m.fg", "2\n1\n0\n0\nDENSE 2 1 2 2 1 1 0 0\n", "the table has 2 scores, not 1"),
        ("m.fg", "2000000000\n0\n", "line 2.*would take"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, name, content, "qaplib" if name == "m.dat" else None)
