"""LP, MPS, OPB and CNF against the definition, HiGHS, and what is written and read again."""

from __future__ import annotations

from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fginfer
from fginfer import FactorGraph, FormatError

LP = """\\ a comment
Maximize
 value: 3 x + 2 y - 1.5 z
Subject To
 few: x + y + z <= 2
 order: - x + 2 y >= 0
Binary
 x y z
End
"""


def read(tmp_path: Path, name: str, text: str) -> FactorGraph:
    (tmp_path / name).write_text(text)
    return fginfer.read(tmp_path / name)


def test_a_program_has_its_scores_and_names(tmp_path: Path) -> None:
    graph = read(tmp_path, "m.lp", LP)
    for x, y, z in product(range(2), repeat=3):
        allowed = x + y + z <= 2 and -x + 2 * y >= 0
        assert graph.score([x, y, z]) == (3 * x + 2 * y - 1.5 * z if allowed else -inf)
    assert fginfer.solve(graph).named() == {"x": 1, "y": 1, "z": 0}
    assert fginfer.read(tmp_path / "m.lp").names.variable(2) == "z"
    (tmp_path / "m.lp").rename(tmp_path / "noname.txt")
    assert fginfer.read(tmp_path / "noname.txt").score([1, 1, 0]) == 5.0


def random_program(seed: int, quadratic: bool) -> tuple[str, list[tuple[dict[int, int], str, int]], np.ndarray, str]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    rows = []
    for _ in range(rng.integers(0, 4)):
        some = {int(v): int(rng.integers(-4, 5)) or 1 for v in rng.permutation(n)[: rng.integers(1, n + 1)]}
        rows.append((some, str(rng.choice(["<=", ">=", "="])), int(rng.integers(-3, 5))))
    costs = np.diag(rng.integers(-5, 6, n))
    if quadratic:
        costs = costs + np.triu(rng.integers(-3, 4, (n, n)), 1)
    sense = str(rng.choice(["Minimize", "Maximize"]))
    linear = " ".join(f"{costs[i, i]:+d} x{i}" for i in range(n))
    pairs = [f"{2 * costs[i, j]:+d} x{i} * x{j}" for i in range(n) for j in range(i + 1, n) if costs[i, j]]
    text = f"{sense}\n obj: {linear}{' + [ ' + ' '.join(pairs) + ' ] / 2' if pairs else ''}\nSubject To\n"
    for k, (some, sign, limit) in enumerate(rows):
        text += f" c{k}: {' '.join(f'{w:+d} x{v}' for v, w in some.items())} {sign} {limit}\n"
    text += "Binary\n " + " ".join(f"x{i}" for i in range(n)) + "\nEnd\n"
    return text, rows, costs, sense


