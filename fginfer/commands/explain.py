"""fginfer explain: why a model has no labeling."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from fginfer import __version__
from fginfer.commands.common import add_model, load, model_json, print_json
from fginfer.commands.stops import kept
from fginfer.explain import Explanation, explain
from fginfer.handles import Handle
from fginfer.result import known
from fginfer.startup import DONE, INFEASIBLE, STOPPED

EXAMPLES = """examples:
  fginfer explain timetable.cfn
  fginfer explain net.uai --evidence net.uai.evid --json

exit codes: 0 a labeling is allowed, 20 proven that none is, 2 the time was not enough, 3 bad input
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="why no labeling is allowed, and what to give up",
        description="Finds factors, constraints, forbidden labels and evidence that contradict each other, each of them"
        " proven to be needed for that; then the cheapest of them to drop.",
        epilog=EXAMPLES,
    )
    add_model(parser)
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds (default: none)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    graph, evidence = load(args)

    def say(line: str) -> None:
        if not args.quiet:
            print(line, file=sys.stderr)

    found, stopped = kept(lambda: explain(graph, evidence=evidence, time_limit=args.time_limit, callback=say))
    if args.json:
        print_json(as_json(found, model_json(graph)))
    else:
        print(found)
    if stopped and not args.quiet:
        print("interrupted: this is what had been found until then", file=sys.stderr)
    return STOPPED if found.infeasible is None else INFEASIBLE if found.infeasible else DONE


def as_json(found: Explanation, sizes: dict[str, int]) -> dict[str, Any]:
    """One object; factors by their number, constraints and names in `text`."""
    return {
        "version": __version__,
        "model": sizes,
        "infeasible": found.infeasible,
        "minimal": found.minimal,
        "factors": [f.index if isinstance(f, Handle) else f for f in found.factors],
        "labels": list(found.labels),
        "evidence": list(found.evidence),
        "cutoff": known(found.cutoff),
        "text": list(found.text),
        "relaxation": list(found.relaxation),
        "cost": known(found.cost),
        "cheapest": found.cheapest,
    }
