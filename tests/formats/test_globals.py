"""Global cost functions of .wcsp and .cfn: every labeling costs what the definition of the function says.

The definitions were compared with toulbar2's own costs, function by function and metric by metric.
"""

from __future__ import annotations

import json
from itertools import product
from math import inf
from pathlib import Path

import pytest

import fginfer
from fginfer import FactorGraph, FormatError

CORPUS = Path(__file__).parent.parent / "corpus"
X = list(product(range(3), repeat=4))


def read(tmp_path: Path, function: str, top: int = 1000) -> FactorGraph:
    text = f"m 4 3 2 {top}\n3 3 3 3\n1 0 0 1\n2 1\n4 0 1 2 3 -1 {function}\n"
    (tmp_path / "m.wcsp").write_text(text)
    return fginfer.read(tmp_path / "m.wcsp")


def check(tmp_path: Path, function: str, cost) -> None:
    graph = read(tmp_path, function)
    for x in X:
        total = (x[0] == 2) + cost(x)
        assert graph.score(x) == (-total if total < 1000 else -inf)


def off(count: int, low: int, high: int) -> int:
    return max(0, low - count, count - high)


def hamming(x: tuple[int, ...], moves: dict[tuple[int, int], int], ends: set[int]) -> float:
    """The least number of labels to change until the automaton accepts, over all sequences."""
    best = inf
    for y in X:
        state: int | None = 0
        for label in y:
            state = None if state is None else moves.get((state, label))
        if state in ends:
            best = min(best, sum(a != b for a, b in zip(x, y, strict=True)))
    return best


def reaches(parents: tuple[int, ...], at: int) -> bool:
    """Whether the root is above a point."""
    for _ in parents:
        at = parents[at]
    return parents[at] == at