def expected(rows, costs, sense, x) -> float:
    for some, sign, limit in rows:
        total = sum(w * x[v] for v, w in some.items())
        if not {"<=": total <= limit, ">=": total >= limit, "=": total == limit}[sign]:
            return -inf
    value = float(np.array(x) @ costs @ np.array(x))
    return value if sense == "Maximize" else -value


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    highspy = pytest.importorskip("highspy")
    text, rows, costs, sense = random_program(seed, bool(seed % 2))
    graph = read(tmp_path, "m.lp", text)
    for x in product(range(2), repeat=len(costs)):
        assert graph.score(x) == expected(rows, costs, sense, x)
    if seed % 2 == 0:  # HiGHS writes the same as MPS, and solves linear ones
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(str(tmp_path / "m.lp"))
        solver.writeModel(str(tmp_path / "m.mps"))
        solver.run()
        again = fginfer.read(tmp_path / "m.mps")
        for x in product(range(2), repeat=len(costs)):
            assert again.score(x) == graph.score(x)
        result = fginfer.solve(graph)
        if "kOptimal" in str(solver.getModelStatus()):
            sign = 1.0 if sense == "Maximize" else -1.0
            assert result.score == pytest.approx(sign * solver.getObjectiveValue(), abs=1e-6)
        else:
            assert result.status == "infeasible"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Binary\n x y z", "Binary\n x y", "'z' is not binary: it is not whole"),
        ("Binary\n x y z", "Bounds\n z <= 3\nGeneral\n z\nBinary\n x y", "'z' is not binary: it is whole, from 0 to 3"),
        ("z <= 2", "z 2 <=", "line 5 at '2': expected <=, >= or ="),
        ("End", "\0", "a byte is zero"),
        ("End", "", "line 8 at 'end of file': the file ends where End was expected"),
        ("End", "End\n x", "line 10 at 'x': text after End"),
        ("Maximize", "min: x;", "line 2 at 'min': this is the LP format of lp_solve"),
        ("Maximize", "What", "line 2 at 'What': expected Minimize or Maximize"),
        ("3 x + 2 y", "3 x 2 y", "line 3 at '2': expected a sign"),
        ("3 x + 2 y", "3 x * y", r"line 3 at '\*': products stand in brackets"),
        ("3 x + 2 y", "[ x * y ]", r"line 3 at '\]': expected / 2"),
        ("x + y + z", "x + [ y * z ]", r"line 5 at '\[': quadratic constraints are not read"),
        ("<= 2", "<= 2 - x", "line 5 at '-': expected the end of the row"),
        ("<= 2", "<= -inf", "line 5 at 'inf': nothing can reach this limit"),
        (" few: x + y + z <= 2", " 1 <= x + y >= 0", "line 5 at '>=': two relations must have one direction"),
        (" order:", " few:", "line 6 at 'few': another row has this name"),
        ("<= 2", "<= 1e999", "line 5 at '1e999': a number is too large"),
        ("Binary", "SOS\n s1: S1:: x:1 y:2\nBinary", "special ordered sets are not read"),
        ("Binary", "Semi-Continuous\n x\nBinary", "semi-continuous variables are not read"),
        ("Binary", "Bounds\n 2 x <= 1\nBinary", "a bound is for one variable"),
    ],
)
def test_what_is_no_binary_program(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read(tmp_path, "m.lp", LP.replace(old, new))


@pytest.mark.parametrize(
    "text",
    [
        LP.replace("\n", "\r\n"),
        LP.replace("\n", "\r"),
        "\ufeff" + LP.rstrip("\n"),
        LP.replace(" ", "\t"),
        LP.upper()
        .replace("X", "x")
        .replace("Y", "y")
        .replace("Z", "z")
        .replace("MAx", "MAX")
        .replace("BINARy", "BINARY"),
        LP.replace("Maximize", "maximise").replace("Subject To", "s.t.").replace("Binary", "bin"),
        LP.replace("Maximize\n", "MAX ").replace("Subject To\n", "st ").replace("few: ", "").replace("order:", ""),
        LP.replace("3 x + 2 y - 1.5 z", "3x\n + 2.0 y\n\n - \\ more\n 15e-1 z + 0"),
        LP.replace("x + y + z <= 2", "- 5 <= x + y + z =< +2.").replace("- x + 2 y >= 0", "0 <= -x + 2 y"),
        LP.replace("x + y + z <= 2", "2 => x + 2 z + y - z").replace("- x + 2 y >= 0", "7 + x + -2 y <= 7"),
        LP.replace("Binary\n x y z", "Bounds\n 0 <= x <= 1\n y <= 1\n z <= 2\n z <= 1\nGenerals\n x\n y z"),
        LP.replace("Binary", "Bounds\n x free\n y >= -inf\nBinary"),
        LP.replace(" order", "Lazy Constraints\n order"),
    ],
)
def test_one_program_in_many_layouts(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.lp").write_bytes(text.encode())
    graph, meant = fginfer.read(tmp_path / "m.lp"), read(tmp_path, "other.lp", LP)
    for x in product(range(2), repeat=3):
        assert graph.score(x) == meant.score(x)


def test_indicators_constants_and_brackets(tmp_path: Path) -> None:
    text = LP.replace("- 1.5 z", "- 1.5 z + 4 - [ 4 x^2 - 2 x * z ] / 2").replace(" order:", " order: y = 0 ->")
    graph = read(
        tmp_path,
        "m.lp",
        text.replace(" x + y", " x[1,a] + y").replace("3 x ", "3 x[1,a] ").replace("\n x y", "\n x x[1,a] y"),
    )
    place = [graph.variable(name) for name in ("x[1,a]", "x", "y", "z")]
    for values in product(range(2), repeat=4):
        xa, x, y, z = values
        labels = [0] * 4
        for k, value in zip(place, values, strict=True):
            labels[k] = value
        allowed = xa + y + z <= 2 and (y or -x + 2 * y >= 0)
        assert graph.score(labels) == (3 * xa + 2 * y - 1.5 * z + 4 - 2 * x + x * z if allowed else -inf)


MPS = """NAME  some name
* a remark
OBJSENSE
    MAX
ROWS
 N  value
 N  other
 L  few
 G  order
COLUMNS
    M1  'MARKER'  'INTORG'
    x  value  3  few  1
    x  order  -1  other  7
    y  value  2  few  1
    y  order  2
    z  value  -1.5  few  1
    M2  'MARKER'  'INTEND'
RHS
    RHS  few  2
ENDATA
"""


@pytest.mark.parametrize(
    "text",
    [
        MPS,
        MPS.replace("\n", "\r\n").rstrip(),
        "\ufeff" + MPS.replace("  ", "\t"),
        MPS.replace("OBJSENSE\n    MAX", "OBJSENSE MAXIMIZE"),
        MPS.replace("RHS  few  2", "few 2").replace("ENDATA", "BOUNDS\n BV b x\n UP b y 1\n BV z\nENDATA"),
        MPS.replace("ENDATA", "RANGES\n    r few 7.0e0 order 1D1\nENDATA".replace("1D1", "1E1")),
        MPS.replace("    M1  'MARKER'  'INTORG'\n", "").replace("ENDATA", "BOUNDS\n UI x 1\n BV b y 1\n BV z\nENDATA"),
    ],
)
def test_mps_in_many_layouts(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.mps").write_bytes(text.encode())
    graph, meant = fginfer.read(tmp_path / "m.mps"), read(tmp_path, "m.lp", LP)
    for x in product(range(2), repeat=3):
        assert graph.score(x) == meant.score(x)
    assert fginfer.read(tmp_path / "m.mps").names.variable(2) == "z"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ENDATA", "", "line 19 at 'end of file': the file ends where ENDATA was expected"),
        ("ENDATA", "ENDATA\nx", "line 21 at 'x': text after ENDATA"),
        ("ENDATA", "SOS\nENDATA", "special ordered sets are not read"),
        ("ENDATA", "BOUNDS\n SC b x 1\nENDATA", "semi-continuous variables are not read"),
        (
            "ENDATA",
            "BOUNDS\n LO b x 0\nENDATA",
            "line 12 at 'x': variable 'x' is not binary: it is whole, from 0 to inf",
        ),
        ("ENDATA", "BOUNDS\n UP b w 0\nENDATA", "line 21 at 'w': there is no column 'w'"),
        ("ENDATA", "BOUNDS\n UP x\nENDATA", "line 21 at 'x': the bound has no number"),
        ("few  2", "fwe  2", "line 19 at 'fwe': there is no row 'fwe'"),
        ("few  2", "few  2x", "line 19 at '2x': expected a number"),
        (" G  order", " G  few", "line 9 at 'few': there are two rows 'few'"),
        (" G  order", " H  order", "line 9 at 'H': expected the type of a row"),
        ("'INTORG'", "'INTERN'", "expected the marker"),
        ("    y  order  2", "    y  order", "line 15 at 'order': expected a column"),
        ("NAME  some name", "COLUMN", "line 1 at 'COLUMN': expected NAME, OBJSENSE or ROWS"),
    ],
)
def test_damaged_mps(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read(tmp_path, "m.mps", MPS.replace(old, new, 1))


def test_mps_with_squares_constants_and_indicators(tmp_path: Path) -> None:
    more = "QUADOBJ\n    x  x  4\n    x  z  -3\nINDICATORS\n IF order y 0\nENDATA"
    text = MPS.replace("few  2", "few  2  value  5").replace("ENDATA", more)
    both = text.replace("QUADOBJ\n    x  x  4\n", "QMATRIX\n    x  x  4\n    z  x  -3\n")
    for name, some in (("m.mps", text), ("n.mps", both)):
        graph = read(tmp_path, name, some)
        for x, y, z in product(range(2), repeat=3):
            allowed = x + y + z <= 2 and (y or -x + 2 * y >= 0)
            assert graph.score([x, y, z]) == (3 * x + 2 * y - 1.5 * z - 5 + 2 * x - 3 * x * z if allowed else -inf)


def test_fixed_variables_and_names_of_rows(tmp_path: Path) -> None:
    graph = read(tmp_path, "m.lp", LP.replace("Binary", "Bounds\n y = 0\nBinary"))
    assert [graph.score(x) for x in ([0, 1, 0], [0, 0, 0])] == [-inf, 0.0]
    clash = read(tmp_path, "n.lp", LP.replace("<= 2", "<= 2\n much: x + y + z >= 3"))
    assert {f.name for f in fginfer.explain(clash).factors} == {"few", "much"}


# -- written and read again ------------------------------------------------------------------------------------


@st.composite
def boolean_graphs(draw: st.DrawFn, hard_only: bool = False) -> FactorGraph:
    rng = np.random.default_rng(draw(st.integers(0, 10**9)))
    n = int(rng.integers(1, 7))
    graph = FactorGraph([2] * n)
    for _ in range(rng.integers(0, 4)):
        scope = rng.permutation(n)[: rng.integers(0, min(3, n) + 1)]
        most = 1 if hard_only else 10
        table = rng.integers(1 - most, most, (2,) * len(scope)).astype(float)
        graph.add_factor(scope, np.where(rng.random(table.shape) < 0.15, -inf, table))
    literals = [(int(rng.integers(n)), int(rng.integers(2)), bool(rng.integers(2))) for _ in range(rng.integers(1, 9))]
    kind = rng.integers(5)
    if kind == 0 or hard_only:
        graph.add_clause(literals)
    elif kind == 1:
        graph.add_between(1, 3, literals)
    elif kind == 2:
        graph.add_linear(literals, rng.integers(-4, 5, len(literals)).tolist(), -2, 3)
    elif kind == 3:
        graph.add_exactly_one(literals)
    return graph


@given(boolean_graphs())
@settings(max_examples=80, deadline=None)
def test_opb_keeps_every_score(tmp_path_factory: pytest.TempPathFactory, graph: FactorGraph) -> None:
    path = tmp_path_factory.mktemp("opb") / "m.opb"
    fginfer.write(graph, path)
    again = fginfer.read(path)
    assert again.n_variables == graph.n_variables
    for x in product(range(2), repeat=graph.n_variables):
        assert again.score(x) == graph.score(x)


@given(boolean_graphs(hard_only=True))
@settings(max_examples=60, deadline=None)
def test_cnf_keeps_every_labeling(tmp_path_factory: pytest.TempPathFactory, graph: FactorGraph) -> None:
    path = tmp_path_factory.mktemp("cnf") / "m.cnf"
    fginfer.write(graph, path)
    again = fginfer.read(path)
    assert again.n_variables == graph.n_variables
    for x in product(range(2), repeat=graph.n_variables):
        assert again.score(x) == graph.score(x)


def test_what_they_cannot_hold(tmp_path: Path) -> None:
    def refused(name: str, change, said: str) -> None:
        graph = FactorGraph([2] * 8)
        change(graph)
        with pytest.raises(FormatError, match=said):
            fginfer.write(graph, tmp_path / name)
        assert not (tmp_path / name).exists()

    every = [(i, 1) for i in range(8)]
    refused("m.opb", lambda g: g.add_factor([0], [0.5, 0.0]), "no whole number")
    refused("m.opb", lambda g: g.add_at_most(2, every, penalty=1.0), "soft")
    refused("m.opb", lambda g: g.add_xor(every), "not linear")
    refused("m.opb", lambda g: g.add_cardinality(every, [0.0, -inf] * 4 + [0.0]), "gaps")
    refused("m.opb", lambda g: g.add_variable(3), "two labels")
    refused("m.cnf", lambda g: g.add_factor([0], [1.0, 0.0]), r"cost of 1\.0|best scores")
    refused("m.cnf", lambda g: g.add_at_most(2, every), "no clause")
    with pytest.raises(FormatError, match="read, not written"):
        fginfer.write(FactorGraph([2]), tmp_path / "m.lp")
