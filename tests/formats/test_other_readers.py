"""OpenGM, wcsp, cfn and npz files written by hand: what they mean, and what is said when they are wrong."""

from __future__ import annotations

import builtins
import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, FormatError
from fginfer.archives import write_arrays
from fginfer.formats import costs
from fginfer.formats.assembly import Factors


def refuse(path: Path, line: int | None, token: str | None, says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        fginfer.read(path)
    assert caught.value.path == str(path)
    assert (caught.value.line, caught.value.token) == (line, token)
    assert "\n" not in str(caught.value)


def energies(graph: FactorGraph) -> list[list[Any]]:
    factors = Factors(graph)
    return [(0.0 - factors.scores(key)).tolist() for _, key in factors]


# -- wcsp ------------------------------------------------------------------------------------------------------

WCSP = """name 3 3 5 100
2 3 2
0 7 0
1 1 0 2
0 5
2 200
2 0 1 3 2
0 0 1
1 2 100
-2 2 0 0 1
1 1 4
2 0 2 0 -1
"""


def test_wcsp(tmp_path: Path) -> None:
    path = tmp_path / "m.wcsp"
    path.write_text(WCSP)
    graph = fginfer.read(path)
    assert graph.n_factors == 5
    assert graph.constant == -7.0
    assert graph.unary(1).tolist() == [-5.0, 0.0, -math.inf]
    assert energies(graph) == [[[1, 3, 3], [3, 3, math.inf]], [[0, 0], [0, 4]], [[0, 0], [0, 4]]]
    assert graph.to_arrays().n_tables == 2
    assert graph.score([0, 0, 0]) == -13.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (">= 1 1", [[1, 9, 9], [0, 1, 9], [0, 0, 1]]),
        ("> 0 1", [[1, 9, 9], [0, 1, 9], [0, 0, 1]]),
        ("<= 0 1", [[0, 0, 0], [1, 0, 0], [9, 1, 0]]),
        ("< 0 1", [[1, 0, 0], [9, 1, 0], [9, 9, 1]]),
        ("= 0 1", [[0, 1, 9], [1, 0, 1], [9, 1, 0]]),
        ("disj 1 2 5", [[5, 0, 0], [5, 5, 0], [0, 5, 5]]),
        ("sdisj 1 1 2 2 3 4", [[9, 0, 4], [0, 9, 4], [3, 3, 7]]),
    ],
)
def test_arithmetic_functions(tmp_path: Path, function: str, expected: list[list[float]]) -> None:
    (tmp_path / "m.wcsp").write_text(f"m 2 3 1 9\n3 3\n2 0 1 -1 {function}\n")
    expected = [[math.inf if c == 9 else c for c in row] for row in expected]
    assert energies(fginfer.read(tmp_path / "m.wcsp")) == [expected]
    kind, *parameters = function.split()
    model = {
        "problem": {"name": "m", "mustbe": "<9"},
        "variables": {"x": 3, "y": 3},
        "functions": {"f": {"scope": ["x", "y"], "type": kind, "params": [int(p) for p in parameters]}},
    }
    (tmp_path / "m.cfn").write_text(json.dumps(model))
    assert energies(fginfer.read(tmp_path / "m.cfn")) == [expected]


