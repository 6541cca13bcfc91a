"""Shard: one part of a model, with the numbers of its variables in the whole, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.archives import load_arrays, write_arrays
from fginfer.core.arrays import ModelArrays, begins
from fginfer.core.model import Model
from fginfer.errors import FormatError, ModelError, UnwritableError
from fginfer.graph import FactorGraph
from fginfer.replacing import replacing

_FIELDS = (
    "cards", "unary", "table_kind", "table_arity", "dims", "params", "values", "factor_table", "factor_weight",
    "factor_transposed", "var_begin", "vars",
)  # fmt: skip
_VERSION = 1


@dataclass(frozen=True, eq=False)
class Shard:
    """One part. `arrays` are those of a model whose first `n_border` variables may be in other parts, too; the others
    are in no other part. `variables` are their numbers in the whole. Scores of parts add up to the score of the whole.
    """

    arrays: ModelArrays
    variables: NDArray[np.int64]
    n_border: int
    slack: float = 0.0  # by how much a score can lie above that of the same labeling in `arrays`
    place: tuple[int, int] | None = None  # which part of how many it is, where a file says so

    @classmethod
    def of(cls, graph: FactorGraph, variables: ArrayLike, border: ArrayLike) -> Shard:
        """A part from a graph over its variables, their numbers in the whole, and which of them (by these numbers)
        other parts may have, too. Factors and unary scores each belong to one part; a unary score may also be split.

        >>> from fginfer import Potts
        >>> left = FactorGraph.from_arrays([2, 2], [[0, 1], [0, 0]], edges=[[0, 1]], tables=[Potts(0, -1)])
        >>> Shard.of(left, variables=[0, 1], border=[1])
        <Shard: 2 variables, 1 of them shared, 1 factors>
        """
        if not isinstance(graph, FactorGraph):
            raise ModelError(f"a part is made of a FactorGraph, not of {type(graph).__name__}")
        if graph.rules:
            raise ModelError("a part holds tables alone: give graph.lowered().graph, and number its new variables")
        numbers = _numbers("variables", variables)
        if numbers.shape != (graph.n_variables,):
            raise ModelError(f"variables must be {graph.n_variables} numbers, one a variable, not {numbers.shape}")
        shared = np.isin(numbers, _numbers("border", border))
        if shared.sum() != len(np.unique(_numbers("border", border))) or len(np.unique(numbers)) != len(numbers):
            raise ModelError("border must name variables of the part, and no variable may be listed twice")
        model = graph.snapshot()
        order = np.lexsort((numbers, ~shared))
        arrays = permuted(ModelArrays.of_model(model.plain()), order)
        return cls(arrays, numbers[order], int(shared.sum()), max(0.0, model.leftover_bound))

    def __repr__(self) -> str:
        sizes = f"{len(self.variables)} variables, {self.n_border} of them shared, {self.arrays.n_factors} factors"
        return f"<Shard: {sizes}>"

    def model(self) -> Model:
        """The model of the core."""
        return self.arrays.build()

    # -- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str], place: tuple[int, int] | None = None) -> None:
        """Writes a .npz archive with a check sum. `place` says which part of how many it is."""
        a = self.arrays
        held: dict[str, Any] = {name: getattr(a, name) for name in _FIELDS if getattr(a, name) is not None}
        numbers = np.array([a.constant, self.slack])
        held |= {"shard": np.array([_VERSION, self.n_border]), "variables": self.variables, "numbers": numbers}
        place = self.place if place is None else place
        if place is not None:
            held["place"] = np.array(place, np.int64)
        try:
            with replacing(Path(path)) as stream:
                write_arrays(stream, held)
        except OSError as error:
            raise UnwritableError(f"cannot be written ({error.strerror or error})", str(path)) from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Shard:
        """A part written by `save`. FormatError for a damaged file."""
        held = load_arrays(path, "a shard", max_memory=float("inf"), has_checksum=lambda arrays: "shard" in arrays)
        try:
            version, n_border = (int(x) for x in held.pop("shard"))
            if version != _VERSION:
                raise ValueError("it was written by another fginfer")
            constant, slack = (float(x) for x in held.pop("numbers"))
            variables = held.pop("variables")
            place = tuple(int(x) for x in held.pop("place", ()))
            if len(place) not in (0, 2):
                raise ValueError("its place")
            arrays = ModelArrays(**held, constant=constant)
            if variables.shape != arrays.cards.shape or not 0 <= n_border <= len(variables) or slack < 0:
                raise ValueError("its variables")
            of = (place[0], place[1]) if place else None
            return cls(arrays, variables.astype(np.int64, copy=False), n_border, slack, of)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"not a shard, or damaged ({error})", str(path)) from None


def _numbers(name: str, given: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(given)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ModelError(f"{name} must be a list of whole numbers")
    if array.min() < 0:
        raise ModelError(f"{name} must be numbers of variables, 0 or more, not {array.min()}")
    return array.astype(np.int64)


# -- arrays ----------------------------------------------------------------------------------------------------


def ragged(begin: NDArray[np.int64], rows: NDArray[Any]) -> NDArray[np.int64]:
    """Where the entries of these rows are, one row after the other."""
    sizes = begin[rows + 1] - begin[rows]
    starts = begins(sizes)
    return np.repeat(begin[rows] - starts[:-1], sizes) + np.arange(starts[-1], dtype=np.int64)


def permuted(a: ModelArrays, order: NDArray[np.int64]) -> ModelArrays:
    """The same model with its variables in another order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    unary = None if a.unary is None else a.unary[ragged(begins(a.cards), order)]
    return ModelArrays(a.cards[order], unary, a.constant, a.table_kind, a.table_arity, a.dims, a.params, a.values,
                       a.factor_table, a.factor_weight, a.factor_transposed, a.var_begin, place[a.vars])  # fmt: skip


