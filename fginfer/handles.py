"""Handles: how a factor or constraint is called after it was added, by what `add_...` returned or by its name."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.names import shown
from fginfer.rules import Rule
from fginfer.tables import AbsDiff, ImplicitTable, Potts, SqDiff, TableRef


@dataclass(frozen=True)
class Handle:
    """A factor or constraint of a graph: what every `add_...` returns. `set_weight` and `remove_factor` take it.

    `index` counts everything that was ever added. Copies of the graph take the handle as well; other graphs refuse it.

    >>> from fginfer import FactorGraph
    >>> FactorGraph([2, 2]).add_factor([0], [0.0, 1.0], name="prior")
    <Handle: factor 0 'prior'>
    """

    index: int
    name: str | None = None
    key: str = field(default="", repr=False)

    def __repr__(self) -> str:
        return f"<Handle: factor {self.index}{'' if self.name is None else f' {self.name!r}'}>"


@dataclass(frozen=True, eq=False)
class Folded:
    """A factor over one variable or none, which is part of a sum; `values` are its scores without the weight."""

    scope: tuple[int, ...]
    values: NDArray[np.float64]
    weight: float


@dataclass(frozen=True, eq=False)
class TableFactor:
    """A factor with a table. `given` is the table where the model does not hold it as it was given."""

    place: int  # where the builder has the factor
    scope: tuple[int, ...]
    weight: float
    transposed: bool
    given: TableRef | ImplicitTable | NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class RuleFactor:
    """A constraint as it was said, before any weight."""

    position: int  # among the rules of the graph
    rule: Rule


Record = Folded | TableFactor | RuleFactor


def record_of(scope: tuple[int, ...], table: Any, weight: float, transposed: bool, place: int) -> Record:
    """What is remembered of a factor that the builder has taken."""
    if len(scope) < 2:
        return Folded(scope, np.array(table, np.float64).reshape(-1), weight)
    if isinstance(table, TableRef | Potts | AbsDiff | SqDiff):
        return TableFactor(place, scope, weight, transposed, table)
    values = None
    if weight == 0:  # then the model holds zeros
        values = np.array(table, np.float64)
    return TableFactor(place, scope, weight, transposed, values)


@dataclass(eq=False)
class _Sum:
    """The scores of a variable before the first factor over it (None: zeros), and the factors that were added."""

    base: NDArray[np.float64] | None
    members: list[int] = field(default_factory=list)


class FactorLog:
    """What a graph remembers about the factors that have handles. A copy or a pickle of the graph has a copy of it."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.names: dict[str, int] = {}
        self._name_of: dict[int, str] = {}
        self.removed = 0
        self._sums: dict[tuple[int, ...], _Sum] = {}
        self._starts: list[int] = []  # from this index on handles have the key at the same place below
        self._keys: list[str] = []
        self._shared = True  # with a copy: what is added now is known here only

    def copy(self) -> FactorLog:
        """An independent one; what either of the two adds from now on, the other refuses."""
        out = FactorLog()
        out.records, out.names, out.removed = dict(self.records), dict(self.names), self.removed
        out._name_of = dict(self._name_of)
        out._sums = {scope: _Sum(s.base, list(s.members)) for scope, s in self._sums.items()}
        out._starts, out._keys = list(self._starts), list(self._keys)
        self._shared = True
        return out

    @property
    def has_sums(self) -> bool:
        """Is anything remembered of factors over one variable?"""
        return bool(self._sums)

    # -- additions ---------------------------------------------------------------------------------------------

    def check_name(self, name: str | None) -> None:
        """ModelError if a new factor cannot have this name."""
        if name is None:
            return
        if not isinstance(name, str) or not name:
            raise ModelError(f"the name of a factor must be a text that is not empty, not {name!r}")
        if name in self.names:
            raise ModelError(f"there is already a factor named {shown(name)}")

    def add(self, given: int, name: str | None, record: Record, before: NDArray[np.float64] | None = None) -> Handle:
        """A handle for the factor that is the last of those `given`; `before`: what a folded one was added to."""
        index = given - 1 + self.removed
        if self._shared:
            self._starts.append(index)
            self._keys.append(os.urandom(8).hex())
            self._shared = False
        if isinstance(record, Folded):
            if record.scope not in self._sums:
                self._sums[record.scope] = _Sum(None if before is None or not before.any() else before)
            self._sums[record.scope].members.append(index)
        self.records[index] = record
        if name is not None:
            self.names[name], self._name_of[index] = index, name
        return Handle(index, name, self._keys[-1])

    # -- finding -----------------------------------------------------------------------------------------------

    def find(self, factor: Handle | str) -> int:
        """The index of a factor by its handle or name."""
        if isinstance(factor, str):
            if factor not in self.names:
                raise ModelError(f"there is no factor named {shown(factor)}")
            return self.names[factor]
        if not isinstance(factor, Handle):
            raise ModelError(f"a factor is called by its handle or its name, not {factor!r}")
        at = bisect_right(self._starts, factor.index) - 1
        if at < 0 or self._keys[at] != factor.key:
            raise ModelError(f"{factor!r} is no handle of this graph")
        if factor.index not in self.records:
            raise ModelError(f"{factor!r} is no longer in the graph: it was removed, or set_unary has replaced it")
        return factor.index

    def handles(self) -> dict[tuple[str, int], Handle]:
        """Handles of factors with a table ("factor", place in the model), and of constraints ("rule", place there)."""
        out = dict[tuple[str, int], Handle]()
        for index, record in self.records.items():
            if not isinstance(record, Folded):
                where = ("rule", record.position) if isinstance(record, RuleFactor) else ("factor", record.place)
                key = self._keys[bisect_right(self._starts, index) - 1]
                out[where] = Handle(index, self._name_of.get(index), key)
        return out

    def folded(self, scope: tuple[int, ...]) -> tuple[NDArray[np.float64] | None, list[tuple[int, Folded]]]:
        """What the scores of a variable are the sum of: the base (None: zeros), then the factors."""
        found = self._sums[scope]
        members = [(k, self.records[k]) for k in found.members]
        return found.base, [(k, record) for k, record in members if isinstance(record, Folded)]

    # -- changes -----------------------------------------------------------------------------------------------

    def remove(self, index: int) -> None:
        """Forgets a factor that is no longer in the graph; constraints behind it move up."""
        record = self._forget(index)
        self.removed += 1
        if isinstance(record, Folded):
            self._sums[record.scope].members.remove(index)
        elif isinstance(record, RuleFactor):
            for k, other in self.records.items():
                if isinstance(other, RuleFactor) and other.position > record.position:
                    self.records[k] = replace(other, position=other.position - 1)

    def _forget(self, index: int) -> Record:
        name = self._name_of.pop(index, None)
        if name is not None:
            del self.names[name]
        return self.records.pop(index)

    def close(self, places: NDArray[np.int64]) -> None:
        """These places of factors with tables are no more, and those behind them move up."""
        factors = [(k, record) for k, record in self.records.items() if isinstance(record, TableFactor)]
        before = np.searchsorted(places, np.array([record.place for _, record in factors], np.int64))
        for (k, record), n in zip(factors, before.tolist(), strict=True):
            if n:
                self.records[k] = replace(record, place=record.place - n)

    def forget_sums(self, scope: tuple[int, ...] | None = None) -> None:
        """set_unary has replaced a sum (None: those of all variables): its factors are not known any more."""
        for which in [scope] if scope is not None else [s for s in self._sums if s]:
            found = self._sums.pop(which, None)
            for k in () if found is None else found.members:
                self._forget(k)
