"""The command line: `fginfer COMMAND ...`. Each command is a module of fginfer.commands.

Exit codes: 0 done (solve: optimal or gap reached), 1 infeasible, 2 stopped with a gap, 3 bad input or usage.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import fginfer
from fginfer import commands
from fginfer.core.door import compiler, cpu_path
from fginfer.errors import FginferError

BAD_INPUT, STOPPED = 3, 2
_FIRST = ("solve", "info", "check", "convert", "compare", "train", "predict", "evaluate")  # then others, by name


class _Parser(argparse.ArgumentParser):
    """argparse, with our exit code for wrong usage."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"{self.prog}: {message}\n")


def version_text() -> str:
    """Version, compiler and CPU path in use."""
    return f"fginfer {fginfer.__version__} ({compiler()}, {cpu_path()})"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_text())
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = _Parser(
        prog="fginfer",
        description="MAP inference in factor graphs. Scores are maximised; energy = -score.",
        epilog="exit codes: 0 done, 1 infeasible, 2 stopped with a gap, 3 bad input or usage",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="version, compiler and CPU path")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    found = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    for name in [*(n for n in _FIRST if n in found), *sorted(set(found) - set(_FIRST))]:
        module = import_module(f"fginfer.commands.{name}")
        if hasattr(module, "register"):  # helper modules have none
            module.register(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # after --help, --version or wrong usage
        return int(stop.code or 0)
    if args.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has gone, as in `fginfer info x | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED
    except KeyboardInterrupt:
        print("fginfer: interrupted", file=sys.stderr)
        return STOPPED
    except FginferError as error:
        print(f"fginfer: {error}", file=sys.stderr)
    except MemoryError as error:
        print(f"fginfer: out of memory: {error}" if str(error) else "fginfer: out of memory", file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"fginfer: {where}{error.strerror or error}", file=sys.stderr)
    return BAD_INPUT
