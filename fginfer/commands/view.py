"""fginfer view: a model, and a result, as a page for a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from fginfer.commands.common import add_model, conditioned, load
from fginfer.formats import read_solution
from fginfer.graph import FactorGraph
from fginfer.result import Result
from fginfer.startup import DONE

EXAMPLES = """examples:
  fginfer view grid.uai.gz
  fginfer view timetable.cfn timetable.sol --out timetable.html
  fginfer solve grid.uai.gz --watch grid.html
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "view",
        help="a page to look through a model and a result",
        description="Writes one HTML page that loads nothing from elsewhere: the graph, a variable's labels, a factor's"
        " table, conflicts, and what the run did. Of large models it has a sample.",
        epilog=EXAMPLES,
    )
    add_model(parser)
    parser.add_argument(
        "result", metavar="RESULT", nargs="?", help="a saved result (.npz), or a UAI solution file (default: none)"
    )
    parser.add_argument("-o", "--out", metavar="PAGE", help="where the page goes (default: the model's name, .html)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from fginfer.viewer import view

    graph, evidence = load(args)
    result = None if args.result is None else _result(args.result, graph)
    given = conditioned(graph, evidence)
    if given is not None:
        labels = result.labels if isinstance(result, Result) else result
        graph, result = given.graph, None if labels is None else given.reduce(labels)
    name = "model" if args.model == "-" else Path(args.model).name
    out = args.out or f"{name.partition('.')[0]}.html"
    view(graph, result, title=name).save(out)
    print(out)
    return DONE


def _result(path: str, graph: FactorGraph) -> Any:
    return Result.load(path) if is_zipfile(path) else read_solution(path, graph)
