"""fginfer convert: a model in another format."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from fginfer.commands.common import add_format, add_model, conditioned, load
from fginfer.formats import FORMATS, all_formats, write
from fginfer.formats.scaling import whole_costs

EXAMPLES = """examples:
  fginfer convert grid.uai.gz grid.npz
  fginfer convert net.uai fixed.uai --evidence net.evid
  fginfer convert grid.uai grid.wcsp --scale 1000       costs are rounded to thousandths
  fginfer convert bounded.wcsp plain.uai --drop-cutoff  the bound of the file is left out
  cat grid.uai | fginfer convert - - --format uai --to cfn"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "convert",
        help="write a model in another format",
        description="Reads a model and writes it in the format of the second name; no value is lost silently.",
        epilog=EXAMPLES,
    )
    add_model(parser)
    parser.add_argument("target", metavar="TARGET", help="the file to write; - is standard output")
    ours = [name for name, known in FORMATS.items() if known.write]
    add_format(parser, "--to", "TARGET", ours, lambda: (n for n, known in all_formats().items() if known.write))
    parser.add_argument(
        "--scale",
        type=float,
        metavar="S",
        help="multiply scores by S and round them to whole costs >= 0, as .wcsp wants them; says what that changes",
    )
    parser.add_argument(
        "--drop-cutoff",
        action="store_true",
        help="leave out the cutoff (the upper bound of a .wcsp or .cfn) where TARGET has no place for it",
    )
    parser.add_argument(
        "--lower", action="store_true", help="write constraints as tables with auxiliary variables behind the others"
    )
    parser.add_argument(
        "--names", action="store_true", help="write names to TARGET.names where TARGET has no place for them"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    graph, evidence = load(args)
    given = conditioned(graph, evidence)
    graph = graph if given is None else given.graph
    if args.lower and graph.rules:
        graph = graph.lowered().graph
    if args.scale is not None:
        graph, offset, error = whole_costs(graph, args.scale)
        print(
            f"fginfer: score = {offset:.17g} - cost / {args.scale:g}, to within {error:.3g} for every labeling",
            file=sys.stderr,
        )
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        write(graph, args.target, format=args.to, drop_cutoff=args.drop_cutoff, names=args.names)
    for warning in found:
        print(f"fginfer: {warning.message}", file=sys.stderr)
    return 0
