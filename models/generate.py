"""Writes the small models of this folder and known_optima.json, with a proof for every optimum.

usage: python models/generate.py [FOLDER]        (the folder of this script if none is given)

Every optimum is proven twice, by code that shares nothing with fginfer's solvers: by variable elimination (dynamic
programming over the whole model, exact because it keeps every table), and by a second method that fits the model: brute
force over all labelings, or HiGHS on the integer program.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

import fginfer
from fginfer import AbsDiff, FactorGraph, Potts
from fginfer.tables import expand

Table = NDArray[np.float64]


@dataclass
class Model:
    """A model as plain lists, next to the graph that is written."""

    graph: FactorGraph
    factors: list[tuple[tuple[int, ...], Table]] = field(default_factory=list)
    evidence: dict[int, int] = field(default_factory=dict)
    about: str = ""

    def add(self, variables: tuple[int, ...], table: Any, weight: float = 1.0) -> None:
        """A factor with scores weight * table; the table is an array or never expanded in the file."""
        shape = [int(self.graph.cards[v]) for v in variables]
        self.graph.add_factor(variables, table, weight=weight)
        dense = expand(table, shape[0], shape[1]) if isinstance(table, Potts | AbsDiff) else np.asarray(table, float)
        self.factors.append((variables, weight * dense))

    def score(self, labels: list[int]) -> float:
        return math.fsum(float(table[tuple(labels[v] for v in scope)]) for scope, table in self.factors)


# -- the models ------------------------------------------------------------------------------------------------


def grid(rng: np.random.Generator) -> Model:
    """A frustrated Ising grid: the relaxation is loose."""
    rows, cols = 12, 12
    model = Model(FactorGraph([2] * (rows * cols)), about=f"{rows} x {cols} spin glass with random fields")
    for v in range(rows * cols):
        model.add((v,), np.array([0.0, rng.normal(0, 0.4)]).round(3))
    for r in range(rows):
        for c in range(cols):
            for r2, c2 in ((r, c + 1), (r + 1, c)):
                if r2 < rows and c2 < cols:
                    j = round(float(rng.normal()), 3)
                    model.add((r * cols + c, r2 * cols + c2), np.array([[j, -j], [-j, j]]))
    return model


def tree(rng: np.random.Generator) -> Model:
    """A random tree: every sound solver is exact."""
    cards = rng.integers(2, 9, 80)
    model = Model(FactorGraph(cards), about="random tree, 2 to 8 labels")
    for v in range(len(cards)):
        model.add((v,), rng.normal(size=cards[v]).round(2))
        if v:
            parent = int(rng.integers(max(0, v - 12), v))
            model.add((parent, v), rng.normal(size=(cards[parent], cards[v])).round(2))
    return model


def protein(rng: np.random.Generator) -> Model:
    """Side chains along a backbone: few contacts, large tables, clashes that are forbidden."""
    n = 14
    cards = rng.choice([3, 6, 9, 18], n)
    model = Model(FactorGraph(cards), about="side-chain placement: large tables, forbidden clashes")
    for v in range(n):
        model.add((v,), -rng.gamma(2.0, 1.0, cards[v]).round(4))
    for a, b in combinations(range(n), 2):
        if b - a == 1 or (b - a <= 4 and rng.random() < 0.35):
            energy = rng.gamma(1.0, 1.5, (cards[a], cards[b])).round(4)
            energy[rng.random(energy.shape) < 0.6] = 0.0  # most rotamers do not touch
            energy[rng.random(energy.shape) < 0.08] = math.inf
            energy[0, 0] = 3.0  # the first rotamers always fit, so that there is a solution
            model.add((a, b), 0.0 - energy)
    return model


def matching(rng: np.random.Generator) -> Model:
    """Graph matching as in the thesis: one table, 1/distance and -inf on the diagonal, shared by all edges."""
    n, nodes = 9, 24
    points = rng.random((nodes, 2))
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < 0.34
    hops = np.where(near, 1.0, math.inf)
    np.fill_diagonal(hops, 0.0)
    for k in range(nodes):
        hops = np.minimum(hops, hops[:, k : k + 1] + hops[k : k + 1])
    with np.errstate(divide="ignore"):
        table = np.where(np.isfinite(hops), 1.0 / hops, 0.0)
    np.fill_diagonal(table, -math.inf)
    features = (rng.random((nodes, 12)) < 0.3).astype(float)
    start = int(np.argmax(near.sum(axis=1)))
    sample = np.argsort(hops[start], kind="stable")[:n]
    model = Model(FactorGraph([nodes] * n), about="graph matching: one table shared by all edges, labels may not meet")
    for i, node in enumerate(sample):
        model.add((i,), features @ features[node])
    for i, j in combinations(range(n), 2):
        if near[sample[i], sample[j]] and j - i <= 3:
            model.add((i, j), table)
    return model


def stereo(rng: np.random.Generator) -> Model:
    """A patch of a disparity map: truncated differences that are never expanded."""
    rows, cols, labels = 5, 18, 7
    truth = np.clip(
        np.add.outer(np.arange(rows) // 3, np.arange(cols) // 5) + (rng.random((rows, cols)) < 0.1), 0, labels - 1
    )
    model = Model(FactorGraph([labels] * (rows * cols)), about="stereo patch: truncated differences of disparities")
    for v in range(rows * cols):
        seen = truth.flat[v] + rng.normal(0, 0.9)
        model.add((v,), (-np.minimum((np.arange(labels) - seen) ** 2, 4.0)).round(3))
    smooth = [AbsDiff(0.5, 2.0), AbsDiff(1.25, 2.0)]  # weaker across an edge of the image
    for r in range(rows):
        for c in range(cols):
            for r2, c2 in ((r, c + 1), (r + 1, c)):
                if r2 < rows and c2 < cols:
                    model.add((r * cols + c, r2 * cols + c2), smooth[int(rng.random() < 0.75)])
    return model


def multilabel(rng: np.random.Generator) -> Model:
    """Which tags does a document have: a complete graph of binary variables."""
    n = 16
    model = Model(FactorGraph([2] * n), about="multilabel classification: complete graph of binary variables")
    for v in range(n):
        model.add((v,), [0.0, float(rng.normal(-0.8, 1.5))])
    for pair in combinations(range(n), 2):
        model.add(pair, [[0.0, 0.0], [0.0, float(rng.normal(0, 0.6))]])
    return model


def higher_order(rng: np.random.Generator) -> Model:
    """Factors over three and four variables, some shared."""
    n = 18
    cards = [3 if v % 3 else 2 for v in range(n)]
    model = Model(FactorGraph(cards), about="factors over one to four variables, some of them shared")
    for v in range(n):
        model.add((v,), rng.normal(size=cards[v]).round(3))
    shared = rng.normal(size=(3, 3, 2)).round(3)
    for v in range(1, n - 2, 3):
        model.add((v, v + 1, v + 2), shared)
    for v in range(0, n - 4, 2):
        scope = (v, v + 1, v + 3, v + 4)
        model.add(scope, rng.normal(size=[cards[i] for i in scope]).round(3))
    return model


def network(rng: np.random.Generator) -> Model:
    """A Bayesian network with deterministic nodes, and evidence."""
    n = 30
    cards = rng.integers(2, 5, n)
    model = Model(FactorGraph(cards), about="Bayesian network, partly deterministic, with evidence")
    sample = np.zeros(n, int)
    for v in range(n):
        parents = sorted(
            int(p) for p in rng.choice(range(max(0, v - 5), v), min(v, int(rng.integers(0, 4))), replace=False)
        )
        shape = [int(cards[p]) for p in parents] + [int(cards[v])]
        if parents and rng.random() < 0.3:  # a function of its parents
            table = np.eye(cards[v])[rng.integers(0, cards[v], shape[:-1])]
        else:
            table = rng.integers(1, 10, shape).astype(float)
            table = (table / table.sum(axis=-1, keepdims=True)).round(6)
        row = table[tuple(sample[p] for p in parents)]
        sample[v] = rng.choice(cards[v], p=row / row.sum())
        with np.errstate(divide="ignore"):
            model.add((*parents, v), np.log(table))
    model.evidence = {int(v): int(sample[v]) for v in rng.choice(n, 6, replace=False)}
    return model


def frequency(rng: np.random.Generator) -> Model:
    """Frequencies for radio links: whole costs, hard distances."""
    n, labels = 12, 10
    model = Model(FactorGraph([labels] * n), about="frequency assignment: whole costs, hard minimum distances")
    d = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    for v in range(n):
        model.add((v,), -rng.integers(0, 20, labels).astype(float))
    for a, b in combinations(range(n), 2):
        if b - a == 1:
            model.add((a, b), np.where(d >= 3, 0.0, -math.inf))
        elif b - a <= 4 and rng.random() < 0.6:
            model.add((a, b), np.where(d >= 2, 0.0, -float(rng.integers(5, 50))))
    return model


MODELS = {
    "grid.uai": grid,
    "tree.uai": tree,
    "protein.cfn": protein,
    "matching.npz": matching,
    "stereo.h5": stereo,
    "multilabel.LG": multilabel,
    "higher_order.uai": higher_order,
    "network.uai": network,
    "frequency.wcsp": frequency,
}

# -- the proofs ------------------------------------------------------------------------------------------------


def eliminate(model: Model) -> tuple[float, list[int]]:
    """The optimum by variable elimination: maximise out one variable after the other, then walk back."""
    cards = [int(k) for k in model.graph.cards]
    factors = [(scope, np.asarray(table, float)) for scope, table in model.factors]
    for v, label in model.evidence.items():
        mask = np.full(cards[v], -math.inf)
        mask[label] = 0.0
        factors.append(((v,), mask))
    left, steps, constant = set(range(len(cards))), [], 0.0
    while left:
        around = {v: {u for scope, _ in factors if v in scope for u in scope} - {v} for v in left}
        v = min(left, key=lambda v: (math.prod(cards[u] for u in around[v]), v))
        scope = (*sorted(around[v]), v)
        total = np.zeros([cards[u] for u in scope])
        for mine, table in [f for f in factors if v in f[0]]:
            order = sorted(range(len(mine)), key=lambda k: scope.index(mine[k]))
            shape = [cards[u] if u in mine else 1 for u in scope]
            total = total + table.transpose(order).reshape(shape)
        factors = [f for f in factors if v not in f[0]]
        steps.append((v, scope[:-1], total.argmax(axis=-1)))
        factors.append((scope[:-1], total.max(axis=-1)))
        left.remove(v)
        constant += math.fsum(float(table) for mine, table in factors if not mine)
        factors = [f for f in factors if f[0]]
    labels = [0] * len(cards)
    for v, scope, best in reversed(steps):
        labels[v] = int(best[tuple(labels[u] for u in scope)])
    return constant, labels


def brute_force(model: Model) -> float:
    """The optimum over all labelings, at once."""
    cards = [int(k) for k in model.graph.cards]
    total = np.zeros(cards)
    for scope, table in model.factors:
        order = sorted(range(len(scope)), key=lambda k: scope[k])
        total += table.transpose(order).reshape([cards[v] if v in scope else 1 for v in range(len(cards))])
    return float(total.max())


def integer_program(model: Model) -> float:
    """The optimum of the integer program over the local polytope, by HiGHS."""
    cards = [int(k) for k in model.graph.cards]
    begin = np.concatenate(([0], np.cumsum(cards)))
    cost, upper, integral = [0.0] * int(begin[-1]), [1.0] * int(begin[-1]), [True] * int(begin[-1])
    rows: list[tuple[list[int], list[float], float]] = []
    for v, k in enumerate(cards):
        rows.append(([int(begin[v]) + a for a in range(k)], [1.0] * k, 1.0))
    for v, label in model.evidence.items():
        for a in range(cards[v]):
            upper[int(begin[v]) + a] = float(a == label)
    for scope, table in model.factors:
        if len(scope) == 1:
            for a, s in enumerate(table.tolist()):
                cost[int(begin[scope[0]]) + a] += 0.0 if s == -math.inf else s
                upper[int(begin[scope[0]]) + a] *= float(s != -math.inf)
            continue
        first = len(cost)
        flat = table.reshape(-1)
        cost += np.where(np.isfinite(flat), flat, 0.0).tolist()
        upper += np.isfinite(flat).astype(float).tolist()
        integral += [False] * len(flat)
        index = first + np.arange(len(flat)).reshape(table.shape)
        for axis, v in enumerate(scope):
            for a in range(cards[v]):
                states = index.take(a, axis).reshape(-1).tolist()
                rows.append(([*states, int(begin[v]) + a], [1.0] * len(states) + [-1.0], 0.0))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(cost), len(rows)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.array(cost), np.zeros(len(cost)), np.array(upper)
    lp.row_lower_ = lp.row_upper_ = np.array([right for _, _, right in rows])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate(([0], np.cumsum([len(columns) for columns, _, _ in rows]))).astype(np.int32)
    lp.a_matrix_.index_ = np.concatenate([columns for columns, _, _ in rows]).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([values for _, values, _ in rows])
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[i] for i in integral]
    highs.passModel(lp)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def prove(model: Model) -> tuple[float, list[int], str]:
    """The optimum, an optimal labeling, and the words for how it was proven."""
    optimum, labels = eliminate(model)
    score = model.score(labels)
    assert abs(score - optimum) <= 1e-9 * max(1.0, abs(optimum))
    if not model.evidence and math.prod(int(k) for k in model.graph.cards) <= 2**20:
        second, name = brute_force(model), "brute force"
    else:
        second, name = integer_program(model), "HiGHS on the integer program"
    assert abs(second - optimum) <= 1e-6 * max(1.0, abs(optimum)), (second, optimum)
    return score, labels, f"variable elimination, confirmed by {name}"


def generate(folder: Path, names: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Writes the models and returns what known_optima.json holds."""
    known: dict[str, dict[str, Any]] = {}
    for k, (name, maker) in enumerate(MODELS.items()):
        model = maker(np.random.default_rng(1000 + k))
        if names is not None and name not in names:
            continue
        fginfer.write(model.graph, folder / name, format="bayes" if model.evidence else None)
        optimum, labels, proof = prove(model)
        again = fginfer.read(folder / name)
        assert abs(again.score(labels) - optimum) <= 1e-9 * max(1.0, abs(optimum))
        entry: dict[str, Any] = {"about": model.about, "optimum": again.score(labels), "proof": proof, "labels": labels}
        if model.evidence:
            fginfer.formats.write_evidence(model.evidence, folder / f"{name}.evid")
            entry["evidence"] = f"{name}.evid"
        known[name] = entry
        print(f"{name:18s} {again!r:64s} optimum {optimum:12.6f}  {proof}", flush=True)
    return known


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    known = generate(folder)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in known.items())
    (folder / "known_optima.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
