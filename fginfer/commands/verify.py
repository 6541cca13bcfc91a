"""fginfer verify: is the proof of a result a proof?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fginfer.checker import NotVerified, verify
from fginfer.errors import FormatError
from fginfer.formats import read, write
from fginfer.startup import DONE
from fginfer.trimming import trim

NOT_VERIFIED = 1


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "verify",
        help="check the proof of a result",
        description="Checks a proof written by fginfer solve --proof, by whole numbers and without the solvers. Prints"
        " what is verified (exit code 0), or the step that is not (exit code 1).",
        epilog="example:\n  fginfer solve grid.uai --proof grid.proof\n  fginfer verify grid.uai grid.proof",
    )
    parser.add_argument("model", metavar="MODEL", help=".uai, .LG and .npz are read by the checker, others by fginfer")
    parser.add_argument("proof", metavar="PROOF", help="a file of fginfer solve --proof")
    parser.add_argument("--trim", metavar="OUT", help="write the proof without the steps that it does not need")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    for name in (args.model, args.proof):
        if not Path(name).is_file():
            raise FormatError("there is no such file", name)
    with TemporaryDirectory() as folder:
        try:
            model = _readable(args.model, folder)
            print(trim(model, args.proof, args.trim) if args.trim else verify(model, args.proof))
        except NotVerified as error:
            print(error)
            return NOT_VERIFIED
    return DONE


def _readable(model: str, folder: str) -> str:
    """The model in a format of the checker. What fginfer reads itself, or lowers to tables, is trusted, and said."""
    path = Path(model)
    graph = None if path.suffix in (".uai", ".LG") else read(model)
    if graph is None or (path.suffix == ".npz" and not graph.rules):
        return model
    print(f"fginfer: {path.name} was read{' and its constraints lowered' if graph.rules else ''} by fginfer, which this"
          " check trusts", file=sys.stderr)  # fmt: skip
    file = Path(folder) / "model.npz"
    tables = graph.lowered().graph if graph.rules else graph
    write(tables, file)
    return str(file)
