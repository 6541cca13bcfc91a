"""The scores of tables: how a graph holds them, and the checks that they pass before they get into one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import inf, isfinite, isnan, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import ABSDIFF, DENSE, POTTS, SQDIFF, ModelArrays
from fginfer.errors import ModelError
from fginfer.names import Names, variables_text
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, negated

KINDS: dict[type[Any], int] = {Potts: POTTS, AbsDiff: ABSDIFF, SqDiff: SQDIFF}
_IMPLICIT: dict[int, type[ImplicitTable]] = {POTTS: Potts, ABSDIFF: AbsDiff, SQDIFF: SqDiff}
AnyTable = NDArray[np.float64] | ImplicitTable
ZERO = Potts(0.0, 0.0)
_FEW = 8  # variables that a message lists
_NO_NEGATIVE = "a negative weight cannot be applied to a table with forbidden states (-inf)"


@dataclass(frozen=True, eq=False)
class Dense:
    """Flat scores and their shape, which may have more axes than numpy can: those of variables with one label."""

    values: NDArray[np.float64]
    shape: tuple[int, ...]


HeldTable = Dense | ImplicitTable


def arity_of(table: HeldTable) -> int:
    """How many variables a factor with this table has."""
    return len(table.shape) if isinstance(table, Dense) else 2


def table_key(table: HeldTable) -> Any:
    """Equal for tables that are the same bit for bit (0.0 and -0.0 differ, as they do in a file)."""
    if not isinstance(table, Dense):
        return (type(table), *(float.hex(float(v)) for v in implicit_params(table)))
    data = table.values.tobytes()
    return table.shape, data if len(data) <= 64 else hashlib.blake2b(data, digest_size=20).digest()


def implicit_params(table: ImplicitTable) -> tuple[float, float]:
    if isinstance(table, Potts):
        return float(table.same), float(table.different)
    return float(table.weight), float(table.truncation)


def is_reward(table: HeldTable | AnyTable) -> bool:
    """Whether the score grows with the distance: the core has no such table, so it is written out for each factor."""
    return isinstance(table, AbsDiff | SqDiff) and table.weight < 0


def size_of(table: HeldTable, labels: int) -> tuple[float, float]:
    """The largest magnitude of the finite scores and the least that is not 0, for at most so many labels."""
    if isinstance(table, Dense):
        sizes = np.abs(table.values)
    elif isinstance(table, Potts):
        sizes = np.abs([table.same, table.different])
    else:
        far = min(float(max(labels - 1, 1)) ** (2 if isinstance(table, SqDiff) else 1), table.truncation)
        weight = abs(table.weight)
        return weight * far, weight * min(1.0, table.truncation) or inf
    sizes = sizes[(sizes > 0) & (sizes < inf)]
    return (float(sizes.max()), float(sizes.min())) if sizes.size else (0.0, inf)


class StoredTables:
    """The tables of a model one by one: an array (a view), or the implicit table it stands for."""

    def __init__(self, arrays: ModelArrays) -> None:
        self.arrays = arrays
        self.dims_begin, self.values_begin = arrays.dims_begin(), arrays.values_begin()

    def __len__(self) -> int:
        return self.arrays.n_tables

    def held(self, index: int) -> HeldTable:
        """The table as builders hold it."""
        a = self.arrays
        kind = DENSE if a.table_kind is None else int(a.table_kind[index])
        if kind != DENSE:
            assert a.params is not None
            p0, p1 = map(float, a.params[2 * index : 2 * index + 2])
            return _IMPLICIT[kind](p0, p1)
        shape = a.dims[self.dims_begin[index] : self.dims_begin[index + 1]]
        return Dense(a.values[self.values_begin[index] : self.values_begin[index + 1]], tuple(shape.tolist()))

    def __getitem__(self, index: int) -> AnyTable:
        """With an axis for each variable; flat where these are more than numpy can have."""
        held = self.held(index)
        if not isinstance(held, Dense):
            return held
        try:
            return held.values.reshape(held.shape)
        except ValueError:
            return held.values


def check_implicit(name: str, table: ImplicitTable) -> ImplicitTable:
    """Refuses parameters that are no numbers, or would give NaN or +inf."""
    try:
        p0, p1 = implicit_params(table)
    except (TypeError, ValueError):
        raise ModelError(f"{name}: {table} has a parameter that is no number") from None
    if isinstance(table, Potts):
        if isnan(p0) or isnan(p1) or inf in (p0, p1):
            raise ModelError(f"{name}: Potts scores must be finite or -inf, not {p0} and {p1}")
    elif not isfinite(p0) or not p1 > 0:
        raise ModelError(
            f"{name}: {type(table).__name__} needs a finite weight and a truncation > 0, not {p0} and {p1}"
        )
    return type(table)(p0, p1)


def numbers(name: str, given: Any) -> NDArray[np.float64]:
    """An array of doubles; ModelError with `name` for what is no array of real numbers."""
    try:
        if given is None:  # which numpy takes for a NaN
            raise TypeError
        array = np.asarray(given)
        if array.dtype.kind not in "biufO":  # words, dates and complex numbers
            raise TypeError
        return np.ascontiguousarray(array, np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{name} is not an array of numbers") from None


def check_dense(
    name: str, table: ArrayLike, shape: tuple[int, ...], scope: tuple[int, ...], names: Names | None = None
) -> Dense:
    """The table in the shape its variables need; a flat table of the right size will do."""
    values = numbers(f"{name}: its table", table)
    size = prod(shape)  # Python integers: no overflow
    if values.size != size or (values.shape != shape and values.ndim > 1):
        of = f"{variables_text(names, scope)} need a table" if scope else "it must be a table"
        if len(scope) > _FEW:
            raise ModelError(f"{name}: its {len(scope)} variables need a table of {size} entries, not {values.shape}")
        raise ModelError(f"{name}: {of} of shape {shape}, that is {size} entries, not {values.shape}")
    values = values.reshape(-1)
    if not bool((values < inf).all()):
        first = int(np.argmin(values < inf))
        what = "NaN" if isnan(values[first]) else "+inf"
        raise ModelError(f"{name}: entry {_entry(first, shape)} is {what}; scores must be finite or -inf")
    return Dense(values, shape)


def _entry(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where an entry of a flat table stands; numpy's own does this for a limited number of axes only."""
    at = []
    for labels in reversed(shape):
        index, label = divmod(index, labels)
        at.append(label)
    return tuple(reversed(at))


