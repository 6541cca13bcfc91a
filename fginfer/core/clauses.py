"""Clauses that are asked about under assumptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import begins
from fginfer.core.door import check, ffi, lib, new_error, pointer


class Clauses:
    """Literal 2 v says that v is true, 2 v + 1 that it is false; a clause wants one of its literals.

    >>> clauses = Clauses(2, [2], [1, 3])
    >>> clauses.ask([0, 2]), sorted(clauses.core())
    (False, [0, 2])
    >>> clauses.ask([0, 3])
    True
    """

    def __init__(self, n_vars: int, sizes: ArrayLike, literals: ArrayLike) -> None:
        """`sizes` are the numbers of literals of the clauses, which `literals` has one after the other."""
        begin, literals = begins(np.asarray(sizes, np.int64)), np.ascontiguousarray(literals, np.int32)
        out, error = ffi.new("fgi_clauses **"), new_error()
        check(lib.fgi_clauses_create(n_vars, len(begin) - 1, pointer(begin), pointer(literals), out, error), error)
        self._handle = ffi.gc(out[0], lib.fgi_clauses_free)
        self._n, self._asked = n_vars, 0

    def ask(self, literals: Sequence[int], seconds: float = 0.03) -> bool | None:
        """Whether all of these can be true; None: about `seconds` were not enough, `go_on` does."""
        given, error = np.array(literals, np.int32), new_error()
        self._asked = len(given)
        check(lib.fgi_clauses_ask(self._handle, pointer(given), len(given), error), error)
        return self.go_on(seconds)

    def go_on(self, seconds: float = 0.03) -> bool | None:
        """The same question, for some time more."""
        status, error = ffi.new("int32_t *"), new_error()
        check(lib.fgi_clauses_run(self._handle, seconds, status, error), error)
        return None if status[0] == lib.FGI_RUNNING else bool(status[0] == lib.FGI_OPTIMAL)

    def core(self) -> list[int]:
        """Those of the literals that cannot be true together; none: the clauses contradict each other by themselves."""
        out = np.zeros(self._asked, np.int32)
        n = lib.fgi_clauses_core(self._handle, pointer(out))
        return [int(x) for x in out[:n]]

    def values(self) -> NDArray[np.uint8]:
        """After True: a solution."""
        out = np.zeros(self._n, np.uint8)
        lib.fgi_clauses_values(self._handle, pointer(out))
        return out
