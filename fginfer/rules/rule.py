"""Rule: what every constraint answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.rules import RuleHandle
from fginfer.errors import ModelError
from fginfer.rules.chain import Chain

Gains = Sequence[NDArray[np.float64]]
Masks = Sequence[NDArray[np.bool_]]


@dataclass(frozen=True)
class Table:
    """A small table that is part of a rule: its variables are those of the graph."""

    variables: tuple[int, ...]
    scores: Any  # an array, or an implicit table such as Potts


@dataclass(frozen=True)
class Star:
    """A rule as one auxiliary variable with `scores` per label, joined to each variable by a table."""

    variables: tuple[int, ...]
    scores: NDArray[np.float64]
    tables: tuple[NDArray[np.float64], ...]


Part = Chain | Table | Star


def scaled(weight: float, score: float) -> float:
    """weight * score; ModelError where that overflows."""
    out = weight * score
    if abs(out) == inf and abs(score) < inf:
        raise ModelError(f"weight {weight:g} times the scores of the constraint overflows")
    return out


class Rule(ABC):
    """A factor whose scores follow from what was said, over `variables` of a graph (each once).

    State and labels of a rule are those of its variables, in their order; `gains` hold a score per label of each.
    """

    kind: str
    variables: tuple[int, ...]

    @abstractmethod
    def score(self, labels: Sequence[int]) -> float:
        """The score of the labels of its variables; -inf if they are forbidden."""

    @abstractmethod
    def best(self, gains: Gains) -> tuple[list[int], float] | None:
        """The state with the largest score plus gains, and that sum; None if every state is forbidden."""

    @abstractmethod
    def propagate(self, allowed: Masks) -> list[NDArray[np.bool_]]:
        """The allowed labels that are left when labels without support are removed."""

    @abstractmethod
    def parts(self, allowed: Masks | None = None) -> list[Part]:
        """Small tables and chains whose sum is the rule, maximised over the states of chains and stars.

        Labels that are not `allowed` are forbidden anyway, so that parts need not be right about them.
        """

    @abstractmethod
    def restricted(self, fixed: Mapping[int, int], numbers: Mapping[int, int]) -> Rule | float:
        """The rule when variables are `fixed`; the others get new numbers. A number, if it is a constant then."""

    @abstractmethod
    def weighted(self, weight: float) -> Rule:
        """The rule with all scores times a weight > 0; what is forbidden stays so."""

    @abstractmethod
    def saved(self) -> dict[str, Any]:
        """What a file keeps: plain numbers, lists and texts, from which `load` makes it again."""

    @abstractmethod
    def forbids(self) -> bool:
        """Whether it forbids some state."""

    @abstractmethod
    def check(self, cards: Sequence[int]) -> None:
        """Raises a ValueError if it does not fit variables with so many labels: a file may say anything."""

    @abstractmethod
    def native(self) -> RuleHandle:
        """The rule in the core. ModelError where its numbers do not fit there, SolverError where there are too many."""

    def excess(self) -> Rule | None:
        """A rule with the score 0 for what this one allows, and less the further a state is from that; None: there is
        no such measure, or nothing is forbidden."""
        return None

    def entries(self) -> float:
        """About how many scores its chains hold; 0 where that is in proportion to what was said."""
        return 0.0

    def unit(self) -> float:
        """About the smallest difference between its best score and another one; 0 where all it allows scores alike."""
        return 0.0

    def rounding(self) -> float:
        """How far the tables of its parts, added up without rounding, may be from its score."""
        return 0.0

    def check_scope(self, cards: Sequence[int], own: Sequence[int]) -> None:
        """The part of `check` that all rules share: variables that exist, each once, with label counts `own`."""
        fits = all(0 <= v < len(cards) and cards[v] == n for v, n in zip(self.variables, own, strict=True))
        if not fits or len(set(self.variables)) < len(self.variables):
            raise ModelError(f"a rule ({self.kind}) does not fit the variables of the graph")

    def change(self, labels: Sequence[int], moves: Mapping[int, int]) -> float:
        """What the score changes by if the positions in `moves` get new labels; nan between two forbidden states."""
        after = list(labels)
        for position, label in moves.items():
            after[position] = label
        old, new = self.score(labels), self.score(after)
        return float("nan") if old == new == -inf else new - old
