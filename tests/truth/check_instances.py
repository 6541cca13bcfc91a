"""Loads every file of an INDEX.tsv and compares scores with an evaluator that shares no code with fginfer.

usage: python tests/truth/check_instances.py DIR [--labelings N] [--only TEXT]

For each file: sizes against INDEX.tsv, and the scores of random labelings (that agree with the evidence, if there is
some) against a second reading of the file in plain Python and numpy. Since random labelings of models with hard
constraints are mostly forbidden, the finite and the forbidden part are compared separately.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import json
import lzma
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from ledger import note

import fginfer
from fginfer.formats import read_evidence

Factor = tuple[list[int], Any]  # variables, function from their labels to a score


def text_of(path: Path) -> str:
    opener = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opener(path, "rt") as stream:
        text: str = stream.read()
    return text


# -- the second reading ----------------------------------------------------------------------------------------


def uai_factors(path: Path) -> tuple[list[int], list[Factor]]:
    word, _, rest = text_of(path).partition("\n")
    assert word.strip() in ("MARKOV", "BAYES")
    logs = ".LG" in path.name
    numbers = np.fromstring(rest, sep=" ")
    at = 1
    n = int(numbers[0])
    cards = [int(k) for k in numbers[at : at + n]]
    at += n
    count = int(numbers[at])
    at += 1
    scopes = []
    for _ in range(count):
        arity = int(numbers[at])
        scopes.append([int(v) for v in numbers[at + 1 : at + 1 + arity]])
        at += 1 + arity
    factors: list[Factor] = []
    for scope in scopes:
        size = int(numbers[at])
        assert size == math.prod(cards[v] for v in scope), "table size"
        begin = at + 1
        at += 1 + size

        def value(labels: list[int], begin: int = begin, scope: list[int] = scope) -> float:
            index = 0
            for v, x in zip(scope, labels, strict=True):
                index = index * cards[v] + x
            entry = float(numbers[begin + index])
            return entry if logs else math.log(entry) if entry > 0 else -math.inf

        factors.append((scope, value))
    assert at == len(numbers), "extra numbers"
    return cards, factors


def wcsp_factors(path: Path) -> tuple[list[int], list[Factor]]:
    words = text_of(path).split()
    n, count, top = int(words[1]), int(words[3]), int(words[4])
    cards = [int(k) for k in words[5 : 5 + n]]
    at = 5 + n
    factors: list[Factor] = []
    for _ in range(count):
        arity = int(words[at])
        scope = [int(v) for v in words[at + 1 : at + 1 + arity]]
        default, tuples = int(words[at + 1 + arity]), int(words[at + 2 + arity])
        assert arity >= 0
        assert default >= 0
        assert tuples >= 0
        at += 3 + arity
        costs = {}
        for _ in range(tuples):
            costs[tuple(int(x) for x in words[at : at + arity])] = int(words[at + arity])
            at += arity + 1

        def value(labels: list[int], costs: dict[Any, int] = costs, default: int = default) -> float:
            cost = costs.get(tuple(labels), default)
            return -math.inf if cost >= top else float(-cost)

        factors.append((scope, value))
    assert at == len(words), "extra words"
    return cards, factors


def cfn_factors(path: Path) -> tuple[list[int], list[Factor]]:
    model = json.loads(text_of(path))
    bound = model["problem"]["mustbe"]
    assert bound[0] == "<"
    top = float(bound[1:])
    names = list(model["variables"])
    domains = [model["variables"][name] for name in names]
    cards = [d if isinstance(d, int) else len(d) for d in domains]
    factors: list[Factor] = []
    for function in model["functions"].values():
        scope = [v if isinstance(v, int) else names.index(v) for v in function["scope"]]

        def value(labels: list[int], scope: list[int] = scope, function: Any = function) -> float:
            if "defaultcost" in function:
                width, cost = len(scope) + 1, float(function["defaultcost"])
                rows = [function["costs"][k : k + width] for k in range(0, len(function["costs"]), width)]
                for *row, given in rows:
                    named = [domains[v].index(a) if isinstance(a, str) else a for v, a in zip(scope, row, strict=True)]
                    cost = float(given) if named == labels else cost
            else:
                index = 0
                for v, x in zip(scope, labels, strict=True):
                    index = index * cards[v] + x
                cost = float(function["costs"][index])
            return -math.inf if cost >= top else -cost

        factors.append((scope, value))
    return cards, factors


def opengm_factors(path: Path) -> tuple[list[int], list[Factor]]:
    import h5py

    factors: list[Factor] = []
    with h5py.File(path, "r") as file:
        gm = file["gm"]
        header = [int(x) for x in gm["header"]]
        cards = [int(x) for x in gm["numbers-of-states"]]
        assert header[4] == 1
        assert header[5] == 16000, "this evaluator knows explicit tables"
        indices = [int(x) for x in gm["function-id-16000/indices"]]
        values = np.array(gm["function-id-16000/values"], float)
        begins, shapes, at, begin = [], [], 0, 0
        for _ in range(header[6]):
            shape = indices[at + 1 : at + 1 + indices[at]]
            at += 1 + len(shape)
            begins.append(begin)
            shapes.append(shape)
            begin += math.prod(shape)
        listed = [int(x) for x in gm["factors"]]
    at = 0
    for _ in range(header[3]):
        function, arity = listed[at], listed[at + 2]
        scope = listed[at + 3 : at + 3 + arity]
        at += 3 + arity

        def value(labels: list[int], begin: int = begins[function], shape: list[int] = shapes[function]) -> float:
            index, stride = 0, 1
            for x, k in zip(labels, shape, strict=True):
                index += x * stride
                stride *= k
            return -float(values[begin + index])

        factors.append((scope, value))
    return cards, factors


def evidence_pairs(path: Path) -> dict[int, int]:
    words = [int(w) for w in path.read_text().split()]
    if len(words) % 2 == 0:
        assert words.pop(0) == 1
    assert len(words) == 1 + 2 * words[0]
    return dict(zip(words[1::2], words[2::2], strict=True))


# -- the comparison --------------------------------------------------------------------------------------------


def second_reading(path: Path) -> tuple[list[int], list[Factor]]:
    for part, reader in (
        (".uai", uai_factors),
        (".LG", uai_factors),
        (".wcsp", wcsp_factors),
        (".cfn", cfn_factors),
        (".h5", opengm_factors),
    ):
        if part in path.name:
            return reader(path)
    raise ValueError(f"no evaluator for {path.name}")


def finite_and_forbidden(scores: list[float]) -> tuple[float, int]:
    finite = [s for s in scores if s != -math.inf]
    return math.fsum(finite), len(scores) - len(finite)


def compare(root: Path, row: dict[str, str], labelings: int, rng: np.random.Generator) -> str:
    path = root / row["file"]
    start = time.process_time()
    graph = fginfer.read(path)
    seconds = time.process_time() - start
    cards, factors = second_reading(path)
    problems = []
    if graph.cards.tolist() != cards:
        problems.append("label counts")
    if (
        graph.n_variables != int(row["variables"])
        or graph.n_factors != int(row["factors"])
        or max(cards) != int(row["max_labels"])
    ):
        problems.append("sizes of INDEX.tsv")
    evidence: dict[int, int] = {}
    if row["evidence"] != "-":
        evidence = evidence_pairs(root / row["evidence"])
        if read_evidence(root / row["evidence"], graph) != evidence:
            problems.append("evidence")
    worst, feasible = 0.0, 0
    large = [(scope, value) for scope, value in factors if len(scope) > 1]
    for _ in range(labelings):
        x = rng.integers(0, cards)
        for v, label in evidence.items():
            x[v] = label
        expected = [value([int(x[v]) for v in scope]) for scope, value in factors]
        total = -math.inf if -math.inf in expected else math.fsum(expected)
        ours = graph.score(x)
        feasible += total != -math.inf
        pairs = [(ours, total)] if ours != total else []
        wanted = finite_and_forbidden([value([int(x[v]) for v in scope]) for scope, value in large])
        found = finite_and_forbidden(graph.factor_scores(x).tolist())
        if wanted[1] != found[1]:
            problems.append("forbidden states")
        pairs.append((found[0], wanted[0]))
        for a, b in pairs:
            worst = max(worst, abs(a - b) / max(1.0, abs(b)) if math.isfinite(a) and math.isfinite(b) else math.inf)
    if worst > 1e-12:
        problems.append("scores")
    entries = graph.table_entries
    verdict = "ok" if not problems else "WRONG: " + ", ".join(sorted(set(problems)))
    sizes = f"{graph.n_variables:6d} {max(cards):4d} {graph.n_factors:7d} {entries:9d}"
    return f"{row['file']:66s} {sizes} {seconds:7.3f} {feasible:4d} {worst:8.1e}  {verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labelings", type=int, default=20)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with open(options.folder / "INDEX.tsv", newline="") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if options.only in row["file"]]
    sizes = f"{'vars':>6s} {'lab':>4s} {'factors':>7s} {'entries':>9s}"
    print(f"{'file':66s} {sizes} {'read s':>7s} {'feas':>4s} {'error':>8s}")
    wrong = 0
    for row in rows:
        line = compare(options.folder, row, options.labelings, rng)
        wrong += "WRONG" in line
        print(line, flush=True)
    note("check_instances.py", "files", len(rows), wrong)
    print(f"{len(rows)} files, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
