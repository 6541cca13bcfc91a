"""Journal: what has changed in a graph, so that whoever follows it need not look at everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ENTRIES = 1 << 18  # a follower that is further behind looks at everything (chosen)


@dataclass(frozen=True)
class Unaries:
    """New unary scores of these variables; None: of all."""

    variables: NDArray[np.int32] | None


@dataclass(frozen=True)
class Table:
    """New entries of a table of the model."""

    table: int


@dataclass(frozen=True)
class Added:
    """A factor that came: the positive `weight` times the table. Its place is the one behind all others, or that of a
    factor that was removed."""

    variables: tuple[int, ...]
    table: Any  # Dense, Potts, AbsDiff or SqDiff
    weight: float
    transposed: bool
    place: int


@dataclass(frozen=True)
class Removed:
    """The factor at this place among those with tables is gone. The place stays empty."""

    place: int


@dataclass(frozen=True)
class Closed:
    """These empty places are no more, and factors behind them move up."""

    places: NDArray[np.int64]


@dataclass(frozen=True)
class Constant:
    """A new constant."""

    value: float


@dataclass(frozen=True)
class Other:
    """Whatever cannot be said more exactly."""


Entry = Unaries | Table | Added | Removed | Closed | Constant | Other


@dataclass
class Changes:
    """What happened between two looks, in its order."""

    entries: list[Entry] = field(default_factory=list)


class Journal:
    """Entries since somebody first asked. A mark is a place in it."""

    def __init__(self) -> None:
        self._start = 0
        self._entries: list[Entry] = []
        self._size = 0
        self._followed = False

    def mark(self) -> int:
        """From here on changes are written down."""
        self._followed = True
        return self._start + len(self._entries)

    @property
    def is_followed(self) -> bool:
        """Has anybody asked?"""
        return self._followed

    def note(self, entry: Entry) -> None:
        if not self._followed:
            return
        size = len(entry.variables) if isinstance(entry, Unaries) and entry.variables is not None else 1
        if self._size + size > MOST_ENTRIES:
            self._start += len(self._entries)
            self._entries, self._size = [], 0
        self._entries.append(entry)
        self._size += size

    def note_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.note(entry)

    def since(self, mark: int) -> Changes | None:
        """What came after the mark; None: that is not known any more."""
        return Changes(self._entries[mark - self._start :]) if mark >= self._start else None
