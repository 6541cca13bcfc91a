"""fginfer info: what kind of model a file holds."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

from fginfer.commands.common import add_model, conditioned, load, print_json
from fginfer.log import thousands
from fginfer.printable import printable
from fginfer.result import known

if TYPE_CHECKING:
    from fginfer.describe import Description
    from fginfer.graph import FactorGraph


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "info",
        help="sizes and properties of a model",
        description="Prints sizes, histograms, components and what makes the model easy or hard; of a model that was"
        " learned its kind, labels, features, solver and weights.",
        epilog="examples:\n  fginfer info grid.uai.gz\n  fginfer info chunker.npz --json",
    )
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.format is None and args.evidence is None and is_zipfile(args.model):
        from fginfer.learn.files.describe import describe, is_learned

        if is_learned(args.model):
            learned = describe(args.model)
            if args.json:
                print_json(learned)
            else:
                print("\n".join(learned_lines(Path(args.model).name, learned)))
            return 0
    graph, evidence = load(args)
    given = conditioned(graph, evidence)
    graph = graph if given is None else given.graph
    description = graph.describe()
    if args.json:
        print_json({**description.as_dict(), **named(graph), "cutoff": known(graph.cutoff)})
    else:
        cutoff = [f"  cutoff           only scores above {graph.cutoff:.17g} count"] if graph.cutoff > -inf else []
        print("\n".join([*lines(Path(args.model).name, description), *cutoff, *name_lines(graph)]))
    return 0


def named(graph: FactorGraph) -> dict[str, Any]:
    """The variables by name, with the names of their labels or how many they have; nothing where there are no names."""
    names = graph.names
    if names is None:
        return {}
    cards = graph.cards.tolist()
    return {"names": {str(names.variable(i)): names.labels(i) or card for i, card in enumerate(cards)}}


def name_lines(graph: FactorGraph) -> list[str]:
    """The first names, for people."""
    some = list(named(graph).get("names", {}).items())
    shown = [
        f"{name} ({', '.join(labels[:6])}{', ...' if len(labels) > 6 else ''})" if isinstance(labels, tuple) else name
        for name, labels in some[:6]
    ]
    return [f"  names            {printable(', '.join(shown))}{', ...' if len(some) > 6 else ''}"] if some else []


def histogram(counts: dict[int, int]) -> str:
    """At most eight entries, then the range."""
    if len(counts) > 8:
        return f"{min(counts)} to {max(counts)}, {len(counts)} different ones"
    return ", ".join(f"{value}: {count}" for value, count in counts.items()) or "none"


def lines(name: str, d: Description) -> list[str]:
    """The description for people."""
    yes = {True: "yes", False: "no", None: "unknown (interactions of more than two variables)"}
    implicit = f", {d.implicit_tables} of them implicit" if d.implicit_tables else ""
    return [
        printable(name),
        f"  variables        {d.variables}",
        f"  labels           {histogram(d.labels)}   (labels: variables)",
        f"  factors          {d.factors}, {d.interactions} over two or more variables",
        f"  arities          {histogram(d.arities)}   (arity: factors)",
        f"  tables           {d.tables} distinct{implicit}; {thousands(d.table_entries)} entries stored",
        f"  components       {d.components}{', no cycles' if d.forest else ''}",
        f"  hard constraints {d.constraints} factors, {d.forbidden_labels} labels",
        f"  binary           {yes[d.binary]}" + (f"; submodular: {yes[d.submodular]}" if d.binary else ""),
        *([f"  said in words    {', '.join(f'{n} {kind}' for kind, n in d.rules.items())}"] if d.rules else []),
        f"  memory           {memory_text(d.memory)}",
    ]


def memory_text(n: int) -> str:
    """Bytes as people write them: 812 B, 1.3 MB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"


def learned_lines(name: str, d: dict[str, Any]) -> list[str]:
    """A learned model for people: a line a fact, without those that are not known."""
    facts = {k: v for k, v in d.items() if v is not None and k not in ("first_labels", "parameters", "sampled")}
    if "labels" in d:
        rest = ", ..." if d["labels"] > len(d["first_labels"]) else ""
        facts["labels"] = f"{d['labels']}: {', '.join(map(str, d['first_labels']))}{rest}"
        facts["feature_names"] = "yes" if d["feature_names"] else "no"
        facts["nonzeros"] = f"{d['nonzeros']} ({d['nonzeros'] / max(1, d['weights']):.2%})"
        if d["sampled"] < 1 and "primal" in facts:
            facts["primal"] = f"about {d['primal']:.6g}, from a sample of {d['sampled']:.1%} of the examples"
    shown = {k: f"{v:.6g}" if isinstance(v, float) else printable(v) for k, v in facts.items()}
    return [printable(name), *(f"  {k.replace('_', ' '):<16} {v}" for k, v in shown.items())]
