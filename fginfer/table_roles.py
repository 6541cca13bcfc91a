"""TableRoles: which tables of a graph have a handle, which belong to equal arrays, and which mirror another one."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from fginfer.errors import ModelError
from fginfer.tables import ImplicitTable, TableRef


@dataclass
class TableRoles:
    """What a graph knows about its tables besides their scores. A copy or a pickle of the graph knows it, too."""

    shared: set[int] = field(default_factory=set)  # made for arrays without a name: equal arrays join them
    handles: dict[int, str] = field(default_factory=dict)  # the keys of the handles that add_table gave
    negatives: dict[int, int] = field(default_factory=dict)  # table -> the one with the opposite scores
    positives: dict[int, int] = field(default_factory=dict)  # the same, the other way round
    rewards: dict[int, ImplicitTable] = field(default_factory=dict)  # given ones that the core has written out only

    def copy(self) -> TableRoles:
        """An independent one."""
        return TableRoles(*(type(part)(part) for part in self._parts()))  # type: ignore[arg-type]

    def restore(self, before: TableRoles) -> None:
        """Takes back what happened since the copy was made."""
        self.__dict__.update(before.copy().__dict__)

    def _parts(self) -> tuple[set[int] | dict[int, str] | dict[int, int] | dict[int, ImplicitTable], ...]:
        return self.shared, self.handles, self.negatives, self.positives, self.rewards

    def named(self, index: int) -> TableRef:
        """A handle for a new table. Its key is random, so that no other graph in any process has given it."""
        self.handles[index] = os.urandom(8).hex()
        return TableRef(index, self.handles[index])

    def index(self, ref: TableRef, name: str) -> int:
        """The number of the table behind a handle; ModelError if another graph gave it."""
        if self.handles.get(ref.index) != ref.key or not ref.key:
            raise ModelError(f"{name}: {ref} is no handle of this graph; add_table gives one")
        return ref.index

    def pair(self, table: int, opposite: int) -> None:
        """From now on the two always hold opposite scores."""
        self.negatives[table], self.positives[opposite] = opposite, table

    def part(self, table: int) -> None:
        """The table goes on alone; another opposite is made when one is wanted."""
        del self.positives[self.negatives.pop(table)]

    def opposite(self, table: int) -> int | None:
        """The table that must hold the opposite scores, if there is one."""
        return self.negatives.get(table, self.positives.get(table))
