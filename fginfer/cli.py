"""The command line: `fginfer COMMAND ...`. Each command is a module of fginfer.commands.

Exit codes: 0 done (solve: optimal or gap reached), 2 stopped with a gap, 3 bad input or usage, 4 something failed that
should not (what a solver had found until then is printed all the same), 20 proven infeasible.
"""

from __future__ import annotations

import argparse
import errno
import os
import pkgutil
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from traceback import format_exc
from typing import Any, NoReturn

import fginfer
from fginfer import commands, startup
from fginfer.core.door import compiler, cpu_path
from fginfer.errors import FginferError
from fginfer.plugins import added
from fginfer.printable import printable
from fginfer.startup import BAD_INPUT, FAILED, STOPPED

_FIRST = (
    "solve",
    "marginals",
    "info",
    "check",
    "convert",
    "compare",
    "train",
    "predict",
    "evaluate",
)  # then others, by name
_MACHINE = (errno.ENOMEM, errno.ENOSPC, errno.EIO, errno.EDQUOT)  # what the machine lacks is no bad input
_EPILOG = """\
examples:
  fginfer solve grid.uai.gz --time-limit 10        the best labeling found in ten seconds, with its bound
  fginfer info grid.uai.gz                         what is in the file
  fginfer solve --help                             what a command takes, with more examples

exit codes: 0 done, 2 stopped with a gap, 3 bad input or usage, 4 failure, 20 proven infeasible"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Descriptions and epilogs keep their lines. Long ones are wrapped, unless they are indented, as examples are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = (indent + line for line in text.splitlines())
        return "\n".join(line if line.startswith(" ") else textwrap.fill(line, width) for line in lines)


class _Parser(argparse.ArgumentParser):
    """argparse, with our exit code for wrong usage, and the usage of the command that was wrongly used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.formatter_class = _Help
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf)")  # before 3.13, -1e5 is taken for an option

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"{self.prog}: {printable(message, lines=True)}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A command that there is not: names the one that may have been meant."""
        if action.dest == "command" and action.choices is not None and value not in action.choices:
            close = get_close_matches(str(value), list(action.choices), 1)
            meant = f"solve {value}" if os.path.isfile(value) else close[0] if close else "--help"
            self.error(f"there is no command {value!r}; did you mean {self.prog} {meant}?")
        super()._check_value(action, value)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            close = get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return namespace, unknown


def version_text() -> str:
    """Version, compiler and CPU path in use."""
    return f"fginfer {fginfer.__version__} ({compiler()}, {cpu_path()})"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_text(), flush=True)
        parser.exit()


def make_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser with all commands; those of other packages are looked for if the first word is none of ours."""
    parser = _Parser(
        prog="fginfer",
        description="MAP inference in factor graphs. Scores are maximised; energy = -score.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="version, compiler and CPU path")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    found = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    for name in [*(n for n in _FIRST if n in found), *sorted(set(found) - set(_FIRST))]:
        module = import_module(f"fginfer.commands.{name}")
        if hasattr(module, "register"):  # helper modules have none
            module.register(subparsers)
    if not argv or argv[0] not in subparsers.choices:
        for name, register in added("commands").items():
            if name not in subparsers.choices:
                register(subparsers)
    for command in subparsers.choices.values():
        _complete_no_files(command)
    return parser


def _complete_no_files(parser: argparse.ArgumentParser) -> None:
    """Where a number is wanted the shell has nothing to offer; names of files least of all."""
    for action in parser._actions:
        if action.type in (int, float) or action.dest == "option":
            action.completer = lambda **_: ()  # type: ignore[attr-defined]


@contextmanager
def _streams() -> Iterator[None]:
    """Streams that can be written to. Those that were closed before we began are None in Python: answers then go to
    stderr, and if that is closed, too, nowhere. What the encoding of a stream does not have is written as an escape."""
    out, err = sys.stdout, sys.stderr
    strict = out is not None and getattr(out, "errors", None) == "strict" and hasattr(out, "reconfigure")
    with open(os.devnull, "w") as nowhere:
        sys.stderr = err or nowhere
        sys.stdout = out or sys.stderr
        if strict:
            out.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            yield
        finally:
            if strict:
                with suppress(OSError, ValueError):
                    out.reconfigure(errors="strict")  # type: ignore[union-attr]
            sys.stdout, sys.stderr = out, err


def _discard(stream: Any) -> None:
    """A stream that cannot be written to any more: what it still holds goes nowhere, without another error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(text: str) -> None:
    try:
        print(f"fginfer: {printable(text, lines=True)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _discard(sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    with _streams():
        return _main(argv)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell that asks for completions (argcomplete sets the variable); costs nothing otherwise."""
    if "_ARGCOMPLETE" in os.environ and find_spec("argcomplete") is not None:
        import argcomplete

        argcomplete.autocomplete(parser)


def _main(argv: Sequence[str] | None) -> int:
    parser = make_parser(sys.argv[1:] if argv is None else argv)
    _complete(parser)
    try:
        args = parser.parse_args(argv)
        if args.command is None:
            parser.print_help(sys.stderr)
            return BAD_INPUT
        startup.ready()
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # after --help, --version or wrong usage
        return int(stop.code or 0)
    except BrokenPipeError:  # the reader of our output has gone, as in `fginfer info x | head -1`
        _discard(sys.stdout)
        return STOPPED
    except KeyboardInterrupt:
        _complain("interrupted")
        return STOPPED
    except FginferError as error:
        _complain(str(error))
        reason = error.__cause__ or error.__context__
        if isinstance(reason, OSError) and reason.errno in _MACHINE:
            return FAILED
    except MemoryError as error:
        _complain(f"out of memory: {error}" if str(error) not in ("", "out of memory") else "out of memory")
        return FAILED
    except OSError as error:
        if error.filename is None:  # not a file that we were given: it was stdout
            _discard(sys.stdout)
            _complain(str(error.strerror or error))
            return FAILED
        _complain(f"{printable(error.filename)}: {error.strerror or error}")
    except Exception:
        _complain(f"this should not have happened; please report it\n{format_exc().rstrip()}")
        return FAILED
    return BAD_INPUT
