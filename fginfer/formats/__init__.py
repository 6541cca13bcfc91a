"""Model files. `read` and `write` choose the format by extension, through .gz, .xz and .bz2, or by `format=`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from fginfer.errors import FormatError
from fginfer.formats.evidence import read_evidence, read_solution, write_evidence, write_solution
from fginfer.formats.streams import split_compression
from fginfer.formats.uai import read_uai
from fginfer.graph import FactorGraph

__all__ = ["read", "read_evidence", "read_solution", "write_evidence", "write_solution"]

_EXTENSIONS = {".uai": "uai", ".lg": "lg"}


def _format_of(path: Path, given: str | None) -> str:
    name = given.lower() if given is not None else _EXTENSIONS.get(split_compression(path)[0].suffix.lower())
    if name is None or name not in _EXTENSIONS.values():
        raise FormatError("unknown format", str(path))
    return name


def read(path: str | PathLike[str], *, format: str | None = None) -> FactorGraph:
    """Reads a model."""
    file = Path(path)
    return read_uai(file, log_values=_format_of(file, format) == "lg")
