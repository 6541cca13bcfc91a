"""fginfer check: the score of a solution file, and the constraints it violates."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from fginfer.commands.common import add_model, load, print_json
from fginfer.formats import read_solution
from fginfer.graph import FactorGraph
from fginfer.names import Names
from fginfer.result import known
from fginfer.startup import DONE, INFEASIBLE

SHOWN = 20
FEW = 8  # variables of a constraint that are shown


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "check",
        help="score a solution and list violated constraints",
        description="Scores a labeling from the tables of the model. Exit code 20 if it violates a hard constraint"
        " or is not above the cutoff of the file.",
        epilog="example:\n  fginfer check grid.uai grid.MPE",
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
    names = graph.names or Names()
    if -np.inf < score <= graph.cutoff:
        broken.append(f"the score {score:.17g} is not above the cutoff {graph.cutoff:.17g} of the file")
    broken += [
        f"evidence: {names.variable_text(i)} has label {names.label_text(i, labels[i])}, not {names.label_text(i, a)}"
        for i, a in (evidence or {}).items()
        if labels[i] != a
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
    return INFEASIBLE if broken else DONE


def violations(graph: FactorGraph, labels: Any) -> list[str]:
    """One sentence per forbidden state that the labeling uses."""
    out = ["the constant is -inf: no labeling is possible"] if graph.constant == -np.inf else []
    names = graph.names or Names()
    for i in np.flatnonzero(graph.unary_scores(labels) == -np.inf).tolist():
        out.append(f"{names.variable_text(i)}: label {names.label_text(i, labels[i])} is forbidden")
    bad = np.flatnonzero(graph.factor_scores(labels) == -np.inf).tolist()
    factors = graph.factors() if bad else []
    for f in bad:
        scope = factors[f].variables
        state = ", ".join(names.label_text(i, labels[i]) for i in scope)
        called = ", ".join(names.variable_text(i).removeprefix("variable ") for i in scope)
        out.append(f"variables {called}: labels {state} are forbidden together")
    for r in np.flatnonzero(graph.rule_scores(labels) == -np.inf).tolist():
        rule = graph.rules[r]
        called = ", ".join(names.variable_text(i).removeprefix("variable ") for i in rule.variables[:FEW])
        more = ", ..." if len(rule.variables) > FEW else ""
        out.append(f"constraint {r} ({rule.kind}) of variables {called}{more} is violated")
    return out
