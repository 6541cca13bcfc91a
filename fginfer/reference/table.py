"""The pairwise oracle in plain Python on sorted lists, as appendix C-1 of Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon,
"Dual decomposed learning with factorwise oracle for structural SVM of large output domain" (2016) has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sortedcontainers import SortedList

from fginfer.sources.answers import Argmax


class ReferenceTable:
    """The pairwise oracle as appendix C-1 of the GDMM paper has it, on sorted lists, in plain Python.

    >>> table = ReferenceTable([[0.0, 1.0], [3.0, 2.0]])
    >>> table[1, 0]
    3.0
    """

    def __init__(self, values: ArrayLike) -> None:
        self._values = np.array(values, np.float64)
        rows, cols = self._values.shape
        # Keys sort by descending score, then ascending (row, column); -inf entries are in no list.
        self._whole: Any = SortedList()
        self._row: list[Any] = [SortedList() for _ in range(rows)]
        self._col: list[Any] = [SortedList() for _ in range(cols)]
        for a in range(rows):
            for b in range(cols):
                self._enter(a, b)

    def _enter(self, a: int, b: int) -> None:
        theta = float(self._values[a, b])
        if theta > -inf:
            for sorted_list in (self._whole, self._row[a], self._col[b]):
                sorted_list.add((-theta, a, b))

    def __getitem__(self, state: tuple[int, int]) -> float:
        return float(self._values[state])

    def set(self, a: int, b: int, value: float) -> None:
        """One entry gets a new score."""
        old = float(self._values[a, b])
        if old > -inf:
            for sorted_list in (self._whole, self._row[a], self._col[b]):
                sorted_list.remove((-old, a, b))
        self._values[a, b] = value
        self._enter(a, b)

    def argmax(
        self,
        messages: Sequence[Mapping[int, float]],
        *,
        excluded: Sequence[int] | None = None,
        weight: float = 1.0,
    ) -> Argmax:
        """The best of the four regions: both labels have a message, one of them has, neither has."""
        first, second = messages
        skip = None if excluded is None else tuple(excluded)

        def candidates(sorted_list: Any, delta: float, side: int | None) -> Iterator[tuple[float, int, int]]:
            """Entries without a message on the other side(s), down to the first value below the best of them."""
            best = -inf
            for minus, a, b in sorted_list:
                value = weight * -minus - delta
                if value < best:
                    return
                if (side != 0 and a in first) or (side != 1 and b in second) or (a, b) == skip:
                    continue
                best = value
                yield -value, a, b

        found = list(candidates(self._whole, 0.0, None))
        for a, delta in first.items():
            found += candidates(self._row[a], delta, 0)
            found += [
                (-((weight * float(self._values[a, b]) - delta) - other), a, b)
                for b, other in second.items()
                if self._values[a, b] > -inf and (a, b) != skip
            ]
        for b, delta in second.items():
            found += candidates(self._col[b], delta, 1)
        if not found:
            return Argmax(None, -inf)
        minus, a, b = min(found)
        return Argmax((a, b), -minus)
