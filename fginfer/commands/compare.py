"""fginfer compare: methods and other solvers side by side, as a table, CSV, JSON and a page with plots."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from glob import glob
from io import StringIO
from pathlib import Path
from textwrap import fill
from typing import Any

from fginfer.commands.common import add_max_memory, print_answer, try_settings
from fginfer.commands.stops import stop_signals
from fginfer.errors import FormatError, SettingsError
from fginfer.formats.streams import check_writable, write_atomically
from fginfer.methods import available_methods
from fginfer.printable import printable
from fginfer.startup import DONE, FAILED, STOPPED

EXAMPLES = """examples:
  fginfer compare models/*.uai --methods auto,trws,gdmm --time-limit 5 --out report
  fginfer compare big.uai.gz --methods auto,toulbar2,highs --repeat 3 --out report

Evidence files beside a model (model.uai.evid) are used. Peers that --methods may name, where they are installed:
"""


def _epilog() -> str:
    """The examples, and a paragraph for each peer."""
    from fginfer.compare.peers import PEERS

    return EXAMPLES + "".join(
        fill(peer.what, 100, initial_indent=f"  {name:10}", subsequent_indent=" " * 12) + "\n"
        for name, peer in PEERS.items()
    )


def _complete_methods(prefix: str = "", **_: Any) -> list[str]:
    """What the shell may put for the last name of a list."""
    from fginfer.compare.peers import PEERS

    before, comma, _last = prefix.rpartition(",")
    given = before.split(",")
    return [before + comma + name for name in (*available_methods(), *PEERS) if name not in given]


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "compare",
        help="run methods and other solvers side by side",
        description="Runs methods and installed peers one at a time on the same files and writes a report.",
        epilog=_epilog(),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="models")
    methods: Any = parser.add_argument(
        "--methods", default="auto,trws,gdmm", metavar="A,B", help="methods and peers (default %(default)s)"
    )
    methods.completer = _complete_methods
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S", help="seconds for each run (default 10)")
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="how often each is run, with seeds 0, 1, ... (default 1)"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of our methods (default 1)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first run (default 0)")
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
    parser.add_argument("-o", "--out", metavar="DIR", help="write results.csv, results.json and report.html there")
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of a table")
    parser.set_defaults(run=run)


TABLE, DATA, PAGE = "results.csv", "results.json", "report.html"
COLUMNS = (
    "file",
    "method",
    "repeat",
    "status",
    "score",
    "bound",
    "gap",
    "seconds",
    "iterations",
    "peak_mb",
    "message",
    "note",
)
HEAD = f"{'file':36s} {'method':10s} {'score':>16s} {'bound':>16s} {'gap':>8s} {'seconds':>8s} {'MB':>6s}  status"


def _show(value: float | None, form: str, width: int) -> str:
    return f"{'-':>{width}s}" if value is None else f"{value:{width}{form}}"


def _row(run: Any) -> str:
    return (
        f"{printable(Path(run.file).name)[-36:]:36s} {run.method:10s} "
        f"{_show(run.score, '.6f', 16)} {_show(run.bound, '.6f', 16)} "
        f"{_show(run.gap, '.1e', 8)} {_show(run.seconds, '.3f', 8)} {_show(run.peak_mb, '.0f', 6)}  "
        f"{run.ended}"
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
    from fginfer.compare.runs import expand_methods

    if not args.time_limit > 0 or args.repeat < 1:
        raise SettingsError("--time-limit must be > 0 and --repeat at least 1")
    try_settings(None, gap=args.gap, seed=args.seed, threads=args.threads)
    if args.out is not None:
        _check_folder(Path(args.out))
    files = [file for name in args.files for file in _files(name)]
    methods, missing = expand_methods(args.methods)
    for reason in missing.values():
        print(f"missing, not run: {reason}", file=sys.stderr)
    table = _Table(args)
    with stop_signals() as stops:
        data = _compared(args, files, methods, missing, table)
        stops.answering = True
        code = STOPPED if data.interrupted else DONE
        if all(run.status == "failed" for run in data.runs):
            code = FAILED
        if args.json and not print_answer(json.dumps(data.as_json(), allow_nan=False)):
            code = FAILED
        if args.out is not None and not _written(args, data, table):
            code = FAILED
    return FAILED if table.lost else code


class _Table:
    """The rows on stdout, as they come. A full disk there must not cost the runs: rows go on to stderr."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.lost = False
        self._quiet, self._is_all = args.json, args.out is None
        self.line(HEAD)

    def line(self, text: str) -> None:
        if self._quiet:
            return
        try:
            print(text, file=sys.stderr if self.lost else sys.stdout, flush=True)
        except BrokenPipeError:
            if self._is_all:  # nobody reads what there is
                raise
            self._quiet = True
        except OSError as error:
            if self.lost:  # stderr, too
                self._quiet = True
                return
            self.lost = True
            print(f"fginfer: stdout: {error.strerror}", file=sys.stderr)
            self.line(text)


def _compared(
    args: argparse.Namespace, files: list[str], methods: list[str], missing: dict[str, str], table: _Table
) -> Any:
    from fginfer.compare.runs import compare_until_stopped

    return compare_until_stopped(
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
        report=lambda run: table.line(_row(run)),
    )


def _written(args: argparse.Namespace, data: Any, table: _Table) -> bool:
    """Whether the report is where it was to go."""
    try:
        _write(Path(args.out), data)
    except FormatError as error:  # after all the work: the table or the JSON is out, and this is no bad input
        print(f"fginfer: {error}", file=sys.stderr)
        return False
    table.line(f"wrote {printable(Path(args.out) / PAGE)}, {TABLE} and {DATA}")
    return True


def _check_folder(folder: Path) -> None:
    """FormatError if the report could not be written there: better now than after all runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"cannot be made a folder for the report ({error.strerror})", str(folder)) from None
    for name in (TABLE, DATA, PAGE):
        check_writable(folder / name)


def _write(folder: Path, data: Any) -> None:
    """The three files; each appears whole, and none before the text of all is there."""
    from fginfer.compare.page import page

    table = StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(COLUMNS)
    rows.writerows([getattr(r, name) for name in COLUMNS] for r in data.runs)
    texts = {TABLE: table.getvalue(), DATA: json.dumps(data.as_json(), allow_nan=False), PAGE: page(data)}
    for name, text in texts.items():
        with write_atomically(folder / name) as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))  # names of files may be no UTF-8
