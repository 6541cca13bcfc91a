"""UAI models: MARKOV and BAYES files of potentials, and .LG files of natural logarithms. The reader is csrc/uai.c."""

from __future__ import annotations

from pathlib import Path

from fginfer.core.door import check, ffi, lib, new_error
from fginfer.formats.streams import open_binary, write_atomically
from fginfer.graph import FactorGraph

_PIECE = 1 << 20


def read_uai(path: Path, log_values: bool = False) -> FactorGraph:
    """Reads a UAI file; with `log_values` its entries are scores instead of potentials."""
    error, out = new_error(), ffi.new("fgi_uai **")
    check(lib.fgi_uai_create(log_values, out, error), error)
    reader = ffi.gc(out[0], lib.fgi_uai_free)
    piece = bytearray(_PIECE)
    text = ffi.from_buffer(piece)
    with open_binary(path) as stream:
        while n := stream.readinto(piece):
            check(lib.fgi_uai_feed(reader, text, n, error), error, str(path))
    model, given = ffi.new("fgi_model **"), ffi.new("int64_t *")
    check(lib.fgi_uai_finish(reader, model, given, error), error, str(path))
    return FactorGraph.from_model(ffi.gc(model[0], lib.fgi_model_free), int(given[0]))


def write_uai(graph: FactorGraph, path: Path, log_values: bool = False, bayes: bool = False) -> None:
    """Writes a UAI file of potentials, or of scores with `log_values`; with `bayes` as a Bayesian network."""
    error, out = new_error(), ffi.new("fgi_uai_writer **")
    check(lib.fgi_uai_writer_create(graph.snapshot(), log_values, bayes, out, error), error)
    writer = ffi.gc(out[0], lib.fgi_uai_writer_free)
    piece, length = bytearray(_PIECE), ffi.new("int64_t *")
    text, view = ffi.from_buffer(piece), memoryview(piece)
    with write_atomically(path) as stream:
        while True:
            check(lib.fgi_uai_writer_next(writer, text, _PIECE, length, error), error, str(path))
            if length[0] == 0:
                break
            stream.write(view[: length[0]])
