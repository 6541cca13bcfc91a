"""Checks of what constraints are given; each error is one sentence that begins with the name of the constraint."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fginfer.errors import ModelError


def check_variable(said: str, given: Any, n: int) -> int:
    if not hasattr(given, "__index__"):
        raise ModelError(f"{said}: variables must be numbers or names, not {given!r}")
    if not 0 <= int(given) < n:
        raise ModelError(f"{said} refers to variable {int(given)}; there are {n}")
    return int(given)


def check_count(k: Any) -> int:
    """How many literals; a negative number is a mistake."""
    if isinstance(k, bool | np.bool_) or not hasattr(k, "__index__"):
        raise ModelError(f"the number of literals must be whole, not {k!r}")
    if int(k) < 0:
        raise ModelError(f"the number of literals must be 0 or more, not {int(k)}")
    return int(k)


def check_list(said: str, what: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ModelError(f"{said}: {what} must be a list of numbers, not {given!r}")
    return list(given)


def check_score(said: str, given: Any) -> float:
    try:
        score = float(given)
    except (TypeError, ValueError):
        raise ModelError(f"{said}: a score must be a number, not {given!r}") from None
    if isnan(score) or score == inf:
        raise ModelError(f"{said}: scores must be finite or -inf, not {score}")
    return score


def check_limits(said: str, given: Any, n: int, otherwise: int) -> list[int]:
    """A limit for each label."""
    out = [otherwise] * n
    pairs = given.items() if isinstance(given, Mapping) else enumerate(check_list(said, "limits", given))
    for label, limit in pairs:
        if not hasattr(label, "__index__") or not 0 <= int(label) < n:
            raise ModelError(f"{said}: there is no label {label!r}; there are {n}")
        out[int(label)] = check_count(limit)
    return out


def check_rows(said: str, states: ArrayLike, cards: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Listed states, checked: labels in range, no state twice."""
    try:
        rows = np.asarray(states)
        if rows.size == 0:
            return ()
        if rows.ndim != 2 or rows.shape[1] != len(cards) or not np.issubdtype(rows.dtype, np.integer):
            raise ValueError
    except ValueError:
        raise ModelError(f"{said}: states must be rows of {len(cards)} labels, one for each variable") from None
    bad = np.argwhere((rows < 0) | (rows >= np.array(cards)))
    if len(bad):
        row, column = map(int, bad[0])
        top = cards[column] - 1
        raise ModelError(f"{said}: state {row} has label {rows[row, column]}, out of range 0..{top}")
    found = tuple(map(tuple, rows.tolist()))
    if len(set(found)) < len(found):
        raise ModelError(f"{said}: a state is listed twice")
    return found
