"""fginfer marginals: how probable each label is, or how good a labeling it can be part of."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from fginfer import __version__
from fginfer.commands.common import add_model, load, model_json, print_json, size, write_answer
from fginfer.commands.stops import kept
from fginfer.errors import SettingsError
from fginfer.formats.streams import check_writable, write_atomically
from fginfer.formats.uai_answers import mar_text, pr_text
from fginfer.graph import FactorGraph
from fginfer.marginals import Marginals, marginals
from fginfer.max_marginals import MaxMarginals, max_marginals
from fginfer.names import variable_text
from fginfer.plots import Confident, plot_confidence
from fginfer.result import known
from fginfer.startup import DONE, FAILED, STOPPED

SHOWN = 40  # variables, where people read
SHOWN_LABELS = 8
PICTURES = (".png", ".pdf", ".svg")

EXAMPLES = """examples:
  fginfer marginals net.uai --evidence net.uai.evid --out net.MAR --pr net.PR
  fginfer marginals grid.uai.gz --max --time-limit 10 --plot sure.png
  fginfer marginals grid.uai.gz --approximate --time-limit 20
  fginfer marginals net.bif --given rain=yes --json
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "marginals",
        help="how probable, or how good, each label is",
        description="Prints P(variable = label) and log Z, exactly, or with --approximate as well as the time allows;"
        " with --max the best score of a labeling with each label, exactly or between two bounds.",
        epilog=EXAMPLES,
    )
    add_model(parser)
    parser.add_argument("--max", action="store_true", help="the best score with each label instead of probabilities")
    parser.add_argument(
        "--variable", action="append", metavar="V", help="only this variable, by name or number; may be repeated"
    )
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="where exact ones would take too long: approximations, and bounds on log Z",
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="S", help="with --max or --approximate: seconds (default: none)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of approximations (default 0)")
    parser.add_argument(
        "--memory", type=size, default=float(1 << 30), metavar="N", help="memory for tables (default 1GiB)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-o", "--out", metavar="MAR", help="write all as a UAI MAR file; -: to standard output")
    parser.add_argument(
        "--plot", metavar="PICTURE", help="draw how sure each variable is (.png, .pdf or .svg; needs matplotlib)"
    )
    parser.add_argument("--pr", metavar="PR", help="write log10 Z as a UAI PR file; -: to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.max and (args.out is not None or args.pr is not None):
        raise SettingsError("--out and --pr hold probabilities, which --max does not have; use --json")
    if args.max and args.approximate:
        raise SettingsError("--max and --approximate are two questions: --max has bounds by itself")
    if args.time_limit is not None and not (args.max or args.approximate):
        raise SettingsError("--time-limit is for --max and --approximate; marginals are exact or refused")
    if [args.out, args.pr, "-" if args.json else None].count("-") > 1:
        raise SettingsError("only one of --out -, --pr - and --json can have standard output")
    if args.plot is not None and Path(args.plot).suffix not in PICTURES:
        raise SettingsError(f"--plot writes {', '.join(PICTURES)} files, not {args.plot}")
    for path in (args.out, args.pr, args.plot):
        if path not in (None, "-"):
            check_writable(path)
    graph, evidence = load(args)
    asked = [_variable(graph, text) for text in args.variable or []] or list(range(graph.n_variables))
    if args.max:
        best, stopped = kept(
            lambda: max_marginals(
                graph, asked, evidence=evidence, time_limit=args.time_limit, memory=args.memory, seed=args.seed
            )
        )
        if args.json:
            print_json(max_json(best, model_json(graph)))
        else:
            print("\n".join(max_lines(graph, best)))
        _plot(best, graph, list(best.asked), args.plot)
        return STOPPED if stopped else DONE
    settings: dict[str, Any] = {"approximate": args.approximate, "time_limit": args.time_limit, "seed": args.seed}
    found, stopped = kept(lambda: marginals(graph, args.memory, evidence=evidence, **settings))
    written = True
    for path, text in ((args.out, mar_text(found.variables)), (args.pr, pr_text(found.log_z))):
        if path == "-":
            sys.stdout.write(text)
        elif path is not None:
            written &= write_answer(text, path)
    if args.json:
        print_json(sum_json(found, asked, model_json(graph)))
    elif args.out is None and args.pr is None and args.plot is None:
        print("\n".join(sum_lines(graph, found, asked)))
    _plot(replace(found, variables=[found.variables[v] for v in asked]), graph, asked, args.plot)
    return FAILED if not written else STOPPED if stopped else DONE


def _plot(found: Confident, graph: FactorGraph, asked: list[int], path: str | None) -> None:
    """The picture that --plot asks for, in a file that is whole or not there."""
    if path is None:
        return
    names = [variable_text(graph.names, v) for v in asked]
    axes = plot_confidence(found, names=names if graph.names is not None and len(asked) <= SHOWN else None)
    axes.figure.set_size_inches(min(6.4 + 0.1 * len(asked), 16.0), 4.8)
    with write_atomically(Path(path)) as out:
        axes.figure.savefig(out, format=Path(path).suffix[1:], bbox_inches="tight")


def _variable(graph: FactorGraph, text: str) -> int:
    named = graph.names is not None and graph.names.has_variable(text)
    return graph.variable(int(text) if text.isdecimal() and not named else text)


def sum_json(found: Marginals, asked: list[int], sizes: dict[str, int]) -> dict[str, Any]:
    """What --json prints of probabilities."""
    return {
        "version": __version__,
        "model": sizes,
        "log_z": found.log_z,
        "log_z_low": known(found.log_z_low),
        "log_z_high": known(found.log_z_high),
        "exact": found.exact,
        "variables": asked,
        "probabilities": [found.variables[v].tolist() for v in asked],
    }


def max_json(found: MaxMarginals, sizes: dict[str, int]) -> dict[str, Any]:
    """What --json prints of best scores; null where no labeling has the label."""
    low, high = ([[known(x) for x in scores.tolist()] for scores in bounds] for bounds in (found.low, found.high))
    return {
        "version": __version__,
        "model": sizes,
        "score": known(found.score),
        "bound": known(found.bound),
        "exact": found.exact,
        "variables": list(found.asked),
        "low": low,
        "high": high,
    }


def _label(graph: FactorGraph, variable: int, label: int) -> str:
    return str(label if graph.names is None else graph.names.label(variable, label))


def _rest(n: int) -> list[str]:
    return [f"... {n - SHOWN} more variables (--json has all, --variable chooses)"] if n > SHOWN else []


def sum_lines(graph: FactorGraph, found: Marginals, asked: list[int]) -> list[str]:
    """A line a variable, its most probable labels first."""
    lines = [f"log Z   {found.log_z:.12g}"]
    if not found.exact:
        lines += [f"between {found.log_z_low:.12g} and {found.log_z_high:.12g}", "approximate probabilities:"]
    for v in asked[:SHOWN]:
        p = found.variables[v]
        order = np.argsort(-p, kind="stable")[:SHOWN_LABELS]
        text = "  ".join(f"{_label(graph, v, int(a))} {p[a]:.6f}" for a in order)
        lines.append(f"{variable_text(graph.names, v)}: {text}{'  ...' if len(p) > SHOWN_LABELS else ''}")
    return lines + _rest(len(asked))


def max_lines(graph: FactorGraph, found: MaxMarginals) -> list[str]:
    """A line a variable: its labels with what they lose against the best labeling, cheapest first."""
    kind = "exact" if found.exact else f"bounds; no labeling has more than {found.bound:.12g}"
    lines = [f"score   {found.score:.12g} ({kind})", "what each label loses against it:"]
    for v, low, high in list(zip(found.asked, found.low, found.high, strict=True))[:SHOWN]:
        texts = []
        for a in np.lexsort([-low, -high])[:SHOWN_LABELS]:
            least, most = (_loss(found.score, float(x[a])) for x in (high, low))
            texts.append(f"{_label(graph, v, int(a))} {least if least == most else f'{least} to {most}'}")
        more = "  ..." if len(low) > SHOWN_LABELS else ""
        lines.append(f"{variable_text(graph.names, v)}: {'  '.join(texts)}{more}")
    return lines + _rest(len(found.asked))


def _loss(best: float, score: float) -> str:
    return "forbidden" if score == -inf else f"{max(0.0, best - score):.6g}"
