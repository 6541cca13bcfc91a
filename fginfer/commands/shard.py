"""fginfer shard: a model as files of its parts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fginfer.budget import Budget
from fginfer.commands.common import add_model, load
from fginfer.core.arrays import ModelArrays
from fginfer.errors import SettingsError
from fginfer.formats.streams import split_compression
from fginfer.parts.sharded import Sharded
from fginfer.parts.split import Cut, owners_of
from fginfer.parts.streamed import shard_uai


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "shard",
        help="write a model as files of its parts",
        description="Reads a model and writes a file for each part, for fginfer.Sharded.open and fginfer solve. "
        "A UAI file is cut as it is read, and need not fit into memory.",
        epilog="example:\n  fginfer shard grid.uai.gz parts --parts 16",
    )
    add_model(parser, evidence=False)
    parser.add_argument("folder", metavar="DIR", help="where the files go: part-00000.npz and so on")
    parser.add_argument("--parts", type=int, required=True, metavar="N", help="how many parts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    path = Path(args.model)
    name = args.format or split_compression(path)[0].suffix.lower().removeprefix(".")
    if name in ("uai", "lg"):
        shard_uai(path, Path(args.folder), args.parts, name == "lg", Budget(path, args.max_memory))
        return 0
    graph, _ = load(args)
    if graph.rules:
        raise SettingsError("a model with constraints is in one piece; convert --lower makes tables of them")
    arrays = ModelArrays.of_model(graph.snapshot().plain())
    cut = Cut(arrays, owners_of(arrays, args.parts))
    Sharded(cut.shard, cut.n_parts).save(args.folder)
    return 0