@pytest.mark.parametrize(
    ("function", "cost"),
    [
        ("salldiff var 4", lambda x: 4 * (4 - len(set(x)))),
        ("salldiffdp var 4", lambda x: 4 * (4 - len(set(x)))),
        ("salldiff dec 4", lambda x: 4 * sum(x[i] == x[j] for i in range(4) for j in range(i))),
        ("salldiff decbi 4", lambda x: 4 * sum(x[i] == x[j] for i in range(4) for j in range(i))),
        ("walldiff hard 4", lambda x: 4 * sum(x.count(a) > 1 for a in range(3))),
        ("walldiff lin 4", lambda x: 4 * (4 - len(set(x)))),
        ("walldiff quad 4", lambda x: 4 * sum(off(x.count(a), 0, 1) ** 2 for a in range(3))),
        ("sgcc dec 3 2 0 1 2 2 0 1", lambda x: 3 * (off(x.count(0), 1, 2) + off(x.count(2), 0, 1))),
        ("sgcc var 3 1 0 0 1", lambda x: 3 * off(x.count(0), 0, 1)),
        ("sgccdp var 3 1 0 2 4", lambda x: 3 * off(x.count(0), 2, 4)),
        ("sgcc wdec 9 1 1 2 3 5 7", lambda x: 5 * max(0, 2 - x.count(1)) + 7 * max(0, x.count(1) - 3)),
        ("wgcc hard 3 2 0 1 2 2 0 1", lambda x: 3 * ((off(x.count(0), 1, 2) > 0) + (off(x.count(2), 0, 1) > 0))),
        ("wgcc quad 3 1 0 1 1", lambda x: 3 * off(x.count(0), 1, 1) ** 2),
        ("samong var 5 1 2 2 0 2", lambda x: 5 * off(x.count(0) + x.count(2), 1, 2)),
        ("samongdp var 5 1 2 1 1", lambda x: 5 * off(x.count(1), 1, 2)),
        ("wamong hard 5 1 1 1 1", lambda x: 5 * (x.count(1) != 1)),
        ("wamong quad 5 1 1 0 1", lambda x: 5 * off(x.count(1), 0, 1) ** 2),
        ("wsum hard 7 == 4", lambda x: 7 * (sum(x) != 4)),
        ("wsum lin 7 < 4", lambda x: 7 * max(0, sum(x) - 3)),
        ("wsum lin 7 >= 4", lambda x: 7 * max(0, 4 - sum(x))),
        ("sgccdp var 3 2 0 1 2 2 0 1", lambda x: 3 * (off(x.count(0), 1, 2) + off(x.count(2), 0, 1))),
        ("wsum quad 7 == 4", lambda x: 7 * (sum(x) - 4) ** 2),
        ("wsum quad 7 < 4", lambda x: 7 * max(0, sum(x) - 3) ** 2),
        ("wsum lin 7 != 4", lambda x: 7 * (sum(x) == 4)),
        ("wsum var 7 > 4", lambda x: 7 * max(0, 5 - sum(x))),
        ("wvarsum hard 7 ==", lambda x: 7 * (sum(x[:3]) != x[3])),
        ("wvarsum hard 1000 <", lambda x: 1000 * (sum(x[:3]) >= x[3])),
        ("wvarsum lin 7 >=", lambda x: 7 * max(0, x[3] - sum(x[:3]))),
        ("wvarsum hard 7 !=", lambda x: 7 * (sum(x[:3]) == x[3])),
        ("wvaramong hard 7 2 0 2", lambda x: 7 * (sum(a != 1 for a in x[:3]) != x[3])),
        ("woverlap lin 7 >= 1", lambda x: 7 * ((x[0] != x[2] or x[0] == 0) and (x[1] != x[3] or x[1] == 0))),
        ("woverlap quad 7 == 2", lambda x: 7 * (2 - (x[0] == x[2] > 0) - (x[1] == x[3] > 0)) ** 2),
        ("woverlap hard 1000 != 0", lambda x: 1000 * ((x[0] == x[2] > 0) + (x[1] == x[3] > 0) == 0)),
        ("wsame lin 7", lambda x: 7 * sum(abs(x[:2].count(a) - x[2:].count(a)) for a in range(3))),
        ("wsame quad 7", lambda x: 7 * sum((x[:2].count(a) - x[2:].count(a)) ** 2 for a in range(3))),
        ("wsame hard 7", lambda x: 7 * sum(x[:2].count(a) != x[2:].count(a) for a in range(3))),
        (
            "wsamegcc quad 2 2 0 0 1 2 1 2",
            lambda x: (
                2
                * (
                    sum((x[:2].count(a) - x[2:].count(a)) ** 2 for a in range(3))
                    + sum(off(h.count(0), 0, 1) ** 2 + off(h.count(2), 1, 2) ** 2 for h in (x[:2], x[2:]))
                )
            ),
        ),
        ("smstdp", lambda x: 0 if x in TREES else 1000),
        ("ssame 7 2 2 0 3 1 2", lambda x: 7 * sum(max(0, (x[0], x[3]).count(a) - x[1:3].count(a)) for a in range(3))),
        (
            "smaxdp 5 4 0 0 9 1 1 3 2 2 2 3 1 1000",
            lambda x: max(9 if x[0] == 0 else 5, 3 if x[1] == 1 else 5, 2 if x[2] == 2 else 5, 1000 * (x[3] == 1)),
        ),
        ("wdiverse 3 0 1 2 0", lambda x: 1000 * (sum(a != b for a, b in zip(x, (0, 1, 2, 0), strict=True)) < 3)),
        ("whdiverse 4 0 1 2 5", lambda x: 1000 * (x[0] == 0 or x[1] == 1 or x[2] == 2)),
        (
            "knapsackv 3 4 0 1 3 1 1 2 1 2 1 3 0 -1",
            lambda x: 1000 * (3 * (x[0] == 1) + (0, 2, 1)[x[1]] - (x[3] == 0) < 3),
        ),
        (
            "sregular var 6 2 1 0 1 1 3 0 0 0 0 1 1 1 2 1",
            lambda x: 6 * hamming(x, {(0, 0): 0, (0, 1): 1, (1, 2): 1}, {1}),
        ),
        (
            "clique 1 1 0 1 1 1 2 2 0 1",
            lambda x: 0 if (x[0] == 0) + (x[1] == 1) + (x[2] == 2) + (x[3] < 2) <= 1 else 1000,
        ),
        (
            "knapsackp 2 1 0 3 2 1 1 2 -1 0 1 2 2",
            lambda x: 0 if 3 * (x[0] == 0) + (0, 1, -1)[x[1]] + 2 * (x[3] == 2) >= 2 else 1000,
        ),
    ],
)
def test_costs(tmp_path: Path, function: str, cost):
    check(tmp_path, function, cost)


