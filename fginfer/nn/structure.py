"""Structure: what all problems of a layer have in common: label counts, scopes, and which table a factor reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.sparsemap import SparseStructure
from fginfer.errors import ModelError
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, expand

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


class Structure:
    """Variables and factors without their scores.

    cards      labels per variable
    scopes     the variables of each factor, two or more: an array (factors, k), or a list of tuples
    table_ids  which table each factor reads; None: each has one of its own, or all read the only one of `tables`
    tables     tables that are known (arrays, Potts, AbsDiff, SqDiff): scores are then weights, a number a factor

    >>> from fginfer import Potts
    >>> chain = Structure([3] * 4, [(0, 1), (1, 2), (2, 3)])
    >>> chain.table_shapes
    [(3, 3), (3, 3), (3, 3)]
    >>> smooth = Structure([3] * 4, [(0, 1), (1, 2), (2, 3)], tables=[Potts(0, -1)])
    >>> smooth
    <Structure: 4 variables, 3 factors, weights on 1 known table>
    """

    def __init__(
        self,
        cards: ArrayLike,
        scopes: ArrayLike | Sequence[Sequence[int]] = (),
        *,
        table_ids: ArrayLike | None = None,
        tables: Sequence[ArrayLike | ImplicitTable] | None = None,
    ) -> None:
        self.cards = _cards(cards)
        self.scopes = _scopes(scopes, len(self.cards))
        known = None if tables is None else list(tables)
        self.table_ids = _table_ids(table_ids, len(self.scopes), None if known is None else len(known))
        self.known = known
        self.table_shapes = self._shapes()
        self.known_values = None if known is None else self._expanded()
        self.label_begin = np.concatenate(([0], np.cumsum(self.cards, dtype=np.int64)))
        # Plain values, which torch.compile can look at.
        self.n_variables, self.n_factors = len(self.cards), len(self.scopes)
        self.n_labels = int(self.label_begin[-1])  # labels of all variables together: as many unary scores are needed
        self.uniform = int(self.cards[0]) if len(set(self.cards.tolist())) == 1 else None  # labels of every variable
        sizes = np.array([int(np.prod(s, dtype=np.int64)) for s in self.table_shapes], np.int64)
        self.table_begin = np.concatenate(([0], np.cumsum(sizes)))
        self.n_values = int(self.table_begin[-1])  # entries of all tables together

    @classmethod
    def chain(cls, length: int, labels: int, *, shared: bool = True, **settings: Any) -> Structure:
        """A chain; `shared`: all neighbours read one table."""
        scopes = np.stack([np.arange(length - 1), np.arange(1, length)], 1)
        return cls([labels] * length, scopes, table_ids=_of_one(shared, settings, len(scopes)), **settings)

    @classmethod
    def grid(cls, shape: tuple[int, ...], labels: int, *, shared: bool = True, **settings: Any) -> Structure:
        """A grid of any dimension: pairs of neighbours along the first axis come first; `shared`: one table."""
        pixel = np.arange(int(np.prod(shape))).reshape(shape)
        pairs = [
            np.stack([np.delete(pixel, -1, axis).reshape(-1), np.delete(pixel, 0, axis).reshape(-1)], 1)
            for axis in range(len(shape))
        ]
        scopes = np.concatenate(pairs)
        return cls([labels] * pixel.size, scopes, table_ids=_of_one(shared, settings, len(scopes)), **settings)

    def __repr__(self) -> str:
        tables = len(self.table_shapes)
        what = f"{tables} table{'s' * (tables != 1)}"
        what = what if self.known is None else f"weights on {tables} known table{'s' * (tables != 1)}"
        return f"<Structure: {self.n_variables} variables, {self.n_factors} factors, {what}>"

    def __reduce__(self) -> Any:
        return _restore, (self.cards, self.scopes, self.table_ids, self.known)

    # -- what else is wanted of it, made when it is first needed ---------------------------------------------------

    @cached_property
    def state_begin(self) -> Ints:
        """Where the states of each factor begin, if all are written out."""
        sizes = np.diff(self.table_begin)[self.table_ids]
        return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))

    @cached_property
    def state_value(self) -> Ints:
        """Which entry of the tables each state of each factor reads."""
        begin, ids = self.table_begin, self.table_ids
        parts = [np.arange(begin[t], begin[t + 1]) for t in ids.tolist()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @cached_property
    def state_factor(self) -> Ints:
        """Which factor each state belongs to."""
        return np.repeat(np.arange(self.n_factors), np.diff(self.state_begin))

    @cached_property
    def sparse(self) -> SparseStructure:
        """The same for the core's quadratic programs."""
        lengths = [len(s) for s in self.scopes]
        begin = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        flat = np.array([v for s in self.scopes for v in s], np.int32)
        return SparseStructure(self.cards, begin.astype(np.int64), flat)

    @cached_property
    def by_arity(self) -> list[tuple[Ints, Ints, Ints]]:
        """For each arity: the factors, their scopes (a row each), and the strides of their tables (a row each)."""
        arity = np.array([len(s) for s in self.scopes], np.int64)
        found = []
        for k in np.unique(arity).tolist():
            factors = np.flatnonzero(arity == k)
            scopes = np.array([self.scopes[f] for f in factors.tolist()], np.int64)
            cards = self.cards[scopes].astype(np.int64)
            strides = np.ones_like(cards)
            for q in range(k - 2, -1, -1):
                strides[:, q] = strides[:, q + 1] * cards[:, q + 1]
            found.append((factors, scopes, strides))
        return found

    def states_at(self, labels: NDArray[Any]) -> Ints:
        """For labelings (a row each): which of its states each factor is in."""
        out = np.zeros((len(labels), self.n_factors), np.int64)
        for factors, scopes, strides in self.by_arity:
            out[:, factors] = (labels[:, scopes] * strides).sum(-1)
        return out

    # -- tables ------------------------------------------------------------------------------------------------

    def _shapes(self) -> list[tuple[int, ...]]:
        count = len(self.known) if self.known is not None else int(self.table_ids.max(initial=-1)) + 1
        shapes: list[tuple[int, ...] | None] = [None] * count
        for f, (scope, t) in enumerate(zip(self.scopes, self.table_ids.tolist(), strict=True)):
            shape = tuple(int(self.cards[v]) for v in scope)
            if shapes[t] is None:
                shapes[t] = shape
            elif shapes[t] != shape:
                raise ModelError(f"factor {f} needs a table of shape {shape}; others read table {t} as {shapes[t]}")
        if any(s is None for s in shapes):
            raise ModelError(f"no factor reads table {shapes.index(None)}")
        return [s for s in shapes if s is not None]

    def _expanded(self) -> Reals:
        assert self.known is not None
        parts = []
        for t, (table, shape) in enumerate(zip(self.known, self.table_shapes, strict=True)):
            if isinstance(table, Potts | AbsDiff | SqDiff):
                if len(shape) != 2:
                    raise ModelError(f"table {t} is for two variables, a factor that reads it has {len(shape)}")
                values = expand(table, *shape)
            else:
                values = np.asarray(table, np.float64)
                if values.shape != shape:
                    raise ModelError(f"table {t} has the shape {values.shape}, factors that read it need {shape}")
            if not np.isfinite(values).all():
                raise ModelError(f"table {t} is multiplied by weights: its entries must be finite")
            parts.append(values.reshape(-1))
        return np.concatenate(parts) if parts else np.zeros(0)


