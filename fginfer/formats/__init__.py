"""Model files. `read` and `write` choose the format by extension, through .gz, .xz and .bz2, or by `format=`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from math import inf
from os import PathLike
from pathlib import Path
from typing import NamedTuple, NoReturn

from fginfer.budget import Budget
from fginfer.errors import FormatError, MissingFileError, ModelError, SettingsError
from fginfer.formats.ad3 import read_ad3
from fginfer.formats.assignment import read_dd, read_qaplib
from fginfer.formats.bif import read_bif, write_bif
from fginfer.formats.cfn import read_cfn, write_cfn
from fginfer.formats.cnf import read_cnf, read_wcnf, write_cnf, write_wcnf
from fginfer.formats.evidence import read_evidence, read_solution, write_evidence, write_solution
from fginfer.formats.lp import read_lp
from fginfer.formats.mps import read_mps
from fginfer.formats.npz import read_npz, write_npz
from fginfer.formats.opengm import read_opengm, write_opengm
from fginfer.formats.pseudo_boolean import read_opb
from fginfer.formats.pseudo_boolean_write import write_opb
from fginfer.formats.qplib import read_qplib
from fginfer.formats.quadratic import read_biqmac, read_qubo, read_rudy, write_qubo
from fginfer.formats.recognise import packed, recognised
from fginfer.formats.side_names import find_names, read_names, side_file, write_names
from fginfer.formats.streams import STANDARD, open_binary, split_compression
from fginfer.formats.uai import read_uai, write_uai
from fginfer.formats.wcsp import read_wcsp, write_wcsp
from fginfer.formats.xmlbif import read_xmlbif, write_xmlbif
from fginfer.graph import FactorGraph
from fginfer.options import check_flags, file_named
from fginfer.plugins import added

__all__ = ["FORMATS", "read", "read_evidence", "read_solution", "write", "write_evidence", "write_solution"]


class Format(NamedTuple):
    """A file format: its extensions, how to read and write it, and what it is in one line.

    A format that is only read has no writer, one with an extension of others (or none) is named or recognised.
    """

    extensions: tuple[str, ...]
    read: Callable[[Path, Budget], FactorGraph]
    write: Callable[[FactorGraph, Path], None] | None
    text: str
    has_cutoff: bool = False
    has_rules: bool = False
    has_names: bool = False


# The one list of formats: help texts, completion, errors and the table of the manual are made from it.
FORMATS: dict[str, Format] = {
    "uai": Format((".uai",), read_uai, write_uai, "UAI MARKOV and BAYES: potentials, the last variable fastest"),
    "bayes": Format(
        (), read_uai, lambda graph, path: write_uai(graph, path, bayes=True), "the same, written as a BAYES network"
    ),
    "lg": Format(
        (".lg",),
        lambda path, budget: read_uai(path, budget, log_values=True),
        lambda graph, path: write_uai(graph, path, log_values=True),
        "UAI with natural logarithms: scores as they are",
    ),
    "opengm": Format((".h5", ".hdf5"), read_opengm, write_opengm, "OpenGM in HDF5: energies, minimised there"),
    "wcsp": Format((".wcsp",), read_wcsp, write_wcsp, "toulbar2: whole costs, minimised there", has_cutoff=True),
    "cfn": Format(
        (".cfn", ".json"),
        read_cfn,
        write_cfn,
        "toulbar2: decimal costs with names, minimised there",
        has_cutoff=True,
        has_names=True,
    ),
    "npz": Format(
        (".npz",),
        read_npz,
        write_npz,
        "our own: lossless, with names, constraints and shared tables",
        has_cutoff=True,
        has_rules=True,
        has_names=True,
    ),
    "bif": Format(
        (".bif",),
        read_bif,
        write_bif,
        "Bayesian networks with names: the child is slowest in a table",
        has_names=True,
    ),
    "xmlbif": Format(
        (".xmlbif", ".xml"), read_xmlbif, write_xmlbif, "the same in XML: the child is fastest", has_names=True
    ),
    "rudy": Format((".rud", ".rudy", ".mc"), read_rudy, None, "maximum cut as a list of edges, maximised"),
    "biqmac": Format((".sparse", ".bq"), read_biqmac, None, "binary quadratic x'Qx of BiqMac, minimised there"),
    "qubo": Format((".qubo",), read_qubo, write_qubo, "binary quadratic of qbsolv, minimised there"),
    "cnf": Format((".cnf",), read_cnf, write_cnf, "DIMACS clauses, all of which must hold", has_rules=True),
    "wcnf": Format(
        (".wcnf",),
        read_wcnf,
        write_wcnf,
        "weighted clauses, headers old and of 2022: costs, minimised there",
        has_rules=True,
    ),
    "opb": Format(
        (".opb",),
        read_opb,
        write_opb,
        "pseudo-Boolean constraints and an objective, minimised there",
        has_rules=True,
    ),
    "wbo": Format((".wbo",), read_opb, None, "the same with soft constraints at a cost"),
    "lp": Format((".lp",), read_lp, None, "CPLEX LP: linear and quadratic programs over binary variables"),
    "mps": Format((".mps",), read_mps, None, "MPS: the same in columns"),
    "qplib": Format((".qplib",), read_qplib, None, "QPLIB: binary quadratic objective with linear constraints"),
    "qaplib": Format(
        (), read_qaplib, None, "QAPLIB .dat, recognised by its text: quadratic assignment, minimised there"
    ),
    "dd": Format((".dd",), read_dd, None, "graph matching: assignments and edges with costs, minimised there"),
    "fg": Format((".fg",), read_ad3, None, "AD3: log-potentials, logic, budgets and tables over binary variables"),
}


def all_formats() -> dict[str, Format]:
    """Ours, and those that other packages add."""
    return {**added("formats"), **FORMATS}


def _format_of(name: str) -> Format | None:
    return FORMATS.get(name) or added("formats").get(name)


def _known(name: str) -> Format:
    found = _format_of(name)
    assert found is not None
    return found


def _file(path: str | PathLike[str], call: str) -> Path:
    file = file_named(path, call)
    if str(path).startswith(("http://", "https://", "ftp://", "s3://")):
        raise FormatError(f"{call} takes the name of a file, not an address: download it first", str(path))
    return file


def _named(name: str, path: Path) -> str:
    if not isinstance(name, str):
        raise SettingsError(f"format must be one of {', '.join(all_formats())}, not {name!r}")
    if _format_of(name.lower()) is None:
        raise FormatError(f"there is no format {name!r}; known are {', '.join(all_formats())}", str(path))
    return name.lower()


def _by_extension(path: Path) -> str | None:
    extension = split_compression(path)[0].suffix.lower()
    if not extension:
        return None
    return _with_extension(extension, FORMATS) or _with_extension(extension, added("formats"))


def _with_extension(extension: str, formats: Mapping[str, Format]) -> str | None:
    return next((name for name, known in formats.items() if extension in known.extensions), None)


def _refuse_name(path: Path, call: str) -> NoReturn:
    if path == STANDARD:
        raise FormatError("standard input and output have no extension: name a format (--format, --to)", str(path))
    if os.path.isdir(path):  # False for a name that no file can have
        raise FormatError("is a folder, not a file", str(path))
    if call == "read" and not os.path.exists(path):
        _refuse_missing(path)
    usable = {name: known for name, known in all_formats().items() if call == "read" or known.write}
    extensions = " ".join(e for known in usable.values() for e in known.extensions)
    look = ", and its text looks like none of these" if call == "read" and os.path.isfile(path) else ""
    raise FormatError(
        f"unknown extension {split_compression(path)[0].suffix.lower()!r}{look}; known are {extensions}, or name a "
        f"format (format=, --format): {', '.join(usable)}",
        str(path),
    )


def _refuse_missing(path: Path) -> None:
    """What opening says: there may be no such file, or no way to it. Without an extension, a folder may be meant."""
    try:
        with open_binary(path):
            return
    except MissingFileError as error:
        what = error.message if path.suffix else "there is no such file or folder"
        raise MissingFileError(what, error.path) from None


def _reader_of(path: Path, name: str | None) -> str:
    """The format to read a file by: as said, by its extension, or by how its text begins."""
    if name is not None:
        return _named(name, path)
    found = _by_extension(path) or recognised(path)
    if found is None:
        _refuse_name(path, "read")
    if _format_of(found) is None:
        raise FormatError(f"it looks like {found}, a format that is not read; read are {', '.join(FORMATS)}", str(path))
    return found


def _hint(path: Path, tried: str) -> str:
    """What a file that could not be read seems to be instead."""
    suffix = packed(path)
    if suffix is not None:
        return f"; its bytes are those of a {suffix} file: give it a name that ends so"
    seems = recognised(path)
    if seems is not None and seems not in FORMATS:
        return f"; it looks like {seems}, a format that is not read"
    if seems is None or seems == tried or FORMATS[seems].read == _known(tried).read or tried == "lg":
        return ""
    return f"; it looks like {seems} ({FORMATS[seems].text}): format='{seems}' or --format {seems} reads it as that"


def read(
    path: str | PathLike[str],
    evidence: str | PathLike[str] | None = None,
    format: str | None = None,
    *,
    names: str | PathLike[str] | None = None,
    max_memory: float | None = None,
    threads: int = 1,
) -> FactorGraph:
    """Reads a model; the extension (before .gz, .xz or .bz2) or `format` says how. "-" is standard input.

    A file whose extension says nothing (g05_60.0, nug12.dat) is recognised by how its text begins.

    With a UAI `evidence` file the result is the reduced graph over the variables that were not observed. (To keep the
    original variables, read the model without it and give `read_evidence(path, graph)` to `graph.condition`.)

    A format without names may have them in a side file: `names`, or model.uai.names beside model.uai.

    `max_memory` is what the model may take, in bytes; by default half of the machine's memory, at most 8 GiB, and less
    for what a file of a few bytes can ask for. `threads` may read a large UAI file together, to the same model.

    >>> graph = FactorGraph([2, 3])
    >>> tie = graph.add_factor([0, 1], [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    >>> write(graph, "model.uai.gz")
    >>> read("model.uai.gz").score([1, 0])
    2.0
    """
    file = _file(path, "read")
    if "\n" in str(path) and not os.path.exists(file):
        raise FormatError("this is text, not the name of a file: write it to a file first, or pipe it to '-'")
    chosen = _reader_of(file, format)
    try:
        graph = _known(chosen).read(file, Budget(file, max_memory, threads=threads))
    except MissingFileError:
        raise
    except FormatError as error:
        hint = _hint(file, chosen)
        if not hint:
            raise
        raise FormatError(error.message + hint, error.path, error.line, error.token) from None
    except ModelError as error:
        raise FormatError(str(error), str(file)) from None
    beside = _file(names, "read") if names is not None else None if graph.names is not None else find_names(file)
    if beside is not None:
        read_names(beside, graph, Budget(beside, max_memory))
    if evidence is None:
        return graph
    return graph.condition(read_evidence(evidence, graph)).graph


def write(
    graph: FactorGraph,
    path: str | PathLike[str],
    format: str | None = None,
    *,
    drop_cutoff: bool = False,
    lower: bool = False,
    names: bool = False,
) -> None:
    """Writes a model; the extension (before .gz, .xz or .bz2) or `format` says how. "-" is standard output.

    The file appears whole or not at all. A graph with a cutoff is refused by formats that have no place for it: without
    it, a model that is infeasible would be read back as one that has a best labeling. `drop_cutoff` writes it all the
    same, without its cutoff. Constraints (`add_clause` and others) are kept by .npz, and refused by formats that cannot
    say them unless `lower` asks for the tables with auxiliary variables that stand for them (`FactorGraph.lowered`).
    `names` writes the names of the graph to a side file (model.uai.names) where the format has no place for them.

    >>> write(FactorGraph([2, 2]), "model.cfn")
    >>> read("model.cfn").n_variables
    2
    """
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"write takes a FactorGraph, then the name of a file; the first is {type(graph).__name__}")
    check_flags(drop_cutoff=drop_cutoff, lower=lower, names=names)
    file = _file(path, "write")
    name = _named(format, file) if format is not None else _by_extension(file) or _refuse_name(file, "write")
    chosen = _known(name)
    if chosen.write is None:
        written = ", ".join(name for name, known in all_formats().items() if known.write)
        raise FormatError(f"{name} files are read, not written; written are {written}", str(file))
    if graph.cutoff > -inf and not chosen.has_cutoff and not drop_cutoff:
        holders = ", ".join(known.extensions[0] for known in FORMATS.values() if known.has_cutoff)
        raise FormatError(
            f"the format has no place for the cutoff (only scores above {graph.cutoff:.17g} count); {holders} have one,"
            " and drop_cutoff=True (--drop-cutoff) leaves it out",
            str(file),
        )
    if graph.rules and lower:
        graph = graph.lowered().graph
    if graph.rules and not chosen.has_rules:
        kinds = ", ".join(dict.fromkeys(rule.kind for rule in graph.rules))
        raise FormatError(
            f"the format has no place for constraints ({kinds}); .npz has, and lower=True (--lower) writes tables with "
            "auxiliary variables behind the others",
            str(file),
        )
    beside = side_file(file) if graph.names is not None and not chosen.has_names else None
    if beside is not None and not names:
        holders = ", ".join(known.extensions[0] for known in FORMATS.values() if known.has_names)
        lost = f"{file}: the format has no names, so they are lost; {holders} have, and names=True (--names)"
        warnings.warn(f"{lost} writes {beside.name} beside it", RuntimeWarning, stacklevel=2)
    try:
        chosen.write(graph, file)
    except ModelError as error:
        raise FormatError(str(error), str(file)) from None
    if beside is not None and names and file != STANDARD:
        write_names(graph, beside)
