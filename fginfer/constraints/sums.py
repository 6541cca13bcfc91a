"""Constraints on how many literals are true, or on what the true ones weigh."""

from __future__ import annotations

from collections.abc import Sequence

from fginfer.constraints.base import AnyLiteral, ConstraintBase, Literals
from fginfer.constraints.checks import check_count, check_list, check_score
from fginfer.errors import ModelError
from fginfer.handles import Handle
from fginfer.rules.make import count_rule


class SumConstraints(ConstraintBase):
    """add_linear and its everyday spellings, and scores by count."""

    def add_linear(
        self,
        literals: Literals,
        weights: Sequence[float],
        low: float | None = None,
        high: float | None = None,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """The weights of the true literals add up to something from low to high; None is no limit.

        Weights may be real and negative; sums are exact, and a float counts as the decimal that it prints.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_linear([(0, 1), (1, 1), (2, 1)], [3, 2, 2], low=4)
        >>> graph.score([0, 1, 1]), graph.score([1, 0, 0])
        (0.0, -inf)
        """
        if low is None and high is None:
            raise ModelError("a linear constraint needs a lower limit, an upper limit, or both")
        return self._add_linear("linear", literals, weights, low, high, penalty, per_unit, when, name)

    def add_exactly_one(
        self,
        literals: Literals,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """One of the literals is true, and no other.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_exactly_one([(0, 1), (1, 1), (2, 1)])
        >>> graph.score([0, 1, 0]), graph.score([1, 1, 0])
        (0.0, -inf)
        """
        return self._add_linear("exactly one", literals, None, 1, 1, penalty, per_unit, when, name)

    def add_at_most(
        self,
        k: int,
        literals: Literals,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """No more than k of the literals are true.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_at_most(1, [(0, 1), (1, 1), (2, 1)], penalty=5.0, per_unit=True)
        >>> graph.score([1, 1, 1])
        -10.0
        """
        return self._add_linear("at most", literals, None, None, check_count(k), penalty, per_unit, when, name)

    def add_at_least(
        self,
        k: int,
        literals: Literals,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """k of the literals or more are true.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_at_least(2, [(0, 1), (1, 1)], when=(2, 1))
        >>> graph.score([0, 0, 0]), graph.score([0, 0, 1])
        (0.0, -inf)
        """
        return self._add_linear("at least", literals, None, check_count(k), None, penalty, per_unit, when, name)

    def add_between(
        self,
        low: int,
        high: int,
        literals: Literals,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """From low to high of the literals are true.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_between(1, 2, [(0, 1), (1, 1), (2, 1)])
        >>> graph.score([0, 0, 0]), graph.score([1, 0, 1])
        (-inf, 0.0)
        """
        return self._add_linear(
            "between", literals, None, check_count(low), check_count(high), penalty, per_unit, when, name
        )

    def add_budget(
        self,
        literals: Literals,
        weights: Sequence[float],
        limit: float,
        *,
        penalty: float | None = None,
        per_unit: bool = False,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """The weights of the true literals add up to no more than the limit.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> handle = graph.add_budget([(0, 1), (1, 1)], [0.1, 0.2], 0.3)
        >>> graph.score([1, 1])
        0.0
        """
        return self._add_linear("budget", literals, weights, None, limit, penalty, per_unit, when, name)

    def add_cardinality(
        self,
        literals: Literals,
        scores_by_count: Sequence[float],
        *,
        when: AnyLiteral | None = None,
        name: str | None = None,
    ) -> Handle:
        """The score is scores_by_count[c] where c of the n literals are true; there are n + 1 scores.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> handle = graph.add_cardinality([(0, 1), (1, 1)], [0.0, 3.0, 4.0])
        >>> graph.score([1, 1])
        4.0
        """
        with self.lock:
            said = self._said("cardinality", name)
            scores = [check_score(said, score) for score in check_list(said, "scores", scores_by_count)]
            on = None if when is None else self._literal(said, when)
            found = self._literals(said, literals)
            return self._keep(count_rule(said, "cardinality", found, scores, on, self._cards), name)
