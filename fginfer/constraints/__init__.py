"""The part of a FactorGraph that knows constraints: factors that are said in words instead of tables."""

from __future__ import annotations

from collections.abc import Sequence

from fginfer.constraints.labels import LabelConstraints
from fginfer.constraints.logic import LogicConstraints
from fginfer.constraints.sums import SumConstraints
from fginfer.rules import Rule


class Constraints(SumConstraints, LogicConstraints, LabelConstraints):
    """Constraints over literals: (variable, label), true if the variable has the label, or (variable, label, False).

    `penalty` makes a constraint soft: it is subtracted once if the constraint is violated, with `per_unit=True` for
    each unit of violation. `when` is a literal: where it is false, the constraint does not count.
    """

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The constraints, in the order in which they were added.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> handle = graph.add_clause([(0, 1), (1, 1)])
        >>> [rule.kind for rule in graph.rules]
        ['clause']
        """
        return tuple(self._rules)

    def take_rules(self, rules: Sequence[Rule]) -> None:
        """All constraints at once, as readers and conditioning have them."""
        with self.lock:
            self._rules = list(rules)


__all__ = ["Constraints"]