# Trees of four points of which the last is no parent, as no variable has a label 3: a root, and who is below whom.
TREES = {
    (a, b, c, d)
    for a, b, c, d in X
    if sum((a == 0, b == 1, c == 2)) == 1 and all(reaches((a, b, c, d), k) for k in range(4))
}


def test_grammars(tmp_path: Path):
    """S -> S S | ( ) | ( R, R -> S ): brackets that match."""
    rules = {"metric": "var", "cost": 3, "nb_symbols": 4, "nb_values": 2, "start": 0}
    rules |= {"terminals": [[1, 0], [2, 1]], "non_terminals": [[0, 0, 0], [0, 1, 2], [0, 1, 3], [3, 0, 2]]}
    words = {x for x in product(range(2), repeat=4) if all(2 * sum(x[:k]) <= k for k in range(5)) and sum(x) == 2}
    assert words == {(0, 1, 0, 1), (0, 0, 1, 1)}
    graph = read_cfn(tmp_path, "sgrammardp", rules)
    for x in product(range(2), repeat=4):
        assert graph.score(x) == -3.0 * min(sum(a != b for a, b in zip(x, y, strict=True)) for y in words)
    weighted = rules | {"metric": "weight", "terminals": [[1, 0, 1], [2, 1, 2]]}
    weighted["non_terminals"] = [[0, 0, 0, 10], [0, 1, 2, 20], [0, 1, 3, 30], [3, 0, 2, 40]]
    graph = read_cfn(tmp_path, "sgrammar", weighted)
    costs = {(0, 1, 0, 1): 10 + 2 * 20 + 2 * (1 + 2), (0, 0, 1, 1): 30 + 40 + 20 + 2 * (1 + 2)}
    for x in product(range(2), repeat=4):
        assert graph.score(x) == (-costs[x] if x in costs else -inf)


def read_cfn(tmp_path: Path, kind: str, params: object, n: int = 4) -> FactorGraph:
    names = [f"v{i}" for i in range(n)]
    model = {
        "problem": {"name": "m", "mustbe": "<1000.0"},
        "variables": dict.fromkeys(names, 2),
        "functions": {"g": {"scope": names, "type": kind, "params": params}},
    }
    (tmp_path / "m.cfn").write_text(json.dumps(model, indent=1))
    return fginfer.read(tmp_path / "m.cfn")


INNER = {
    "problem": {"name": "inner", "mustbe": "<100.0"},
    "variables": {"v0": 2, "v1": 2},
    "functions": {"a": {"scope": ["v0"], "costs": [0.1, -3.0]}, "b": {"scope": ["v0", "v1"], "costs": [0.1, 0, 2, 5]}},
}


def test_a_network_inside_has_a_cost_between_limits(tmp_path: Path):
    graph = read_cfn(tmp_path, "cfnconstraint", {"cfn": INNER, "lb": -1.0, "ub": 0.2}, n=2)
    assert [graph.score(x) for x in product(range(2), repeat=2)] == [-inf, 0.0, 0.0, -inf]
    graph = read_cfn(tmp_path, "cfnconstraint", {"cfn": INNER, "lb": 0.2, "ub": 2.0, "strongduality": 0}, n=2)
    assert [graph.score(x) for x in product(range(2), repeat=2)] == [0.0, -inf, -inf, -inf]


@pytest.mark.parametrize(
    ("kind", "params", "n", "message"),
    [
        ("cfnconstraint", {"cfn": INNER, "lb": 0, "ub": 1, "strongduality": 1}, 2, "strongduality is not read"),
        ("cfnconstraint", {"cfn": INNER, "lb": 0, "ub": 1}, 3, "must have the variables of its scope"),
        ("cfnconstraint", {"cfn": "no", "lb": 0, "ub": 1}, 2, "needs a network"),
        ("cfnconstraint", {"cfn": INNER | {"problem": {"name": "x", "mustbe": ">1.0"}}, "lb": 0}, 2, "maximises"),
        (
            "cfnconstraint",
            {"cfn": INNER | {"variables": {"v0": 0}}, "lb": 0, "ub": 1},
            2,
            "line 25 at ']': variable 0 needs",
        ),
        ("smstdp", [], 40, "has 1099511627776 states; up to 65536 are read"),
        ("sgrammar", {"metric": "edit", "cost": 1}, 4, "metric edit is not read"),
    ],
)
def test_what_listed_functions_cannot_have(tmp_path: Path, kind: str, params: object, n: int, message: str):
    with pytest.raises(FormatError, match=message):
        read_cfn(tmp_path, kind, params, n)


