"""fginfer shard: a model as files of its parts."""

from __future__ import annotations

import argparse
from typing import Any

from fginfer.commands.common import add_model, load
from fginfer.core.arrays import ModelArrays
from fginfer.errors import SettingsError
from fginfer.parts.sharded import Sharded
from fginfer.parts.split import Cut, owners_of


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "shard",
        help="write a model as files of its parts",
        description="Reads a model and writes a file for each part, which fginfer.Sharded.open and fginfer.solve take.",
        epilog="example:\n  fginfer shard grid.uai.gz parts --parts 16",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser, evidence=False)
    parser.add_argument("folder", metavar="DIR", help="where the files go: part-00000.npz and so on")
    parser.add_argument("--parts", type=int, required=True, metavar="N", help="how many")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    graph, _ = load(args)
    if graph.rules:
        raise SettingsError("a model with constraints is in one piece; convert --lower makes tables of them")
    arrays = ModelArrays.of_model(graph.snapshot().plain())
    cut = Cut(arrays, owners_of(arrays, args.parts))
    Sharded(cut.shard, cut.n_parts).save(args.folder)
    return 0
