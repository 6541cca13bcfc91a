"""UAI models: MARKOV and BAYES files of potentials, and .LG files of natural logarithms. The reader is csrc/uai.c."""

from __future__ import annotations

from pathlib import Path

from fginfer.formats.streams import open_binary
from fginfer.graph import FactorGraph
from fginfer.native import check, ffi, lib, new_error

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
