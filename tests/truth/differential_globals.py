"""Do global cost functions cost what toulbar2 says? Random .cfn and .wcsp files of one function each, read by both.

    python tests/truth/differential_globals.py --files 1000 [--first SEED] [--kind NAME ...] [--verbose]

Needs pytoulbar2. A file has a global function with random parameters over all variables, and a table for each variable:
random costs, or 900 for all labels but one, so that a single labeling is asked for. The least total over all labelings,
as `graph.score` has it, must be toulbar2's optimum. Prints a JSON line for every file that differs, then counts for
each kind. Exit code 1 if any differs.

Three things in toulbar2 1.4 are gone around. It gives every labeling one cost for a sregulardp of a .cfn file, and
reads no knapsackp there: these are asked for as .wcsp only. A clique comes with tables for its pairs. And a grammar
that has no word of the length of the scope has costs there, while we say infeasible: such files are not compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from ledger import note

import fginfer

TOP = 1000.0
Rng = np.random.Generator
Params = dict[str, Any]


def pick(rng: Rng, *items: str) -> str:
    return str(rng.choice(items))


def whole(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def bounds(rng: Rng, cards: list[int], most: int, weights: bool = False) -> list[list[int]]:
    """A lower and an upper bound on how often some values occur."""
    rows = []
    for value in rng.permutation(max(cards))[: whole(rng, 1, max(cards))].tolist():
        low = whole(rng, 0, most)
        rows.append([value, low, whole(rng, low, most)] + ([whole(rng, 1, 5), whole(rng, 1, 5)] if weights else []))
    return rows


def soft(rng: Rng, *metrics: str) -> Params:
    return {"metric": pick(rng, *metrics), "cost": whole(rng, 1, 9)}


def automaton(rng: Rng, cards: list[int], costs: bool) -> Params:
    """Deterministic; a few moves are missing."""
    n = whole(rng, 1, 3)
    moves = [[s, x, whole(rng, 0, n - 1)] for s in range(n) for x in range(max(cards)) if rng.random() < 0.8]
    ends = rng.permutation(n)[: whole(rng, 1, n)].tolist()
    if costs:
        return {
            "nb_states": n,
            "starts": [[s, whole(rng, 0, 3)] for s in range(whole(rng, 1, n))],
            "ends": [[s, whole(rng, 0, 3)] for s in ends],
            "transitions": [[*move, whole(rng, 0, 5)] for move in moves],
        }
    return {"nb_states": n, "starts": [0], "ends": ends, "transitions": moves}


def grammar(rng: Rng, cards: list[int]) -> Params:
    weighted = bool(rng.random() < 0.5)
    n, values = whole(rng, 2, 4), max(cards)
    cost = [whole(rng, 0, 5)] if weighted else []
    letters = [[whole(rng, 1, n - 1), v, *cost] for v in range(values)]
    pairs = [[whole(rng, 0, n - 1) if k else 0, *rng.integers(0, n, 2).tolist(), *cost] for k in range(3)]
    return {
        "metric": "weight" if weighted else "var",
        "cost": whole(rng, 1, 9),
        "nb_symbols": n,
        "nb_values": values,
        "start": 0,
        "terminals": letters,
        "non_terminals": pairs,
    }


def inner(rng: Rng, cards: list[int]) -> Params:
    """A network over the same variables, and limits of its cost."""
    low = whole(rng, -6, 3)
    functions = {}
    for k in range(whole(rng, 1, 3)):
        scope = sorted(rng.permutation(len(cards))[: whole(rng, 1, 2)].tolist())
        size = int(np.prod([cards[v] for v in scope]))
        costs = [float(c) for c in rng.integers(-4, 5, size)]
        functions[f"h{k}"] = {"scope": [f"v{v}" for v in scope], "costs": costs}
    return {
        "cfn": {
            "problem": {"name": "inner", "mustbe": "<1000.0"},
            "variables": {f"v{i}": c for i, c in enumerate(cards)},
            "functions": functions,
        },
        "lb": float(low),
        "ub": float(low + whole(rng, 1, 8)),
        "duplicatehard": 0,
        "strongduality": 0,
    }


def values_of(rng: Rng, cards: list[int]) -> list[int]:
    return rng.permutation(max(cards))[: whole(rng, 1, max(cards))].tolist()


def parameters(rng: Rng, kind: str, cards: list[int]) -> Params:
    n = len(cards)
    half, low, names = n // 2, whole(rng, 0, n), [f"v{i}" for i in range(n)]
    comparator = pick(rng, "==", "<=", "<", ">", ">=", "!=")
    among = {"values": values_of(rng, cards), "min": low, "max": whole(rng, low, n)}
    weigh = [[i, a, whole(rng, -3, 5)] for i, c in enumerate(cards) for a in range(c) if rng.random() < 0.7]
    by_variable = [[[a, w] for j, a, w in weigh if j == i] for i in range(n)]
    makers: dict[str, Any] = {
        "salldiff": lambda: soft(rng, "var", "dec", "decbi"),
        "salldiffdp": lambda: soft(rng, "var"),
        "walldiff": lambda: soft(rng, "hard", "lin", "quad"),
        "sgcc": lambda: soft(rng, "dec") | {"bounds": bounds(rng, cards, n)},
        "sgccdp": lambda: soft(rng, "var") | {"bounds": bounds(rng, cards, n)},
        "wgcc": lambda: soft(rng, "hard", "lin", "quad") | {"bounds": bounds(rng, cards, n)},
        "samong": lambda: soft(rng, "var") | {k: among[k] for k in ("min", "max", "values")},
        "samongdp": lambda: soft(rng, "var") | {k: among[k] for k in ("min", "max", "values")},
        "wamong": lambda: soft(rng, "hard", "lin", "quad") | among,
        "wvaramong": lambda: {"metric": "hard", "cost": round(TOP), "values": values_of(rng, cards)},
        "sregular": lambda: soft(rng, "var") | automaton(rng, cards, costs=False),
        "sregulardp": lambda: soft(rng, "var") | automaton(rng, cards, costs=False),
        "wregular": lambda: automaton(rng, cards, costs=True),
        "wsum": lambda: soft(rng, "hard", "lin", "quad") | {"comparator": comparator, "to": whole(rng, 0, sum(cards))},
        "wvarsum": lambda: {"metric": "hard", "cost": round(TOP), "comparator": comparator},
        "woverlap": lambda: soft(rng, "hard", "lin", "quad") | {"comparator": comparator, "to": whole(rng, 0, half)},
        "wsame": lambda: soft(rng, "hard", "lin", "quad"),
        "wsamegcc": lambda: soft(rng, "hard", "lin", "quad") | {"bounds": bounds(rng, cards, half)},
        "ssame": lambda: {"cost": whole(rng, 1, 9), "vars1": names[:half], "vars2": names[half:]},
        "max": lambda: {"defaultcost": whole(rng, 0, 9), "tuples": [[i, a, abs(w)] for i, a, w in weigh]},
        "smaxdp": lambda: {"defaultcost": whole(rng, 0, 9), "tuples": [[i, a, abs(w)] for i, a, w in weigh]},
        "wdiverse": lambda: {"distance": low, "values": [whole(rng, 0, c - 1) for c in cards]},
        "whdiverse": lambda: {"distance": low, "values": [whole(rng, 0, c - 1) for c in cards]},
        "knapsack": lambda: {"capacity": whole(rng, -2, 6), "weights": [whole(rng, -3, 5) for _ in cards]},
        "knapsackp": lambda: {"capacity": whole(rng, -2, 6), "weightedvalues": by_variable},
        "knapsackv": lambda: {"capacity": whole(rng, -2, 6), "weightedvalues": weigh},
        "clique": lambda: {"rhs": 1, "values": [sorted(rng.permutation(c)[: c - 1].tolist()) for c in cards]},
        "sgrammardp": lambda: grammar(rng, cards),
        "smstdp": lambda: [],
        "cfnconstraint": lambda: inner(rng, cards),
    }
    made: Params = makers[kind]()
    return made


# What follows the name in a .wcsp file, in this order; n: a list that begins with its length; *: lists within a list.
WCSP = {
    **dict.fromkeys(("salldiff", "salldiffdp", "walldiff", "wsame"), "metric cost"),
    **dict.fromkeys(("sgcc", "sgccdp", "wgcc", "wsamegcc"), "metric cost n:bounds"),
    **dict.fromkeys(("samong", "samongdp"), "metric cost min max n:values"),
    "wamong": "metric cost n:values min max",
    "wvaramong": "metric cost n:values",
    **dict.fromkeys(("sregular", "sregulardp"), "metric cost nb_states n:starts n:ends n:transitions"),
    "wregular": "nb_states n:starts n:ends n:transitions",
    **dict.fromkeys(("wsum", "woverlap"), "metric cost comparator to"),
    "wvarsum": "metric cost comparator",
    **dict.fromkeys(("max", "smaxdp"), "defaultcost n:tuples"),
    **dict.fromkeys(("wdiverse", "whdiverse"), "distance values"),
    "knapsack": "capacity weights",
    "knapsackp": "capacity *:weightedvalues",
    "knapsackv": "capacity n:weightedvalues",
    "clique": "rhs *:values",
}
KINDS = [*WCSP, "ssame", "sgrammardp", "smstdp", "cfnconstraint"]
ONLY_WCSP = ("sregulardp", "knapsackp")
BINARY, EQUAL, EVEN = ("knapsack",), ("smstdp", "sgrammardp", "ssame"), ("wsame", "wsamegcc", "ssame", "woverlap")


def words(value: Any) -> list[str]:
    """All numbers of nested lists."""
    return [word for one in value for word in words(one)] if isinstance(value, list) else [str(value)]


Tables = list[tuple[list[int], list[float]]]  # variables and all costs, the last variable fastest


def pairs_of(kind: str, cards: list[int], given: Params) -> Tables:
    """Two labels of a clique forbid each other."""
    if kind != "clique":
        return []
    inside = [[a in given["values"][i] for a in range(c)] for i, c in enumerate(cards)]
    return [
        ([i, j], [TOP * (a and b) for a in inside[i] for b in inside[j]])
        for i in range(len(cards))
        for j in range(i + 1, len(cards))
    ]


def wcsp(kind: str, cards: list[int], tables: Tables, given: Params) -> str:
    lines = [f"m {len(cards)} {max(cards)} {len(tables) + 1} {TOP:.0f}", " ".join(map(str, cards))]
    for scope, costs in tables:
        states = product(*(range(cards[v]) for v in scope))
        lines.append(" ".join(map(str, [len(scope), *scope, 0, len(costs)])))
        lines += [f"{' '.join(map(str, x))} {cost:.0f}" for x, cost in zip(states, costs, strict=True)]
    parts = [str(len(cards)), *map(str, range(len(cards))), "-1", kind]
    for part in WCSP[kind].split():
        mark, _, key = part.rpartition(":")
        value = given[key]
        parts += [str(len(value))] if mark == "n" else []
        parts += [word for one in value for word in (str(len(one)), *words(one))] if mark == "*" else words(value)
    return "\n".join([*lines, " ".join(parts)]) + "\n"


def random_file(rng: Rng, kind: str) -> tuple[str, str, list[int]]:
    """An extension, a text, and the numbers of labels."""
    n = whole(rng, 2, 4)
    n += n % 2 if kind in EVEN else 0
    cards = [2 if kind in BINARY else whole(rng, 2, 3) for _ in range(n)]
    if kind in EQUAL:
        cards = [n if kind == "smstdp" else cards[0]] * n
    one = bool(rng.random() < 0.5)
    tables: Tables = []
    for i, c in enumerate(cards):
        costs = np.where(np.arange(c) == rng.integers(c), 0, 900) if one else rng.integers(0, 9, c)
        tables.append(([i], [float(x) for x in costs]))
    given = parameters(rng, kind, cards)
    tables += pairs_of(kind, cards, given)
    if kind in ONLY_WCSP or (kind in WCSP and rng.random() < 0.5):
        return ".wcsp", wcsp(kind, cards, tables, given), cards
    functions: dict[str, Any] = {
        f"f{k}": {"scope": [f"v{v}" for v in scope], "costs": some} for k, (scope, some) in enumerate(tables)
    }
    functions["g"] = {"scope": [f"v{i}" for i in range(n)], "type": kind, "params": given}
    problem = {"name": "m", "mustbe": f"<{TOP:.1f}"}
    variables = {f"v{i}": c for i, c in enumerate(cards)}
    text = json.dumps({"problem": problem, "variables": variables, "functions": functions}, indent=1)
    return ".cfn", text.replace('"cfn": {', '"cfn": \n{'), cards  # toulbar2 wants a network inside on a line of its own


def ask_peer(path: str, pipe: Any) -> None:
    """In a process of its own, which a file that it does not like ends."""
    import pytoulbar2

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        problem = pytoulbar2.CFN()
        problem.Read(path)
        answer = problem.Solve(timeLimit=10)
    except pytoulbar2.tb2.Contradiction:
        answer = None
    pipe.send(None if answer is None else float(answer[1]))


def peer(path: Path) -> Any:
    mine, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=ask_peer, args=(str(path), other))
    process.start()
    process.join(20)
    if process.is_alive():
        process.kill()
    return mine.recv() if mine.poll() else "no answer"


def compare(seed: int, kind: str, folder: Path, verbose: bool) -> str | None:
    """What is wrong with one file."""
    suffix, text, cards = random_file(np.random.default_rng([seed, KINDS.index(kind)]), kind)
    path = folder / f"model{suffix}"
    path.write_text(text)
    try:
        graph = fginfer.read(path)
    except fginfer.FormatError as error:
        return f"refused: {error}"
    best = max(graph.score(x) for x in product(*map(range, cards)))
    ours = -best if best > -inf and -best < TOP else None
    theirs = peer(path)
    if verbose:
        print(text, ours, theirs)
    if theirs == "no answer" or (kind == "sgrammardp" and best == -inf):
        return "no answer"
    same = theirs == ours if theirs is None or ours is None else abs(theirs - ours) < 1e-6
    return None if same else f"ours {ours}, toulbar2's {theirs}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--files", type=int, default=300, metavar="N")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--verbose", action="store_true", help="print the files")
    args = parser.parse_args()
    kinds = args.kind or KINDS
    tried: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for k in range(args.files):
            kind, seed = kinds[k % len(kinds)], args.first + k // len(kinds)
            tried[kind] += 1
            said = compare(seed, kind, Path(folder), args.verbose)
            silent[kind] += said == "no answer"
            if said not in (None, "no answer"):
                wrong[kind] += 1
                print(json.dumps({"kind": kind, "seed": seed, "wrong": said}), flush=True)
    for kind in kinds:
        print(f"{kind:14}{tried[kind]:6} files, no answer {silent[kind]:4}, differs {wrong[kind]:4}")
    note("differential_globals.py", "files", tried.total() - silent.total(), wrong.total())
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main())
