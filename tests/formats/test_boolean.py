"""CNF, WCNF, OPB and WBO: every labeling costs what the definition of the format says."""

from __future__ import annotations

import random
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError

CORPUS = Path(__file__).parent.parent / "corpus"


def read(tmp_path: Path, name: str, content: str) -> FactorGraph:
    (tmp_path / name).write_text(content)
    return fginfer.read(tmp_path / name)


def cost(clauses: list[tuple[float, list[int]]], x: tuple[int, ...]) -> float:
    return sum(w for w, some in clauses if not any(x[abs(k) - 1] == (k > 0) for k in some))


def clauses_of(rng: random.Random, n: int, m: int) -> list[tuple[float, list[int]]]:
    return [
        (
            inf if rng.random() < 0.2 else float(rng.randint(1, 9)),
            [rng.choice((-1, 1)) * rng.randint(1, n) for _ in range(rng.randint(0 if rng.random() < 0.1 else 1, 5))],
        )
        for _ in range(m)
    ]


@pytest.mark.parametrize("layout", ["old", "new"])
def test_weighted_clauses(tmp_path: Path, layout: str):
    rng = random.Random(layout)
    for trial in range(30):
        clauses = clauses_of(rng, 4, rng.randint(1, 9))
        body = "\n".join(
            " ".join(map(str, [("h" if layout == "new" else 100) if w == inf else int(w), *some, 0]))
            for w, some in clauses
        )
        head = f"p wcnf 4 {len(clauses)} 100\n" if layout == "old" else "c free\n4 4 -4 0\n"
        graph = read(tmp_path, f"m{trial}.wcnf", f"{head}{body}\n")
        fginfer.write(graph, tmp_path / "again.wcnf")
        again = fginfer.read(tmp_path / "again.wcnf")
        for x in product(range(2), repeat=4):
            assert graph.score(x) == again.score(x) == -cost(clauses, x)


def test_hard_clauses_on_any_lines():
    graph = fginfer.read(CORPUS / "hard.cnf")
    clauses = [(inf, [1, -2]), (inf, [2, 3, -4]), (inf, [-1, 4])]
    for x in product(range(2), repeat=4):
        assert graph.score(x) == (0.0 if cost(clauses, x) == 0 else -inf)


def test_without_a_top_every_clause_is_soft(tmp_path: Path):
    assert read(tmp_path, "m.wcnf", "p wcnf 1 2\n5 1 0\n7 -1 0\n").score([0]) == -5.0


@pytest.mark.parametrize("top", [2**63 - 1, 2**64 - 1, 10**40])
def test_a_top_of_any_size(tmp_path: Path, top: int):
    (tmp_path / "m.wcnf").write_text(f"p wcnf 2 3 {top}\n{top} 1 2 0\n{top + 1} -1 -2 0\n3 1 0\n")
    graph = fginfer.read(tmp_path / "m.wcnf")
    assert [graph.score(x) for x in product(range(2), repeat=2)] == [-inf, -3.0, 0.0, -inf]


def test_big_integers_of_constraints_are_exact(tmp_path: Path):
    big = 10**30
    many = " ".join(f"+{big + k} x{k}" for k in range(1, 9))
    (tmp_path / "m.opb").write_text(f"+{big} x1 -{big + 1} x2 >= 0 ;\n{many} <= {4 * big + 10} ;\n")
    graph = fginfer.read(tmp_path / "m.opb")
    for x in product(range(2), repeat=8):
        allowed = big * x[0] >= (big + 1) * x[1] and sum((big + k + 1) * a for k, a in enumerate(x)) <= 4 * big + 10
        assert graph.score(x) == (0.0 if allowed else -inf)


def test_any_binary_model_of_whole_costs_is_written(tmp_path: Path):
    rng = np.random.default_rng(4)
    graph = FactorGraph([2] * 4)
    graph.add_factor([0, 2, 3], -rng.integers(0, 5, (2, 2, 2)).astype(float))
    graph.add_factor([1, 0], [[-inf, -1.0], [-3.0, -2.0]])
    graph.add_factor([1], [-4.0, 0.0])
    fginfer.write(graph, tmp_path / "m.wcnf")
    again = fginfer.read(tmp_path / "m.wcnf")
    for x in product(range(2), repeat=4):
        assert again.score(x) == graph.score(x)


def test_what_clauses_cannot_hold(tmp_path: Path):
    half, three, gain = FactorGraph([2]), FactorGraph([3]), FactorGraph([2])
    half.add_factor([0], [0.0, -0.5])
    gain.add_factor([0], [1.0, 0.0])
    for graph, message in [(half, "no whole number"), (three, "two labels"), (gain, "cannot be negative")]:
        with pytest.raises(FormatError, match=message):
            fginfer.write(graph, tmp_path / "m.wcnf")
    with pytest.raises(FormatError, match="wbo files are read, not written"):
        fginfer.write(FactorGraph([2]), tmp_path / "m.wbo")


def test_pseudo_boolean():
    graph = fginfer.read(CORPUS / "small.opb")
    for x in product(range(2), repeat=4):
        a, b, c, d = x
        holds = a + 2 * (1 - b) - c >= 0 and a + b + c + d == 2 and -2 * a + 3 * d <= 3
        assert graph.score(x) == (-(2 * a - 3 * b + (1 - c) * d) if holds else -inf)


def test_soft_constraints_and_their_top():
    graph = fginfer.read(CORPUS / "small.wbo")
    assert graph.cutoff == -7.0
    for x in product(range(2), repeat=3):
        a, b, c = x
        wanted = -2.0 * (a + b < 2) - 5.0 * (-a - c < -1)
        assert graph.score(x) == (wanted if b + (1 - c) >= 1 else -inf)