@pytest.mark.parametrize(
    ("text", "line", "token", "says"),
    [
        ("", 1, "end of file", "ends where the name"),
        ("m 2 3 1\n", 1, "end of file", "upper bound"),
        ("m x 3 1 9", 1, "x", "number of variables"),
        ("m 2 3 1 9\n3 4\n", 2, "4", "domain size of variable 1, from 1 to 3"),
        ("m 2 3 1 9\n3 3\n2 0 2 0 0", 3, "2", "from 0 to 1"),
        ("m 2 3 1 9\n3 3\n2 0 0 0 0", 3, "0", "twice"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 1\n0 3 1", 4, "3", "label from 0 to 2"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 1\n0 1 -1", 4, "-1", "negative cost"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 2\n0 1 1\n0 x 1", 5, "x", "whole numbers"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 2\n0 1 1\n", 4, "end of file", "2 tuples"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 0\n5", 4, "5", "extra text"),
        ("m 2 3 1 9\n3 3\n2 0 1 -1 knapsackc 3", 3, "knapsackc", "is not read"),
        ("m 2 3 1 9\n3 3\n2 0 1 0 -1", 3, "-1", "at least 0"),
        ("m 2 1000000 1 9\n300000 333333\n2 0 1 0 0", 3, "0", "99999900000 entries"),
        ("m 2 1000000000000000 1 9\n1000000000000000 2", 2, "1000000000000000", "domain size"),
        (
            "m 2 3 1 9\n3 3\n2 0 1 0 1000000000000000\n0 0 1",
            3,
            "1000000000000000",
            "tuples cannot be meant",
        ),
    ],
)
def test_wrong_wcsp(tmp_path: Path, text: str, line: int, token: str, says: str) -> None:
    path = tmp_path / "m.wcsp"
    path.write_text(text)
    refuse(path, line, token, says)


# -- cfn -------------------------------------------------------------------------------------------------------

CFN = """{
# a comment
problem: { name: test mustbe: "<10.00" }
"variables": {"x": ["a", "b"], "y": 3, z: [u v]},
functions: {
  c: {scope: [], costs: [-1.25]},
  u: {"scope": ["x"], "costs": [0.5, 12]},
  g: {"scope": ["z", "y"], "costs": "f"},
  f: {scope: ["x" 1], costs: [1 2 3 4 5 10.00]},
  s: {scope: [x z], defaultcost: 0.25, costs: ["a" "u" 3, 1 1 -2]}
}}
"""


def test_cfn(tmp_path: Path) -> None:
    path = tmp_path / "m.cfn"
    path.write_text(CFN)
    graph = fginfer.read(path)
    assert graph.cards.tolist() == [2, 3, 2]
    assert graph.constant == 1.25
    assert graph.cutoff == -10
    assert graph.unary(0).tolist() == [-0.5, -12.0]  # above the bound, but negative costs may pay for it
    table = [[1, 2, 3], [4, 5, 10]]
    assert energies(graph) == [table, table, [[3, 0.25], [0.25, -2]]]
    assert [f.variables for f in graph.factors()] == [(2, 1), (0, 1), (0, 2)]
    assert graph.to_arrays().n_tables == 2


def cfn_of(words: list[str]) -> str:
    """Two variables with as many labels as make a table of the words, eight to a line."""
    head = f"{{problem {{name m, mustbe <1000}}\nvariables {{a {len(words) // 4} b 4}}\n"
    lines = [" ".join(words[k : k + 8]) for k in range(0, len(words), 8)]
    return head + "functions {f {scope [a b] costs [\n" + ",\n".join(lines) + "\n]}}}\n"


@pytest.mark.parametrize("piece", [1 << 20, 97])
def test_cfn_lists_of_numbers_are_read_as_if_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Plain numbers are read many at once. Quotes make them be looked at one by one, and so does what is wrong."""
    monkeypatch.setattr(costs, "_PIECE", piece)
    rng = np.random.default_rng(0)
    words = [repr(float(x)) for x in rng.normal(size=200)] + ["7", "+3.", ".5", "1e2", "2.5E-1", "-0", "00", "9e-320"]
    path = tmp_path / "m.cfn"
    path.write_text(cfn_of(words))
    plain = fginfer.read(path)
    path.write_text(cfn_of([f'"{word}"' for word in words]))
    quoted = fginfer.read(path)
    assert energies(plain) == energies(quoted) == [np.array(words, float).reshape(-1, 4).tolist()]
    for quote in "", '"':
        for word, says in {"1-2": "a number", "1e": "a number", "1e999": "too large", "x": "a number"}.items():
            path.write_text(cfn_of([f"{quote}{w}{quote}" for w in [*words[:100], word, *words[101:]]]))
            refuse(path, 4 + 100 // 8, word, says)
    path.write_text(cfn_of([*words[:100], "inf", *words[101:]]))
    assert energies(fginfer.read(path))[0][25][:2] == [math.inf, float(words[101])]
    path.write_text(cfn_of(words).replace("\n]", " 5\n]"))
    refuse(path, 4 + 207 // 8, "5", "more than 208 costs")


def test_cfn_can_maximise(tmp_path: Path) -> None:
    path = tmp_path / "m.cfn"
    path.write_text(
        '{"problem": {"name": "m", "mustbe": ">-5.0"}, "variables": [2 2], "functions": [[[0 1] costs [1 2 -5 -4]]]}'
    )
    assert energies(fginfer.read(path)) == [[[-1, -2], [math.inf, 4]]]


HEAD = '{"problem": {"name": "m", "mustbe": "<9"},\n"variables": {"x": 2, "y": ["a", "b"]},\n'


@pytest.mark.parametrize(
    ("text", "line", "token", "says"),
    [
        ("", 1, "end of file", "empty"),
        ("\x00\x01", 1, "??", "in brackets"),
        ('{"problem": {"name": "m", "mustbe": "9"}', 1, "9", "mustbe"),
        ('{"problem": {"name": "m", "mustbe": "<9"}, "variables": {"x": 0}', 1, "]", "needs between"),
        ('{"problem": {"name": "m", "mustbe": "<9"}, "variables": {"x": 2, "x": 2}', 1, "2", "two variables 'x'"),
        (
            '{"problem": {"name": "m", "mustbe": <9},\n"variables": {"w": 2, "x": ["a", "b",\n"a"]}, "functions": {}',
            3,
            "a",
            "variable 1 has two labels of one name",
        ),
        (HEAD + '"functions": {"f": {"scope": ["q"], "costs": [1, 2]}}}', 3, "q", "no such variable"),
        (HEAD + '"functions": {"f": {"scope": ["x", "x"], "costs": [1, 2]}}}', 3, "costs", "twice"),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": [1, 2, 3]}}}', 3, "3", "more than 2 costs"),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": [1]}}}', 3, "]", "1 of 2 costs"),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": [1, "oo"]}}}', 3, "oo", "a number"),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": [1, 1e999]}}}', 3, "1e999", "too large"),
        (HEAD + '"functions": {"f": {"scope": ["y"], "defaultcost": 1, "costs": ["c", 2]}}}', 3, "c", "no such label"),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": "g"}}}', 3, "g", "not there"),
        (
            HEAD + '"functions": {"f": {"scope": ["x","y"], "type": "salldiff", "params": []}}}',
            3,
            "salldiff",
            "has no metric",
        ),
        (HEAD + '"functions": {"f": {"scope": ["x"], "costs": [1, 2]}', 3, "end of file", "inside a bracket"),
        (HEAD + '"functions": {}} 5', 3, "5", "extra text"),
        (
            '{"problem": {"name": "m", "mustbe": "<9"}, "variables": [1000000000 1000000], "functions": [',
            1,
            "functions",
            "labels in all",
        ),
    ],
)
def test_wrong_cfn(tmp_path: Path, text: str, line: int, token: str, says: str) -> None:
    path = tmp_path / "m.cfn"
    path.write_text(text)
    refuse(path, line, token, says)


# -- OpenGM ----------------------------------------------------------------------------------------------------


def opengm(
    path: Path, cards: list[int], functions: dict[int, tuple[int, list[int], list[float]]], factors: list[int], n: int
) -> Path:
    header = [2, 0, len(cards), n, len(functions)]
    with h5py.File(path, "w") as file:
        for type_, (count, indices, values) in functions.items():
            header += [type_, count]
            file[f"gm/function-id-{type_}/indices"] = np.array(indices, np.uint64)
            file[f"gm/function-id-{type_}/values"] = np.array(values, float)
        file["gm/header"] = np.array([*header, 1], np.uint64)
        file["gm/numbers-of-states"] = np.array(cards, np.uint64)
        file["gm/factors"] = np.array(factors, np.uint64)
    return path


def test_every_opengm_function(tmp_path: Path) -> None:
    functions: dict[int, tuple[int, list[int], list[float]]] = {
        16000: (3, [1, 3, 2, 2, 3, 0], [1, 2, math.inf, 1, 2, 3, 4, 5, 6, 0.5]),
        16002: (2, [3, 3, 3, 3], [2, -2]),
        16003: (2, [3, 3, 3, 3], [1.5, 2, -1, 2]),
        16004: (1, [3, 3], [0.5]),
        16005: (1, [3, 3], [3, 2]),
        16006: (1, [2, 3], [-1, 4]),
        16007: (3, [2, 3, 3, 1, 2, 3, 2, 2, 3], [0, 1, 7, 8, 1, 2]),
    }
    factors: list[int] = []
    n = 0
    for kind, index, scope in [
        (0, 0, [1]),
        (0, 1, [0, 1]),
        (0, 2, []),
        (1, 0, [1, 2]),
        (1, 1, [1, 2]),
        (2, 0, [1, 2]),
        (2, 1, [1, 2]),
        (3, 0, [1, 2]),
        (4, 0, [1, 2]),
        (5, 0, [0, 1]),
        (6, 0, [1, 2]),
        (6, 1, [0]),
        (6, 2, [0, 3, 1]),
    ]:
        factors += [index, kind, len(scope), *scope]
        n += 1
    graph = fginfer.read(opengm(tmp_path / "m.h5", [2, 3, 3, 2], functions, factors, n))
    assert graph.n_factors == 13
    assert graph.constant == -0.5
    assert graph.unary(1).tolist() == [-1.0, -2.0, -math.inf]
    assert graph.unary(0).tolist() == [-7.0, -7.0]
    d = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    expected = [
        [[1, 3, 5], [2, 4, 6]],
        2 * d,
        -2 * d,
        2 * np.minimum(d, 1.5),
        np.full((3, 3), -2.0),
        0.5 * d**2,
        2 * np.minimum(d**2, 3),
        [[-1, 4, 4], [4, -1, 4]],
        1 - np.eye(3),
    ]
    found = energies(graph)
    for table, wanted in zip(found, expected, strict=False):
        assert table == np.asarray(wanted).tolist()
    last = np.full((2, 2, 3), 2.0)
    last[0, 0, 0] = last[1, 1, 1] = 1.0
    assert found[-1] == last.tolist()
    dense = graph.to_arrays().is_dense()
    assert dense.sum() == 4  # the explicit one, two with parameters out of range, PottsN over three variables


@pytest.mark.parametrize(
    ("functions", "factors", "n", "says"),
    [
        ({16000: (1, [1, 2], [1.0])}, [0, 0, 1, 0], 1, "the data of 0 is there"),
        ({16000: (1, [1, 2], [1.0, math.nan])}, [0, 0, 1, 0], 1, "value 1 of function type 16000 is nan"),
        ({16000: (1, [1, 2], [1.0, 2.0, 3.0])}, [0, 0, 1, 0], 1, "extra numbers"),
        ({16000: (1, [1, 2], [1.0, 2.0])}, [0, 0, 1, 5], 1, "variable 5 of 2"),
        ({16000: (1, [1, 2], [1.0, 2.0])}, [0, 0, 1, 1], 1, "shape"),
        ({16000: (1, [1, 2], [1.0, 2.0])}, [3, 0, 1, 0], 1, "function 3"),
        ({16000: (1, [1, 2], [1.0, 2.0])}, [0, 0, 1, 0], 2, "announces 2 factors, there are 1"),
        ({16000: (1, [1, 2], [1.0, 2.0])}, [0, 0, 1, 0, 9], 1, "extra numbers"),
        ({16001: (1, [1, 2], [1.0, 2.0])}, [0, 0, 1, 0], 1, "type 16001 is not supported"),
        ({16000: (1, [2, 2, 2], [1.0] * 4)}, [0, 0, 2, 0, 0], 1, "twice"),
        ({16000: (1, [40], [1.0])}, [0, 0, 1, 0], 1, "the data of 0 is there"),
    ],
)
def test_wrong_opengm(tmp_path: Path, functions: Any, factors: list[int], n: int, says: str) -> None:
    refuse(opengm(tmp_path / "m.h5", [2, 3], functions, factors, n), None, None, says)


def test_not_opengm(tmp_path: Path) -> None:
    path = tmp_path / "m.h5"
    path.write_bytes(b"no HDF5 at all")
    refuse(path, None, None, "not an HDF5 file")
    path.write_bytes(b"")
    refuse(path, None, None, "not an HDF5 file")
    with h5py.File(path, "w") as file:
        file["other"] = 1
    refuse(path, None, None, "0 OpenGM models")
    with h5py.File(path, "w") as file:
        file.create_dataset("gm/header", (10**15,), np.uint64, chunks=(1024,))
    refuse(path, None, None, "announces 1000000000000000 numbers")


def test_opengm_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "h5py":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(FormatError, match=r"fginfer\[opengm\]"):
        fginfer.read(tmp_path / "m.h5")


# -- npz -------------------------------------------------------------------------------------------------------


def test_wrong_npz(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(b"no archive")
    refuse(path, None, None, r"not a \.npz archive")
    np.savez(path, a=np.zeros(3))
    refuse(path, None, None, "no member 'fginfer'")
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[1.0, 2.0], [3.0, 4.0]])
    fginfer.write(graph, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refuse(path, None, None, r"not a \.npz archive")
    one = np.array([3.0]).tobytes()
    assert whole.count(one) == 1
    path.write_bytes(whole.replace(one, np.array([3.5]).tobytes()))
    refuse(path, None, None, "CRC-32|check sum")
    with np.load(io.BytesIO(whole)) as archive:
        members = {name: archive[name] for name in archive.files}
    for name, value, says in [
        ("values", np.array([1.0, 2.0, 3.0, math.nan]), "NaN"),
        ("values", np.array([1.0, 2.0]), "table 0 needs 4 values"),
        ("vars", np.array([0, 7], np.int32), "variable 7 of 2"),
        ("vars", np.array([0.5, 1.0]), "'vars' has the wrong type"),
        ("values", np.zeros((2, 2)), "'values' has the wrong type"),
        ("fginfer", np.array(99), "version 99"),
        ("cards", np.array([0, 2], np.int32), "unary must be"),
        ("vars", np.array([2**32, 1]), "wrong type"),
        ("given_factors", np.int64(-5), "says -5, the archive holds"),
    ]:
        with open(path, "wb") as file:
            write_arrays(file, {**members, name: value})
        refuse(path, None, None, says)


def test_npz_that_announces_too_much(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[1.0, 2.0], [3.0, 4.0]])
    fginfer.write(graph, path)
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "values.npy":
                content = content.replace(b"(4,)", b"(1000000000000000,)").replace(b" " * 15, b"", 1)
            new.writestr(info.filename, content)
    path.write_bytes(changed.getvalue())
    refuse(path, None, None, "announces")


def test_damage_in_a_large_npz_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    graph = FactorGraph([300, 300])
    graph.add_factor([0, 1], np.arange(90000.0).reshape(300, 300))
    fginfer.write(graph, path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(np.array([80000.0]).tobytes(), np.array([80000.5]).tobytes()))
    refuse(path, None, None, "'values' is damaged: its check sum is wrong")


def test_npz_opens_with_numpy(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    graph = FactorGraph([2, 2])
    graph.add_factor([0, 1], [[1.0, 2.0], [3.0, 4.0]])
    fginfer.write(graph, path)
    with np.load(path) as archive:
        assert archive["values"].tolist() == [1.0, 2.0, 3.0, 4.0]
        members = {name: archive[name] for name in archive.files}
    np.savez_compressed(path, **members)
    assert fginfer.read(path).score([1, 0]) == 3.0


def test_cfn_is_written_as_toulbar2_reads_it(tmp_path: Path) -> None:
    """It shares dense tables of up to three variables, named before they come; of four it reads tuples only."""
    path = tmp_path / "m.cfn"
    graph = FactorGraph([2, 2, 2, 2, 2])
    graph.add_factor([0, 1], [[0.0, -1.5], [-2.0, 0.0]])
    graph.add_factor([1, 2], [[0.0, -1.5], [-2.0, 0.0]])
    table = np.zeros((2, 2, 2, 2))
    table[0, 1, 1, 0] = -math.inf
    graph.add_factor([0, 1, 2, 3], table)
    graph.add_factor([1, 2, 3, 4], table)
    fginfer.write(graph, path)
    model = json.loads(path.read_text())
    functions = model["functions"]
    assert functions["f0"] == {"scope": [0, 1], "costs": "f1"}
    assert functions["f1"] == {"scope": [1, 2], "costs": [0, 1.5, 2, 0]}
    bound = float(model["problem"]["mustbe"][1:])
    for name, scope in (("f2", [0, 1, 2, 3]), ("f3", [1, 2, 3, 4])):
        assert functions[name] == {"scope": scope, "defaultcost": 0, "costs": [0, 1, 1, 0, bound]}
    assert fginfer.read(path).to_arrays().n_tables == 2