def _restore(cards: Any, scopes: Any, table_ids: Any, known: Any) -> Structure:
    return Structure(cards, scopes, table_ids=table_ids, tables=known)


def _of_one(shared: bool, settings: dict[str, Any], n: int) -> Ints | None:
    if "table_ids" in settings:
        raise ModelError("chain and grid take shared=True or False; table_ids are for Structure(...)")
    known = settings.get("tables")
    return np.zeros(n, np.int64) if shared and (known is None or len(known) == 1) else None


def _cards(given: ArrayLike) -> NDArray[np.int32]:
    cards = np.asarray(given)
    if cards.ndim != 1 or (cards.size and cards.dtype.kind not in "iu") or (cards.size and cards.min() < 1):
        raise ModelError(f"cards must be the label counts of the variables, positive whole numbers, not {given!r}")
    return cards.astype(np.int32)


def _scopes(given: Any, n: int) -> list[tuple[int, ...]]:
    try:
        scopes = [tuple(int(v) for v in scope) for scope in given]
    except (TypeError, ValueError):
        raise ModelError("scopes must list the variables of each factor, such as [(0, 1), (1, 2)]") from None
    for f, scope in enumerate(scopes):
        if len(scope) < 2:
            raise ModelError(f"factor {f} has {len(scope)} variables; scores of one variable belong to its unaries")
        if min(scope) < 0 or max(scope) >= n:
            raise ModelError(f"factor {f} refers to the variables {scope}; there are {n}")
        if len(set(scope)) < len(scope):
            raise ModelError(f"factor {f} has a variable twice: {scope}")
    return scopes


def _table_ids(given: ArrayLike | None, n: int, known: int | None) -> Ints:
    if given is None:
        if known is not None and known != 1 and known != n:
            raise ModelError(f"{known} tables for {n} factors: say which factor reads which table with table_ids")
        return np.zeros(n, np.int64) if known == 1 else np.arange(n)
    ids = np.asarray(given)
    if ids.shape != (n,) or (n and ids.dtype.kind not in "iu"):
        raise ModelError(f"table_ids must be the number of a table for each of the {n} factors")
    if n and (ids.min() < 0 or (known is not None and ids.max() >= known)):
        raise ModelError(f"table_ids must be from 0 to {known - 1 if known else 'the number of tables'}")
    return ids.astype(np.int64)
