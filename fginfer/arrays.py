"""ModelArrays: a whole model as flat arrays, the form in which models enter and leave the C core and the file formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.native import check, ffi, lib, new_error, pointer

DENSE, POTTS, ABSDIFF, SQDIFF = 0, 1, 2, 3


def _array(dtype: Any) -> Any:
    return field(default_factory=lambda: np.zeros(0, dtype))


@dataclass
class ModelArrays:
    """Mirrors fgi_model_spec (csrc/include/fginfer.h); None means the default stated there."""

    cards: NDArray[np.int32]
    unary: NDArray[np.float64] | None = None
    constant: float = 0.0
    table_kind: NDArray[np.int32] | None = None
    table_arity: NDArray[np.int32] = _array(np.int32)
    dims: NDArray[np.int32] = _array(np.int32)
    params: NDArray[np.float64] | None = None
    values: NDArray[np.float64] = _array(np.float64)
    factor_table: NDArray[np.int32] = _array(np.int32)
    factor_weight: NDArray[np.float64] | None = None
    factor_transposed: NDArray[np.uint8] | None = None
    var_begin: NDArray[np.int64] | None = None
    vars: NDArray[np.int32] = _array(np.int32)

    def build(self) -> Any:
        """The C model, freed with its Python handle. Raises ModelError if the arrays do not describe a model."""
        spec = ffi.new("fgi_model_spec *")
        keep = {  # contiguous copies only where the arrays are not contiguous already
            name: None if getattr(self, name) is None else np.ascontiguousarray(getattr(self, name), dtype)
            for name, dtype in (
                ("cards", np.int32),
                ("unary", np.float64),
                ("table_kind", np.int32),
                ("table_arity", np.int32),
                ("dims", np.int32),
                ("params", np.float64),
                ("values", np.float64),
                ("factor_table", np.int32),
                ("factor_weight", np.float64),
                ("factor_transposed", np.uint8),
                ("var_begin", np.int64),
                ("vars", np.int32),
            )
        }
        for name, array in keep.items():
            setattr(spec, name, pointer(array))
        spec.n_vars = len(self.cards)
        spec.constant = self.constant
        spec.n_tables = len(self.table_arity)
        spec.n_values = len(self.values)
        spec.n_factors = len(self.factor_table)
        out, error = ffi.new("fgi_model **"), new_error()
        check(lib.fgi_model_create(spec, out, error), error)
        return ffi.gc(out[0], lib.fgi_model_free)
