"""Pairwise score tables that are never expanded: pass one to FactorGraph.add_factor in place of an array."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Potts:
    """`same` if both labels are equal, else `different`. An energy of beta for a change is Potts(0, -beta)."""

    same: float
    different: float


@dataclass(frozen=True)
class AbsDiff:
    """-weight * min(|a - b|, truncation)."""

    weight: float
    truncation: float = inf


@dataclass(frozen=True)
class SqDiff:
    """-weight * min((a - b)**2, truncation)."""

    weight: float
    truncation: float = inf


ImplicitTable = Potts | AbsDiff | SqDiff
