"""Model files. `read` and `write` choose the format by extension, through .gz, .xz and .bz2, or by `format=`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from math import inf
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from fginfer.budget import Budget
from fginfer.errors import FormatError, ModelError, SettingsError
from fginfer.formats.cfn import read_cfn, write_cfn
from fginfer.formats.evidence import read_evidence, read_solution, write_evidence, write_solution
from fginfer.formats.npz import read_npz, write_npz
from fginfer.formats.opengm import read_opengm, write_opengm
from fginfer.formats.streams import STANDARD, split_compression
from fginfer.formats.uai import read_uai, write_uai
from fginfer.formats.wcsp import read_wcsp, write_wcsp
from fginfer.graph import FactorGraph

__all__ = ["FORMATS", "read", "read_evidence", "read_solution", "write", "write_evidence", "write_solution"]


class Format(NamedTuple):
    """A file format: its extensions, and how to read and write it."""

    extensions: tuple[str, ...]
    read: Callable[[Path, Budget], FactorGraph]
    write: Callable[[FactorGraph, Path], None]
    has_cutoff: bool = False


FORMATS: dict[str, Format] = {
    "uai": Format((".uai",), read_uai, write_uai),
    "bayes": Format((), read_uai, lambda graph, path: write_uai(graph, path, bayes=True)),
    "lg": Format(
        (".lg",),
        lambda path, budget: read_uai(path, budget, log_values=True),
        lambda graph, path: write_uai(graph, path, log_values=True),
    ),
    "opengm": Format((".h5", ".hdf5"), read_opengm, write_opengm),
    "wcsp": Format((".wcsp",), read_wcsp, write_wcsp, has_cutoff=True),
    "cfn": Format((".cfn", ".json"), read_cfn, write_cfn, has_cutoff=True),
    "npz": Format((".npz",), read_npz, write_npz, has_cutoff=True),
}


def _file(path: str | PathLike[str], call: str) -> Path:
    if not isinstance(path, str | PathLike):
        raise SettingsError(f"{call} takes the name of a file (a text or a Path), not {type(path).__name__}")
    if "\n" in str(path):
        raise FormatError("this is text, not the name of a file: write it to a file first, or pipe it to '-'")
    if str(path).startswith(("http://", "https://", "ftp://", "s3://")):
        raise FormatError(f"{call} takes the name of a file, not an address: download it first", str(path))
    return Path(path)


def _format_of(path: Path, name: str | None) -> Format:
    if name is not None and not isinstance(name, str):
        raise SettingsError(f"format must be one of {', '.join(FORMATS)}, not {name!r}")
    if name is not None:
        if name.lower() not in FORMATS:
            raise FormatError(f"there is no format {name!r}; known are {', '.join(FORMATS)}", str(path))
        return FORMATS[name.lower()]
    extension = split_compression(path)[0].suffix.lower()
    for known in FORMATS.values():
        if extension in known.extensions:
            return known
    if path == STANDARD:
        raise FormatError("standard input and output have no extension: name a format (--format, --to)", str(path))
    if os.path.isdir(path):  # False for a name that no file can have
        raise FormatError("is a folder, not a file", str(path))
    every = " ".join(e for known in FORMATS.values() for e in known.extensions)
    raise FormatError(
        f"unknown extension {extension!r}; known are {every}, or name a format (format=, --format)", str(path)
    )


def read(
    path: str | PathLike[str],
    evidence: str | PathLike[str] | None = None,
    format: str | None = None,
    *,
    max_memory: float | None = None,
    threads: int = 1,
) -> FactorGraph:
    """Reads a model; the extension (before .gz, .xz or .bz2) or `format` says how. "-" is standard input.

    With a UAI `evidence` file the result is the reduced graph over the variables that were not observed. (To keep the
    original variables, read the model without it and give `read_evidence(path, graph)` to `graph.condition`.)

    `max_memory` is what the model may take, in bytes; by default half of the machine's memory, at most 8 GiB, and less
    for what a file of a few bytes can ask for. `threads` may read a large UAI file together, to the same model.

    >>> graph = FactorGraph([2, 3])
    >>> graph.add_factor([0, 1], [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    >>> write(graph, "model.uai.gz")
    >>> read("model.uai.gz").score([1, 0])
    2.0
    """
    file = _file(path, "read")
    graph = _format_of(file, format).read(file, Budget(file, max_memory, threads=threads))
    if evidence is None:
        return graph
    return graph.condition(read_evidence(evidence, graph)).graph


def write(graph: FactorGraph, path: str | PathLike[str], format: str | None = None) -> None:
    """Writes a model; the extension (before .gz, .xz or .bz2) or `format` says how. "-" is standard output.

    The file appears whole or not at all.

    >>> write(FactorGraph([2, 2]), "model.cfn")
    >>> read("model.cfn").n_variables
    2
    """
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"write takes a FactorGraph, then the name of a file; the first is {type(graph).__name__}")
    file = _file(path, "write")
    chosen = _format_of(file, format)
    if graph.cutoff > -inf and not chosen.has_cutoff:
        logging.getLogger("fginfer").warning(
            "%s: the format has no place for the cutoff, which is lost: only scores above %.17g count",
            file,
            graph.cutoff,
        )
    try:
        chosen.write(graph, file)
    except ModelError as error:
        raise FormatError(str(error), str(file)) from None
