"""Arguments and steps that several commands share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from fginfer.condition import Conditioned
from fginfer.errors import FormatError, SettingsError
from fginfer.formats import FORMATS, all_formats, read, read_evidence
from fginfer.formats.uai_answers import write_text
from fginfer.graph import FactorGraph
from fginfer.names import variable_text
from fginfer.solver import Solver


def add_model(parser: argparse.ArgumentParser, evidence: bool = True) -> None:
    """FILE, --format, --max-memory and --evidence."""
    parser.add_argument(
        "model",
        metavar="FILE",
        help=f"a model: {extensions()}, also with .gz .xz .bz2; - is standard input (with --format)",
    )
    add_format(parser, "--format", "FILE", list(FORMATS), all_formats)
    add_max_memory(parser)
    if evidence:
        parser.add_argument("--evidence", metavar="F", help="a UAI evidence file: variables that are fixed")
        parser.add_argument(
            "--given",
            action="append",
            default=[],
            metavar="VARIABLE=LABEL",
            help="fixes one variable, both by name or number; may be repeated",
        )


def extensions() -> str:
    """Extensions of all models that are read, from the one list of formats."""
    return " ".join(e for known in FORMATS.values() for e in known.extensions)


def add_format(
    parser: argparse.ArgumentParser, flag: str, of: str, names: list[str], every: Callable[[], Iterable[str]]
) -> None:
    """An option that names a format; the shell completes it, those of other packages, too."""
    action: Any = parser.add_argument(
        flag, metavar="NAME", help=f"format of {of}, if its name does not tell: {', '.join(names)}"
    )
    action.completer = lambda **_: list(every())


def check_model_first(args: argparse.Namespace) -> None:
    """The data are not where the model should be, and the model where the data should."""
    trained = (".npz", ".fgx")  # what `fginfer train` writes
    if args.data.endswith(trained) and not args.model.endswith(trained):
        raise SettingsError(f"the model comes first, then the data: {args.data} {args.model}")


def add_max_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-memory",
        type=size,
        metavar="N",
        help="memory that reading a model may use, as in 4GB (default: half of the machine's memory, at most 8 GiB)",
    )


_UNITS = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30}


def size(text: str) -> float:
    """Bytes from a number with or without a unit: 500MB, 1.5 GiB, 1e9."""
    number = text.rstrip("BbKkMmGgIi ")
    try:
        bytes_ = float(number) * _UNITS[text[len(number) :].strip().upper()]
    except (KeyError, ValueError):
        bytes_ = 0.0
    if not 0 < bytes_ < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory; write 500MB, 4GB or a number of bytes")
    return bytes_


def load(args: argparse.Namespace) -> tuple[FactorGraph, dict[int, int] | None]:
    """The model, and the evidence if there is any."""
    threads = min(max(getattr(args, "threads", 1), 1), 1024)  # what is wrong with it the solver says
    graph = read(args.model, format=args.format, max_memory=args.max_memory, threads=threads)
    evidence = None if getattr(args, "evidence", None) is None else read_evidence(args.evidence, graph)
    for text in getattr(args, "given", []):
        variable, label = _given(text, graph)
        evidence = {} if evidence is None else evidence
        if evidence.setdefault(variable, label) != label:
            raise SettingsError(f"--given {text} contradicts other evidence for {variable_text(graph.names, variable)}")
    return graph, evidence


def _given(text: str, graph: FactorGraph) -> tuple[int, int]:
    """A variable and its label out of `rain=yes` or `3=1`; a name comes before a number."""
    variable, equals, label = text.rpartition("=")
    if not equals:
        raise SettingsError(f"--given takes VARIABLE=LABEL, as in rain=yes or 3=1, not {text!r}")
    at = graph.variable(variable if not variable.isdecimal() or _is_named(graph, variable) else int(variable))
    labels = None if graph.names is None else graph.names.labels(at)
    return at, graph.label(at, int(label) if label.isdecimal() and label not in (labels or ()) else label)


def _is_named(graph: FactorGraph, name: str) -> bool:
    return graph.names is not None and graph.names.has_variable(name)


def try_settings(method: str | None, **settings: Any) -> None:
    """SettingsError for what every solve would refuse, before a large model is read: tried on a small one."""
    Solver(FactorGraph([2]), method, **settings).close()


def conditioned(graph: FactorGraph, evidence: dict[int, int] | None) -> Conditioned | None:
    return None if evidence is None else graph.condition(evidence)


def model_json(graph: FactorGraph) -> dict[str, int]:
    """The sizes that --json prints."""
    return {
        "variables": graph.n_variables,
        "factors": graph.n_factors,
        "max_labels": graph.max_labels,
        "table_entries": graph.table_entries,
    }


def json_text(data: dict[str, Any]) -> str:
    return json.dumps(data, allow_nan=False)


def print_answer(text: str) -> bool:
    """Prints what work went into; where stdout is full, on stderr (False)."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{text}\nfginfer: stdout: {error.strerror}", file=sys.stderr, flush=True)
        return False
    return True


def write_answer(text: str, path: str) -> bool:
    """Writes what work went into; where the file cannot have it, it is printed, and stderr says why (False)."""
    try:
        write_text(text, path)
        return True
    except FormatError as error:
        print(f"fginfer: {error}; the answer follows", file=sys.stderr)
        print_answer(text.removesuffix("\n"))
        return False


def print_json(data: dict[str, Any]) -> None:
    print(json_text(data))


def option(text: str) -> tuple[str, Any]:
    """NAME=VALUE with a number, true or false as value (else it stays text)."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise SettingsError(f"an option is written NAME=VALUE, not {text!r}")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            pass
    return name, {"true": True, "false": False}.get(value.lower(), value)
