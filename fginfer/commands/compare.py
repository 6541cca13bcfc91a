"""fginfer compare: methods and other solvers side by side, as a table, CSV, JSON and a page with plots."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from glob import glob
from pathlib import Path
from typing import Any

from fginfer.commands.common import add_max_memory
from fginfer.errors import SettingsError

EXAMPLES = """examples:
  fginfer compare models/*.uai --methods auto,trws,gdmm --time-limit 5 --out report
  fginfer compare big.uai.gz --methods auto,toulbar2,highs --repeat 3 --out report

Evidence files beside a model (model.uai.evid) are used. Peers: toulbar2 (program or pytoulbar2), highs (the LP).
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="run methods and other solvers side by side",
        description="Runs methods and installed peers one at a time on the same files and writes a report.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="models")
    parser.add_argument(
        "--methods", default="auto,trws,gdmm", metavar="A,B", help="methods and peers (default %(default)s)"
    )
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S", help="of each run (default 10)")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="runs of each, with seeds 0, 1 ... (default 1)"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of our methods (default 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first run (default 0)")
    parser.add_argument(
        "--gap", type=float, default=1e-6, metavar="G", help="our methods stop at this gap (default 1e-6)"
    )
    add_max_memory(parser)
    parser.add_argument("--no-evidence", action="store_true", help="ignore evidence files beside the models")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="spread the runs over a Dask cluster (tcp://host:8786); its workers see the files",
    )
    parser.add_argument("--out", metavar="DIR", help="write results.csv, results.json and report.html there")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")
    parser.set_defaults(run=run)


COLUMNS = ("file", "method", "repeat", "status", "score", "bound", "gap", "seconds", "iterations", "peak_mb", "message")
HEAD = f"{'file':36s} {'method':10s} {'score':>16s} {'bound':>16s} {'gap':>8s} {'seconds':>8s} {'MB':>6s}  status"


def _show(value: float | None, form: str, width: int) -> str:
    return f"{'-':>{width}s}" if value is None else f"{value:{width}{form}}"


def _row(run: Any) -> str:
    return (
        f"{Path(run.file).name[-36:]:36s} {run.method:10s} {_show(run.score, '.6f', 16)} {_show(run.bound, '.6f', 16)} "
        f"{_show(run.gap, '.1e', 8)} {_show(run.seconds, '.3f', 8)} {_show(run.peak_mb, '.0f', 6)}  "
        f"{run.message or run.status}"
    )


def _files(name: str) -> list[str]:
    """The file of that name, or those that match it: shells of Windows hand on *.uai as it is."""
    if Path(name).is_dir():
        raise SettingsError(f"{name} is a folder: name the models in it, as in {Path(name) / '*.uai'}")
    found = [name] if Path(name).is_file() else sorted(glob(name))
    if not found:
        raise FileNotFoundError(2, "there is no such file", name)
    return found


def run(args: argparse.Namespace) -> int:
    from fginfer.compare import compare, expand_methods

    if not args.time_limit > 0 or args.repeat < 1:
        raise SettingsError("--time-limit must be > 0 and --repeat at least 1")
    files = [file for name in args.files for file in _files(name)]
    methods, missing = expand_methods(args.methods)
    for reason in missing.values():
        print(f"missing, not run: {reason}", file=sys.stderr)
    if not args.json:
        print(HEAD)
    data = compare(
        files,
        methods,
        time_limit=args.time_limit,
        repeat=args.repeat,
        seed=args.seed,
        threads=args.threads,
        gap=args.gap,
        missing=missing,
        evidence=not args.no_evidence,
        scheduler=args.scheduler,
        max_memory=args.max_memory,
        report=(lambda run: None) if args.json else (lambda run: print(_row(run), flush=True)),
    )
    if args.json:
        print(json.dumps(data.as_json(), allow_nan=False))
    if args.out is not None:
        _write(Path(args.out), data)
        if not args.json:
            print(f"wrote {Path(args.out) / 'report.html'}, results.csv and results.json")
    return 0


def _write(folder: Path, data: Any) -> None:
    from fginfer.compare.page import page

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "results.csv", "w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(COLUMNS)
        table.writerows([getattr(r, name) for name in COLUMNS] for r in data.runs)
    (folder / "results.json").write_text(json.dumps(data.as_json(), allow_nan=False))
    (folder / "report.html").write_text(page(data), encoding="utf-8")
