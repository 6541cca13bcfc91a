"""ModelArrays: a whole model as flat arrays, as models enter and leave the C core and the file formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.door import borrowed, check, ffi, lib, new_error, pointer
from fginfer.core.model import Model
from fginfer.errors import ModelError

DENSE, POTTS, ABSDIFF, SQDIFF = 0, 1, 2, 3

_DTYPES: dict[str, Any] = {
    "cards": np.int32,
    "unary": np.float64,
    "table_kind": np.int32,
    "table_arity": np.int32,
    "dims": np.int32,
    "params": np.float64,
    "values": np.float64,
    "factor_table": np.int32,
    "factor_weight": np.float64,
    "factor_transposed": np.uint8,
    "var_begin": np.int64,
    "vars": np.int32,
    "leftover_var": np.int32,
    "leftover": np.float64,
}


def _ints() -> NDArray[np.int32]:
    return np.zeros(0, np.int32)


def _doubles() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass
class ModelArrays:
    """Mirrors fgi_model_spec (csrc/include/fginfer.h); None means the default stated there."""

    cards: NDArray[np.int32]
    unary: NDArray[np.float64] | None = None
    constant: float = 0.0
    table_kind: NDArray[np.int32] | None = None
    table_arity: NDArray[np.int32] = field(default_factory=_ints)
    dims: NDArray[np.int32] = field(default_factory=_ints)
    params: NDArray[np.float64] | None = None
    values: NDArray[np.float64] = field(default_factory=_doubles)
    factor_table: NDArray[np.int32] = field(default_factory=_ints)
    factor_weight: NDArray[np.float64] | None = None
    factor_transposed: NDArray[np.uint8] | None = None
    var_begin: NDArray[np.int64] | None = None
    vars: NDArray[np.int32] = field(default_factory=_ints)
    leftover_var: NDArray[np.int32] = field(default_factory=_ints)
    leftover: NDArray[np.float64] = field(default_factory=_doubles)

    @classmethod
    def of_model(cls, model: Model) -> ModelArrays:
        """Read-only views into a snapshot of a model: nothing is copied, later changes of the model do not show."""
        owner = model.snapshot()
        spec = ffi.new("fgi_model_spec *")
        lib.fgi_model_arrays(owner.handle, spec)

        def view(name: str, n: int) -> NDArray[Any]:
            return borrowed(owner, getattr(spec, name), n, _DTYPES[name])

        def optional(name: str, n: int) -> NDArray[Any] | None:
            return view(name, n) if getattr(spec, name) != ffi.NULL else None

        n_tables, cards = spec.n_tables, view("cards", spec.n_vars)
        arity, kind = view("table_arity", n_tables), view("table_kind", n_tables)
        begin = optional("var_begin", spec.n_factors + 1)
        return cls(
            cards=cards,
            unary=view("unary", int(cards.sum(dtype=np.int64))),
            constant=spec.constant,
            table_kind=kind,
            table_arity=arity,
            dims=view("dims", int(arity[kind == DENSE].sum(dtype=np.int64))),
            params=optional("params", 2 * n_tables),
            values=view("values", spec.n_values),
            factor_table=view("factor_table", spec.n_factors),
            factor_weight=optional("factor_weight", spec.n_factors),
            factor_transposed=optional("factor_transposed", spec.n_factors),
            var_begin=begin,
            vars=view("vars", 2 * spec.n_factors if begin is None else int(begin[-1])),
            leftover_var=view("leftover_var", spec.n_leftovers),
            leftover=view("leftover", spec.n_leftover_values),
        )

    # -- one table or factor -----------------------------------------------------------------------------------

    @property
    def n_tables(self) -> int:
        return len(self.table_arity)

    @property
    def n_factors(self) -> int:
        return len(self.factor_table)

    def is_dense(self) -> NDArray[np.bool_]:
        """Which tables are dense."""
        return np.ones(self.n_tables, bool) if self.table_kind is None else self.table_kind == DENSE

    def dims_begin(self) -> NDArray[np.int64]:
        """Where each table's dimensions begin in `dims`; n_tables + 1 offsets."""
        return begins(np.where(self.is_dense(), self.table_arity, 0))

    def values_begin(self) -> NDArray[np.int64]:
        """Where each table's entries begin in `values`; n_tables + 1 offsets."""
        dense, sizes = self.is_dense(), np.zeros(self.n_tables, np.int64)
        if dense.any():
            starts = self.dims_begin()[:-1][dense]
            sizes[dense] = np.multiply.reduceat(self.dims.astype(np.int64), starts)
        return begins(sizes)

    def factor_begin(self) -> NDArray[np.int64]:
        """Where each factor's variables begin in `vars`; n_factors + 1 offsets."""
        return 2 * np.arange(self.n_factors + 1, dtype=np.int64) if self.var_begin is None else self.var_begin

    def without(self, factors: Sequence[int]) -> ModelArrays:
        """The model without these factors; its tables stay as they are."""
        begin, kept = self.factor_begin(), np.ones(self.n_factors, bool)
        kept[factors] = False
        sizes = np.diff(begin)
        out = replace(self, factor_table=self.factor_table[kept], vars=self.vars[np.repeat(kept, sizes)])
        if self.factor_weight is not None:
            out.factor_weight = self.factor_weight[kept]
        if self.factor_transposed is not None:
            out.factor_transposed = self.factor_transposed[kept]
        if self.var_begin is not None:
            out.var_begin = begins(sizes[kept])
        return out

    # -- into the core -----------------------------------------------------------------------------------------

    def build(self) -> Model:
        """The model. Raises ModelError if the arrays do not describe a model."""
        # Contiguous copies only where the arrays are not contiguous already.
        keep: dict[str, Any] = {
            name: None if getattr(self, name) is None else np.ascontiguousarray(getattr(self, name), dtype)
            for name, dtype in _DTYPES.items()
        }
        _check_lengths(keep)
        spec = ffi.new("fgi_model_spec *")
        for name, array in keep.items():
            setattr(spec, name, pointer(array))
        spec.n_vars = len(self.cards)
        spec.constant = self.constant
        spec.n_tables = self.n_tables
        spec.n_values = len(self.values)
        spec.n_factors = self.n_factors
        spec.n_leftovers, spec.n_leftover_values = len(self.leftover_var), len(self.leftover)
        out, error = ffi.new("fgi_model **"), new_error()
        check(lib.fgi_model_create(spec, out, error), error)
        return Model(out[0])