def test_an_interval_has_the_values_of_a_list(tmp_path: Path):
    (tmp_path / "m.wcsp").write_text("m 2 5 2 100\n-4 -5\n2 0 1 -1 >= 2 10\n2 1 0 -1 >= 1 10\n")
    graph = fginfer.read(tmp_path / "m.wcsp")
    assert graph.cards.tolist() == [4, 5]
    for x, y in product(range(4), range(5)):
        assert graph.score([x, y]) == -(max(0, y + 2 - x) + max(0, x + 1 - y))


def test_a_weighted_automaton(tmp_path: Path):
    def cost(x: tuple[int, ...]) -> float:
        moves = {(0, 0): (0, 1), (0, 1): (1, 2), (1, 0): (1, 0), (1, 2): (0, 5)}
        state, total = 0, 4.0
        for label in x:
            if (state, label) not in moves:
                return 1000.0
            state, more = moves[state, label]
            total += more
        return total + {0: 3, 1: 6}[state]

    check(tmp_path, "wregular 2 1 0 4 2 0 3 1 6 4 0 0 0 1 0 1 1 2 1 0 1 0 1 2 0 5", cost)


def test_a_cost_at_the_bound_forbids(tmp_path: Path):
    graph = read(tmp_path, "salldiff var 1000")
    assert graph.cutoff == -1000.0
    assert graph.score([0, 0, 1, 2]) == -inf
    assert fginfer.solve(graph).status == "infeasible"  # three labels for four variables
    assert fginfer.solve(read(tmp_path, "salldiff var 6", top=7)).score == -6.0
    assert fginfer.solve(read(tmp_path, "salldiff var 6", top=6)).labels is None  # the total must stay below


def test_names_and_tables_beside_globals():
    graph = fginfer.read(CORPUS / "globals.cfn")
    assert graph.names is not None
    assert graph.cutoff == pytest.approx(-12.5, abs=0.3)
    for x in product(range(3), range(3), range(3), range(2)):
        paths = [y for y in product(range(3), repeat=3) if y in {(0, 0, 1), (0, 1, 2), (1, 2, 2)}]
        cost = (
            (0.5, 0.0, 1.25)[x[0]]
            + 1.5 * (3 - len({*x[:3]}))
            + 0.75 * off((x[0] == 1) + (x[1] == 1), 1, 1)
            + (1, 2, 3, 4, 5, 6)[2 * x[0] + x[3]]
            + 2 * min(sum(a != b for a, b in zip(x[:3], y, strict=True)) for y in paths)
        )
        assert graph.score(x) == (pytest.approx(-cost, abs=1e-12) if x[3] == 1 else -inf)


def test_a_file_of_many_functions_keeps_its_lines(tmp_path: Path):
    text = (CORPUS / "globals.wcsp").read_text()
    graph = fginfer.read(CORPUS / "globals.wcsp")
    assert (graph.n_variables, len(graph.rules) > 5) == (4, True)
    (tmp_path / "m.wcsp").write_text(text.replace(">= 1 0", ">= 1 x"))
    with pytest.raises(FormatError, match="line 11 at 'x'"):
        fginfer.read(tmp_path / "m.wcsp")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("salldiff edit 3", "line 5 at 'salldiff': salldiff with the metric edit is not read; read are var"),
        ("knapsackc lin 3 1 0 0 1", "line 5 at 'knapsackc': the global cost function 'knapsackc' is not read;"),
        ("sgrammardp var 7", "the global cost function 'sgrammardp' is not read; read are salldiff"),
        ("wsum cubic 3 == 2", "wsum with the metric cubic is not read"),
        ("wsum lin 3 <> 2", "wsum with the comparator <> is not read"),
        ("wsum quad 3 == 2.5", "to must be a whole number"),
        ("wdiverse 3", "the file ends inside a function"),
        ("ssame 3 1 3 0 1 2 3", "ssame needs two lists of one length that have each variable of its scope once"),
        ("ssame 3 2 2 0 1 2 2", "ssame needs two lists of one length that have each variable of its scope once"),
        ("ssame 3 2 2 0 1 2 7", "7"),
        ("smaxdp 3 1 0 9 4 5", "the file ends inside a function|is too many|5"),
        ("knapsackv 3 1 5 1 1", "5"),
        ("woverlap hard 3 ~ 1", "woverlap with the comparator ~ is not read"),
        ("sgcc var 3 2 0 1 1 1 0 1", "bounds on both sides is not read"),
        ("salldiff var x", "cost must be a number, not 'x'"),
        ("salldiff var -1", "negative"),
        ("salldiff var", "the file ends inside a function"),
        ("wregular 1 1 0 0 1 0 0 1 0 0 1 0", "a state that is not among its 1"),
        ("wamong lin 1 99999999999 1", "line 5 at '99999999999': expected a whole number"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, function: str, message: str):
    with pytest.raises(FormatError, match=message):
        read(tmp_path, function)


