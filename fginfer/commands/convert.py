"""fginfer convert: a model in another format."""

from __future__ import annotations

import argparse
from typing import Any

from fginfer.commands.common import add_model, conditioned, load
from fginfer.formats import write

EXAMPLES = """examples:
  fginfer convert grid.uai.gz grid.npz
  fginfer convert net.uai fixed.uai --evidence net.evid"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "convert",
        help="write a model in another format",
        description="Reads a model and writes it in the format of the second name; no value is lost silently.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument("target", metavar="TARGET", help="the file to write")
    parser.add_argument("--to", metavar="NAME", help="format of TARGET, if its name does not tell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    graph, evidence = load(args)
    given = conditioned(graph, evidence)
    write(graph if given is None else given.graph, args.target, format=args.to)
    return 0
