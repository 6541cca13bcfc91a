"""Families of which no instance is kept here: `auto` beside toulbar2, in CPU seconds of one thread.

    python -m bench unseen [--seconds 10] [--seeds 1] [--family NAME ...] [--vns] [--methods bnb edac]

Needs pytoulbar2. Every run is a process of its own; both get the same whole-number costs (unseen_models.py). Prints per
model the cost of the best labeling, the time, and "proven" where it is, by methods of ours alone, too; then where
`auto` is behind: in cost, in proof, or in time to the proof by more than half and 20 ms. Exit code 1 if anything false
was said: a proof of a cost that the other has beaten.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np

from bench.common.clock import again
from bench.common.whole_costs import FORBIDDEN, LargeCase
from bench.map.unseen_models import FAMILIES, unseen_case

SLICE = 0.05  # seconds between two looks at the CPU time


def run_ours(case: LargeCase, seconds: float, method: str = "auto") -> dict[str, Any]:
    from fginfer import Solver

    graph, start = case.graph(), time.process_time()
    with Solver(graph, method=method, threads=1, gap=0.0) as solver:
        while solver.run(SLICE) == "running" and time.process_time() - start < seconds:
            pass
        spent, result = time.process_time() - start, solver.result()
    cost = None if result.labels is None else case.cost(result.labels)
    return {"cost": cost, "seconds": spent, "proven": result.is_optimal or result.status == "infeasible"}


def run_toulbar2(case: LargeCase, seconds: float, vns: bool = False) -> dict[str, Any]:
    import pytoulbar2

    top = 1 + sum(int(costs.max()) for _, costs in case.factors)
    problem = pytoulbar2.CFN(top, vns=-4 if vns else None)
    for i, k in enumerate(case.cards):
        problem.AddVariable(f"v{i}", range(k))
    for scope, costs in case.factors:
        problem.AddFunction(list(scope), np.where(costs == FORBIDDEN, top, costs).ravel().tolist())
    start = time.process_time()
    answer = problem.Solve(timeLimit=round(seconds))
    spent = time.process_time() - start
    if answer is None:
        return {"cost": None, "seconds": spent, "proven": spent < 0.9 * seconds}
    proven = problem.GetDDualBound() >= answer[1] - 0.5
    return {"cost": case.cost(np.array(answer[0])), "seconds": spent, "proven": proven}


ALONE = "bnb", "edac", "dolls", "cycles"  # methods that end with a proof
WHO: dict[str, Callable[[LargeCase, float], dict[str, Any]]] = {
    "auto": run_ours,
    "toulbar2": run_toulbar2,
    "vns": partial(run_toulbar2, vns=True),
    **{method: partial(run_ours, method=method) for method in ALONE},
}


def ask(who: str, family: str, seed: int, seconds: float) -> dict[str, Any]:
    """In a process of its own: toulbar2 has one set of options and one clock a process."""
    command = again("unseen", "--ask", who, "--family", family, "--first", seed)
    done = subprocess.run([*command, "--seconds", str(seconds)], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"cost": None, "seconds": 0.0, "proven": False, "failed": done.stderr[-300:]}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def behind(ours: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """In what `auto` is behind, or wrong."""
    cost = [inf if r["cost"] is None else r["cost"] for r in (ours, other)]
    words = []
    if cost[1] < cost[0]:
        words.append("FALSE" if ours["proven"] else "cost")
    if cost[0] < cost[1] and other["proven"]:
        words.append("toulbar2 false")
    if other["proven"] and not ours["proven"]:
        words.append("proof")
    if other["proven"] and ours["proven"] and ours["seconds"] > max(1.5 * other["seconds"], other["seconds"] + 0.02):
        words.append("time")
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES))
    parser.add_argument("--vns", action="store_true", help="toulbar2's local search, too")
    parser.add_argument("--methods", nargs="+", default=[], choices=ALONE, help="of ours, each by itself, too")
    parser.add_argument("--ask", choices=sorted(WHO), help="one run, as a line of JSON")
    args = parser.parse_args()
    if args.ask:
        print(json.dumps(WHO[args.ask](unseen_case(args.family[0], args.first), args.seconds)))
        return 0
    wrong, others = 0, ["toulbar2", *(["vns"] if args.vns else [])]
    names = ["auto", *others, *args.methods]
    for family in args.family or FAMILIES:
        for seed in range(args.first, args.first + args.seeds):
            answers = {who: ask(who, family, seed, args.seconds) for who in names}
            told = [
                f"{who} {a['cost']!s:>9} {a['seconds']:7.3f} s {'proven' if a['proven'] else '      '}"
                for who, a in answers.items()
            ]
            words = {word for who in others for word in behind(answers["auto"], answers[who])}
            wrong += "FALSE" in words
            print(f"{family:20s} {seed:3d}", *told, *(f"<- {word}" for word in sorted(words)), sep="  ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
