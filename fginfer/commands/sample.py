"""fginfer sample: labelings drawn with the probabilities of a model."""

from __future__ import annotations

import argparse
from typing import Any

from fginfer import __version__
from fginfer.commands.common import add_model, json_text, load, model_json, print_answer, size, write_answer
from fginfer.commands.stops import kept
from fginfer.formats.streams import check_writable
from fginfer.graph import FactorGraph
from fginfer.samples import WAYS, Samples, sample
from fginfer.startup import DONE, FAILED, STOPPED

EXAMPLES = """examples:
  fginfer sample net.uai -n 1000 --evidence net.uai.evid --out net.samples
  fginfer sample net.bif -n 5 --given rain=yes --named
  fginfer sample grid.uai.gz -n 20 --method perturb --time-limit 10 --json
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "sample",
        help="draw labelings with the probabilities of a model",
        description="Draws labelings x with P(x) = exp(score) / Z and prints one per line, a label for each variable."
        " They are independent and exact where elimination fits into memory, otherwise states of a Markov chain"
        " (gibbs) or best labelings under random perturbations (perturb); the first line says which.",
        epilog=EXAMPLES,
    )
    add_model(parser)
    parser.add_argument("-n", "--count", type=int, default=10, metavar="N", help="how many (default 10)")
    parser.add_argument("--method", choices=WAYS, help="how to draw (default: exact where that fits, else gibbs)")
    parser.add_argument(
        "--time-limit", type=float, metavar="S", help="seconds; when they are over there are fewer (default: none)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random numbers (default 0)")
    parser.add_argument(
        "--memory", type=size, default=float(1 << 30), metavar="N", help="memory for tables (default 1GiB)"
    )
    parser.add_argument("--named", action="store_true", help="variable=label with their names instead of numbers")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-o", "--out", metavar="PATH", help="write the lines there instead of to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.out not in (None, "-"):
        check_writable(args.out)
    graph, evidence = load(args)

    def work() -> Samples:
        return sample(graph, args.count, args.seed, method=args.method, evidence=evidence, time_limit=args.time_limit,
                      memory=args.memory)  # fmt: skip

    found, stopped = kept(work)
    text = json_text(as_json(found, model_json(graph))) if args.json else "\n".join(lines(graph, found, args.named))
    if args.out in (None, "-"):
        if not print_answer(text):
            return FAILED
    elif not write_answer(text + "\n", args.out):
        return FAILED
    return STOPPED if stopped or len(found) < args.count else DONE


def as_json(found: Samples, sizes: dict[str, int]) -> dict[str, Any]:
    """One object with a list of labels for each sample."""
    return {
        "version": __version__,
        "model": sizes,
        "exact": found.exact,
        "method": found.method,
        "labels": found.labels.tolist(),
    }


def lines(graph: FactorGraph, found: Samples, named: bool) -> list[str]:
    """A line that says how they were made, then one for each sample."""
    kind = "independent, exact" if found.exact else f"approximate ({found.method})"
    out = [f"# {len(found)} samples, {kind}"]
    for row in found.labels.tolist():
        words = [f"{v}={a}" for v, a in _named(graph, row).items()] if named else [str(a) for a in row]
        out.append(" ".join(words))
    return out


def _named(graph: FactorGraph, row: list[int]) -> dict[Any, Any]:
    return dict(enumerate(row)) if graph.names is None else graph.names.named(row)
