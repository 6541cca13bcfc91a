"""Constraints of logic: clauses, parity, implications and gates."""

from __future__ import annotations

from typing import Any

from fginfer.constraints.base import AnyLiteral, ConstraintBase, Literals
from fginfer.handles import Handle
from fginfer.rules.literals import literal_list
from fginfer.rules.make import check_penalty, output_rule, parity_rule


class LogicConstraints(ConstraintBase):
    """Literals as propositions."""

    def add_clause(self, literals: Literals, *, penalty: float | None = None, name: str | None = None) -> Handle:
        """At least one of the literals is true.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 3])
        >>> handle = graph.add_clause([(0, 1), (1, 2, False)])
        >>> graph.score([0, 2]), graph.score([0, 1])
        (-inf, 0.0)
        """
        return self._add_linear("clause", literals, None, 1, None, penalty, False, None, name)

    def add_implication(
        self, premise: Any, conclusion: AnyLiteral, *, penalty: float | None = None, name: str | None = None
    ) -> Handle:
        """If the premise (a literal, or all of a list of them) is true, so is the conclusion.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2])
        >>> handle = graph.add_implication((0, 1), (1, 1))
        >>> graph.score([1, 0]), graph.score([0, 0])
        (-inf, 0.0)
        """
        with self.lock:
            said = self._said("implication", name)
            every = premise if literal_list(premise) else [premise]
            clause = [literal.negated() for literal in self._literals(said, every)]
            clause.append(self._literal(said, conclusion))
        return self._add_linear("implication", clause, None, 1, None, penalty, False, None, name)

    def add_xor(self, literals: Literals, *, penalty: float | None = None, name: str | None = None) -> Handle:
        """An odd number of the literals is true.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_xor([(0, 1), (1, 1), (2, 1)])
        >>> graph.score([1, 1, 1]), graph.score([1, 1, 0])
        (0.0, -inf)
        """
        with self.lock:
            said = self._said("xor", name)
            price = check_penalty(said, penalty)
            return self._keep(parity_rule("xor", self._literals(said, literals), price, self._cards), name)

    def add_or_output(
        self, output: AnyLiteral, literals: Literals, *, penalty: float | None = None, name: str | None = None
    ) -> Handle:
        """The output is true exactly if one of the literals is, or several are.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_or_output((2, 1), [(0, 1), (1, 1)])
        >>> graph.score([0, 1, 1]), graph.score([0, 1, 0])
        (0.0, -inf)
        """
        with self.lock:
            said = self._said("or output", name)
            price, out = check_penalty(said, penalty), self._literal(said, output)
            rule = output_rule("or output", out, self._literals(said, literals), price, self._cards)
            return self._keep(rule, name)

    def add_and_output(
        self, output: AnyLiteral, literals: Literals, *, penalty: float | None = None, name: str | None = None
    ) -> Handle:
        """The output is true exactly if all of the literals are.

        >>> from fginfer import FactorGraph
        >>> graph = FactorGraph([2, 2, 2])
        >>> handle = graph.add_and_output((2, 1), [(0, 1), (1, 1)])
        >>> graph.score([1, 1, 1]), graph.score([0, 1, 1])
        (0.0, -inf)
        """
        with self.lock:
            said = self._said("and output", name)
            price, out = check_penalty(said, penalty), self._literal(said, output).negated()
            every = [literal.negated() for literal in self._literals(said, literals)]
            return self._keep(output_rule("and output", out, every, price, self._cards), name)
