"""UAI models: MARKOV and BAYES files of potentials, and .LG files of natural logarithms. The reader is csrc/io."""

from __future__ import annotations

from pathlib import Path

from fginfer.budget import Budget
from fginfer.core.uai import UaiReader, uai_text
from fginfer.formats.streams import open_binary, pieces, split_compression, write_atomically
from fginfer.graph import FactorGraph

_PIECE = 1 << 20


def read_uai(path: Path, budget: Budget | None = None, log_values: bool = False) -> FactorGraph:
    """Reads a UAI file; with `log_values` its entries are scores instead of potentials."""
    budget = Budget(path) if budget is None else budget
    unpacks = budget.threads > 1 and split_compression(path)[1] != ""
    reader = UaiReader(str(path), log_values, budget.threads - unpacks)
    with open_binary(path, budget) as stream:
        for piece, n in pieces(stream, _PIECE, ahead=unpacks):
            reader.feed(piece, n)
            budget.hold(reader.held, "the model")
    return FactorGraph.from_model(*reader.finish())


def write_uai(graph: FactorGraph, path: Path, log_values: bool = False, bayes: bool = False) -> None:
    """Writes a UAI file of potentials, or of scores with `log_values`; with `bayes` as a Bayesian network."""
    with write_atomically(path) as stream:
        for piece in uai_text(graph.snapshot(), str(path), log_values, bayes, _PIECE):
            stream.write(piece)
