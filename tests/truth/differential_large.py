"""Is anything false said on models too large for brute force? 20 to 200 variables, against toulbar2.

    python tests/truth/differential_large.py --models 1000 [--first SEED] [--kind packing] [--seconds 0.5] [--again]

Needs pytoulbar2. Costs are whole numbers there, so its labelings and its optimum are exact: no bound of ours may lie
below the score of its labeling, nothing below that may be called optimal, no labeling may be called infeasible that it
has found, and where it has proven an optimum no labeling of ours may cost less. Every method gets every model, with a
limit of time or iterations, so that it is stopped anywhere. Prints a JSON line for everything false, then counts, and
how often each of both sides had a proof. With --again every method also works for a few iterations, once more with
several threads, in slices, and on all scores times a power of two, which must give the same answer. Exit code 1 if
there was anything false.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytoulbar2
from numpy.typing import NDArray

from fginfer import FactorGraph, FginferError, Result, Solver, available_methods

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for bench.common
from differential import key
from differential_large_models import KINDS, large_case
from ledger import note

from bench.common.whole_costs import FORBIDDEN, LargeCase

METHODS = ("auto", "bnb", "edac", "dolls", "slabs", "gdmm", "trws")
# What gdmm, slabs, edac and the method "assignment" do not take.
REFUSALS = ("finite pairwise factors only", "too dense", "too large", "no assignment", "assignment takes")


@dataclass(frozen=True)
class Known:
    """What toulbar2 has found; cost None: nothing."""

    labels: NDArray[np.int32] | None
    cost: int | None
    proven: bool  # that this is the optimum, or that there is no labeling


def ask_peer(case: LargeCase, seconds: int) -> Known:
    top = 1 + sum(int(costs.max()) for _, costs in case.factors)
    problem = pytoulbar2.CFN(top)
    for i, k in enumerate(case.cards):
        problem.AddVariable(f"v{i}", range(k))
    for scope, costs in case.factors:
        problem.AddFunction(list(scope), np.where(costs == FORBIDDEN, top, costs).ravel().tolist())
    start = time.process_time()
    answer = problem.Solve(timeLimit=seconds)
    if answer is None:  # without a limit in its way: there is none
        return Known(None, None, time.process_time() - start < 0.9 * seconds)
    labels = np.array(answer[0], np.int32)
    cost = case.cost(labels)
    if cost is None or cost != round(answer[1]):
        raise RuntimeError(f"toulbar2 says {answer[1]}, its labels cost {cost}")
    return Known(labels, cost, problem.GetDDualBound() >= answer[1] - 0.5)


def settings(rng: np.random.Generator, method: str, seconds: float) -> tuple[dict[str, Any], float, int]:
    """The settings of one solve: the solver's, and the limits."""
    how: dict[str, Any] = {"method": method, "seed": int(rng.integers(1000)), "threads": int(rng.choice([1, 1, 1, 2]))}
    how["gap"] = float(rng.choice([0.0, 0.0, 1e-6, 0.01]))
    if method == "auto":
        how["presolve"] = bool(rng.random() < 0.8)
    iterations = int(rng.choice([-1, -1, 1, 10, 100])) if method != "auto" else int(rng.choice([-1, -1, -1, 2]))
    return how, float(seconds * rng.choice([0.05, 0.3, 1.0, 1.0])), iterations


def run(graph: FactorGraph, how: dict[str, Any], seconds: float, iterations: int) -> Result:
    with Solver(graph, **how) as solver:
        solver.run(seconds, None if iterations < 0 else iterations)
        return solver.result()


def differences(case: LargeCase, seed: int, method: str) -> list[str]:
    """On what the answer after a few iterations depends, in words."""
    rng = np.random.default_rng([seed, available_methods().index(method), 1])
    k, threads = int(rng.choice([-900, 900, -300, 77])), int(rng.choice([2, 3, 4]))
    how: dict[str, Any] = {"method": method, "seed": int(rng.integers(99)), "gap": float(rng.choice([0.0, 1e-6, 0.01]))}
    how["max_iterations"] = int(rng.choice([1, 3] if method == "auto" else [2, 8]))

    def answer(exponent: int, threads: int, slices: int) -> tuple[Any, ...] | None:
        with Solver(case.graph(exponent), threads=threads, **how) as solver:
            for _ in range(slices):
                solver.run(1e-3)
            solver.run(15.0)
            result = solver.result()
        return None if result.status == "time_limit" else key(result, exponent)

    first = answer(0, 1, 0)
    others = {"threads": answer(0, threads, 0), "slices": answer(0, 1, 40), f"the unit, 2^{k}": answer(k, 1, 0)}
    return [f"{how}: depends on {name}" for name, x in others.items() if None not in (first, x) and x != first]


