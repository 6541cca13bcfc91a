"""Constraints on the labels of many variables: occurrences, sequences, and listed states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fginfer.constraints.base import ConstraintBase
from fginfer.constraints.checks import check_limits, check_rows, check_score
from fginfer.errors import ModelError
from fginfer.handles import Handle
from fginfer.rules import Automaton, Occurrences, Regular, Sparse
from fginfer.rules.make import check_penalty


class LabelConstraints(ConstraintBase):
    """All different, global cardinality, regular, sparse."""

    def add_all_different(
        self, variables: Sequence[int | str], *, price: float | None = None, name: str | None = None
    ) -> Handle:
        """No two variables have the same label; with a price, each variable beyond the first of its label costs that.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([3, 3, 3])
        >>> handle = graph.add_all_different([0, 1, 2], price=2.0)
        >>> graph.score([0, 1, 2]), graph.score([1, 1, 1])
        (0.0, -4.0)
        """
        with self.lock:
            said = self._said("all different", name)
            scope, cards = self._several(said, variables)
            most = max(cards, default=0)
            return self._keep(self._occurrences(said, "all different", scope, [0] * most, [1] * most, price), name)

    def add_global_cardinality(
        self,
        variables: Sequence[int | str],
        low: Mapping[int, int] | Sequence[int],
        high: Mapping[int, int] | Sequence[int],
        *,
        price: float | None = None,
        name: str | None = None,
    ) -> Handle:
        """Each label k occurs low[k] to high[k] times; with a price, each occurrence too many or too few costs that.

        Limits are lists with an entry per label, or dicts of the labels that have one.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_global_cardinality([0, 1, 2], low={1: 1}, high={1: 2})
        >>> graph.score([0, 0, 0]), graph.score([0, 1, 0])
        (-inf, 0.0)
        """
        with self.lock:
            said = self._said("global cardinality", name)
            scope, cards = self._several(said, variables)
            least = check_limits(said, low, max(cards, default=0), 0)
            most = check_limits(said, high, max(cards, default=0), len(scope))
            return self._keep(self._occurrences(said, "global cardinality", scope, least, most, price), name)

    def _occurrences(
        self, said: str, kind: str, scope: tuple[int, ...], low: list[int], high: list[int], price: Any
    ) -> Occurrences:
        for k, (least, most) in enumerate(zip(low, high, strict=True)):
            if least > most:
                raise ModelError(f"{said}: label {k} has the lower limit {least}, above the upper limit {most}")
        cost = check_penalty(said, price, "price")
        cards = tuple(self._cards[list(scope)].tolist())
        return Occurrences(kind, scope, cards, tuple(low), tuple(high), inf if cost is None else cost)

    def add_regular(self, variables: Sequence[int | str], automaton: Automaton, *, name: str | None = None) -> Handle:
        """The labels of the variables, in this order, are a sequence that the automaton accepts, with its score.

        >>> from fginfer import Automaton, FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_regular([0, 1, 2], Automaton([(0, 0, 0), (0, 1, 1, 0.5), (1, 0, 0)], final=[0, 1]))
        >>> graph.score([1, 0, 1]), graph.score([1, 1, 0])
        (1.0, -inf)
        """
        with self.lock:
            said = self._said("regular", name)
            scope, cards = self._several(said, variables)
            if not isinstance(automaton, Automaton):
                raise ModelError(f"{said}: it takes an Automaton, not {type(automaton).__name__}")
            return self._keep(Regular("regular", scope, cards, automaton, (-1,) * len(scope)), name)

    def add_sparse(
        self,
        variables: Sequence[int | str],
        states: ArrayLike,
        scores: ArrayLike,
        default: float = -inf,
        *,
        name: str | None = None,
    ) -> Handle:
        """A table of any size in which the listed states have scores of their own, and all others the default.

        states  one row per state: a label for each variable
        scores  one per state, or one number for all of them

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([10] * 30)
        >>> handle = graph.add_sparse(range(30), [[1] * 30, [2] * 30], [5.0, 6.0], default=0.0)
        >>> graph.score([2] * 30)
        6.0
        """
        with self.lock:
            said = self._said("sparse", name)
            scope, cards = self._several(said, variables)
            rows = check_rows(said, states, cards)
            try:
                given = np.broadcast_to(np.asarray(scores, np.float64), (len(rows),)).tolist()
            except (TypeError, ValueError):
                raise ModelError(f"{said}: {len(rows)} states need as many scores, or one number") from None
            values = tuple(check_score(said, score) for score in given)
            return self._keep(Sparse("sparse", scope, cards, rows, values, check_score(said, default)), name)
