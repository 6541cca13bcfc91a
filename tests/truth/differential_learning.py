"""Random mixtures of tables and constraints through the learner (fginfer/conflicts) against every labeling, exactly.

    python tests/truth/differential_learning.py --models 20000

Scores are those of the definitions (tests/constraints/meanings.py) in rationals. The learner is run in pieces of random
length, told labelings and true inequalities by others, and given cutoffs; its answer has to be the best there is.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from itertools import pairwise, product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from differential_rules import KINDS, random_rule

from fginfer import FactorGraph
from fginfer.conflicts import Learner
from tests.constraints.meanings import Said

Rng = np.random.Generator


def _scores(rng: Rng, shape: tuple[int, ...]) -> Any:
    table = rng.integers(-3, 4, shape) * float(rng.choice([1.0, 0.5, 1.0, 0.1]))
    if rng.random() < 0.3:
        table = rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.15, -inf, table)


def random_mixture(rng: Rng) -> tuple[FactorGraph, list[Said], list[tuple[list[int], Any]]]:
    """A graph, its constraints, and its tables."""
    cards = rng.integers(1, 5, int(rng.integers(1, 6))).tolist()
    graph, tables = FactorGraph(cards), []
    for _ in range(int(rng.integers(0, 5))):
        scope = rng.permutation(len(cards))[: int(rng.integers(1, min(4, len(cards) + 1)))].tolist()
        tables.append((scope, _scores(rng, tuple(cards[v] for v in scope))))
        graph.add_factor(*tables[-1])
    rules = [random_rule(rng, cards) for _ in range(int(rng.integers(0, 4)))]
    for rule in rules:
        rule.add(graph)
    return graph, rules, tables


def exact_score(x: tuple[int, ...], rules: list[Said], tables: list[tuple[list[int], Any]]) -> Fraction | float:
    terms = [float(t[tuple(x[v] for v in scope)]) for scope, t in tables]
    said = [rule.score(x) for rule in rules]
    if -inf in terms or -inf in said:
        return -inf
    return sum(map(Fraction, terms), Fraction(0)) + sum(map(Fraction, said), Fraction(0))


def check(seed: int) -> str:
    """A fault, or nothing."""
    rng = np.random.default_rng(seed)
    graph, rules, tables = random_mixture(rng)
    every = {x: exact_score(x, rules, tables) for x in product(*(range(k) for k in graph.cards.tolist()))}
    best = max(every.values())
    cutoff = float(best) - float(rng.choice([0, 0.5, -0.5])) if rng.random() < 0.3 and best > -inf else -inf
    allowed = np.isfinite(graph.table_arrays().unary)
    learner = Learner.made(graph, graph.rules, graph.rules, allowed, cutoff)
    if learner is None:
        return "it was refused"
    if rng.random() < 0.3:
        learner.offer(np.array(list(every)[int(rng.integers(len(every)))], np.int32))
    if rng.random() < 0.5 and best > -inf:
        learner.take_prices(*_prices(rng, graph, every))
    for _ in range(10_000):
        if learner.status != "running":
            break
        learner.run(int(rng.integers(1, 3000)))
    return _fault(learner, every, best, cutoff)


def _prices(rng: Rng, graph: FactorGraph, every: dict[tuple[int, ...], Any]) -> tuple[float, Any]:
    """Random gains, and a bound that makes what they say true."""
    begin = np.concatenate(([0], np.cumsum(graph.cards)))
    gains = rng.normal(size=int(begin[-1])) * 3
    tops = sum(gains[a:b].max() for a, b in pairwise(begin.tolist()))
    paid = {x: tops - sum(gains[begin[v] + a] for v, a in enumerate(x)) for x in every}
    return max(float(s) + paid[x] for x, s in every.items() if s > -inf) + 1e-9, gains


def _fault(learner: Learner, every: dict[tuple[int, ...], Any], best: Fraction | float, cutoff: float) -> str:
    near = 1e-9 * max(1.0, abs(float(best))) if best > -inf else 0.0
    if learner.status == "running":
        return "it did not end"
    if learner.bound < best - near and learner.bound < inf and float(best) > cutoff:
        return f"the bound {learner.bound} is below the best score {best}"
    if best == -inf or float(best) <= cutoff:
        return "" if learner.labels is None else f"a labeling of {learner.score}, and the best is {best}"
    if learner.labels is None:
        return f"no labeling, and the best score is {float(best)}"
    own = every[tuple(learner.labels.tolist())]
    if abs(float(own) - learner.score) > near or learner.score < float(best) - near:
        return f"a labeling of {float(own)} is said to score {learner.score}; the best is {float(best)}"
    if learner.status == "proved" and abs(learner.bound - float(best)) > near:
        return f"a bound of {learner.bound}; the best is {float(best)}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    faults = 0
    for seed in range(args.seed, args.seed + args.models):
        if fault := check(seed):
            faults += 1
            print(f"seed {seed}: {fault}", flush=True)
    print(f"{args.models} models of {len(KINDS)} kinds of constraints, {faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