def negate(table: AnyTable, name: str) -> AnyTable:
    """The opposite scores; a forbidden state has none."""
    if isinstance(table, np.ndarray):
        if bool((table == -inf).any()):
            raise ModelError(f"{name}: {_NO_NEGATIVE}")
        return 0.0 - table
    if isinstance(table, Potts) and -inf in (table.same, table.different):
        raise ModelError(f"{name}: {_NO_NEGATIVE}")
    return negated(table)


def negate_held(table: HeldTable, name: str) -> HeldTable:
    """The opposite scores of a table as builders hold it."""
    if not isinstance(table, Dense):
        opposite = negate(table, name)
        assert not isinstance(opposite, np.ndarray)
        return opposite
    return Dense(np.asarray(negate(table.values, name)), table.shape)


def weigh(table: NDArray[np.float64], weight: float, name: str) -> NDArray[np.float64]:
    """weight * table, where a weight of zero gives zeros even for forbidden states."""
    if weight == 1:
        return table
    if weight == 0:
        return np.zeros_like(table)
    if weight < 0:
        negate(table, name)
    scores: NDArray[np.float64] = weight * table
    if not bool(np.isfinite(scores[table > -inf]).all()):
        raise ModelError(f"{name}: weight {weight:g} times its table overflows")
    return scores
