"""Folding: factors over one variable or none become unary scores and a constant, by sums without any rounding.

A sum is stored as the nearest double. What that loses is kept as *leftovers*: further scores of the same variable,
which count when labelings are scored (see csrc/model/leftovers.h and docs/how/decisions/0001-exact-folding.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import ModelArrays
from fginfer.errors import ModelError

CONSTANT = -1  # the variable that leftovers of the constant have

Row = NDArray[np.float64]


def exact_sum(rows: Sequence[Row], name: str) -> list[Row]:
    """Their sum as rows: the nearest doubles first, then what is left of it, row by row, until nothing is.

    Raises ModelError, which begins with `name`, where finite scores add up to more than a double holds.
    """
    if len(rows) == 2:
        quick = _exact_pair(*rows)
        if quick is not None:
            return quick
    try:
        entries = [expansion(terms) for terms in zip(*(row.tolist() for row in rows), strict=True)]
    except OverflowError:
        raise ModelError(f"{name}: the scores of one label add up to more than a double holds") from None
    longest = max(map(len, entries), default=1)
    return [np.array([e[k] if k < len(e) else 0.0 for e in entries]) for k in range(longest)]


def expansion(terms: Sequence[float]) -> list[float]:
    """The sum as doubles that add up to it exactly, each the nearest one to what those before it leave.

    Raises OverflowError where finite numbers add up to more than a double holds.
    """
    if -inf in terms:
        return [-inf]
    parts, left = list[float](), list(terms)
    while not parts or fsum(left):
        parts.append(fsum(left))
        left.append(-parts[-1])
    return parts


def _exact_pair(a: Row, b: Row) -> list[Row] | None:
    """The same of two rows at once (Knuth's two-sum); None where a number is not finite."""
    with np.errstate(all="ignore"):
        total = a + b
        of_b = total - a
        lost = (a - (total - of_b)) + (b - of_b)
    if not np.isfinite(lost).all():
        return None
    return [total, lost] if lost.any() else [total]


class Leftovers:
    """What unary scores lost, variable by variable."""

    def __init__(self, arrays: ModelArrays | None = None) -> None:
        self._rows: dict[int, Sequence[Row]] = {}
        at = 0
        for variable in () if arrays is None else arrays.leftover_var.tolist():
            assert arrays is not None
            size = 1 if variable == CONSTANT else int(arrays.cards[variable])
            self._rows[variable] = [*self._rows.get(variable, ()), arrays.leftover[at : at + size]]
            at += size

    def copy(self) -> Leftovers:
        """Independent of this one; rows never change."""
        other = Leftovers()
        other._rows = self._rows.copy()
        return other

    @property
    def rows(self) -> Mapping[int, Sequence[Row]]:
        """By variable, CONSTANT among them."""
        return self._rows

    def folded(self, variable: int, old: Row, scores: Row, name: str) -> list[Row]:
        """Old and new scores of a variable and what the old ones lost, as `exact_sum` gives them; nothing changes."""
        return exact_sum([old, *self._rows.get(variable, ()), scores], name)

    def keep(self, variable: int, rows: Sequence[Row]) -> None:
        """From now on this is what the variable lost."""
        if rows:
            self._rows[variable] = rows
        elif self._rows:
            self._rows.pop(variable, None)

    def add(self, variable: int, old: Row, scores: Row, name: str) -> Row:
        """The sum of old and new scores, rounded once; what rounding took is kept here."""
        total, *rest = self.folded(variable, old, scores, name)
        self.keep(variable, rest)
        return total

    def put(self, arrays: ModelArrays) -> None:
        """Into the arrays of a model."""
        variables = sorted(self._rows)
        arrays.leftover_var = np.array([v for v in variables for _ in self._rows[v]], np.int32)
        arrays.leftover = np.concatenate([np.zeros(0), *(row for v in variables for row in self._rows[v])])


def leftovers_at(arrays: ModelArrays, labels: NDArray[np.int32]) -> list[float]:
    """What the scores of a labeling have lost: terms that belong to their sum."""
    rows = Leftovers(arrays).rows.items() if len(arrays.leftover_var) else ()
    return [float(row[0 if v == CONSTANT else labels[v]]) for v, mine in rows for row in mine]