def test_an_unknown_global_of_many_variables_is_named(tmp_path: Path):
    names = " ".join(f"v{i}: 10" for i in range(18))
    scope = " ".join(f"v{i}" for i in range(18))
    function = f"f: {{scope: [{scope}] type: knapsackc params: {{a: 1}}}}"
    text = f"{{problem: {{name: m mustbe: <9}} variables: {{{names}}} functions: {{{function}}}}}"
    (tmp_path / "m.cfn").write_text(text)
    with pytest.raises(FormatError, match="at 'knapsackc': the global cost function 'knapsackc' is not read"):
        fginfer.read(tmp_path / "m.cfn")
    (tmp_path / "m.cfn").write_text(
        text.replace("<9", ">9").replace("knapsackc params: {a: 1}", "salldiff params: {metric: var cost: 1}")
    )
    with pytest.raises(FormatError, match="a file that maximises"):
        fginfer.read(tmp_path / "m.cfn")


def test_globals_of_named_variables(tmp_path: Path):
    functions = """
        a: {scope: [u v w x] type: wvarsum params: {metric: hard cost: 2.5 comparator: ==}}
        b: {scope: [u v w x] type: ssame params: {cost: 0.5 vars1: [u x] vars2: [v w]}}
        c: {scope: [v w x] type: smaxdp params: {defaultcost: 1 tuples: [[v 0 4.25] [3 b 3]]}}
        d: {scope: [w x] type: knapsackv params: {capacity: 1 weightedvalues: [[w 1 1] [x c 2]]}}
        e: {scope: [x u v w] type: wdiverse params: {distance: 2 values: [0 1 2 0]}}"""
    names = " ".join(f"{v}: [a b c]" for v in "tuvwx")
    (tmp_path / "m.cfn").write_text(
        f"{{problem: {{name: m mustbe: <100.00}} variables: {{{names}}} functions: {{{functions}}}}}"
    )
    graph = fginfer.read(tmp_path / "m.cfn")
    for x in product(range(3), repeat=5):
        _, u, v, w, y = x
        cost = 2.5 * (u + v + w != y) + 0.5 * sum(max(0, (u, y).count(a) - (v, w).count(a)) for a in range(3))
        cost += max(4.25 if v == 0 else 1, 3 if w == 1 else 1)
        fits = (w == 1) + 2 * (y == 2) >= 1 and (y != 0) + (u != 1) + (v != 2) + (w != 0) >= 2
        assert graph.score(x) == (pytest.approx(-cost, abs=1e-12) if fits else -inf)


@pytest.mark.parametrize("function", ["woverlap lin 3 >= 1", "wsum quad 3 == 2", "smaxdp 0 1 0 0 4"])
def test_large_scopes_are_refused_or_read(tmp_path: Path, function: str):
    n, most = 600, 300
    scope = " ".join(map(str, range(n)))
    (tmp_path / "m.wcsp").write_text(f"m {n} {most} 1 1000\n{f'{most} ' * n}\n{n} {scope} -1 {function}\n")
    if function.startswith("smaxdp"):
        assert fginfer.read(tmp_path / "m.wcsp").score([1] * n) == 0.0
        return
    with pytest.raises(FormatError, match=r"line 3 at '(wsum|woverlap)': .* is too large"):
        fginfer.read(tmp_path / "m.wcsp")