def test_maximising_and_repeated_literals(tmp_path: Path):
    graph = read(tmp_path, "m.opb", "max: 3 x1 x1 +2 x2 ~x2 +1 ~x2;\n2 x1 +1 ~x1 -3 x2 +3 x2 >= 2;\n")
    assert [graph.score(x) for x in product(range(2), repeat=2)] == [-inf, -inf, 4.0, 3.0]


def test_clauses_of_any_length(tmp_path: Path):
    n = 40  # a table would have 10^12 entries
    literals = [k if k % 3 else -k for k in range(1, n + 1)]
    text = "\n".join(f"{w} {' '.join(map(str, literals))} 0" for w in ("h", 5))
    graph = read(tmp_path, "m.wcnf", f"{text}\n7 -1 0\n")
    violated = [0 if k > 0 else 1 for k in literals]
    satisfied = [1, *violated[1:]]
    assert graph.score(violated) == -inf
    assert graph.score(satisfied) == -7.0
    best = fginfer.solve(graph)
    assert best.score == 0.0
    fginfer.write(graph, tmp_path / "again.wcnf")
    again = fginfer.read(tmp_path / "again.wcnf")
    rng = np.random.default_rng(0)
    for x in [violated, satisfied, *rng.integers(0, 2, (20, n)).tolist()]:
        assert again.score(x) == graph.score(x)


def test_long_constraints_and_products(tmp_path: Path):
    n = 15
    listed = " ".join(f"+{k} {'~' if k % 4 == 0 else ''}x{k}" for k in range(1, n + 1))
    objective = " ".join(f"x{k}" for k in range(1, n + 1))
    graph = read(tmp_path, "m.opb", f"min: -3 {objective} +5 {objective.replace('x2 ', '~x2 ')};\n{listed} >= 30;\n")
    rng = np.random.default_rng(1)
    for x in [[1] * n, [1, 0, *[1] * (n - 2)], *rng.integers(0, 2, (60, n)).tolist()]:
        total = sum(k * (1 - x[k - 1] if k % 4 == 0 else x[k - 1]) for k in range(1, n + 1))
        value = -3 * all(x) + 5 * (all(x[:1] + x[2:]) and not x[1])
        assert graph.score(x) == (-value if total >= 30 else -inf)


def test_other_constraints_are_not_written_as_clauses(tmp_path: Path):
    graph = FactorGraph([2] * 10)
    graph.add_at_most(2, [(i, 1) for i in range(10)])
    with pytest.raises(FormatError, match=r"constraint \(at most\) is no clause"):
        fginfer.write(graph, tmp_path / "m.wcnf")


def test_limits_that_contradict(tmp_path: Path):
    text = "N\nLBL\nmin\n2\n1\n0\n0\n0\n2\n1 1 1\n1 2 1\n1e20\n2\n0\n1\n0\n"
    assert read(tmp_path, "m.qplib", text).score([1, 1]) == -inf


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.cnf", "p cnf 2 1\n1 3 0\n", "line 2 at '3': expected a literal.* from -2 to 2"),
        ("m.cnf", "p cnf 2 1\n1 x 0\n", "line 2 at 'x': expected a literal"),
        ("m.cnf", "p cnf 2 1\n1 2\n", "line 2 at 'end of file': the file ends inside a clause"),
        ("m.cnf", "p cnf 2 2\n1 2 0\n", "announces 2 clauses, and there are 1"),
        ("m.cnf", "p cnf 2\n", "line 1 at '2': expected p cnf"),
        ("m.cnf", "p sat 2 2\n", "line 1 at 'sat': expected p cnf"),
        ("m.cnf", "p cnf 2000000000 0\n", "line 1.*would take"),
        ("m.cnf", "", "the file ends where clauses"),
        ("m.wcnf", "p wcnf 2 1 5\nh 1 0\n", "line 2 at 'h': expected the weight"),
        ("m.wcnf", "p wcnf 2 1 5\n-3 1 0\n", "line 2 at '-3': expected the weight of a clause, at least 0"),
        ("m.wcnf", "h 2000000000 0\n", "line 1.*would take"),
        ("m.wcnf", "9007199254740993 1 0\n", "line 1 at '9007199254740993': a weight that a double"),
        ("m.opb", "min: 1 x1 ;\n1 x1 > 3;\n", "line 2 at '>': expected a number, a literal"),
        ("m.opb", "1 y1 >= 3;\n", "line 1 at 'y1': expected a coefficient, a literal"),
        ("m.opb", "1 x0 >= 3;\n", "line 1 at '0': expected the number of a variable"),
        ("m.opb", "1 >= 3;\n", "a coefficient has no literal"),
        ("m.cnf", "1 -2 0\n", "line 1 at '1': expected p cnf"),
        ("m.cnf", "cnf 2 1\n1 0\n", "line 2 at '1': expected p cnf"),
        ("m.opb", "1 x1 x2 >= 1;\n", "line 1 at ';': a constraint has a product"),
        ("m.opb", "1 x1 >= 1\n", "the file ends where ';'"),
        ("m.opb", "1 x1 >= x1;\n", "line 1 at 'x1': expected the right side"),
        ("m.opb", "1 x1999999999 >= 1;\n", "line 1.*would take"),
        ("m.opb", "* nothing\n", "no objective and no constraint"),
        ("m.opb", "min: 9007199254740993 x1;\n", "line 1 at ';': a number that a double"),
        ("m.opb", "min 1 x1;\n", "line 1 at '1': expected ':'"),
        ("m.wbo", "soft: x1 ;\n", "line 1 at 'x1': expected the top"),
        ("m.wbo", "[0] 1 x1 >= 1 ;\n", "line 1 at '0': expected the cost"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, name, content)