def begins(sizes: NDArray[Any] | Sequence[int]) -> NDArray[np.int64]:
    """0 and the running totals of `sizes`: where lines of so many entries begin."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, dtype=np.int64, out=out[1:])
    return out


def owners(begin: NDArray[Any]) -> NDArray[np.int64]:
    """The line of every entry, by where the lines begin."""
    return np.repeat(np.arange(len(begin) - 1, dtype=np.int64), np.diff(begin))


def _check_lengths(a: dict[str, Any]) -> None:
    """The core trusts the lengths of what it is pointed to; everything else it checks itself."""
    n_tables, n_factors = len(a["table_arity"]), len(a["factor_table"])
    if a["table_kind"] is not None and a["table_kind"].shape != (n_tables,):
        raise ModelError(f"table_kind must be a flat array of {n_tables} entries, not of shape {a['table_kind'].shape}")
    dense = a["table_arity"] if a["table_kind"] is None else a["table_arity"][a["table_kind"] == DENSE]
    if len(dense) and dense.min() < 2:
        raise ModelError(f"a table has arity {dense.min()}; fold arity 0 and 1 into the constant and the unaries first")
    begin = a["var_begin"]
    n_slots = 2 * n_factors if begin is None or len(begin) == 0 else int(begin[-1])
    expected = {
        "unary": int(a["cards"].sum(dtype=np.int64)),
        "dims": int(dense.sum(dtype=np.int64)),
        "params": 2 * n_tables,
        "factor_weight": n_factors,
        "factor_transposed": n_factors,
        "var_begin": n_factors + 1,
        "vars": n_slots,
    }
    for name, n in expected.items():
        if a[name] is not None and a[name].shape != (n,):
            raise ModelError(f"{name} must be a flat array of {n} entries, not of shape {a[name].shape}")
