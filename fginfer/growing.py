"""Growing: an array to which values are appended in amortised constant time."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Kind = TypeVar("Kind", bound=np.generic)


class Growing(Generic[Kind]):
    """`values` is a view of what is there so far; an append may move it elsewhere.

    >>> numbers = Growing(np.array([1, 2]))
    >>> numbers.append(np.array([3]))
    >>> numbers.values.tolist()
    [1, 2, 3]
    """

    def __init__(self, values: NDArray[Kind]) -> None:
        self._room = values
        self._n = len(values)

    @property
    def values(self) -> NDArray[Kind]:
        """All of them."""
        return self._room[: self._n]

    def append(self, more: NDArray[Kind]) -> None:
        """Adds values at the end."""
        n = self._n + len(more)
        if n > len(self._room):
            room = np.zeros(max(16, 2 * n), self._room.dtype)
            room[: self._n] = self.values
            self._room = room
        self._room[self._n : n] = more
        self._n = n
