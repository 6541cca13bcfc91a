"""fginfer check: the score of a solution file, and the constraints it violates."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from fginfer.commands.common import add_model, load, print_json
from fginfer.formats import read_solution
from fginfer.graph import FactorGraph
from fginfer.result import known

SHOWN = 20


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "check",
        help="score a solution and list violated constraints",
        description="Scores a labeling from the tables of the model. Exit code 1 if it violates a hard constraint.",
        epilog="example:\n  fginfer check grid.uai grid.MPE",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument("solution", metavar="SOLUTION", help="a UAI solution file (MPE or MAP)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    graph, evidence = load(args)
    labels = read_solution(args.solution, graph)
    score = graph.score(labels)
    broken = violations(graph, labels)
    broken += [
        f"evidence: variable {i} has label {labels[i]}, not {a}" for i, a in (evidence or {}).items() if labels[i] != a
    ]
    if args.json:
        data = {"score": known(score), "energy": known(-score), "feasible": not broken, "violations": broken}
        print_json(data)
    else:
        print(f"score   {score:.17g}\nenergy  {-score:.17g}")
        print(f"violated constraints  {len(broken)}")
        for line in broken[:SHOWN]:
            print(f"  {line}")
        if len(broken) > SHOWN:
            print(f"  ... and {len(broken) - SHOWN} more (all of them with --json)")
    return 1 if broken else 0


def violations(graph: FactorGraph, labels: Any) -> list[str]:
    """One sentence per forbidden state that the labeling uses."""
    out = ["the constant is -inf: no labeling is possible"] if graph.constant == -np.inf else []
    for i in np.flatnonzero(graph.unary_scores(labels) == -np.inf).tolist():
        out.append(f"variable {i}: label {labels[i]} is forbidden")
    bad = np.flatnonzero(graph.factor_scores(labels) == -np.inf).tolist()
    factors = graph.factors() if bad else []
    for f in bad:
        scope = factors[f].variables
        state = ", ".join(str(labels[i]) for i in scope)
        out.append(f"variables {', '.join(map(str, scope))}: labels {state} are forbidden together")
    return out