def subset(a: ModelArrays, factors: NDArray[np.int64], variables: NDArray[np.int64],
           place: NDArray[np.int32]) -> ModelArrays:  # fmt: skip
    """Some factors over some variables, in this order; `place` says where each of them is. Unaries are left at 0."""
    begin, slots = a.factor_begin(), None
    slots = a.vars.reshape(-1, 2)[factors].reshape(-1) if a.var_begin is None else a.vars[ragged(begin, factors)]
    used, which = _distinct(a.factor_table[factors], a.n_tables)
    dense = a.is_dense()[used]
    out = ModelArrays(a.cards[variables], None, 0.0, None if a.table_kind is None else a.table_kind[used],
                      a.table_arity[used])  # fmt: skip
    if len(used) == a.n_tables:
        out.dims, out.values = a.dims, a.values
    else:
        out.dims = a.dims[ragged(a.dims_begin(), used[dense])]
        out.values = a.values[ragged(a.values_begin(), used[dense])]
    if a.params is not None:
        out.params = a.params.reshape(-1, 2)[used].reshape(-1)
    out.factor_table = which
    out.factor_weight = None if a.factor_weight is None else a.factor_weight[factors]
    out.factor_transposed = None if a.factor_transposed is None else a.factor_transposed[factors]
    out.var_begin = None if a.var_begin is None else begins(np.diff(begin)[factors])
    out.vars = place[slots]
    return out


def _distinct(tables: NDArray[np.int32], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The tables that are used, and for each factor which of these it reads."""
    seen = np.zeros(n, bool)
    seen[tables] = True
    used = np.flatnonzero(seen)
    number = np.zeros(n, np.int32)
    number[used] = np.arange(len(used), dtype=np.int32)
    return used, number[tables]


def runs_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending numbers as rows (first, how many)."""
    if len(numbers) == 0:
        return np.zeros((0, 2), np.int64)
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    first = np.concatenate(([0], breaks))
    return np.stack([numbers[first], np.diff(np.append(first, len(numbers)))], 1)


def from_runs(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers again."""
    return np.concatenate([np.zeros(0, np.int64), *_ranges(runs.tolist())])


def _ranges(runs: list[list[int]]) -> Iterable[NDArray[np.int64]]:
    return (np.arange(first, first + n, dtype=np.int64) for first, n in runs)
