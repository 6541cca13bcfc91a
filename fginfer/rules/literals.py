"""Literals (variable, label, true or false) and numbers that are summed without rounding."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fginfer.errors import ModelError
from fginfer.names import Names, variable_text


class Literal(NamedTuple):
    """The statement that a variable has a label, or with `positive` False that it has another one.

    >>> Literal(3, 1).holds([0, 0, 0, 1])
    True
    """

    variable: int
    label: int
    positive: bool = True

    def holds(self, labels: Sequence[int]) -> bool:
        """Whether a labeling of all variables makes it true."""
        return (labels[self.variable] == self.label) == self.positive

    def negated(self) -> Literal:
        """The opposite statement."""
        return Literal(self.variable, self.label, not self.positive)


def check_literal(
    name: str, given: Any, cards: Sequence[int] | NDArray[np.int32], names: Names | None = None
) -> Literal:
    """A literal as the rules take it: (variable, label) or (variable, label, bool)."""
    try:
        parts = tuple(given)
        if not 2 <= len(parts) <= 3:
            raise TypeError
        variable, label = operator.index(parts[0]), operator.index(parts[1])
        positive = parts[2] if len(parts) == 3 else True
        if not isinstance(positive, bool | np.bool_):
            raise TypeError
    except TypeError:
        raise ModelError(f"{name}: a literal is (variable, label) or (variable, label, False), not {given!r}") from None
    if not 0 <= variable < len(cards):
        raise ModelError(f"{name} refers to variable {variable}; there are {len(cards)}")
    if not 0 <= label < cards[variable]:
        who = variable_text(names, variable)
        raise ModelError(f"{name}: label {label} of {who} is out of range 0..{cards[variable] - 1}")
    return Literal(variable, label, bool(positive))


def literal_list(given: Any) -> bool:
    """Whether this is a list of literals, and no literal."""
    if isinstance(given, Literal) or not isinstance(given, Sequence) or isinstance(given, str):
        return False
    return not given or (isinstance(given[0], Sequence) and not isinstance(given[0], str))


def exact_number(name: str, what: str, value: Any) -> Fraction:
    """A number without rounding. A float is read as the decimal that it prints, so that 0.1 + 0.2 is 0.3."""
    if isinstance(value, bool | np.bool_ | str | bytes | complex):
        raise ModelError(f"{name}: {what} must be a number, not {value!r}")
    try:
        if isinstance(value, Rational):
            return Fraction(value)
        return Fraction(operator.index(value))
    except TypeError:
        pass
    try:
        real = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{name}: {what} must be a number, not {value!r}") from None
    if not isfinite(real):
        raise ModelError(f"{name}: {what} must be finite, not {value!r}")
    return Fraction(repr(real))
