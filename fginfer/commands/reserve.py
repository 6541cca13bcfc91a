"""Memory that is kept back, so that an answer can be printed after a solver has used up all the rest."""

from __future__ import annotations

import mmap
from contextlib import suppress

_LEAST = 16 << 20  # bytes: what printing needs whatever the model
_PER_VARIABLE = 400  # bytes: a label as a number, in lists, and as text


class Reserve:
    """Addresses that nobody else is given until `release`. They take no pages, so keeping them costs nothing.

    Where they cannot be had the reserve is smaller, or none: the work may still succeed.
    """

    def __init__(self, variables: int) -> None:
        self._kept: mmap.mmap | None = None
        size = _LEAST + _PER_VARIABLE * variables
        while self._kept is None and size > 1 << 20:
            with suppress(OSError, ValueError, OverflowError, MemoryError):
                self._kept = mmap.mmap(-1, size)
            size //= 2

    def release(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None
