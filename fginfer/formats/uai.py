"""UAI models: MARKOV and BAYES files of potentials, and .LG files of their natural logarithms. The reader is csrc/uai.c."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fginfer.arrays import ModelArrays
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
    spec, given = ffi.new("fgi_model_spec *"), ffi.new("int64_t *")
    check(lib.fgi_uai_finish(reader, spec, given, error), error, str(path))

    def array(pointer: Any, n: int, dtype: Any) -> Any:
        return (
            np.frombuffer(ffi.buffer(pointer, n * np.dtype(dtype).itemsize), dtype).copy() if n else np.zeros(0, dtype)
        )

    cards = array(spec.cards, spec.n_vars, np.int32)
    begin = array(spec.var_begin, spec.n_factors + 1, np.int64)
    arity = array(spec.table_arity, spec.n_tables, np.int32)
    arrays = ModelArrays(
        cards=cards,
        unary=array(spec.unary, int(cards.sum(dtype=np.int64)), np.float64),
        constant=spec.constant,
        table_arity=arity,
        dims=array(spec.dims, int(arity.sum()), np.int32),
        values=array(spec.values, spec.n_values, np.float64),
        factor_table=array(spec.factor_table, spec.n_factors, np.int32),
        var_begin=begin,
        vars=array(spec.vars, int(begin[-1]), np.int32),
    )
    return FactorGraph.from_model_arrays(arrays, given_factors=int(given[0]))