def falsehoods(case: LargeCase, graph: FactorGraph, known: Known, r: Result) -> list[str]:
    """Everything false that a result says, in words."""
    said = []
    if r.labels is not None:
        cost = case.cost(r.labels)
        if cost is None:
            return ["a forbidden labeling"]
        assert r.score is not None
        if r.score != graph.score(r.labels) or abs(r.score + cost * case.step) > 1e-12 * max(1, cost) * case.step:
            said.append(f"wrong score: the labels cost {cost}")
        if known.proven and (known.cost is None or cost < known.cost):
            said.append(f"a labeling of cost {cost}, below the optimum of toulbar2")
    if known.labels is None:
        return said
    best = graph.score(known.labels)
    if r.bound is not None and (r.bound < nextafter(best, -inf) or np.isnan(r.bound)):
        said.append("bound below the score of a labeling")
    if r.is_optimal and (r.score is None or best - r.score > 1e-12 * max(abs(r.score), r.unit or 0.0)):
        said.append("not optimal")
    if r.status == "infeasible":
        said.append("not infeasible")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--models", type=int, default=200, metavar="N")
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--method", action="append", help="only these methods")
    parser.add_argument("--seconds", type=float, default=0.5, help="the longest limit of one solve")
    parser.add_argument("--again", action="store_true", help="threads, slices and units, too")
    parser.add_argument("--peer-seconds", type=int, default=3, help="the limit of toulbar2")
    args = parser.parse_args()
    counts, proofs, below, wrong = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for seed in range(args.first, args.first + args.models):
        case = large_case(seed, args.kind)
        try:
            known, graph = ask_peer(case, args.peer_seconds), case.graph()
        except Exception:
            wrong["the bench itself"] += 1
            print(json.dumps({"kind": case.kind, "model": seed, "error": traceback.format_exc()[-900:]}), flush=True)
            continue
        proofs["toulbar2"] += known.proven
        for method in available_methods() if args.again else ():
            try:
                found = differences(case, seed, method)
            except FginferError as error:
                found = [] if any(reason in str(error) for reason in REFUSALS) else [str(error)]
            for words in found:
                wrong["depends on what it must not"] += 1
                print(json.dumps({"false": words, "model": seed, "kind": case.kind}), flush=True)
        for method in args.method or METHODS:
            rng = np.random.default_rng([seed, METHODS.index(method)])
            how, seconds, iterations = settings(rng, method, args.seconds)
            report = {"model": seed, "kind": case.kind, "step": case.step, **how, "limit": [seconds, iterations]}
            try:
                result = run(graph, how, seconds, iterations)
            except FginferError as error:
                if not any(reason in str(error) for reason in REFUSALS):
                    wrong["exception"] += 1
                    print(json.dumps(report | {"error": str(error)}), flush=True)
                continue
            counts[method] += 1
            proofs[method] += result.is_optimal or result.status == "infeasible"
            below[method] += known.cost is not None and (
                result.labels is None or case.cost(result.labels) != known.cost
            )
            for words in falsehoods(case, graph, known, result):
                wrong[words.split(":")[0]] += 1
                answer = {"status": result.status, "score": result.score, "bound": result.bound, "cost": known.cost}
                print(json.dumps({"false": words, **report, **answer}), flush=True)
    note("differential_large.py", "solves", counts.total(), wrong.total())
    print(f"{counts.total()} solves of {args.models} models: {dict(counts)}", file=sys.stderr)
    print(f"proofs: {dict(proofs)}; not at the cost of toulbar2: {dict(below)}", file=sys.stderr)
    print(f"wrong: {dict(wrong) or 'nothing'}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
